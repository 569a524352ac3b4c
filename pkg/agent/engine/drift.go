package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// TrimManagedFields is the transformation of objects in the cache: of the managed fields, a digest of those that the engine has applied is kept.
func TrimManagedFields(object any) (any, error) {
	if applied, ok := object.(*unstructured.Unstructured); ok {
		drift.Trim(applied, fieldManager)
		return object, nil
	}
	return cache.TransformStripManagedFields()(object)
}

// maxComparisons limits the dry runs of a pass: other Instances wait for it.
const maxComparisons = 20

// comparison is the result of comparing the applied objects of an Instance with what its last execution has rendered. Without isKnown, condition Drifted
// stays as it is recorded.
type comparison struct {
	isKnown   bool
	condition *metav1.Condition
	objects   []kudo.DriftedObject

	// stopped describes a workload that another writer has scaled to zero; empty if there is none.
	stopped string

	// again is when there is more to compare.
	again time.Time
}

// compare compares applied objects of an Instance that is at rest, by dry runs of their apply: those that another writer has changed, and all of them
// once an interval. In mode Repair it puts back what differs.
func (p *pass) compare(ctx context.Context, o plan.Observation, x *execution, live liveObjects) comparison {
	if o.Instance.Spec.DriftModeOrDefault() == kudo.DriftOff {
		p.drifts.Forget(o.Instance.UID)
		return comparison{isKnown: true}
	}
	if !p.canCompare(o, x) {
		return comparison{}
	}
	recorded := meta.FindStatusCondition(o.Instance.Status.Conditions, kudo.ConditionDrifted)
	memory := p.drifts.Of(o.Instance.UID, x.UID, recorded != nil && recorded.Status != metav1.ConditionFalse, o.Now)
	memory.Repairing(o.Instance.Spec.DriftModeOrDefault() == kudo.DriftRepair && !o.Instance.Spec.Suspend)
	memory.StartRound()
	keys, left := p.compareEntries(ctx, x, memory, live)
	known := memory.Result(keys, left > 0)
	found := comparison{again: known.Again, stopped: drift.ZeroMessage(known.Findings)}
	found.isKnown = len(known.Findings) > 0 || known.AreCompared || known.Failure != nil || recorded != nil && left > 0
	if condition := drift.NewCondition(known.Findings, known.Failure); found.isKnown {
		found.condition, found.objects = &condition, drift.Status(known.Findings)
	}
	return found
}

// compareEntries compares the objects of the inventory that are due, up to maxComparisons. It returns the keys of all that are ever compared, and how many
// more could have been compared.
func (p *pass) compareEntries(ctx context.Context, x *execution, memory *drift.Memory, live liveObjects) (keys []drift.Key, left int) {
	left = maxComparisons
	for _, entry := range x.inventory.entries {
		if !isComparable(entry) {
			continue
		}
		keys = append(keys, keyOf(entry))
		if left > 0 && p.compareEntry(ctx, x, memory, entry, live) {
			left--
		}
	}
	return keys, left
}

// isComparable reports whether an object must exist as it was applied.
func isComparable(entry kudo.InventoryEntry) bool {
	return !entry.Manual && !entry.Pending && !entry.Hook && !entry.Surplus && entry.Kind != "Job"
}

// canCompare reports whether the last execution says what is wanted: it is complete, and nothing differs from it.
func (p *pass) canCompare(o plan.Observation, x *execution) bool {
	if x.Execution == nil || x.version == nil || p.hindrance != nil || o.IsLeaving() || len(x.Owed) > 0 || plan.Due(o.State()) != "" {
		return false
	}
	_, unknown := x.known.Of(x.ParametersFrom)
	return len(unknown) == 0 && o.Instance.Status.PlanStatus[x.Plan].Status == kudo.Complete
}

func keyOf(entry kudo.InventoryEntry) drift.Key {
	key := drift.Key{NamespacedName: types.NamespacedName{Namespace: entry.Namespace, Name: entry.Name}}
	key.Group, key.Kind = entry.Group, entry.Kind
	return key
}

// compareEntry compares an object of the inventory if it is due, and reports whether that took a request.
func (p *pass) compareEntry(ctx context.Context, x *execution, memory *drift.Memory, entry kudo.InventoryEntry, live liveObjects) bool {
	key := keyOf(entry)
	object, err := p.objects.readEntry(ctx, entry, asSeenOr(live))
	switch {
	case err != nil:
		memory.NoteFailure(key, nil, fieldManager, err, maxBackoff)
		return false
	case object.Live == nil && memory.IsWaiting(key):
		return false
	case object.Live == nil:
		memory.Note(key, nil, fieldManager, drift.Finding{Object: plan.Describe(object.Want), Gone: true})
		return memory.MayRepair(key) && p.recreate(ctx, x, memory, entry, object.Want)
	case object.IsDeleted(), !x.owner().Has(object), !memory.IsDue(key, object.Live, fieldManager):
		return false
	}
	finding, restored, err := p.compareObject(ctx, x, entry.Task, object.Live, memory.HasLost(key, object.Live, fieldManager))
	switch {
	case apierrors.IsConflict(err): // it was replaced, which leads to another pass
	case err != nil:
		memory.NoteFailure(key, object.Live, fieldManager, err, maxBackoff)
	default:
		memory.Note(key, object.Live, fieldManager, finding)
		if finding.IsDrift() && memory.MayRepair(key) {
			p.repair(ctx, x, memory, key, finding, object.Live, restored)
		}
	}
	return true
}

// recreate creates an object that is gone, and reports whether that took a request. Its template may render other values each time, as it is only compared
// for existence: then only a plan creates it.
func (p *pass) recreate(ctx context.Context, x *execution, memory *drift.Memory, entry kudo.InventoryEntry, listed *unstructured.Unstructured) bool {
	want, err := p.wantedOf(ctx, x, entry.Task, listed, nil)
	if want == nil && err == nil {
		return false
	}
	finding := drift.Finding{Object: plan.Describe(listed), Gone: true}
	if err != nil {
		memory.NoteFailure(keyOf(entry), nil, fieldManager, err, maxBackoff)
		return false
	}
	p.repair(ctx, x, memory, keyOf(entry), finding, nil, want)
	return true
}

// repair puts an object back; live is nil if it is gone. It is no execution: the object keeps the marks of the one that has applied it. An object that was
// created or replaced since is not changed.
func (p *pass) repair(
	ctx context.Context, x *execution, memory *drift.Memory, key drift.Key, finding drift.Finding, live, want *unstructured.Unstructured,
) {
	err := p.policy.Protects(want.GetNamespace())
	var repaired *unstructured.Unstructured
	if err == nil {
		repaired, err = apply.Onto(ctx, p.acting.client, live, want, fieldManager)
	}
	switch {
	case apierrors.IsConflict(err):
		return // its change or creation leads to another pass
	case err != nil:
		memory.NoteFailure(key, live, fieldManager, fmt.Errorf("repairing %s: %w", plan.Describe(want), p.conceal(want, err)), maxBackoff)
		return
	}
	memory.NoteRepair(key, repaired, fieldManager)
	p.objects.deletions.Remove(placeOf(repaired))
	p.objects.expectations.NoteIfNewer(repaired)
	p.metrics.repairs.Inc()
	p.events.Eventf(x.instance, nil, corev1.EventTypeWarning, "Repaired", "Compare", "%s",
		text.Prefix("put back: "+p.view.Masker().Text(finding.String()), maxNoteBytes))
}

// compareObject compares an object that exists with what its task renders, and returns what puts it back. lost is true if the engine has lost fields of
// it for certain.
func (p *pass) compareObject(
	ctx context.Context, x *execution, task string, live *unstructured.Unstructured, lost bool,
) (found drift.Finding, restored *unstructured.Unstructured, err error) {
	want, err := p.wantedOf(ctx, x, task, live, live)
	if want == nil || err != nil {
		return found, nil, err
	}
	p.metrics.comparisons.Inc()
	applied, err := apply.Trial(ctx, p.acting.client, live, want, fieldManager)
	if err != nil {
		return found, nil, fmt.Errorf("comparing %s: %w", plan.Describe(want), p.conceal(want, err))
	}
	if !drift.Differs(live, applied) {
		return found, nil, nil
	}
	current, err := p.objects.readLive(ctx, want) // with its managed fields, which the cache lacks
	if current == nil || err != nil || current.GetUID() != live.GetUID() {
		return found, nil, err
	}
	objects := drift.Objects{
		Live: current, Applied: applied, Manager: fieldManager, Opaque: want.GetKind() == "Secret" || p.view.IsOpaque(want),
		IsOlder: live.GetAnnotations()[kudo.AnnotationExecution] != string(x.UID) && !lost,
	}
	if restored = drift.Restored(objects, x.ignoredFields()); restored == nil {
		restored = want
	}
	return drift.Compare(objects, plan.Describe(want), x.ignoredFields()), restored, nil
}

// ignoredFields returns the fields whose changes are no drift, according to the Instance and its package.
func (x *execution) ignoredFields() []kudo.IgnoredFields {
	var ignored []kudo.IgnoredFields
	if x.instance.Spec.Drift != nil {
		ignored = slices.Clone(x.instance.Spec.Drift.Ignore)
	}
	if x.version.Drift != nil {
		ignored = append(ignored, x.version.Drift.Ignore...)
	}
	return ignored
}

// wantedOf returns what a task renders for a listed object, as it would be applied onto the live one; nil if it does not render the object, or another one
// each time. Templates can depend on their plan, phase and step: those that the object names render it, if the task is there.
func (p *pass) wantedOf(ctx context.Context, x *execution, task string, listed, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	places := slices.DeleteFunc(plan.Everywhere(x.version), func(placed plan.Placed) bool { return placed.Task.Name != task })
	if len(places) == 0 {
		return nil, nil
	}
	placed := places[len(places)-1]
	marks := listed.GetAnnotations()
	for _, other := range places {
		if other.Plan == marks[kudo.AnnotationPlan] && other.Phase == marks[kudo.AnnotationPhase] && other.Step == marks[kudo.AnnotationStep] {
			placed = other
		}
	}
	rendered := x.steadyTask(placed)
	if err := rendered.err; err != nil || rendered.transient != nil || !rendered.action.Makes() {
		return nil, err
	}
	wants, _, err := p.objects.placeAll(x.instance, rendered.objects)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(wants, func(want *unstructured.Unstructured) bool { return placeOf(want) == placeOf(listed) })
	if i < 0 {
		return nil, nil
	}
	return p.keepReplicas(ctx, render.RestartPods(wants[i], live, x.UID, x.inventory.restart(wants[i])), live)
}

// steadyTask returns a task with the objects that its templates render to each time. What a chart has rendered is kept.
func (x *execution) steadyTask(placed plan.Placed) renderedTask {
	isVolatile := func(name string) bool { return template.IsVolatile(x.version.Templates[name]) }
	if !slices.ContainsFunc(placed.Task.Spec.Resources, isVolatile) {
		return x.task(placed)
	}
	placed.Task.Spec.Resources = slices.DeleteFunc(slices.Clone(placed.Task.Spec.Resources), isVolatile)
	return x.renderTask(placed)
}
