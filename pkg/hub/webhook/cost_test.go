package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// many is the number of parts in a hostile request.
const many = 50_000

// listOf returns a list of many equal items.
func listOf(item string) string { return "[" + strings.Repeat(item+",", many-1) + item + "]" }

// mapOf returns an object with many fields.
func mapOf(value string) string {
	fields := make([]string, many)
	for i := range fields {
		fields[i] = strconv.Quote(strconv.Itoa(i)) + ":" + value
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// hostile returns parts of objects that take much memory when they are decoded.
func hostile() map[string]string {
	return map[string]string{
		"empty objects": listOf("{}"), "objects": listOf(`{"a":0}`), "nested objects": listOf(`{"a":{}}`), "empty lists": listOf("[]"),
		"lists": listOf("[0]"), "texts": listOf(`"a"`), "escapes": listOf(`"\u0000"`), "integers": listOf("0"), "numbers": listOf("1.5"), "nulls": listOf("null"),
		"a map": mapOf("0"), "maps": listOf(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`),
		"a long text": strconv.Quote(strings.Repeat("x", 1<<20)), "many maps": mapOf(`{"a":0}`),
	}
}

// partsOf returns the parts of a text.
func partsOf(text []byte) (p parts) {
	p.add(text)
	return p
}

// requireCovered requires that the cost of a request is at least the memory that handler allocates for it.
func requireCovered(t *testing.T, of cost, handler http.Handler, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r = r.WithContext(log.IntoContext(r.Context(), logr.Discard()))
	r.Header.Set("Content-Type", "application/json")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	handler.ServeHTTP(httptest.NewRecorder(), r)
	runtime.ReadMemStats(&after)
	const fixed = 1 << 20
	allocated := int64(after.TotalAlloc-before.TotalAlloc) - fixed
	if estimated := of.of(partsOf([]byte(body))); estimated < allocated {
		t.Errorf("%d bytes, of which %v, take %d, more than the estimated %d", len(body), partsOf([]byte(body)), allocated, estimated)
	}
}

func TestTheCostOfAConversionIsCovered(t *testing.T) {
	for name, content := range hostile() {
		for desired, current := range map[string]string{"v1alpha1": "v1beta1", "v1beta1": "v1alpha1"} {
			t.Run(name+" to "+desired, func(t *testing.T) {
				requireCovered(t, conversionCost, http.HandlerFunc(convert), fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",`+
					`"request":{"uid":"x","desiredAPIVersion":"addon.open-cluster-management.io/%s","objects":[{"apiVersion":`+
					`"addon.open-cluster-management.io/%s","kind":"AddOnDeploymentConfig","metadata":{"name":"a"},"spec":{"x":%s}}]}}`, desired, current, content))
			})
		}
	}
}

// TestObjectsThatEtcdStoresCanBeConverted has the contents that cost most of those that the schemas of the add-on API accept.
func TestObjectsThatEtcdStoresCanBeConverted(t *testing.T) {
	const stored = 1536 << 10
	for name, item := range map[string]string{
		"spec.nodePlacement.tolerations, mandatoryDecisionGroups": `{},`,
		"tolerations with keys":                                   `{"key":""},`,
		"spec.proxyConfig.noProxy, subjects' groups":              `"",`,
		"spec.supportedConfigs":                                   `{"resource":""},`,
		"spec.customizedVariables":                                `{"name":"a"},`,
		"metadata.annotations":                                    `"a":"",`,
		"metadata.managedFields":                                  `"f:a":{"f:a":{}},`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := conversionCost.of(partsOf([]byte(strings.Repeat(item, stored/len(item))))); got > maxConversionCost {
				t.Errorf("costs %d MiB, more than %d MiB", got>>20, maxConversionCost>>20)
			}
		})
	}
}

func TestTheCostOfAnAdmissionIsCovered(t *testing.T) {
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	a := &admissions{scheme: scheme, answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "answers"}, []string{"resource", "answer"})}
	objects := map[string]string{}
	for name, content := range hostile() {
		objects[name+" in an unknown field"] = `"x":` + content
	}
	for _, field := range []string{"managedFields", "ownerReferences", "finalizers"} {
		objects[field] = `"metadata":{"` + field + `":` + listOf(map[bool]string{true: `"a"`, false: "{}"}[field == "finalizers"]) + `}`
	}
	objects["labels"] = `"metadata":{"labels":` + mapOf(`"a"`) + `}`
	versions, instances := map[string]string{}, map[string]string{}
	for _, field := range []string{"tasks", "parameters", "content"} {
		versions[field] = `"spec":{"` + field + `":` + listOf("{}") + `}`
	}
	versions["plans"], versions["templates"] = `"spec":{"plans":`+mapOf("{}")+`}`, `"spec":{"templates":`+mapOf(`"a"`)+`}`
	versions["phases"], versions["steps"] = `"spec":{"plans":{"a":{"phases":`+listOf("{}")+`}}}`, `"spec":{"plans":{"a":{"phases":[{"steps":`+listOf("{}")+`}]}}}`
	versions["pipes"], versions["rules"] = `"spec":{"tasks":[{"spec":{"pipe":`+listOf("{}")+`}}]}`, `"spec":{"permissions":{"rules":`+listOf("{}")+`}}`
	for _, field := range []string{"conditions", "inventory", "children", "tasks"} {
		instances[field] = `"status":{"` + field + `":` + listOf("{}") + `}`
	}
	instances["plans"] = `"status":{"planStatus":` + mapOf("{}") + `}`
	instances["references"] = `"spec":{"parametersFrom":` + listOf("{}") + `}`
	ofKind := func(kind string, handler http.Handler, of ...map[string]string) {
		for _, contents := range of {
			for name, content := range contents {
				t.Run(kind+": "+name, func(t *testing.T) {
					requireCovered(t, admissionCost, handler, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x","object":`+
						`{"apiVersion":"kudo.dev/v1beta1","kind":"`+kind+`",`+content+`}}}`)
				})
			}
		}
	}
	ofKind("OperatorVersion", reviewOf(a, "operatorversions", approve[*kudo.OperatorVersion]), objects, versions)
	ofKind("Instance", reviewOf(a, "instances", approve[*kudo.Instance]), objects, instances)
}

func approve[O client.Object](context.Context, write[O]) (opinion, error) { return opinion{}, nil }

// FuzzParts compares the parts of a text with those of the values that it is decoded to.
func FuzzParts(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` [ ] `, `[{}, []]`, `{"a": "}{][,\"\\", "b": [1, "\\\\", null]}`, `"a,b"`, `"`, `{"a":{"b":{"c":[[[]]]}}}`, `[1 , 2]`, `{"a":1,"a":{}}`, `["\`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := partsOf(text)
		var pieces parts
		for _, b := range text {
			pieces.add([]byte{b})
		}
		if pieces != got {
			t.Errorf("got %v of the bytes of %q, want %v", pieces, text, got)
		}
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		got.values++ // the text itself
		var want parts
		count(value, &want)
		// A name that occurs twice has one value.
		if got.values+got.empty < want.values+want.empty || got.containers+got.empty < want.containers+want.empty {
			t.Errorf("got %v of %q, want %v", got, text, want)
		}
		if once := !bytes.Contains(text, []byte(`"`)); once && got.containers != want.containers {
			t.Errorf("got %v of %q, want %v", got, text, want)
		}
	})
}

// count adds the parts of a decoded value.
func count(value any, p *parts) {
	p.values++
	switch v := value.(type) {
	case []any:
		if len(v) == 0 {
			p.empty++
			return
		}
		p.containers++
		for _, item := range v {
			count(item, p)
		}
	case map[string]any:
		if len(v) == 0 {
			p.empty++
			return
		}
		p.containers++
		for _, item := range v {
			count(item, p)
		}
	}
}
