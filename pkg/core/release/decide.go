package release

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Observation is what an execution of a Helm task has seen of what its chart renders.
type Observation struct {
	Execution types.UID
	PostHooks kudo.PostHookPolicy
	// Rendering has its namespaces and the marks of the Instance.
	Rendering Rendering

	// Stored is the record of the task as the API server has it, and Record as it is going to be stored.
	Stored, Record kudo.TaskRecord

	// Hooks is what was read of hooks, by their positions in Rendering.
	Hooks map[int]Seen
	// Manifests is what applying the manifests has led to; nil before.
	Manifests *Manifests
}

// Manifests is what applying the manifests has led to: whether all are applied, and the outcome of that or of their health.
type Manifests struct {
	Applied bool
	Outcome plan.Outcome
}

// Kind is the kind of the next action for a Helm task.
type Kind string

const (
	// ReadHook reads the object of a hook.
	ReadHook Kind = "ReadHook"
	// ApplyHook applies it, for the event.
	ApplyHook Kind = "ApplyHook"
	// DeleteHook deletes it.
	DeleteHook Kind = "DeleteHook"
	// RestoreHook applies a Job with its own time to live, which it has once its outcome is stored: nothing else remembers that it has run.
	RestoreHook Kind = "RestoreHook"
	// ApplyManifests applies the manifests and judges their health.
	ApplyManifests Kind = "ApplyManifests"
	// End ends the pass with Outcome.
	End Kind = "End"
)

// Decision is the next action for a Helm task.
type Decision struct {
	Kind Kind
	// Hook is the position of a hook in the rendering, and Event what it is applied at.
	Hook  int
	Event Event
	// Record is to be stored with the outcome of the pass.
	Record  kudo.TaskRecord
	Outcome plan.Outcome
}

// Decide returns the next action of an execution: the hooks before, the manifests, and the hooks after. A hook of which an outcome is stored never
// runs again, and nothing is deleted before its outcome is.
func Decide(o Observation) Decision {
	before, after := PreInstall, PostInstall
	if o.Record.Upgrade {
		before, after = PreUpgrade, PostUpgrade
	}
	if decision, done := o.hooks(before); !done {
		return decision
	}
	switch {
	case o.Manifests == nil:
		return Decision{Kind: ApplyManifests, Record: o.Record}
	case !o.Manifests.Applied, o.Manifests.Outcome.Status == kudo.FatalError:
		return o.end(o.Manifests.Outcome)
	}
	o.Record.Applied = true
	healthy := o.Manifests.Outcome.Status == kudo.Complete
	if o.PostHooks == kudo.PostHooksHealthy && !healthy {
		return o.end(o.Manifests.Outcome)
	}
	if decision, done := o.hooks(after); !done {
		return decision
	}
	o.Record.Installed = o.Record.Installed || healthy
	return o.end(o.Manifests.Outcome)
}

// DecideRemoval returns the next action for the hooks of an event in the removal of what a chart has rendered: PreDelete or PostDelete.
func DecideRemoval(o Observation, event Event) Decision {
	if decision, done := o.hooks(event); !done {
		return decision
	}
	return o.end(plan.Outcome{Status: kudo.Complete})
}

// hooks returns the next action for the hooks of an event; done is true if all have succeeded and those that are to be deleted then are.
func (o *Observation) hooks(event Event) (decision Decision, done bool) {
	hooks := o.Rendering.hooksOf(event)
	for _, at := range hooks {
		if decision, done := o.run(at, event); !done {
			return decision, false
		}
	}
	for _, at := range hooks {
		if decision, done := o.tidy(at, event, HookSucceeded); !done {
			return decision, false
		}
	}
	return Decision{}, true
}

// hooksOf returns the positions of the hooks of an event, in the order in which they run.
func (r Rendering) hooksOf(event Event) []int {
	var found []int
	for i, hook := range r.Hooks {
		if slices.Contains(hook.Events, event) {
			found = append(found, i)
		}
	}
	return found
}

// run returns the next action for a hook; done is true if it has succeeded.
func (o *Observation) run(at int, event Event) (decision Decision, done bool) {
	hook := o.Rendering.Hooks[at]
	switch stateOf(o.Record, hook, event) {
	case kudo.HookSucceeded:
		return Decision{}, true
	case kudo.HookFailed:
		return o.fail(at, event), false
	}
	seen, read := o.Hooks[at]
	switch {
	case !read:
		return o.act(ReadHook, at, event), false
	case seen.Live == nil:
		return o.create(at, event), false
	case seen.Free:
		return o.takeBack(at, event), false
	case !ranIn(seen.Live, o.Execution, event):
		return o.replace(at, event), false
	}
	switch state, message := judge(seen); state {
	case kudo.HookSucceeded:
		o.note(hook, event, state, "")
		return Decision{}, true
	case kudo.HookFailed:
		o.note(hook, event, state, message)
		return o.fail(at, event), false
	default:
		o.note(hook, event, kudo.HookRunning, "")
		return o.wait(at, event, message), false
	}
}

// create returns the action for a hook whose object does not exist: it is applied, unless it was running.
func (o *Observation) create(at int, event Event) Decision {
	hook := o.Rendering.Hooks[at]
	if stateOf(o.Record, hook, event) != kudo.HookRunning {
		return o.act(ApplyHook, at, event)
	}
	o.note(hook, event, kudo.HookFailed, "was deleted while it ran")
	return o.fail(at, event)
}

// replace returns the action for a hook whose object is of another execution or another event: a Job or a Pod cannot run again, and the others are
// deleted where their policy says so. An object is not deleted before the outcome for its event is stored.
func (o *Observation) replace(at int, event Event) Decision {
	hook, live := o.Rendering.Hooks[at], o.Hooks[at].Live
	last := Event(live.GetAnnotations()[kudo.AnnotationHook])
	switch {
	case ranIn(live, o.Execution, last) && last != "" && stateOf(o.Stored, hook, last) != kudo.HookSucceeded:
		return o.wait(at, event, "waits until the outcome of hook "+string(last)+" is recorded")
	case !runs(live) && !slices.Contains(hook.DeletePolicies, BeforeHookCreation), live.GetKind() == definition:
		return o.act(ApplyHook, at, event)
	case live.GetDeletionTimestamp() != nil:
		return o.wait(at, event, "the object of an earlier execution is being deleted")
	default:
		return o.act(DeleteHook, at, event)
	}
}

// takeBack returns the action for a hook whose object the Instance has released: it is applied, unless it runs, because whatever it has run or is running
// is of no execution.
func (o *Observation) takeBack(at int, event Event) Decision {
	hook, live := o.Rendering.Hooks[at], o.Hooks[at].Live
	if !runs(live) {
		return o.act(ApplyHook, at, event)
	}
	why := "exists and belongs to no Instance, so it is neither deleted nor run again: delete it"
	return o.end(plan.Outcome{Status: kudo.Error, Message: messageOf(hook, event, why)})
}

// fail ends the execution once the failure is stored, and the hook deleted if its policy says so.
func (o *Observation) fail(at int, event Event) Decision {
	hook := o.Rendering.Hooks[at]
	record := recordOf(o.Record, hook, event)
	failed := plan.Outcome{Status: kudo.FatalError, Message: messageOf(hook, event, record.Message)}
	if decision, done := o.tidy(at, event, HookFailed); !done {
		return decision
	}
	return o.end(failed)
}

// tidy deletes a hook that has ended where its policy says so for the way it has ended, and otherwise gives a Job its time to live back. Both wait
// until the outcome is stored. Definitions are never deleted: that would delete all objects of their kind.
func (o *Observation) tidy(at int, event Event, policy DeletePolicy) (decision Decision, done bool) {
	hook := o.Rendering.Hooks[at]
	deletes := slices.Contains(hook.DeletePolicies, policy) && hook.Object.Object.GetKind() != definition
	if !deletes && !plan.IsShortLived(hook.Object.Object) {
		return Decision{}, true
	}
	if stateOf(o.Stored, hook, event) != stateOf(o.Record, hook, event) {
		return o.wait(at, event, "recording its outcome"), false
	}
	seen, read := o.Hooks[at]
	switch {
	case !read:
		return o.act(ReadHook, at, event), false
	case seen.Live == nil, seen.Free, seen.Live.GetDeletionTimestamp() != nil, !ranIn(seen.Live, o.Execution, event):
		return Decision{}, true
	case deletes:
		return o.act(DeleteHook, at, event), false
	case plan.Object{Want: hook.Object.Object, Live: seen.Live}.IsProvisional():
		return o.act(RestoreHook, at, event), false
	default:
		return Decision{}, true
	}
}

func (o *Observation) act(kind Kind, at int, event Event) Decision {
	return Decision{Kind: kind, Hook: at, Event: event, Record: o.Record}
}

func (o *Observation) end(outcome plan.Outcome) Decision {
	return Decision{Kind: End, Record: o.Record, Outcome: outcome}
}

func (o *Observation) wait(at int, event Event, why string) Decision {
	return o.end(plan.Outcome{Status: kudo.InProgress, Message: messageOf(o.Rendering.Hooks[at], event, why)})
}

// messageOf returns a message about a hook.
func messageOf(hook Hook, event Event, why string) string {
	return fmt.Sprintf("hook %s: %s: %s", event, plan.Describe(hook.Object.Object), why)
}

// Succeeded returns the hooks that have succeeded.
func Succeeded(hooks []kudo.HookRecord) []kudo.HookRecord {
	return slices.DeleteFunc(slices.Clone(hooks), func(r kudo.HookRecord) bool { return r.State != kudo.HookSucceeded })
}

// note records the state of a hook.
func (o *Observation) note(hook Hook, event Event, state kudo.HookState, message string) {
	object := hook.Object.Object
	noted := kudo.HookRecord{
		Event: string(event), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), State: state, Message: message,
	}
	hooks := slices.Clone(o.Record.Hooks)
	at := slices.IndexFunc(hooks, func(r kudo.HookRecord) bool { return isOf(r, hook, event) })
	if at < 0 {
		hooks = append(hooks, noted)
	} else {
		hooks[at] = noted
	}
	o.Record.Hooks = hooks
}
