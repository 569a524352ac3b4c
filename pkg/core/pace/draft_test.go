package pace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// newInstance returns an Instance whose plan deploy has that state.
func newInstance(name string, state kudo.ExecutionStatus) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: types.UID(name)},
		Status: kudo.InstanceStatus{
			Execution:  &kudo.Execution{UID: "x", Plan: kudo.DeployPlan},
			PlanStatus: map[string]kudo.PlanStatus{kudo.DeployPlan: {Name: kudo.DeployPlan, Status: state}},
			Inventory:  []kudo.InventoryEntry{{Kind: "ConfigMap", Name: name, Pending: true}},
		},
	}
}

func TestDraftContinuesWhereItEnded(t *testing.T) {
	for what, plans := range map[string]map[string]kudo.PlanStatus{
		"of a plan": newInstance("a", kudo.Pending).Status.PlanStatus,
		"of a status without plans, edited or restored": nil,
	} {
		t.Run(what, func(t *testing.T) {
			stored := newInstance("a", kudo.Pending)
			stored.Status.PlanStatus = plans
			before := stored.DeepCopy()
			later := newInstance("a", kudo.InProgress).Status
			later.Inventory[0].Pending = false
			d := NewDraft(stored).With(later, 2, map[kudo.InventoryEntry]int{{Name: "a"}: 1})
			if !d.Started || d.Round != 2 || len(d.Claims) != 1 {
				t.Errorf("started %t in round %d with %d claims", d.Started, d.Round, len(d.Claims))
			}
			if diff := cmp.Diff(later, d.Onto(stored).Status); diff != "" {
				t.Errorf("continues with another status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, stored); diff != "" {
				t.Errorf("the stored Instance was changed:\n%s", diff)
			}
		})
	}
}

func TestWhatIsRecordedNeedsNoDraft(t *testing.T) {
	recorded := newInstance("a", kudo.InProgress)
	d := NewDraft(recorded).With(*recorded.Status.DeepCopy(), 1, nil)
	if d.Started || d.Onto(recorded) != recorded {
		t.Error("a pass without progress has a draft")
	}
}

func TestDraftIsOfOneStatus(t *testing.T) {
	acknowledged := newInstance("a", kudo.Pending)
	acknowledged.Status.Children = []kudo.ChildStatus{{Task: "child"}}
	other := newInstance("a", kudo.Pending)
	other.UID = "another"
	listed := newInstance("a", kudo.Pending)
	listed.Status.Inventory[0].Pending = false
	for what, test := range map[string]struct {
		read *kudo.Instance
		want bool
	}{
		"the same status":                   {newInstance("a", kudo.Pending), true},
		"another writer's part of it":       {acknowledged, true},
		"another state of the execution":    {newInstance("a", kudo.FatalError), false},
		"another inventory":                 {listed, false},
		"another Instance of the same name": {other, false},
	} {
		d := NewDraft(newInstance("a", kudo.Pending)).With(newInstance("a", kudo.InProgress).Status, 1, nil)
		if got := d.IsOf(test.read); got != test.want {
			t.Errorf("%s: continues %t, want %t", what, got, test.want)
		}
	}
}
