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
	"k8s.io/apimachinery/pkg/runtime/schema"
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
// once an interval. In mode Repair it puts back what differs. While nothing or not everything can be compared, what is recorded is kept.
func (p *pass) compare(ctx context.Context, o plan.Observation, x *execution, live liveObjects) comparison {
	if o.Instance.Spec.DriftModeOrDefault() == kudo.DriftOff {
		p.drifts.Forget(o.Instance.UID)
		return comparison{}
	}
	recorded := meta.FindStatusCondition(o.Instance.Status.Conditions, kudo.ConditionDrifted)
	if !p.canCompare(o, x) {
		return comparison{stopped: p.stoppedOf(ctx, o.Instance.Status.Drift, live)}
	}
	memory := p.drifts.Of(o.Instance.UID, x.UID, recorded != nil && recorded.Status != metav1.ConditionFalse, o.Now)
	memory.SetRepairing(o.Instance.Spec.DriftModeOrDefault() == kudo.DriftRepair && !o.Instance.IsSuspended() && o.Window == nil)
	memory.StartRound()
	keys, left := p.compareEntries(ctx, x, memory, live)
	found := comparisonOf(memory.Result(keys, left > 0), recorded, o.Instance.Status.Drift, left > 0)
	found.stopped = p.stoppedOf(ctx, found.objects, live)
	return found
}

// comparisonOf returns what is reported after comparisons; areAll means that all objects that were due were compared. Drift that is recorded stays so until
// they are, and if one of them could not be compared, its objects do.
func comparisonOf(known drift.Result, recorded *metav1.Condition, objects []kudo.DriftedObject, areAll bool) comparison {
	found := comparison{again: known.Again, objects: drift.Status(known.Findings)}
	isDrifted := recorded != nil && recorded.Status != metav1.ConditionFalse
	switch {
	case isDrifted && !areAll:
		found.objects = objects
		return found
	case isDrifted && known.Failure != nil && len(found.objects) == 0:
		found.objects = objects
	}
	if found.isKnown = known.IsKnown() || recorded != nil && areAll; found.isKnown {
		condition := drift.NewCondition(known.Findings, known.Failure)
		found.condition = &condition
	}
	return found
}

// stoppedOf describes the first of these objects that another writer has scaled to zero; empty if there is none.
func (p *pass) stoppedOf(ctx context.Context, objects []kudo.DriftedObject, live liveObjects) string {
	for _, o := range objects {
		message := drift.StoppedText(o)
		if message == "" {
			continue
		}
		read, err := p.objects.readEntry(ctx, kudo.InventoryEntry{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, asSeenOr(live))
		if err != nil || read.Live == nil {
			continue
		}
		if replicas, found, _ := unstructured.NestedInt64(read.Live.Object, "spec", "replicas"); found && replicas == 0 {
			return message
		}
	}
	return ""
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

// canCompare reports whether the last execution says what is wanted: all is applied that is owed, no plan runs, and nothing differs from it. A plan that was
// requested manually may have failed.
func (p *pass) canCompare(o plan.Observation, x *execution) bool {
	if x.Execution == nil || x.version == nil || p.hindrance != nil || o.IsLeaving() || len(x.Owed) > 0 || plan.Due(o.State()) != "" {
		return false
	}
	_, unknown := x.known.Of(x.ParametersFrom)
	return len(unknown) == 0 && plan.IsWhole(o.Instance.Status) && o.Instance.Status.PlanStatus[x.Plan].Status.IsTerminal()
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
	case object.IsDeleted(), !x.owner().Has(object):
		memory.Ignore(key)
		return false
	default:
		return p.compareLive(ctx, x, memory, entry, object.Live)
	}
}

// compareLive compares an object that exists if it is due, and reports whether that took a request.
func (p *pass) compareLive(
	ctx context.Context, x *execution, memory *drift.Memory, entry kudo.InventoryEntry, live *unstructured.Unstructured,
) bool {
	key := keyOf(entry)
	switch {
	case !memory.IsDue(key, live, fieldManager, entry.Fields):
		return false
	case entry.Fields != "" && entry.Fields == drift.Digest(live, fieldManager): // another writer's change takes a field from the engine
		memory.Note(key, live, fieldManager, drift.Finding{})
		return false
	}
	isCertain := entry.Fields != "" || memory.HasLost(key, live, fieldManager)
	finding, restored, err := p.compareObject(ctx, x, entry.Task, live, isCertain)
	switch {
	case apierrors.IsConflict(err):
		memory.Postpone(key, time.Second)
	case err != nil:
		memory.NoteFailure(key, live, fieldManager, err, maxBackoff)
	default:
		memory.Note(key, live, fieldManager, finding)
		if finding.IsDrift() && memory.MayRepair(key) {
			p.repair(ctx, x, memory, key, finding, live, restored)
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
	if want == nil {
		memory.NoteFailure(key, live, fieldManager, fmt.Errorf("%s can only be put back by a plan, because its fields were applied in another version", finding.Object), maxBackoff)
		return
	}
	err := p.policy.Protects(want.GetNamespace())
	var repaired *unstructured.Unstructured
	if err == nil {
		repaired, err = apply.Onto(ctx, p.acting.client, live, want, fieldManager)
	}
	switch {
	case apierrors.IsConflict(err):
		memory.Postpone(key, time.Second)
		return
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

// compareObject compares an object that exists with what its task renders, and returns what puts exactly this version of it back; nil if that is not
// possible. isCertain means that the engine has lost fields of it. The error is a conflict (apierrors.IsConflict) if the object is being changed.
func (p *pass) compareObject(
	ctx context.Context, x *execution, task string, live *unstructured.Unstructured, isCertain bool,
) (found drift.Finding, restored *unstructured.Unstructured, err error) {
	want, err := p.wantedOf(ctx, x, task, live, live)
	if want == nil || err != nil {
		return found, nil, err
	}
	p.metrics.comparisons.Inc()
	applied, err := apply.Trial(ctx, p.acting.client, live, want, fieldManager)
	switch {
	case apierrors.IsConflict(err):
		return found, nil, err
	case err != nil:
		return found, nil, fmt.Errorf("comparing %s: %w", plan.Describe(want), p.conceal(want, err))
	case !drift.Differs(live, applied):
		return found, nil, nil
	}
	current, err := p.objects.readLive(ctx, want) // with its managed fields, which the cache lacks
	if err != nil {
		return found, nil, err
	}
	if current == nil || !isSameState(current, live) {
		return found, nil, apierrors.NewConflict(schema.GroupResource{Group: want.GroupVersionKind().Group, Resource: want.GetKind()}, want.GetName(), nil)
	}
	objects := drift.Objects{
		Live: current, Applied: applied, Manager: fieldManager, Opaque: want.GetKind() == "Secret" || p.view.IsOpaque(want), IsUnsure: !isCertain,
	}
	if restored = drift.Restoration(objects, x.ignoredFields()); restored != nil {
		restored.SetResourceVersion(current.GetResourceVersion())
	}
	return drift.Compare(objects, plan.Describe(want), x.ignoredFields()), restored, nil
}

// isSameState reports whether two versions of an object differ in their status at most: the number of replicas that an autoscaler has chosen is the same.
func isSameState(a, b *unstructured.Unstructured) bool {
	return a.GetUID() == b.GetUID() && (a.GetResourceVersion() == b.GetResourceVersion() || a.GetGeneration() == b.GetGeneration() && a.GetGeneration() > 0)
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
	placed, found := placeFor(places, x.Plan, listed.GetAnnotations())
	if !found {
		return nil, nil
	}
	rendered := x.steadyTask(placed)
	if err := rendered.err; err != nil || rendered.transient != nil || !rendered.action.Makes() || rendered.action == plan.Pipe { // a pod has written the content
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

// placeFor returns the place of a task that its object names by these annotations. For an object without them, it is the one in the last plan, or in a plan
// that applies all: an object that is gone was not rendered for a plan that is only requested manually.
func placeFor(places []plan.Placed, last string, marks map[string]string) (best plan.Placed, found bool) {
	rank := func(placed plan.Placed) int {
		switch {
		case placed.Plan == marks[kudo.AnnotationPlan] && placed.Phase == marks[kudo.AnnotationPhase] && placed.Step == marks[kudo.AnnotationStep]:
			return 0
		case placed.Plan == last:
			return 1
		}
		if i := slices.Index(plan.WholePlans, placed.Plan); i >= 0 {
			return 2 + i
		}
		return len(plan.WholePlans) + 2
	}
	for _, placed := range places {
		if !found || rank(placed) < rank(best) {
			best, found = placed, true
		}
	}
	return best, found && rank(best) < len(plan.WholePlans)+2
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
