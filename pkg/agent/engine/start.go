package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// start records the execution and all objects that it is going to apply before any task runs: after a restart the agent knows the
// execution.
func (p *pass) start(ctx context.Context, o plan.Observation, x *execution, choice plan.Choice) (result, error) {
	status := plan.Start(o.Instance.Status, choice, uuid.NewUUID(), o.Now)
	x.Execution, x.version, x.renders = status.Execution, choice.Version, true
	listed := p.planEntries(x)
	if held, waits, err := p.holdStart(ctx, o, x, listed); waits || err != nil {
		return held, err
	}
	if err := p.checkCharts(ctx, x, &listed); err != nil {
		return result{}, err
	}
	rendered := slices.Concat(listed.owed, listed.own)
	if err := p.forgetUnapplied(ctx, x, rendered, o.Instance.Status.Execution != nil); err != nil {
		return result{}, err
	}
	if err := p.guard(ctx, x, o.Instance.Status); err != nil {
		return result{}, err
	}
	if choice.Restart {
		x.inventory.entries = listed.markRestart(x.inventory.entries, rendered, choice.RestartCharts, x.UID)
	}
	if err := p.keepValues(ctx, o, status); err != nil {
		return result{}, err
	}
	tooLarge := plan.CheckSize(plan.List(x.inventory.entries, rendered...), x.Parameters)
	if tooLarge != nil && o.IsLeaving() {
		tooLarge = nil
	}
	if problem := cmp.Or(tooLarge, listed.distorted, p.forbids(listed.own)); problem != nil {
		status.Inventory = x.inventory.entries // with the required restarts
		return p.refuse(ctx, o, choice, status, problem), nil
	}
	x.inventory.list(listed.own...)
	status.Inventory = x.inventory.entries
	judged, err := p.judgeDuringPlan(ctx, o, x, status)
	return result{status: status, judgement: judged, again: true, omitted: describe(listed.omissions), warnings: strings.Join(text.Limit(listed.warnings, maxShown, "more"), "; ")}, err
}

// holdStart holds an execution that cannot start yet; waits is false if it can, or never can. If the cluster cannot answer now, what its charts would render
// is unknown, and so is whether they can be rendered at all.
func (p *pass) holdStart(ctx context.Context, o plan.Observation, x *execution, listed planEntries) (held result, waits bool, err error) {
	reason, why, key := holdReason(listed.distorted), listed.distorted, fmt.Sprintf("start of %s/%s", x.instance.UID, x.Plan)
	if listed.distorted == nil && listed.unknown != nil && p.hindrance == nil {
		reason, why = kudo.ReasonPlanPending, listed.unknown
	}
	if reason == "" {
		p.backoff.DeleteEntry(key)
		return result{}, false, nil
	}
	held, err = p.hold(ctx, o, reason, fmt.Sprintf("plan %q waits: %v", x.Plan, why))
	if reason == kudo.ReasonPlanPending {
		held.after = p.failAgain(key, p.clock())
	}
	return held, true, err
}

// checkCharts notes as distortion that a definition of a chart cannot be applied to the cluster, or that the plan has a chart and may not.
func (p *pass) checkCharts(ctx context.Context, x *execution, listed *planEntries) error {
	listed.distorted = cmp.Or(listed.distorted, x.checkCleanup())
	for _, defined := range listed.definitions {
		for _, want := range release.Unwrap(defined.definitions) {
			_, problem, err := p.checkDefinition(ctx, x, want)
			if err != nil {
				return err
			}
			if listed.distorted == nil && problem != nil {
				listed.distorted = inTask(defined.placed, problem)
			}
		}
	}
	return nil
}

// maxShown is the number of omitted fields, and of warnings about charts, that an event shows.
const maxShown = 5

// describe lists fields that are not applied; each once, although several steps may apply it.
func describe(omissions []render.Omission) string {
	var fields []string
	seen := map[render.Omission]bool{}
	for _, o := range omissions {
		if !seen[o] {
			fields = append(fields, fmt.Sprintf("%s (%s)", o, o.Reason))
		}
		seen[o] = true
	}
	return strings.Join(text.Limit(fields, maxShown, "more"), "; ")
}

// emitOmitted emits an event for the start of a plan with fields that are not applied.
func (e *engine) emitOmitted(instance *kudo.Instance, omitted string) {
	e.events.Eventf(instance, nil, corev1.EventTypeWarning, "FieldsOmitted", "Start",
		"fields of the package's templates are not applied: %s", text.Prefix(omitted, maxNoteBytes))
}

// emitWarnings emits an event for the start of a plan with warnings about its charts, such as hooks that are not known.
func (e *engine) emitWarnings(instance *kudo.Instance, warnings string) {
	e.events.Eventf(instance, nil, corev1.EventTypeWarning, "ChartWarning", "Start", "%s", text.Prefix(warnings, maxNoteBytes))
}

// keepValues copies the sensitive values of the execution of a status before that is recorded, beside those of the last one and of the former version.
func (p *pass) keepValues(ctx context.Context, o plan.Observation, status kudo.InstanceStatus) error {
	if len(p.view.Values) == 0 {
		return nil
	}
	used := p.view.Values.Only(status.Execution.ParametersFrom)
	if last := o.Instance.Status.Execution; last != nil {
		used = used.With(p.view.Values.Only(last.ParametersFrom))
	}
	if former := status.Former; former != nil {
		used = used.With(p.view.Values.Only(former.ParametersFrom))
	}
	return p.secrets.Keep(ctx, o.Instance, used)
}

// guard marks the workloads that are available at the start of an execution, and so have to stay available. before is the status before it.
func (p *pass) guard(ctx context.Context, x *execution, before kudo.InstanceStatus) error {
	if !x.Available {
		return nil
	}
	var workloads []plan.Object
	for _, entry := range plan.Workloads(x.inventory.entries) {
		workload, err := p.objects.readEntry(ctx, entry, asSeen)
		if err != nil {
			return err
		}
		workloads = append(workloads, workload)
	}
	x.inventory.entries = plan.MarkAvailable(before, x.inventory.entries, workloads)
	return nil
}

// forgetUnapplied removes entries that were listed for earlier executions and never applied, unless this one renders them too. If nothing
// was executed before, the inventory remains from a cancelled removal: objects that it has deleted are not missing.
func (p *pass) forgetUnapplied(ctx context.Context, x *execution, rendered []kudo.InventoryEntry, executed bool) error {
	doubtful := plan.PendingExcept(x.inventory.entries, rendered)
	if !executed {
		doubtful = slices.Clone(x.inventory.entries)
	}
	for _, entry := range doubtful {
		object, err := p.objects.readEntry(ctx, entry, fromServer)
		if err != nil {
			return err
		}
		if object.Live == nil || !x.owner().Owns(object.Live) || !executed && object.Live.GetDeletionTimestamp() != nil {
			x.inventory.forget(entry)
		}
	}
	return nil
}

// planEntries are the objects of an execution: own are those of its plan, and owed those of the other plans that it affects.
type planEntries struct {
	own, owed []kudo.InventoryEntry

	// unrenderable holds the tasks whose objects cannot be rendered or whose kinds cannot be discovered. Each reports the error when it runs.
	unrenderable map[string]bool

	// distorted is the error of the first task of the plan in which a value changes the structure of a template, or whose chart cannot be rendered.
	// If it is set, no task runs.
	distorted error

	// unknown is why it is not known now what a chart of the plan would render; what tasks before it apply does not change that.
	unknown error

	// definitions are those of the plan's charts.
	definitions []definitionsOf

	// omissions are the fields of the plan's templates that are not applied, and warnings those about its charts.
	omissions []render.Omission
	warnings  []string

	// charts holds the Helm tasks.
	charts map[string]bool
}

// definitionsOf are the definitions of a chart.
type definitionsOf struct {
	placed      plan.Placed
	definitions []release.Object
}

// planEntries lists the objects of an execution.
func (p *pass) planEntries(x *execution) planEntries {
	affected := plan.AffectedPlans(x.Execution)
	listed := planEntries{unrenderable: map[string]bool{}, charts: map[string]bool{}}
	for _, placed := range plan.Everywhere(x.version) {
		if len(listed.own)+len(listed.owed) > plan.MaxObjects { // refused in any case
			break
		}
		if affected[placed.Plan] {
			listed.add(placed, x, p.objects)
		}
	}
	return listed
}

// add renders a task and lists its objects.
func (l *planEntries) add(placed plan.Placed, x *execution, cluster *objects) {
	rendered, entries := x.task(placed), &l.owed
	if rendered.action.OfChart() {
		l.charts[placed.Task.Name] = true
		x.assumed = append(x.assumed, rendered.release.Serves()...)
	}
	if placed.Plan == x.Plan {
		l.warnings = append(l.warnings, rendered.release.Warnings...)
		l.definitions = append(l.definitions, definitionsOf{placed, rendered.release.Definitions})
		if rendered.action.OfChart() && rendered.transient != nil && !mayDefine(rendered.transient) {
			l.unknown = cmp.Or(l.unknown, inTask(placed, rendered.transient))
		}
		entries = &l.own
		l.omissions = append(l.omissions, rendered.omissions...)
		l.distorted = cmp.Or(l.distorted, rendered.structureError(placed), rendered.chartError(placed))
	}
	if !rendered.action.Makes() {
		return
	}
	wants, err := rendered.objects, cmp.Or(rendered.err, rendered.transient)
	if err == nil {
		wants, _, err = cluster.placeAll(x.instance, wants)
	}
	if err != nil {
		l.unrenderable[placed.Task.Name] = true
		return
	}
	if placed.Plan == x.Plan {
		l.distorted = cmp.Or(l.distorted, l.sharedError(placed, rendered.action, wants))
	}
	*entries = plan.Track(*entries, placed.Task.Name, x.isAside(), wants)
}

// mayDefine reports whether an error of a chart may be resolved by tasks of the same plan before it, which define kinds, grant permissions and create
// what templates look up.
func mayDefine(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// markRestart marks the workloads whose pods have to restart: those of charts only if a changed parameter requests it.
func (l *planEntries) markRestart(
	inventory, rendered []kudo.InventoryEntry, charts bool, execution types.UID,
) []kudo.InventoryEntry {
	ofChart := func(e kudo.InventoryEntry) bool { return !charts && l.charts[e.Task] }
	unrenderable := maps.Clone(l.unrenderable)
	maps.DeleteFunc(unrenderable, func(task string, _ bool) bool { return !charts && l.charts[task] })
	return plan.MarkRestart(inventory, slices.DeleteFunc(slices.Clone(rendered), ofChart), unrenderable, execution)
}

// sharedError returns an error if a Helm task and another task of the plan render one object: each would prune or delete that of the other.
func (l *planEntries) sharedError(placed plan.Placed, action plan.TaskAction, wants []*unstructured.Unstructured) error {
	ofChart := action.OfChart()
	if len(l.charts) == 0 {
		return nil
	}
	for _, want := range wants {
		i := slices.IndexFunc(l.own, func(e kudo.InventoryEntry) bool { return plan.Identity(e) == plan.Entry(want, "") })
		if i >= 0 && l.own[i].Task != placed.Task.Name && (ofChart || l.charts[l.own[i].Task]) {
			return fmt.Errorf("%s is rendered by task %q and by task %q: remove it from one", plan.Describe(want), l.own[i].Task, placed.Task.Name)
		}
	}
	return nil
}

// refuse ends an execution before it applies anything, such as one with whose objects the Instance could not be stored. If it cannot even be
// stored with its parameters, nothing starts.
func (p *pass) refuse(ctx context.Context, o plan.Observation, choice plan.Choice, started kudo.InstanceStatus, problem error) result {
	if tooLarge := plan.CheckSize(started.Inventory, started.Execution.Parameters); tooLarge != nil {
		return result{
			status:    *o.Instance.Status.DeepCopy(),
			judgement: judgement{ready: plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, tooLarge.Error())},
		}
	}
	o.Running = choice.Version
	return p.end(ctx, o, plan.FailExecution(choice.Version, started, problem.Error(), o.Now), nil)
}
