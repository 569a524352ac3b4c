package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// authored returns an Instance whose agent has started its spec, and that has an author.
func authored() *kudo.Instance {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "n"}}
	i.Spec.OperatorVersion, i.Spec.Parameters = corev1.ObjectReference{Name: "kafka-1.0.0"}, map[string]string{"A": "1"}
	i.Status.Execution = &kudo.Execution{
		UID: "e", OperatorVersion: corev1.ObjectReference{Namespace: "c", Name: "kafka-1.0.0", UID: "v"}, Parameters: map[string]string{"A": "1"},
	}
	i.Spec.ChangedBy = author.With(kudo.ChangeAuthor{Manager: "before", Kind: "Instance", Name: "c/n"}, author.Values(VersionOf(i), i.Spec))
	return i
}

func TestAuthorsAreDeterminedWhenSomethingChanges(t *testing.T) {
	now := author.Writers{
		Values:  kudo.ChangeAuthor{Manager: "now", Kind: "Instance", Name: "c/n"},
		Request: kudo.ChangeAuthor{Manager: "asker", Kind: "Instance", Name: "c/n"},
	}
	asks := func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "r"} }
	for what, test := range map[string]struct {
		change  func(i *kudo.Instance)
		writers author.Writers
		want    []string
	}{
		"nothing":     {func(*kudo.Instance) {}, now, nil},
		"a parameter": {func(i *kudo.Instance) { i.Spec.Parameters["A"] = "2" }, now, []string{"changedBy now"}},
		"a version":   {func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "kafka-2.0.0" }, now, []string{"changedBy now"}},
		"a suspension, windows and labels": {func(i *kudo.Instance) {
			i.Spec.SuspendedBy, i.Spec.ClusterWindows, i.Labels = "x", "always", map[string]string{"a": "b"}
		}, now, nil},
		"an edited author":                  {func(i *kudo.Instance) { i.Spec.ChangedBy.Manager = "forged" }, now, []string{"changedBy now"}},
		"an author of an unknown writer":    {func(i *kudo.Instance) { i.Spec.Parameters["A"] = "2" }, author.Writers{}, []string{"changedBy -"}},
		"an Instance of an earlier release": {func(i *kudo.Instance) { i.Spec.ChangedBy = nil }, now, nil},
		"its change":                        {func(i *kudo.Instance) { i.Spec.ChangedBy = nil; i.Spec.Parameters["A"] = "2" }, now, []string{"changedBy now"}},
		"its references": {func(i *kudo.Instance) {
			i.Spec.ChangedBy = nil
			i.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "S"}}
		}, now, []string{"changedBy now"}},
		"one that has not run":            {func(i *kudo.Instance) { i.Spec.ChangedBy, i.Status.Execution = nil, nil }, now, []string{"changedBy now"}},
		"one whose writers are not known": {func(i *kudo.Instance) { i.Spec.ChangedBy, i.Status.Execution = nil, nil }, author.Writers{}, nil},
		"one of an add-on": {func(i *kudo.Instance) {
			i.Spec.Parameters["A"] = "2"
			i.OwnerReferences = []metav1.OwnerReference{{Controller: new(true)}}
		}, now, nil},
		"a request":                              {asks, now, []string{"requestedBy asker"}},
		"a request and a change":                 {func(i *kudo.Instance) { asks(i); i.Spec.Parameters["A"] = "2" }, now, []string{"changedBy now", "requestedBy asker"}},
		"a handled request":                      {func(i *kudo.Instance) { asks(i); i.Status.HandledRequests = append(i.Status.HandledRequests, "r") }, now, nil},
		"a request that the hub completes first": {func(i *kudo.Instance) { asks(i); i.Spec.PlanExecution.UID = "" }, now, nil},
		"a request to cancel":                    {func(i *kudo.Instance) { asks(i); i.Spec.PlanExecution.Cancel = true }, now, nil},
		"a request of the hub": {func(i *kudo.Instance) {
			asks(i)
			i.Spec.PlanExecution.UID = plan.RerunPrefix + "backup.x"
		}, now, nil},
		"a request whose author is recorded": {func(i *kudo.Instance) {
			asks(i)
			i.Spec.RequestedBy = author.With(now.Request, author.Request(i.Spec.PlanExecution))
		}, now, nil},
	} {
		t.Run(what, func(t *testing.T) {
			i := authored()
			test.change(i)
			var got []string
			for _, change := range AuthorsOf(i, test.writers, time.Now()) {
				manager := "-"
				if change.Author != nil {
					manager = change.Author.Manager
				}
				got = append(got, change.Field+" "+manager)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOriginOfChange(t *testing.T) {
	for what, test := range map[string]struct {
		own, want func(i *kudo.Instance)
		origin    Origin
		applied   bool // if all else that the hub writes is as desired
	}{
		"nothing changes":                          {nil, nil, OriginNone, true},
		"windows":                                  {nil, func(i *kudo.Instance) { i.Spec.Windows = "always" }, OriginNone, false},
		"a parameter":                              {nil, func(i *kudo.Instance) { i.Spec.Parameters["A"] = "2" }, OriginAny, false},
		"a version":                                {nil, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "kafka-2.0.0" }, OriginVersion, false},
		"both":                                     {nil, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name, i.Spec.Parameters = "kafka-2.0.0", nil }, OriginAny, false},
		"a user who edits the Instance":            {func(i *kudo.Instance) { i.Spec.Parameters["A"] = "2" }, nil, OriginNone, false},
		"a user who edits the author":              {func(i *kudo.Instance) { i.Spec.ChangedBy.Manager = "me" }, nil, OriginAny, false},
		"a user who removes the author":            {func(i *kudo.Instance) { i.Spec.ChangedBy = nil }, nil, OriginNone, true},
		"an earlier release, and windows":          {func(i *kudo.Instance) { i.Spec.ChangedBy = nil }, func(i *kudo.Instance) { i.Spec.Windows = "always" }, OriginNone, false},
		"an earlier release, and another version":  {func(i *kudo.Instance) { i.Spec.ChangedBy = nil }, func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "x" }, OriginVersion, false},
		"an earlier release, and another variable": {func(i *kudo.Instance) { i.Spec.ChangedBy = nil }, func(i *kudo.Instance) { i.Spec.Parameters = nil }, OriginAny, false},
	} {
		t.Run(what, func(t *testing.T) {
			own, want := authored(), authored()
			for _, i := range []*kudo.Instance{own, want} {
				i.OwnerReferences = []metav1.OwnerReference{{UID: "a", Controller: new(true)}}
			}
			want.Spec.ChangedBy = nil
			if test.own != nil {
				test.own(own)
			}
			if test.want != nil {
				test.want(want)
			}
			if got := OriginOf(own, want); got != test.origin {
				t.Errorf("origin %q, want %q", got, test.origin)
			}
			if got := IsApplied(own, want); got != test.applied {
				t.Errorf("applied: %t, want %t", got, test.applied)
			}
		})
	}
	if got := OriginOf(nil, authored()); got != OriginEnabling {
		t.Errorf("origin %q of a new Instance", got)
	}
}
