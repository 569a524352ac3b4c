package removal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// Observation is what a decision depends on: an Instance, and what a pass has gathered and deleted so far.
type Observation struct {
	plan.Observation

	// Inventory is the inventory of the Instance as the deletions of the pass have left it; the Instance has the one that is recorded.
	Inventory []kudo.InventoryEntry
	// Deleted holds, for each Decision of kind Delete, the objects that still exist.
	Deleted [][]plan.Object

	// Known are the facts that were gathered.
	Known map[Fact]bool
	Tree  plan.Tree
	// Rendered are the outlines of all objects of the version, and RenderErr reports templates that cannot be rendered.
	Rendered  []*unstructured.Unstructured
	RenderErr error
	Search    Search
	// Remaining are the objects that a message names.
	Remaining []plan.Object
	// BeforeWait and AfterWait are what hooks of charts wait for, that run before and after the deletion; empty once they have succeeded.
	BeforeWait, AfterWait string

	// Err is why a fact cannot be gathered, or an object cannot be deleted.
	Err error
	// Masker masks sensitive values in messages.
	Masker sensitive.Masker
}

// Fact is a part of an Observation that is gathered when a decision needs it.
type Fact string

// The facts.
const (
	// FactTree is the Instance with its descendants.
	FactTree Fact = "tree"
	// FactRendered is what the version renders.
	FactRendered Fact = "rendered objects"
	// FactSearch is the result of a search for unlisted objects.
	FactSearch Fact = "search"
	// FactBefore and FactAfter are the progress of hooks of charts, which the pass advances when it gathers them.
	FactBefore Fact = "hooks before the deletion"
	FactAfter  Fact = "hooks after the deletion"
	// FactRemaining is what may be shown of remaining objects, and why the API server refuses their deletion.
	FactRemaining Fact = "remaining objects"
)

// Search is a search for objects of the Instance by their labels.
type Search struct {
	// Running is true if it has not ended; then there are no results.
	Running bool
	Found   []plan.Object
	Reads   Reads
}

// lacks reports whether a fact has to be gathered.
func (o Observation) lacks(fact Fact) bool { return !o.Known[fact] }

// rendered returns what the version renders; nothing for an untouched Instance.
func (o Observation) rendered() ([]*unstructured.Unstructured, error) {
	if IsUntouched(o.Instance) {
		return nil, nil
	}
	return o.Rendered, o.RenderErr
}

// deletable returns the recorded inventory without hooks of charts that are still to run, or are running: they are deleted last.
func (o Observation) deletable() []kudo.InventoryEntry {
	if len(o.Instance.Status.Tasks) > 0 {
		return plan.WithoutHooks(o.Instance.Status.Inventory)
	}
	return o.Instance.Status.Inventory
}

// isHook reports whether an object that a search has found is a hook of a chart that is deleted last.
func (o Observation) isHook(found plan.Object) bool {
	return len(o.Instance.Status.Tasks) > 0 && slices.ContainsFunc(o.Instance.Status.Inventory, func(e kudo.InventoryEntry) bool {
		return e.Hook && plan.Identity(e) == plan.Entry(found.Live, "")
	})
}

// retains returns which volume claims, by name, the package requests to keep.
func (o Observation) retains() func(claim string) bool {
	return plan.RetainedClaims(o.Rendered, o.RenderErr)
}

// hasListed reports whether the pass has listed objects: they are deleted once that is recorded.
func (o Observation) hasListed() bool { return plan.Adds(o.Instance.Status.Inventory, o.Inventory) }

// IsUntouched reports whether the Instance has never had objects: no execution was recorded, which happens before anything is applied. Such
// an Instance is removed without being rendered, because it may be the rendering that has kept it from starting.
func IsUntouched(instance *kudo.Instance) bool {
	return instance.Status.Execution == nil && len(instance.Status.Inventory) == 0 && !isRestored(instance)
}

// isRestored reports whether the inventory was restored from the hub.
func isRestored(instance *kudo.Instance) bool {
	return instance.Annotations[kudo.AnnotationInventoryRestored] != ""
}

// ExecutionOf returns the execution whose objects are deleted, with its version, which is nil if it is lost: the last one, or the desired
// one if nothing was started, because objects may remain from a cancelled removal.
func ExecutionOf(o plan.Observation) (*kudo.Execution, *kudo.OperatorVersionSpec) {
	if last := o.Instance.Status.Execution; last != nil {
		return last, o.Running
	}
	return &kudo.Execution{Parameters: o.Instance.Spec.Parameters}, o.Desired
}

// Kind is the kind of a Decision.
type Kind string

// The kinds of decisions.
const (
	// Gather gathers the needed fact, and decides again.
	Gather Kind = "gather"
	// Delete deletes objects, and decides again.
	Delete Kind = "delete"
	// Postpone ends the pass without a record, because a search has not ended.
	Postpone Kind = "postpone"
	// Record records what the removal waits for, or why it fails.
	Record Kind = "record"
	// Finish records that nothing is left.
	Finish Kind = "finish"
)

// Decision is what the agent does next.
type Decision struct {
	Kind Kind

	// Need is the fact that Gather gathers: FactSearch for these kinds, all if nil, and FactRemaining for these objects.
	Need    Fact
	Kinds   []schema.GroupKind
	Objects []plan.Object

	// Entries are of the objects that Delete deletes, and Inventory is the inventory before.
	Entries, Inventory []kudo.InventoryEntry

	// Status and the condition Ready are recorded by Record and Finish.
	Status kudo.InstanceStatus
	Ready  metav1.Condition
	// Again is true if the removal continues once the record is written.
	Again bool
	// MayDelay is true if the record may be delayed while the removal, which began at Since, is recent: most removals end soon.
	MayDelay bool
	Since    time.Time
	// Err is why the removal fails.
	Err error

	// Unsearched describes the kinds that could not be searched before Finish; empty if there are none.
	Unsearched string
}

// IsFinal reports whether the pass ends with the decision.
func (d Decision) IsFinal() bool { return d.Kind != Gather && d.Kind != Delete }

// deletion deletes objects, which are listed in the inventory.
func (o Observation) deletion(entries, inventory []kudo.InventoryEntry) Decision {
	return Decision{Kind: Delete, Entries: entries, Inventory: inventory}
}

// waiting records the objects that are left, and what else is waited for; empty if that is nothing.
func (o Observation) waiting(left []plan.Object, wait string) Decision {
	if len(left) > 0 && o.lacks(FactRemaining) {
		return Decision{Kind: Gather, Need: FactRemaining, Objects: left}
	}
	var parts []string
	if len(left) > 0 {
		parts = append(parts, plan.DeleteOutcome(o.Remaining).Message)
	}
	if len(left) > 1 {
		parts[0] = fmt.Sprintf("waiting for %d objects to be deleted: %s", len(left), parts[0])
	}
	if wait != "" {
		parts = append(parts, wait)
	}
	return o.record(strings.Join(parts, "; "))
}

// failed records why the removal fails.
func (o Observation) failed(err error) Decision {
	d := o.record(plan.OneLine(o.Masker.Text(err.Error())))
	d.Again, d.Err = o.hasListed(), err
	return d
}

// record records a message, and the inventory as the pass has left it.
func (o Observation) record(message string) Decision {
	status := *o.Instance.Status.DeepCopy()
	status.Inventory = slices.Clone(o.Inventory)
	return Decision{Kind: Record, Status: status, Ready: plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message)}
}
