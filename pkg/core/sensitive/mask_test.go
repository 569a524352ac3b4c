package sensitive_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
	"github.com/tandem-addons/tandem/pkg/text"
)

func TestMessagesAreMasked(t *testing.T) {
	const value = `hunter2/"'<%`
	encoded := func(plain string) string { return base64.StdEncoding.EncodeToString([]byte(plain)) }
	masker := sensitive.NewMasker(sensitive.Values{"a": value, "b": "first line\nsecond  line", "c": value + "-longer"})
	for name, test := range map[string]struct{ message, want string }{
		"none":                    {"nothing to hide", "nothing to hide"},
		"as it is":                {"got " + value + "!", "got *****!"},
		"the longer of two":       {"got " + value + "-longer!", "got *****!"},
		"quoted in Go":            {fmt.Sprintf("got %q!", value), `got "*****"!`},
		"quoted in JSON":          {`got "hunter2/\"'\u003c%"!`, `got "*****"!`},
		"quoted in JSON, literal": {`got "hunter2/\"'<%"!`, `got "*****"!`},
		"quoted in YAML":          {`got 'hunter2/"''<%'!`, `got '*****'!`},
		"in a URL":                {"got https://x:hunter2%2F%22%27%3C%25@db", "got https://x:*****@db"},
		"in base64":               {"got " + encoded(value) + "!", "got *****!"},
		"in base64 with its line": {"got " + encoded(value+"\n") + "!", "got *****!"},
		"of two lines":            {"got first line\nsecond  line!", "got *****!"},
		"one of its lines":        {"got second  line!", "got *****!"},
		"of two lines, on one":    {"got first line second line!", "got *****!"},
		"cut":                     {"got hunter2/", "got *****"},
		"cut in a base64":         {"got " + encoded(value)[:9], "got *****"},
		"cut too short to matter": {"got hun", "got hun"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := masker.Text(test.message); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	token := "begin-" + strings.Repeat("0123456789", 200) + "-end"
	masker = sensitive.NewMasker(sensitive.Values{"a": token}).With("scheme-part", "of…two")
	for name, test := range map[string]struct{ message, want string }{
		"another text":                      {"got scheme-part!", "got *****!"},
		"without its middle":                {"got " + text.Ends(token, 1000) + "!", "got *****…*****!"},
		"without its middle, twice":         {text.Ends("got "+text.Ends(token, 1000)+"!", 100), "got *****…*****!"},
		"without its end":                   {"got " + text.Head(token, 100) + " and more", "got *****… and more"},
		"without its end, in quotes":        {"got " + text.Quote(token) + " and more", `got "*****"… and more`},
		"without its begin":                 {"got " + text.Tail(token, 100) + "!", "got …*****!"},
		"nothing but its middle":            {"got a…" + token[:40] + "…", "got a…*****…"},
		"an ellipsis of its own":            {"got of…two!", "got *****!"},
		"an ellipsis of its own, shortened": {"got " + text.Head("of…two", 4) + "!", "got of…t…!"},
		"too little of it to matter":        {"got beg…end", "got beg…end"},
		"no part at the begin":              {"-end of it", "-end of it"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := masker.Text(test.message); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := masker.Foreign("6789-end of it"); got != "***** of it" {
		t.Errorf("shortened by others: %q", got)
	}
	masker = sensitive.NewMasker(sensitive.Values{"a": value})
	for _, before := range []string{"", "x", "xy", "xyz"} {
		for _, after := range []string{"", "x", "xy"} {
			message := encoded(before + value + after)
			inner := encoded(value)[4:8] // no text around it changes these
			got := masker.Text("got " + message)
			if !strings.Contains(got, sensitive.Mask) || before == "" && strings.Contains(got, inner) {
				t.Errorf("between %q and %q: %q is %q", before, after, message, got)
			}
		}
	}
}

func TestTextsOfObjectsAreMasked(t *testing.T) {
	masker := sensitive.NewMasker(sensitive.Values{"a": "hunter2", "b": "status"})
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"password": "hunter2", "port": int64(1), "list": []any{"a hunter2", true, nil}, "users": map[string]any{"hunter2": "x"}},
		"status": map[string]any{"phase": "Ready", "reason": "...nter2 is wrong"},
	}}
	want := map[string]any{
		"spec":   map[string]any{"password": "*****", "port": int64(1), "list": []any{"a *****", true, nil}, "users": map[string]any{"*****": "x"}},
		"status": map[string]any{"phase": "Ready", "reason": "...nter2 is wrong"},
	}
	if diff := cmp.Diff(want, masker.Texts(o).Object); diff != "" {
		t.Error(diff)
	}
	if password, _, _ := unstructured.NestedString(o.Object, "spec", "password"); password != "hunter2" {
		t.Errorf("the object is changed: %s", password)
	}
	if (sensitive.Masker{}).Texts(o) != o || masker.Texts(nil) != nil {
		t.Error("an object is copied without need")
	}
}

func TestErrorsAndStatusesAreMasked(t *testing.T) {
	masker := sensitive.NewMasker(sensitive.Values{"a": "hunter2"})
	err := masker.Error(fmt.Errorf("hunter2: %w", fs.ErrNotExist))
	if err.Error() != "*****: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if masker.Error(nil) != nil {
		t.Error("no error is one")
	}
	message := "got hunter2"
	status := kudo.InstanceStatus{
		Conditions: []metav1.Condition{{Message: message}},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": {Message: message, Phases: []kudo.PhaseStatus{{Message: message,
			Steps: []kudo.StepStatus{{Message: message, Tasks: []kudo.TaskStatus{{Message: message}}}}}}}},
		History: []kudo.HistoryEntry{{Message: message}},
	}
	if got := fmt.Sprint(masker.Status(status)); strings.Contains(got, "hunter2") || strings.Count(got, "got *****") != 6 {
		t.Error(got)
	}
	if got := fmt.Sprint(status); strings.Count(got, message) != 6 {
		t.Error("the status itself has changed")
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"a": message}, "status": map[string]any{"conditions": []any{map[string]any{"reason": "a", "message": message}}},
	}}
	masked := masker.Object(object)
	if diff := cmp.Diff(map[string]any{
		"spec": map[string]any{"a": message}, "status": map[string]any{"conditions": []any{map[string]any{"reason": "a", "message": "got *****"}}},
	}, masked.Object); diff != "" {
		t.Error(diff)
	}
	if conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); conditions[0].(map[string]any)["message"] != message {
		t.Error("the object itself has changed")
	}
	if err := sensitive.Conceal(fmt.Errorf("hunter2: %w", fs.ErrNotExist)); err.Error() != sensitive.NotShown || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if zero := (sensitive.Masker{}); zero.Text(message) != message {
		t.Error("nothing masks something")
	}
}

func FuzzMask(f *testing.F) {
	f.Add("hunter2", "got ", "!")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		if sensitive.Problem([]byte(value)) != "" || strings.Contains(sensitive.Mask, strings.TrimSpace(value)) {
			return
		}
		masker := sensitive.NewMasker(sensitive.Values{"a": value})
		for _, message := range []string{before + value + after, base64.StdEncoding.EncodeToString([]byte(value))} {
			if got := masker.Text(message); strings.Contains(got, value) && !strings.Contains(sensitive.Mask+before+sensitive.Mask+after+sensitive.Mask, value) {
				t.Errorf("%q is in %q", value, got)
			}
		}
	})
}

func TestMaskDiagnosis(t *testing.T) {
	const value = "geheimnis-42"
	d := &kudo.Diagnosis{
		Message: value,
		Pods: []kudo.DiagnosedPod{{Namespace: value, Name: value, Phase: value, Ready: value, Reason: value, Image: value, Logs: []kudo.DiagnosedLog{
			{Container: value, Lines: []string{"key " + value, "heimnis-42 is cut"}},
		}}},
		Events: []kudo.DiagnosedEvent{{Object: value, Reason: value, Message: value}},
	}
	before := d.DeepCopy()
	masked := sensitive.NewMasker(sensitive.Values{"KEY": value}).Status(kudo.InstanceStatus{Diagnosis: d})
	encoded, err := json.Marshal(masked)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(encoded), "heimnis") {
		t.Error(string(encoded))
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Error("the original has changed: ", diff)
	}
	if diff := cmp.Diff([]string{"key *****", "***** is cut"}, masked.Diagnosis.Pods[0].Logs[0].Lines); diff != "" {
		t.Error(diff)
	}
}
