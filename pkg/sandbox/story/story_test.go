package story

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func planOf(phases ...kudo.ExecutionStatus) kudo.PlanStatus {
	status := kudo.PlanStatus{Name: "deploy", Status: kudo.InProgress, Message: "waits"}
	for _, phase := range phases {
		status.Phases = append(status.Phases, kudo.PhaseStatus{Name: "p", Status: phase})
	}
	return status
}

func TestOvertaken(t *testing.T) {
	for name, test := range map[string]struct {
		status kudo.PlanStatus
		want   bool
	}{
		"one after the other":                   {planOf(kudo.Complete, kudo.InProgress, kudo.Pending), false},
		"all complete":                          {planOf(kudo.Complete, kudo.Complete), false},
		"the second begins before the first":    {planOf(kudo.Pending, kudo.InProgress), true},
		"the second is complete, not the first": {planOf(kudo.InProgress, kudo.Complete), true},
	} {
		if err := overtaken(test.status); (err != nil) != test.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestValidateNamesWhatIsNotThere(t *testing.T) {
	folder := t.TempDir()
	plugin := filepath.Join(folder, "plugin")
	if err := os.WriteFile(plugin, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join("..", "..", "..", "examples", "packages")
	for sentence, test := range map[string]struct {
		options Options
		problem string
	}{
		"everything exists":            {Options{Plugin: plugin, Packages: packages}, ""},
		"no plugin":                    {Options{Plugin: plugin + "x", Packages: packages}, "make build"},
		"the plugin is not executable": {Options{Plugin: folder, Packages: packages}, "is not an executable file"},
		"no packages in the folder":    {Options{Plugin: plugin, Packages: folder}, "finding package zookeeper"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := test.options.Validate()
			if test.problem == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("the error is %v, want one with %q", err, test.problem)
			}
		})
	}
}

func TestAFailingCommandIsShownOnce(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\necho 'error: no' >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &stage{Options: Options{Plugin: plugin, Out: &out}, printed: map[string]bool{}}
	for range 3 {
		if err := s.kubectlAddon(t.Context(), "package", "push", "p"); err == nil || !strings.Contains(err.Error(), "error: no") {
			t.Errorf("the error is %v", err)
		}
	}
	want := "   $ kubectl addon package push p\n     error: no\n   … failed; retrying for up to 2m0s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProgressReportsALineOncePerExecution(t *testing.T) {
	var out bytes.Buffer
	p := progress{out: &out}
	for _, execution := range []types.UID{"1", "1", "2"} {
		for _, line := range []string{"runs", "failed", "runs", "failed"} {
			p.reportOnce(execution, line)
		}
	}
	if diff := cmp.Diff("runs\nfailed\nruns\nfailed\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhere(t *testing.T) {
	const want = "deploy IN_PROGRESS (1 of 2 phases complete): waits"
	if got := where(planOf(kudo.Complete, kudo.InProgress)); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestHolders(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	subject := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("a", `{"f:status":{"f:conditions":{"k:{\"type\":\"Degraded\"}":{"f:status":{}}}}}`),
		entry("b", `{"f:spec":{"f:installNamespace":{}}}`),
		entry("c", `{"f:status":{"f:conditions":{"k:{\"type\":\"Degraded\"}":{"f:reason":{}},"k:{\"type\":\"Available\"}":{}}}}`),
	}}}
	got, err := holders(subject, "Degraded")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWritesCountsAllButLeases(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	text := `{"verb":"patch","user":{"username":"addon-manager"},"objectRef":{"resource":"instances","subresource":"status"}}
{"verb":"update","user":{"username":"addon-manager"},"objectRef":{"resource":"leases"}}
{"verb":"patch","user":{"username":"addon-manager"},"objectRef":{"resource":"instances","subresource":"status"}}
a line that was cut
`
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := writes(map[string]string{"hub": log})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"hub: addon-manager (patch instances/status)": 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
