package former_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/former"
)

var (
	one = corev1.ObjectReference{Namespace: "packages", Name: "kafka-1", UID: "1"}
	two = corev1.ObjectReference{Namespace: "packages", Name: "kafka-2", UID: "2"}
)

// settledStatus returns the status of an Instance that version one is completely applied to.
func settledStatus(change ...func(*kudo.InstanceStatus)) kudo.InstanceStatus {
	status := kudo.InstanceStatus{
		Execution: &kudo.Execution{OperatorVersion: one, Parameters: map[string]string{"A": "1"}, KubernetesVersion: "v1.37.0"},
		Whole:     &kudo.WholeVersion{OperatorVersion: one, Version: "1"},
	}
	for _, c := range change {
		c(&status)
	}
	return status
}

func TestWhatIsFormer(t *testing.T) {
	recorded := &kudo.FormerVersion{OperatorVersion: one, Version: "0"}
	kept := func(s *kudo.InstanceStatus) { s.Former = recorded }
	fresh := &kudo.FormerVersion{OperatorVersion: one, Version: "1", Parameters: map[string]string{"A": "1"}, KubernetesVersion: "v1.37.0"}
	for sentence, test := range map[string]struct {
		before  kudo.InstanceStatus
		started kudo.Execution
		want    *kudo.FormerVersion
	}{
		"a failed version that is not returnable ends it": {
			settledStatus(kept, func(s *kudo.InstanceStatus) {
				s.Execution.OperatorVersion = two
				s.Execution.DependencyVersion = "kept"
			}),
			kudo.Execution{OperatorVersion: corev1.ObjectReference{UID: "3"}}, nil,
		},
		"the first execution has none":                {kudo.InstanceStatus{}, kudo.Execution{OperatorVersion: one}, nil},
		"another version records what was applied":    {settledStatus(), kudo.Execution{OperatorVersion: two}, fresh},
		"the same version records nothing":            {settledStatus(), kudo.Execution{OperatorVersion: one}, nil},
		"a version that is not complete is not taken": {settledStatus(func(s *kudo.InstanceStatus) { s.Whole = nil }), kudo.Execution{OperatorVersion: two}, nil},
		"an owed plan neither":                        {settledStatus(func(s *kudo.InstanceStatus) { s.Execution.Owed = []kudo.OwedPlan{{Plan: "update"}} }), kudo.Execution{OperatorVersion: two}, nil},
		"after a failed version it stays":             {settledStatus(kept, func(s *kudo.InstanceStatus) { s.Execution.OperatorVersion = two }), kudo.Execution{OperatorVersion: corev1.ObjectReference{UID: "3"}}, recorded},
		"a retry keeps it":                            {settledStatus(kept), kudo.Execution{OperatorVersion: one}, recorded},
		"a return keeps it":                           {settledStatus(kept), kudo.Execution{OperatorVersion: two, Return: true}, recorded},
		"the cleanup plan drops it":                   {settledStatus(kept), kudo.Execution{OperatorVersion: one, Plan: kudo.CleanupPlan}, nil},
		"large values are not recorded": {
			settledStatus(func(s *kudo.InstanceStatus) { s.Execution.Parameters["A"] = strings.Repeat("x", 70_000) }), kudo.Execution{OperatorVersion: two}, nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			version := &kudo.OperatorVersionSpec{Returnable: test.before.Execution == nil || test.before.Execution.DependencyVersion != "kept"}
			if diff := cmp.Diff(test.want, former.After(test.before, version, &test.started)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	version := &kudo.OperatorVersionSpec{Version: "2", Returnable: true, Operator: corev1.ObjectReference{Name: "kafka"}}
	record := &kudo.FormerVersion{OperatorVersion: one}
	for want, f := range map[string]former.Failure{
		"":                             {Version: version, Former: version, Record: record},
		"what ran before is not known": {Version: version, Former: version},
		"the OperatorVersion that has failed is no longer":                      {Former: version, Record: record},
		`package kafka 2 does not declare that returning from it loses nothing`: {Version: &kudo.OperatorVersionSpec{Version: "2", Operator: version.Operator}, Former: version, Record: record},
		`OperatorVersion "kafka-1", which ran before, is no longer`:             {Version: version, Record: record},
		"lost": {Version: version, Former: version, Record: record, Lost: "lost"},
	} {
		if got := f.Problem(); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestIsInForce(t *testing.T) {
	spec := kudo.InstanceSpec{Parameters: map[string]string{"A": "1"}}
	r := &kudo.Return{OperatorVersion: two, Content: "c", Wanted: former.SpecDigest(spec)}
	content := func(digest string) func() string { return func() string { return digest } }
	for sentence, test := range map[string]struct {
		r       *kudo.Return
		change  func(*kudo.InstanceSpec)
		version corev1.ObjectReference
		content string
		want    bool
	}{
		"nothing was returned":        {r: nil, version: two},
		"nothing has changed":         {r: r, version: two, want: true},
		"equal content under another": {r: r, version: one, content: "c", want: true},
		"another version":             {r: r, version: one, content: "d"},
		"another value":               {r: r, version: two, change: func(s *kudo.InstanceSpec) { s.Parameters["A"] = "2" }},
		"another Secret": {r: r, version: two, change: func(s *kudo.InstanceSpec) {
			s.ParametersFrom = []kudo.ParameterFrom{{Name: "P"}}
		}},
		"another registry": {r: r, version: two, change: func(s *kudo.InstanceSpec) {
			s.ImageRegistries = []kudo.ImageRegistry{{Mirror: "m"}}
		}},
		"what changes no state": {r: r, version: two, want: true, change: func(s *kudo.InstanceSpec) {
			s.Suspend, s.Windows, s.OnFailure, s.PlanExecution.PlanName, s.ParametersFrom = true, "w", kudo.FailureStop, "backup", []kudo.ParameterFrom{}
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			changed := *spec.DeepCopy()
			if test.change != nil {
				test.change(&changed)
			}
			if got := former.IsInForce(test.r, changed, test.version, content(test.content)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestIsRetry(t *testing.T) {
	r := &kudo.Return{Plan: "upgrade", Execution: "x"}
	asks := kudo.PlanExecution{PlanName: "upgrade", UID: "new", Resume: "x"}
	if !former.IsRetry(r, asks) || former.IsRetry(nil, asks) || former.IsRetry(&kudo.Return{Plan: "upgrade"}, kudo.PlanExecution{PlanName: "upgrade"}) {
		t.Error("another request is one")
	}
	asks.Cancel = true
	if former.IsRetry(r, asks) {
		t.Error("a request to cancel is one")
	}
}

func TestTheCauseIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 5, time.UTC)
	before := kudo.InstanceStatus{PlanStatus: map[string]kudo.PlanStatus{"upgrade": {UID: "x", Message: strings.Repeat("x", 5000)}}}
	got := former.WithCause(&kudo.Return{Plan: "upgrade"}, before, now)
	if len(got.Cause) > 1024 || got.Execution != "x" || !got.Time.Equal(&metav1.Time{Time: now.Truncate(time.Second)}) {
		t.Errorf("got %d bytes, execution %s, time %s", len(got.Cause), got.Execution, got.Time)
	}
	if again := former.WithCause(got, kudo.InstanceStatus{}, now.Add(time.Hour)); !cmp.Equal(got, again) {
		t.Errorf("it has changed: %v", again)
	}
}
