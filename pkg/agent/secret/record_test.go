package secret

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

func configMap(name, message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "ns"}, "status": map[string]any{"message": message},
	}}
}

func newRecord() *Record {
	return &Record{known: map[string]bool{}, opaque: map[sensitive.Object]bool{}}
}

func TestARecordMasksWhatWasAdded(t *testing.T) {
	v := View{Values: sensitive.Values{"a": "hunter2"}, Record: newRecord()}
	const message = "hunter2, scheme and path"
	if got := v.Masker().Text(message); got != "*****, scheme and path" {
		t.Error(got)
	}
	v.Record.Add(nil, sensitive.Traces{Texts: []string{"scheme"}})
	v.Record.Add(nil, sensitive.Traces{Texts: []string{"path", "scheme"}})
	if got := v.Masker().Text(message); got != "*****, ***** and *****" {
		t.Error(got)
	}
	v.Values = sensitive.Values{"a": "other"}
	if got := v.Masker().Text(message); got != "hunter2, ***** and *****" {
		t.Error(got)
	}
	for i := range 5000 { // a template with random values
		v.Record.Add(nil, sensitive.Traces{Texts: []string{fmt.Sprintf("%d%s", i, strings.Repeat("x", 100))}})
	}
	if v.Record.bytes > maxRecordBytes || len(v.Record.texts) != len(v.Record.known) || v.Record.known["scheme"] || !v.Record.known[v.Record.texts[0]] {
		t.Errorf("%d bytes in %d texts, %d known", v.Record.bytes, len(v.Record.texts), len(v.Record.known))
	}
}

func TestARecordHidesMessagesOfOpaqueObjects(t *testing.T) {
	v := View{Values: sensitive.Values{"a": "hunter2"}, Record: newRecord()}
	plainly, opaque := configMap("a", "hunter2"), configMap("b", "hu")
	v.Record.Add([]*unstructured.Unstructured{plainly, opaque}, sensitive.Traces{Opaque: []sensitive.Object{sensitive.ObjectOf(opaque)}})
	cause := errors.New("hu")
	if err := v.Conceal(plainly, cause); !errors.Is(err, cause) {
		t.Error(err)
	}
	if err := v.Conceal(opaque, cause); err.Error() != sensitive.NotShown || !errors.Is(err, cause) || v.Conceal(opaque, nil) != nil {
		t.Error(err)
	}
	shown := v.MaskObjects([]plan.Object{{Want: plainly, Live: plainly}, {Want: opaque, Live: opaque}, {Want: opaque}})
	if message, _, _ := unstructured.NestedString(shown[0].Live.Object, "status", "message"); message != sensitive.Mask || shown[0].Opaque {
		t.Errorf("got %v", shown[0])
	}
	if !shown[1].Opaque || shown[2].Live != nil {
		t.Errorf("got %v", shown[1:])
	}
	v.Record.Add([]*unstructured.Unstructured{opaque}, sensitive.Traces{})
	if v.IsOpaque(opaque) {
		t.Error("it is still opaque although it was rendered again")
	}
}

// An expression could return a part of a value, which no masker finds.
func TestExpressionsReadNoSensitiveValues(t *testing.T) {
	v := View{Values: sensitive.Values{"a": "hunter2"}, Record: newRecord()}
	broker := configMap("a", "starts")
	broker.Object["spec"] = map[string]any{"password": "hunter2"}
	v.Record.Add([]*unstructured.Unstructured{broker}, sensitive.Traces{})
	rule := &kudo.HealthRule{Group: "x.example.com", Kind: "Broker", Healthy: "false", Message: "self.spec.password.find('^.{4}')"}
	shown := v.MaskObjects([]plan.Object{{Want: broker, Live: broker, Rule: rule}})
	if got := health.ByRule(shown[0].Live, rule); !strings.HasSuffix(got.Message, "is not healthy yet: ****") {
		t.Errorf("got %s", got.Message)
	}
	if got := health.ByRule(broker, rule); !strings.HasSuffix(got.Message, "is not healthy yet: hunt") {
		t.Errorf("the expression is not tried: %s", got.Message)
	}
}

func TestAnInstanceWithoutSensitiveParametersHasNoRecord(t *testing.T) {
	var v View
	v.Record.Add([]*unstructured.Unstructured{configMap("a", "a")}, sensitive.Traces{Texts: []string{"text"}})
	object := configMap("a", "text")
	if v.Masker().Text("text") != "text" || v.IsOpaque(object) || !v.Record.MarkComplete("x") {
		t.Error("something is masked")
	}
	if shown := v.MaskObjects([]plan.Object{{Live: object}}); shown[0].Live != object {
		t.Error("the object is copied")
	}
}

func TestARecordIsCompletedOncePerExecution(t *testing.T) {
	r := newRecord()
	if r.MarkComplete("a") || !r.MarkComplete("a") || r.MarkComplete("b") || !r.MarkComplete("b") {
		t.Error("it is completed never, or again")
	}
}

func TestNoMessageIsShownOnceTextsWereDropped(t *testing.T) {
	r := &Record{known: map[string]bool{}, opaque: map[sensitive.Object]bool{}}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "a"}}}
	r.Add([]*unstructured.Unstructured{object}, sensitive.Traces{Texts: []string{"hunter"}})
	if r.isOpaque(object) {
		t.Error("the object is opaque although all texts are known")
	}
	for i := range maxRecordBytes >> 10 {
		r.Add(nil, sensitive.Traces{Texts: []string{fmt.Sprint(i) + strings.Repeat("x", 1<<10)}})
	}
	err := View{Record: r}.Conceal(object, errors.New(`invalid value "hunter"`))
	if err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}
