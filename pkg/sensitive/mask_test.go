package sensitive_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sensitive"
)

func TestMessagesAreMasked(t *testing.T) {
	const value = `hunter2/"'<%`
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
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
	for _, before := range []string{"", "x", "xy", "xyz"} {
		for _, after := range []string{"", "x", "xy"} {
			text := encoded(before + value + after)
			inner := encoded(value)[4:8] // no text around it changes these
			got := masker.Text("got " + text)
			if !strings.Contains(got, sensitive.Mask) || before == "" && strings.Contains(got, inner) {
				t.Errorf("between %q and %q: %q is %q", before, after, text, got)
			}
		}
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
	}
	if got := fmt.Sprint(masker.Status(status)); strings.Contains(got, "hunter2") || strings.Count(got, "got *****") != 5 {
		t.Error(got)
	}
	if got := fmt.Sprint(status); strings.Count(got, message) != 5 {
		t.Error("the status itself has changed")
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
		for _, text := range []string{before + value + after, base64.StdEncoding.EncodeToString([]byte(value))} {
			if got := masker.Text(text); strings.Contains(got, value) && !strings.Contains(sensitive.Mask+before+sensitive.Mask+after+sensitive.Mask, value) {
				t.Errorf("%q is in %q", value, got)
			}
		}
	})
}
