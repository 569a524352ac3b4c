package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/charts"
	"github.com/tandem-addons/tandem/pkg/agent/rendering"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// chartOf returns what the chart of a task has rendered in its last execution, with the marks of the Instance. If the execution has yet to render
// it, it returns a trial: what it would render now.
func (p *pass) chartOf(ctx context.Context, x *execution, placed plan.Placed) (release.Rendering, error) {
	record, known := plan.RecordOf(x.instance.Status.Tasks, placed.Task.Name)
	tried := x.renders && placed.Plan == x.Plan && record.Execution != x.UID && x.appliesChart(placed.Task)
	var rendered release.Rendering
	switch {
	case tried:
		tried, err := p.renderChart(ctx, x, placed, true, x.assumed)
		if err != nil {
			return release.Rendering{}, err
		}
		rendered = *tried
	case !known || record.Digest == "":
		return release.Rendering{}, nil
	default:
		var err error
		if rendered, err = p.rendered.Load(ctx, x.keyOf(record), record.Digest); err != nil {
			return release.Rendering{}, asTransient(err)
		}
	}
	return x.mark(placed, rendered)
}

// continuesRelease reports whether the execution resumes one that has rendered the chart of a task, and does not run the task again although it was
// complete: then it continues that revision of the release, and its hooks that have succeeded do not run again.
func (x *execution) continuesRelease(placed plan.Placed, record kudo.TaskRecord) bool {
	if x.Resume == "" || record.Execution == "" || record.Execution == x.UID {
		return false
	}
	for _, phase := range x.instance.Status.PlanStatus[x.Plan].Phases {
		for _, step := range phase.Steps {
			i := slices.IndexFunc(step.Tasks, func(t kudo.TaskStatus) bool { return t.Name == placed.Task.Name })
			if phase.Name == placed.Phase && step.Name == placed.Step && i >= 0 {
				return step.RerunReason == "" && (record.Execution == x.Resume || step.Tasks[i].Rendered != "")
			}
		}
	}
	return false
}

// revision returns the revision of the release that an execution renders, and upgrades reports whether it is an upgrade.
func (x *execution) revision(placed plan.Placed, record kudo.TaskRecord) int64 {
	if x.continuesRelease(placed, record) {
		return record.Revision
	}
	return record.Revision + 1
}

func (x *execution) upgrades(placed plan.Placed, record kudo.TaskRecord) bool {
	if x.continuesRelease(placed, record) {
		return record.Upgrade
	}
	return record.Installed
}

// appliesChart reports whether the execution applies a Helm task, and does not delete its objects.
func (x *execution) appliesChart(task kudo.Task) bool {
	action, err := plan.TaskActionOf(task, x.version, x.Parameters)
	return err == nil && action == plan.ApplyChart
}

// asTransient wraps an error of reading what is kept, unless that is lost.
func asTransient(err error) error {
	if isLost(err) {
		return err
	}
	return &charts.TransientError{Err: err}
}

// isLost reports whether an error is that what a chart has rendered is lost.
func isLost(err error) bool {
	lost := (*rendering.LossError)(nil)
	return errors.As(err, &lost)
}

// keyOf identifies what an execution of a Helm task has rendered.
func (x *execution) keyOf(record kudo.TaskRecord) rendering.Key {
	return rendering.Key{Instance: x.instance.HubUID(), Task: record.Task, Execution: record.Execution}
}

// renderChart renders the chart of a task. With trial, the kinds that its definitions define count as known. It is an error if values of parameters
// change the structure, or if sensitive ones would be disclosed. The kinds in assumed count as known, too: discovery shows them later.
func (p *pass) renderChart(
	ctx context.Context, x *execution, placed plan.Placed, trial bool, assumed []string,
) (*release.Rendering, error) {
	if p.hindrance != nil {
		return nil, &charts.TransientError{Err: p.hindrance}
	}
	record, _ := plan.RecordOf(x.instance.Status.Tasks, placed.Task.Name)
	name, err := x.releaseName(placed.Task, record)
	if err != nil {
		return nil, err
	}
	if err := p.checkRelease(ctx, x, placed.Task, record, name); err != nil {
		return nil, err
	}
	request := charts.Request{
		Trial: trial && placed.Task.Spec.CRDs != kudo.SkipCRDs, Assumed: assumed, Reader: p.acting.client, Since: x.since,
		Owned:   plan.ServedVersions(x.instance.Status.Inventory),
		Release: chart.Release{Name: name, Namespace: x.instance.Namespace, Upgrade: x.upgrades(placed, record), Revision: int(x.revision(placed, record))},
	}
	if request.Archive, request.Digest, err = p.archiveOf(ctx, x, placed.Task.Spec.Chart); err != nil {
		return nil, err
	}
	given := x.context(placed)
	with := func(values map[string]string) (release.Rendering, error) {
		return p.renderWith(ctx, given, values, placed.Task, request)
	}
	defs, values := given.Guarded(placed.Task.Spec.ValuesFile, withValues(given.Parameters, given.Sensitive))
	guard, err := release.NewGuard(defs, values)
	if err != nil {
		return nil, err
	}
	if err := checkValues(given, placed.Task.Spec.ValuesFile, guard, values); err != nil {
		return nil, err
	}
	made, err := with(values)
	if err == nil {
		err = checkRendered(x.version.Parameters, guard, given, made, with)
	}
	if err == nil {
		made, err = made.WithMirrors(x.ImageRegistries)
	}
	return &made, err
}

// withValues returns the values of parameters with those of sensitive ones.
func withValues(parameters, sensitive map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, parameters)
	maps.Copy(all, sensitive)
	return all
}

// checkValues returns an error if values of parameters bring a template into the values of a chart. Other errors are reported by the rendering.
func checkValues(c render.Context, file string, guard *release.Guard, values map[string]string) error {
	if file == "" {
		return nil
	}
	with := func(values map[string]string) (string, error) {
		c, err := c.WithValues(values)
		if err != nil {
			return "", err
		}
		return render.Values(c, file)
	}
	rendered, err := with(values)
	if err != nil {
		return nil
	}
	return guard.CheckValues(rendered, with)
}

// renderWith renders the chart of a task with values of its parameters, and of facts of the cluster.
func (p *pass) renderWith(
	ctx context.Context, c render.Context, values map[string]string, task kudo.Task, request charts.Request,
) (release.Rendering, error) {
	if file := task.Spec.ValuesFile; file != "" {
		c, err := c.WithValues(values)
		if err != nil {
			return release.Rendering{}, err
		}
		if request.Values, err = render.Values(c, file); err != nil {
			return release.Rendering{}, err
		}
	}
	made, err := p.charts.Render(ctx, request)
	if err != nil {
		return release.Rendering{}, err
	}
	return *made, nil
}

// checkRendered returns an error if values of parameters change the structure of what a chart has rendered, or if sensitive ones would be disclosed.
func checkRendered(
	defs []kudo.Parameter, guard *release.Guard, given render.Context, made release.Rendering, with func(map[string]string) (release.Rendering, error),
) error {
	if err := guard.Check(made, with); err != nil || len(given.Sensitive) == 0 {
		return err
	}
	return checkDisclosure(defs, given, made, with)
}

// checkDisclosure returns an error if sensitive parameters decide which objects there are.
func checkDisclosure(
	defs []kudo.Parameter, given render.Context, made release.Rendering, with func(map[string]string) (release.Rendering, error),
) error {
	shadow, err := release.Shadow(defs, given.Sensitive)
	if err != nil {
		return err
	}
	other, err := with(withValues(given.Parameters, shadow))
	if err != nil {
		return err
	}
	return release.CheckNames(made, other)
}

// releaseName returns the name of the release of a task, which does not change while the task is installed: its objects have other names then.
func (x *execution) releaseName(task kudo.Task, record kudo.TaskRecord) (string, error) {
	name := nameOf(task, x.instance)
	switch {
	case len(name) > release.MaxName:
		return "", fmt.Errorf("the name of the release, %q, has %d characters, more than %d: set a shorter releaseName in the task", name, len(name), release.MaxName)
	case record.Installed && record.Release != name:
		return "", fmt.Errorf("the name of the release is %q and cannot be changed to %q: set releaseName of the task to %[1]q", record.Release, name)
	default:
		return name, nil
	}
}

// checkRelease returns a *release.CollisionError if another task, Instance or release of Helm uses the name of the release. Once the chart is
// installed, it has the name.
func (p *pass) checkRelease(ctx context.Context, x *execution, task kudo.Task, record kudo.TaskRecord, name string) error {
	if record.Release == name {
		return nil
	}
	own := release.Claim{Instance: x.instance.Name, Task: task.Name, Name: name, Created: x.instance.CreationTimestamp.Time}
	others, err := p.claimsBeside(ctx, x.instance)
	if err != nil {
		return &charts.TransientError{Err: err}
	}
	claims := append(claimsOf(x.instance, x.version, x.Parameters), others...)
	if err := release.FindCollision(own, x.instance.Namespace, claims); err != nil {
		return err
	}
	return p.findHelmRelease(ctx, own, x.instance.Namespace)
}

// claimsBeside returns the release names of the other Instances in the namespace of an Instance: those in use, and those of versions that are going to be
// installed.
func (e *engine) claimsBeside(ctx context.Context, instance *kudo.Instance) (claims []release.Claim, err error) {
	list := &kudo.InstanceList{}
	if err := e.client.List(ctx, list, client.InNamespace(instance.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Instances in namespace %q: %w", instance.Namespace, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == instance.UID || !e.signer.IsSigned(other) || !mirror.HandedOver(other) {
			continue
		}
		for _, held := range other.Status.Tasks {
			claims = append(claims, release.Claim{Instance: other.Name, Task: held.Task, Name: held.Release, Recorded: true})
		}
		version, err := e.version(ctx, other, other.Spec.OperatorVersion.Name, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, err
		}
		if version != nil && !other.IsRemoving() {
			claims = append(claims, claimsOf(other, &version.Spec, other.Spec.Parameters)...)
		}
	}
	return claims, nil
}

// claimsOf returns the release names of the enabled Helm tasks of an Instance.
func claimsOf(instance *kudo.Instance, version *kudo.OperatorVersionSpec, parameters map[string]string) (claims []release.Claim) {
	for _, task := range version.Tasks {
		if task.Kind != kudo.TaskHelm {
			continue
		}
		if action, err := plan.TaskActionOf(task, version, parameters); err != nil || action != plan.ApplyChart {
			continue
		}
		claims = append(claims, release.Claim{
			Instance: instance.Name, Task: task.Name, Name: nameOf(task, instance), Created: instance.CreationTimestamp.Time,
		})
	}
	return claims
}

// findHelmRelease returns a *release.CollisionError if Helm has a release of that name. It reads metadata only, with the permissions of the Instance;
// without them, nothing is known.
func (p *pass) findHelmRelease(ctx context.Context, own release.Claim, namespace string) error {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		records := &metav1.PartialObjectMetadataList{}
		records.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		err := p.acting.client.List(ctx, records, client.InNamespace(namespace), client.MatchingLabels(release.HelmLabels(own.Name)))
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return &charts.TransientError{Err: fmt.Errorf("searching for a release %q of Helm: %w", own.Name, err)}
		}
		if err := release.FindHelmRelease(own, namespace, kind, records.Items); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the release name of a Helm task of an Instance.
func nameOf(task kudo.Task, instance *kudo.Instance) string {
	return cmp.Or(task.Spec.ReleaseName, render.InstanceName(instance.Name))
}

// archiveOf returns the archive of a chart in the content of the version, and its digest.
func (p *pass) archiveOf(ctx context.Context, x *execution, name string) (archive []byte, digest string, err error) {
	version, err := p.version(ctx, x.instance, mirror.VersionName(x.OperatorVersion), client.UnsafeDisableDeepCopy)
	switch {
	case err != nil:
		return nil, "", &charts.TransientError{Err: err}
	case version == nil:
		return nil, "", &charts.TransientError{Err: fmt.Errorf("waiting for OperatorVersion %q, which is mirrored again if the hub has it",
			mirror.VersionName(x.OperatorVersion))}
	}
	file, exists := content.Find(&version.Spec, name)
	if !exists {
		return nil, "", fmt.Errorf("OperatorVersion %q has no chart %q in its content: push the package again as another version", version.Name, name)
	}
	if archive, err = p.contents.File(ctx, version, name); err != nil {
		return nil, "", &charts.TransientError{Err: err}
	}
	return archive, file.Digest, nil
}

// chart carries out a Helm task: definitions, rendering, hooks, manifests. What was rendered is recorded before anything of it is applied.
func (p *pass) chart(ctx context.Context, x *execution, placed plan.Placed, started bool, rendered release.Rendering) plan.Outcome {
	if placed.Plan == kudo.CleanupPlan {
		return outcome.Fatal(release.ErrCleanup)
	}
	stored, _ := plan.RecordOf(x.instance.Status.Tasks, placed.Task.Name)
	if stored.Execution != x.UID {
		if outcome := p.define(ctx, x, placed, started, rendered.Definitions); outcome.Status != kudo.Complete {
			return outcome
		}
		return p.record(ctx, x, placed, stored, rendered.Serves())
	}
	if listed, outcome := p.listAll(x, placed, rendered); !listed {
		return outcome
	}
	o := release.Observation{Execution: x.UID, PostHooks: placed.Task.Spec.PostHooks, Rendering: rendered, Stored: stored, Record: stored}
	outcome := p.follow(ctx, x, placed, o, release.Decide)
	if outcome.Status == kudo.Complete {
		return p.tidy(ctx, x, stored, rendered)
	}
	return outcome
}

// follow acts on decisions about a Helm task until the pass ends, and returns its outcome.
func (p *pass) follow(
	ctx context.Context, x *execution, placed plan.Placed, o release.Observation, decide func(release.Observation) release.Decision,
) plan.Outcome {
	rendered, stored := o.Rendering, o.Stored
	o.Hooks = map[int]release.Seen{}
	acted := map[hookAction]bool{}
	for ctx.Err() == nil {
		decision := decide(o)
		o.Record = decision.Record
		action := hookAction{decision.Kind, decision.Hook, decision.Event}
		switch decision.Kind {
		case release.End:
			x.inventory.note(o.Record)
			p.metrics.endHooks(x.operator(), stored, o.Record)
			return decision.Outcome
		case release.ApplyManifests:
			o.Manifests = new(release.Manifests)
			o.Manifests.Applied, o.Manifests.Outcome = p.applyAll(ctx, x, placed, stored.Applied, release.Unwrap(rendered.Objects))
			if o.Manifests.Applied {
				x.inventory.markSurplus(placed.Task.Name, rendered.All())
			}
		default:
			if acted[action] {
				x.inventory.note(o.Record)
				return plan.Outcome{Status: kudo.InProgress, Message: fmt.Sprintf("hook %s: %s is not as it was applied: another writer changes it",
					decision.Event, plan.Describe(rendered.Hooks[decision.Hook].Object.Object))}
			}
			acted[action] = true
			seen, err := p.actOnHook(ctx, x, placed, rendered.Hooks[decision.Hook], decision, o.Hooks[decision.Hook])
			if err != nil {
				x.inventory.note(o.Record)
				return outcomeOf(err)
			}
			o.Hooks[decision.Hook] = seen
		}
	}
	return outcomeOf(ctx.Err())
}

// hookAction identifies an action on a hook. A pass takes each once: if it has not had its effect, another writer has undone it.
type hookAction struct {
	kind  release.Kind
	hook  int
	event release.Event
}

// operator returns the name of the operator of an execution; empty if its version is lost.
func (x *execution) operator() string {
	if x.version == nil {
		return ""
	}
	return x.version.Operator.Name
}

// define applies the definitions of a chart, and waits until their kinds are served. Charts share them: one that belongs to another owner stays as
// it is, if it serves the versions that this chart defines.
func (p *pass) define(
	ctx context.Context, x *execution, placed plan.Placed, started bool, definitions []release.Object,
) plan.Outcome {
	var own []*unstructured.Unstructured
	for _, want := range release.Unwrap(definitions) {
		foreign, problem, err := p.checkDefinition(ctx, x, want)
		switch {
		case err != nil:
			return outcomeOf(err)
		case foreign:
			x.inventory.forget(plan.Entry(want, ""))
		default:
			own = append(own, want)
		}
		if problem != nil {
			return outcome.Fatal(problem)
		}
	}
	_, applied := p.applyAll(ctx, x.sharing(), placed, started, own)
	return applied
}

// checkDefinition returns whether a definition of a chart belongs to another owner, and why it cannot be used.
func (p *pass) checkDefinition(ctx context.Context, x *execution, want *unstructured.Unstructured) (foreign bool, problem, err error) {
	object, err := p.objects.find(ctx, x.instance, want, fromServerAndWatch)
	if err != nil {
		return false, nil, err
	}
	if x.sharing().owner().Claim(object) != nil {
		return true, release.CheckServed(want, object.Live), nil
	}
	return false, release.CheckDefinition(want, object.Live), nil
}

// record renders the chart, keeps that, and records it and the objects.
func (p *pass) record(ctx context.Context, x *execution, placed plan.Placed, before kudo.TaskRecord, defined []string) plan.Outcome {
	made, err := p.renderChart(ctx, x, placed, false, defined)
	if err != nil {
		return chartOutcome(err)
	}
	name, err := x.releaseName(placed.Task, before)
	if err != nil {
		return outcome.Fatal(err)
	}
	record := kudo.TaskRecord{
		Task: before.Task, Execution: x.UID, HooksOf: x.UID, Release: name, Revision: x.revision(placed, before), Upgrade: x.upgrades(placed, before),
		Installed: before.Installed,
	}
	if record.Digest, err = p.rendered.Keep(ctx, x.keyOf(record), *made); err != nil {
		return outcomeOf(err)
	}
	if x.continuesRelease(placed, before) && record.Digest == before.Digest {
		record.Hooks = release.Succeeded(before.Hooks)
	}
	x.inventory.note(record)
	marked, err := x.mark(placed, *made)
	if err != nil {
		return outcome.Fatal(err)
	}
	_, listed := p.listAll(x, placed, marked)
	return listed
}

// listAll reports whether the stored inventory lists all objects of a chart but the definitions, which are applied before. If it does not, it lists those
// whose kinds the cluster has, which then wait for the commit.
func (p *pass) listAll(x *execution, placed plan.Placed, rendered release.Rendering) (listed bool, waiting plan.Outcome) {
	rendered.Definitions = nil
	wants, _, err := p.objects.placeAll(x.instance, rendered.All())
	if err != nil {
		return false, outcomeOf(err)
	}
	if len(plan.UnlistedObjects(x.instance.Status.Inventory, wants)) == 0 {
		return true, plan.Outcome{Status: kudo.InProgress, Message: "recording what the chart has rendered"}
	}
	entries := plan.Track(nil, placed.Task.Name, x.isAside(), wants)
	if err := plan.CheckSize(plan.List(x.instance.Status.Inventory, entries...), x.Parameters); err != nil {
		return false, outcome.Fatal(err)
	}
	x.inventory.list(entries...)
	return false, plan.Outcome{Status: kudo.InProgress, Message: "listing the objects of the chart"}
}

// mark returns a rendering with the marks of the Instance.
func (x *execution) mark(placed plan.Placed, rendered release.Rendering) (release.Rendering, error) {
	c := x.context(placed)
	return rendered.ForTask(placed.Task.Spec.HelmTaskSpec, func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		marked, err := render.MarkRelease(c, o)
		if err == nil && placed.Task.Spec.Claims == kudo.DeleteClaims {
			err = render.MarkClaims(c, marked, plan.DeletedClaims(marked))
		}
		return marked, err
	})
}

// tidy removes what former executions of a task have rendered, once it is complete.
func (p *pass) tidy(ctx context.Context, x *execution, record kudo.TaskRecord, rendered release.Rendering) plan.Outcome {
	if err := p.forgetHooks(ctx, x, record.Task, rendered); err != nil {
		return outcomeOf(err)
	}
	if err := p.rendered.Tidy(ctx, x.keyOf(record), record.Digest); err != nil {
		return outcomeOf(err)
	}
	return plan.Outcome{Status: kudo.Complete}
}

// forgetHooks removes the entries of hooks that the chart no longer renders and that no longer exist: their names may change with every execution.
func (p *pass) forgetHooks(ctx context.Context, x *execution, task string, rendered release.Rendering) error {
	for _, entry := range plan.UnrenderedHooks(x.inventory.entriesOf(task), rendered.All()) {
		object, err := p.objects.readEntry(ctx, entry, asSeen)
		if err != nil {
			return err
		}
		if object.Live == nil {
			x.inventory.forget(entry)
		}
	}
	return nil
}

// chartOutcome returns the outcome of a task whose chart could not be rendered.
func chartOutcome(err error) plan.Outcome {
	var transient *charts.TransientError
	if errors.As(err, &transient) {
		return outcomeOf(transient.Err)
	}
	if collision := (*release.CollisionError)(nil); errors.As(err, &collision) { // the name may be released
		return outcomeOf(err)
	}
	return outcome.Fatal(err)
}

// actOnHook reads, applies or deletes the object of a hook, and returns its new state.
func (p *pass) actOnHook(
	ctx context.Context, x *execution, placed plan.Placed, hook release.Hook, decision release.Decision, seen release.Seen,
) (release.Seen, error) {
	want := hook.Started(decision.Event)
	switch decision.Kind {
	case release.DeleteHook:
		x.inventory.deletes()
		object, err := p.deleteOwn(ctx, p.acting, x.owner().Has, plan.Object{Want: want, Live: seen.Live})
		return release.Seen{Live: object.Live}, err
	case release.ReadHook:
		object, err := p.objects.find(ctx, x.instance, want, fromServerAndWatch)
		if err == nil {
			err = x.owner().Claim(object)
		}
		if err == nil && object.AppliedBy(x.UID) { // perhaps by an agent that was stopped before it recorded that
			x.inventory.recordApplied(object)
		}
		free := object.Live != nil && !x.owner().Has(object)
		return release.Seen{Live: object.Live, Why: p.failureOf(ctx, x, placed, object), Free: free}, err
	case release.RestoreHook:
		want = hook.Restored(decision.Event)
		want.SetUID(seen.Live.GetUID()) // it is not created again
	}
	object, err := p.apply(ctx, x, want, false, fromServerAndWatch)
	return release.Seen{Live: object.Live}, err
}

// failureOf returns why a hook has failed, as its pods say; empty if it has not.
func (p *pass) failureOf(ctx context.Context, x *execution, placed plan.Placed, hook plan.Object) string {
	if hook.Live == nil {
		return ""
	}
	result := health.Of(hook.Live)
	if result.Status != health.Failed {
		return ""
	}
	failed := plan.Outcome{Status: kudo.FatalError, Message: result.Message}
	return plan.OneLine(p.view.Masker().Text(p.explain(ctx, x, placed, []plan.Object{hook}, failed).Message))
}

// deleteChart carries out a Helm task that is disabled: hooks before, the deletion of all objects, and hooks after. Then nothing of it is recorded
// or kept.
func (p *pass) deleteChart(ctx context.Context, x *execution, placed plan.Placed) plan.Outcome {
	record, known := plan.RecordOf(x.instance.Status.Tasks, placed.Task.Name)
	if !known {
		return plan.Outcome{Status: kudo.Complete}
	}
	if outcome := p.deletionHooks(ctx, x, placed, record, release.PreDelete); outcome.Status != kudo.Complete {
		return outcome
	}
	if record = x.inventory.recordOf(placed.Task.Name); record.Installed { // another execution of the task installs it again
		record.Installed = false
		x.inventory.note(record)
		return plan.Outcome{Status: kudo.InProgress, Message: "recording the deletion of the chart's objects"}
	}
	own := x.inventory.entriesOf(placed.Task.Name)
	if outcome := p.pruneChart(ctx, x, plan.WithoutHooks(own)); outcome.Status != kudo.Complete {
		return outcome
	}
	if outcome := p.deletionHooks(ctx, x, placed, record, release.PostDelete); outcome.Status != kudo.Complete {
		return outcome
	}
	if outcome := p.pruneChart(ctx, x, own); outcome.Status != kudo.Complete {
		return outcome
	}
	if record = x.inventory.recordOf(placed.Task.Name); record.Digest != "" { // what it has rendered is deleted once nothing reads it
		record.Digest = ""
		x.inventory.note(record)
		return plan.Outcome{Status: kudo.InProgress, Message: "recording that the chart is deleted"}
	}
	if err := p.rendered.Tidy(ctx, x.keyOf(record), ""); err != nil {
		return outcomeOf(err)
	}
	x.inventory.drop(placed.Task.Name)
	return plan.Outcome{Status: kudo.Complete}
}

// pruneChart deletes what a chart has applied, except for what the version applies in another task.
func (p *pass) pruneChart(ctx context.Context, x *execution, entries []kudo.InventoryEntry) plan.Outcome {
	if len(entries) == 0 {
		return plan.Outcome{Status: kudo.Complete}
	}
	_, certain, err := p.versionEntries(x)
	switch {
	case err != nil:
		return outcomeOf(err)
	case !certain:
		return outcomeOf(errors.New("the chart's objects are not deleted, because other tasks cannot be rendered, which may apply some of them"))
	case len(x.unknownVersions()) > 0:
		return outcomeOf(fmt.Errorf("the chart's objects are not deleted, because other tasks may apply some of them: the kinds of %s are unknown",
			strings.Join(x.unknownVersions(), ", ")))
	}
	left, err := p.prune(ctx, x, entries)
	if err != nil {
		return outcomeOf(err)
	}
	return plan.DeleteOutcome(p.view.MaskObjects(p.probe(ctx, left)))
}

// deletionHooks runs the hooks of an event of a deletion, of what the chart has rendered last.
func (p *pass) deletionHooks(
	ctx context.Context, x *execution, placed plan.Placed, record kudo.TaskRecord, event release.Event,
) plan.Outcome {
	rendered, err := p.chartOf(ctx, x, placed)
	if isLost(err) {
		p.events.Eventf(x.instance, nil, corev1.EventTypeWarning, "HooksSkipped", "Remove", "the %s hooks of task %q are skipped: %s", event,
			placed.Task.Name, text.Prefix(err.Error(), maxNoteBytes))
		return plan.Outcome{Status: kudo.Complete}
	}
	if err != nil {
		return chartOutcome(err)
	}
	rendered = rendered.Of(event)
	switch {
	case len(rendered.Hooks) == 0:
		return plan.Outcome{Status: kudo.Complete}
	case p.hindrance != nil:
		return outcomeOf(p.hindrance)
	case record.HooksOf != x.UID:
		x.inventory.note(release.RemovalOf(record, x.UID))
		return plan.Outcome{Status: kudo.InProgress, Message: fmt.Sprintf("recording the start of the %s hooks", event)}
	}
	if listed, outcome := p.listAll(x, placed, rendered); !listed {
		return outcome
	}
	o := release.Observation{Execution: x.UID, Rendering: rendered, Stored: record, Record: record}
	return p.follow(ctx, x, placed, o, func(o release.Observation) release.Decision { return release.DecideRemoval(o, event) })
}
