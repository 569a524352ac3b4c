package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// branch returns an Instance of a tree whose cleanup plan is complete, with the listed objects.
func branch(name, parent string, inventory ...kudo.InventoryEntry) plan.Branch {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, Annotations: map[string]string{}}}
	if parent != "" {
		i.Annotations[kudo.AnnotationParent] = parent
	}
	i.Status.Inventory = inventory
	return plan.Branch{Instance: i, Clean: true}
}

// dirty returns the Instance with a cleanup plan that is not complete.
func dirty(b plan.Branch) plan.Branch {
	b.Clean = false
	return b
}

// saying returns the Instance with that message of condition Ready.
func saying(b plan.Branch, message string) plan.Branch {
	b.Instance.Status.Conditions = []metav1.Condition{plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message)}
	return b
}

func TestATreeIsRemovedAfterItsCustomResources(t *testing.T) {
	definition := kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.tandem.test"}
	gadget := kudo.InventoryEntry{Group: "tandem.test", Kind: "Gadget", Namespace: "apps", Name: "g"}
	foreign := kudo.InventoryEntry{Group: "other.test", Kind: "Widget", Namespace: "apps", Name: "w"}
	operator := kudo.InventoryEntry{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "operator"}
	const (
		none     = plan.Stage("")
		hold     = plan.StageHold
		cleanup  = plan.StageCleanup
		withdraw = plan.StageWithdraw
		deleting = "Gadget apps/g: is being deleted, held by finalizer x"
	)
	skipping := branch("aa", "", operator)
	skipping.Instance.Annotations[kudo.AnnotationSkipCleanup] = "true"
	for name, test := range map[string]struct {
		root        plan.Branch
		descendants []plan.Branch
		want        map[string]plan.Stage
		groups      plan.Groups
		cleanup     string // what the root waits for
		withdrawal  string
	}{
		"nothing changes below before the cleanup plan of the root is complete": {
			root: dirty(branch("aa", "", operator)), descendants: []plan.Branch{branch("aa.bb", "aa", definition, gadget)},
			want:       map[string]plan.Stage{"aa.bb": none},
			withdrawal: "Instance apps/aa.bb: its custom resources are deleted first",
		},
		"a tree without custom resources continues no plan": {
			root: branch("aa", "", operator), descendants: []plan.Branch{branch("aa.bb", "aa", operator), dirty(branch("aa.cc", "aa"))},
			want: map[string]plan.Stage{"aa.bb": hold, "aa.cc": hold},
		},
		"custom resources that the tree does not define wait": {
			root: branch("aa", ""), descendants: []plan.Branch{branch("aa.bb", "aa", foreign)},
			want: map[string]plan.Stage{"aa.bb": hold},
		},
		"those that the Instance defines are withdrawn": {
			root: branch("aa", "", operator), descendants: []plan.Branch{saying(branch("aa.bb", "aa", definition, gadget), deleting)},
			want:       map[string]plan.Stage{"aa.bb": withdraw},
			groups:     plan.Groups{"tandem.test": true},
			withdrawal: "Instance apps/aa.bb: its custom resources are deleted first: " + deleting,
		},
		"so are those that the root defines": {
			root: branch("aa", "", definition), descendants: []plan.Branch{branch("aa.bb", "aa", gadget)},
			want:       map[string]plan.Stage{"aa.bb": withdraw},
			groups:     plan.Groups{"tandem.test": true},
			withdrawal: "Instance apps/aa.bb: its custom resources are deleted first",
		},
		"so are those that another descendant defines, which say more than their definition": {
			root: branch("aa", "", operator), descendants: []plan.Branch{
				branch("aa.bb", "aa", definition), branch("aa.cc", "aa", operator), branch("aa.cc.ee", "aa.cc", gadget)},
			want:       map[string]plan.Stage{"aa.bb": withdraw, "aa.cc": withdraw, "aa.cc.ee": withdraw},
			groups:     plan.Groups{"tandem.test": true},
			withdrawal: "Instance apps/aa.cc.ee: its custom resources are deleted first",
		},
		"definitions are withdrawn for what users have created": {
			root: branch("aa", "", gadget), descendants: []plan.Branch{branch("aa.bb", "aa", definition)},
			want:       map[string]plan.Stage{"aa.bb": withdraw},
			groups:     plan.Groups{"tandem.test": true},
			withdrawal: "Instance apps/aa.bb: its custom resources are deleted first",
		},
		"once all are gone, the root continues": {
			root: branch("aa", "", operator), descendants: []plan.Branch{branch("aa.bb", "aa", operator)},
			want: map[string]plan.Stage{"aa.bb": hold},
		},
		"cleanup plans run before, those of parents first": {
			root: branch("aa", "", operator), descendants: []plan.Branch{
				branch("aa.cc", "aa", definition), saying(dirty(branch("aa.bb", "aa", operator)), `plan "cleanup" is running`), dirty(branch("aa.bb.ee", "aa.bb", gadget))},
			want:       map[string]plan.Stage{"aa.cc": cleanup, "aa.bb": cleanup, "aa.bb.ee": hold},
			groups:     plan.Groups{"tandem.test": true},
			cleanup:    `Instance apps/aa.bb: its plan "cleanup" runs first: plan "cleanup" is running`,
			withdrawal: "Instance apps/aa.bb.ee: its custom resources are deleted first",
		},
		"and then those of their children": {
			root: branch("aa", "", operator), descendants: []plan.Branch{
				branch("aa.cc", "aa", definition), branch("aa.bb", "aa", operator), dirty(branch("aa.bb.ee", "aa.bb", gadget))},
			want:       map[string]plan.Stage{"aa.cc": cleanup, "aa.bb": cleanup, "aa.bb.ee": cleanup},
			groups:     plan.Groups{"tandem.test": true},
			cleanup:    `Instance apps/aa.bb.ee: its plan "cleanup" runs first`,
			withdrawal: "Instance apps/aa.bb.ee: its custom resources are deleted first",
		},
		"unless the removal skips them": {
			root: skipping, descendants: []plan.Branch{dirty(branch("aa.bb", "aa", definition)), dirty(branch("aa.bb.ee", "aa.bb", gadget))},
			want:       map[string]plan.Stage{"aa.bb": withdraw, "aa.bb.ee": withdraw},
			groups:     plan.Groups{"tandem.test": true},
			withdrawal: "Instance apps/aa.bb.ee: its custom resources are deleted first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.root.Instance.Annotations[kudo.AnnotationHubDeleted] = "2026-01-01T12:00:00Z"
			tree := plan.Tree{Root: test.root, Descendants: test.descendants}
			for name, want := range test.want {
				departure := plan.Departure{}
				if want != none {
					departure = plan.Departure{Ancestor: "aa", Since: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Stage: want, Groups: test.groups}
				}
				if departure.Groups == nil && want != none {
					departure.Groups = plan.Groups{}
				}
				if diff := cmp.Diff(departure, tree.Departure(name)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if got := tree.CleanupWaitText(); got != test.cleanup {
				t.Errorf("waits for the cleanup plan: want %q, got %q", test.cleanup, got)
			}
			if got := tree.WithdrawalWaitText(); got != test.withdrawal {
				t.Errorf("waits for custom resources: want %q, got %q", test.withdrawal, got)
			}
		})
	}
}

func TestDecideBelowAnInstanceThatIsRemoved(t *testing.T) {
	below := func(stage plan.Stage) func(*plan.Observation) {
		return func(o *plan.Observation) {
			o.Departure = plan.Departure{Ancestor: "aa", Stage: stage, Groups: plan.Groups{"tandem.test": true}}
		}
	}
	withGadget := func(o *plan.Observation) {
		o.Instance.Status.Inventory = append(o.Instance.Status.Inventory, kudo.InventoryEntry{Group: "tandem.test", Kind: "Gadget", Name: "g"})
	}
	stopped := func(o *plan.Observation) {
		o.Instance.Status.Whole = nil
		o.Instance.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Whole: true}}
	}
	lost := func(o *plan.Observation) { o.Running = nil }
	const waits = `waiting for Instance "aa" to be removed`
	for name, test := range map[string]struct {
		observed plan.Observation
		want     plan.ActionKind
		starts   string
		message  string
		stops    string // the message of plan deploy
	}{
		"a changed parameter starts nothing":    {observed: newObservation(kudo.Complete, below(plan.StageHold), parameter("BACKUP", "b")), want: plan.ActionHold, message: waits},
		"the first plan does not start":         {observed: newObservation("", below(plan.StageWithdraw), neverStarted), want: plan.ActionHold, message: waits},
		"a plan that runs stays where it is":    {observed: newObservation(kudo.InProgress, below(plan.StageHold)), want: plan.ActionHold, message: waits},
		"and is stopped for custom resources":   {observed: newObservation(kudo.InProgress, below(plan.StageCleanup)), want: plan.ActionHalt, message: waits, stops: `stopped because Instance "aa" is being removed`},
		"also of a version that is lost":        {observed: newObservation(kudo.InProgress, below(plan.StageWithdraw), lost, withGadget), want: plan.ActionHalt, message: waits, stops: `stopped because Instance "aa" is being removed`},
		"a complete one is to run again":        {observed: newObservation(kudo.Complete, below(plan.StageWithdraw), withGadget), want: plan.ActionHalt, message: waits},
		"then custom resources are deleted":     {observed: newObservation(kudo.Complete, below(plan.StageWithdraw), withGadget, stopped), want: plan.ActionWithdraw},
		"then it waits":                         {observed: newObservation(kudo.Complete, below(plan.StageWithdraw), stopped), want: plan.ActionHold, message: waits},
		"and not while cleanup plans run":       {observed: newObservation(kudo.Complete, below(plan.StageCleanup), withGadget, stopped), want: plan.ActionHold, message: waits},
		"the cleanup plan starts":               {observed: newObservation(kudo.InProgress, below(plan.StageCleanup), withCleanup("")), want: plan.ActionStart, starts: "cleanup"},
		"it is not due yet":                     {observed: newObservation(kudo.Complete, below(plan.StageHold), withCleanup("")), want: plan.ActionHold, message: waits},
		"it continues":                          {observed: newObservation(kudo.Complete, below(plan.StageCleanup), withCleanup(kudo.InProgress)), want: plan.ActionStep},
		"it runs once":                          {observed: newObservation(kudo.Complete, below(plan.StageCleanup), withCleanup(kudo.Complete), stopped), want: plan.ActionHold, message: waits},
		"it is stopped if the removal skips it": {observed: newObservation(kudo.Complete, below(plan.StageWithdraw), withCleanup(kudo.InProgress), withGadget), want: plan.ActionHalt, message: waits},
		"its own removal comes first":           {observed: newObservation(kudo.Complete, requestRemoval), want: plan.ActionRemove},
		"a failed one says which Instance to annotate": {
			observed: newObservation(kudo.Complete, below(plan.StageCleanup), withCleanup(kudo.FatalError), func(o *plan.Observation) { o.CleanupWait = time.Minute }),
			want:     plan.ActionWait, message: `plan "cleanup" failed and will be retried: no image; if it cannot succeed, annotate Instance "aa" on the hub with ` +
				"kudo.dev/skip-cleanup=true to remove its objects without the plan, or run 'kubectl addon uninstall --release' to release the Instance and leave its objects",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Decide(test.observed)
			if got.Kind != test.want {
				t.Fatalf("want %s, got %s", test.want, got.Kind)
			}
			if got.Start.Start != nil && got.Start.Start.Plan != test.starts {
				t.Errorf("starts %q", got.Start.Start.Plan)
			}
			if got.Ready.Message != test.message {
				t.Errorf("want %q, got %q", test.message, got.Ready.Message)
			}
			if got.Kind != plan.ActionHalt {
				return
			}
			if message := got.Status.PlanStatus["deploy"].Message; message != test.stops {
				t.Errorf("plan deploy: want %q, got %q", test.stops, message)
			}
			before := test.observed.Instance.Status
			if runs := before.PlanStatus[before.Execution.Plan].Status.IsRunning(); runs != (len(got.Status.History) == 1 && got.Status.History[0].Outcome == kudo.HistoryCancelled) {
				t.Errorf("the history has %v", got.Status.History)
			}
			again := test.observed
			again.Departure, again.Running = plan.Departure{}, again.Desired
			again.Instance = again.Instance.DeepCopy()
			again.Instance.Status = got.Status
			if next := plan.Decide(again); next.Kind != plan.ActionStart || next.Start.Start.Plan != "deploy" {
				t.Errorf("if the removal is cancelled, everything is deployed again: got %+v", next)
			}
		})
	}
}
