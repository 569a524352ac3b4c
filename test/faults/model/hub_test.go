package model

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// situation gathers what install.Judge and install.Admit depend on.
func (w *world) situation(i *kudo.Instance) install.Instance {
	s := install.Instance{Instance: i, Version: w.versions[i.Spec.OperatorVersion.Name], Instances: w.onHub(), PackagesNamespace: pushedTo}
	if s.Version != nil {
		s.VersionProblems = w.problems[s.Version.UID]
		var problem *tree.Error
		resolved, err := tree.Resolve(s.Version, w.candidates())
		if s.Tree = resolved; errors.As(err, &problem) {
			s.TreeProblem = problem
		}
	}
	if i.Status.Execution != nil {
		s.Started = w.versionOf(i.Status.Execution.OperatorVersion)
	}
	return s
}

func (w *world) onHub() []kudo.Instance {
	var all []kudo.Instance
	for _, name := range w.hub.names() {
		all = append(all, *w.hub.get(name))
	}
	return all
}

// admits reports whether the hub accepts a write of an Instance; before is nil on create.
func (w *world) admits(before, after *kudo.Instance) bool {
	if w.webhookDown {
		return true
	}
	var was *install.Instance
	if before != nil {
		s := w.situation(before)
		was = &s
	}
	_, err := install.Admit(was, w.situation(after))
	return err == nil
}

// resolve is one pass of the hub's controller of Instances.
func (w *world) resolve(name string, ago int) {
	i := w.view(w.hub, name, ago)
	if i == nil {
		return
	}
	if !i.DeletionTimestamp.IsZero() {
		w.release(i)
		return
	}
	resolved := install.Judge(w.situation(i))
	if resolved.Status == metav1.ConditionTrue && !slices.Contains(i.Finalizers, kudo.Finalizer) {
		i.Finalizers = append(i.Finalizers, kudo.Finalizer)
		if w.store(w.hub, "set the finalizer of Instance "+name, i) {
			return
		}
	}
	if w.completeRequest(i) {
		return
	}
	settled, _ := apply.MergeCondition(i.Status.Conditions, resolved, noon)
	meta.SetStatusCondition(&i.Status.Conditions, settled)
	w.store(w.hub, "resolve Instance "+name, i)
}

// completeRequest updates the manual plan request, and reports whether it did.
func (w *world) completeRequest(i *kudo.Instance) bool {
	switch change := install.Request(i); {
	case change.UID != "":
		i.Spec.PlanExecution.UID = change.UID
	case change.Clear:
		i.Spec.PlanExecution = kudo.PlanExecution{}
	default:
		return false
	}
	w.store(w.hub, "complete the request of Instance "+i.Name, i)
	return true
}

// release removes the finalizer of a removed Instance without children.
func (w *world) release(i *kudo.Instance) {
	held := slices.Contains(i.Finalizers, kudo.Finalizer)
	current := w.hub.get(i.Name)
	if current.ResourceVersion != i.ResourceVersion {
		return // a conflict
	}
	if !held || i.IsRemoved() && !slices.ContainsFunc(w.onHub(), func(c kudo.Instance) bool { return c.Parent() != nil && c.Parent().UID == i.UID }) {
		w.drop(w.hub, "release Instance "+i.Name, i.Name)
	}
}

// children is one pass of the hub's controller of child Instances.
func (w *world) children(name string, ago int) {
	i := w.view(w.hub, name, ago)
	if i == nil {
		return
	}
	p := install.Parent{Instance: i, Instances: w.onHub(), Candidates: w.candidates()}
	if i.Status.Execution != nil {
		p.Running = w.versionOf(i.Status.Execution.OperatorVersion)
	}
	var recorded []kudo.ChildStatus
	steps := install.Children(p)
	if slices.ContainsFunc(steps, p.Decides) && install.IsStale(i, w.hub.get(name)) {
		return
	}
	for _, step := range steps {
		if status, ok := w.childStep(step); ok && status.State != "" {
			recorded = append(recorded, status)
		}
	}
	if acknowledged := install.Acknowledgements(p, recorded); !equality.Semantic.DeepEqual(i.Status.Children, acknowledged) {
		i.Status.Children = acknowledged
		w.store(w.hub, "acknowledge the children of Instance "+name, i)
	}
}

// childStep carries out one step, and returns its complete status. It is not ok after a conflict.
func (w *world) childStep(step install.ChildStep) (status kudo.ChildStatus, ok bool) {
	status = step.Status
	switch {
	case step.Delete:
		w.remove(step.Current.Name, "by its parent")
		return status, true
	case step.Apply == nil && step.Rerun == nil:
		return status, true
	}
	child := step.Current
	if step.Apply != nil {
		applied := step.Apply.DeepCopy()
		if child != nil {
			applied.ObjectMeta = *child.ObjectMeta.DeepCopy()
			applied.Labels, applied.Annotations, applied.OwnerReferences = step.Apply.Labels, step.Apply.Annotations, step.Apply.OwnerReferences
			applied.Status, applied.Spec.PlanExecution = child.Status, child.Spec.PlanExecution
		}
		if !w.admits(child, applied) {
			status.State, status.Message = kudo.ChildFailed, "the hub rejected it"
			return status, true
		}
		if w.store(w.hub, "apply Instance "+applied.Name, applied) {
			return status, false
		}
		child = applied
	}
	if step.Rerun != nil {
		child.Spec.PlanExecution = *step.Rerun
		if w.store(w.hub, "request a plan of Instance "+child.Name, child) {
			return status, false
		}
	}
	status.UID, status.Generation = child.UID, child.Generation
	return status, true
}

// remove deletes an Instance on the hub: immediately if no finalizer holds it.
func (w *world) remove(name, by string) {
	i := w.hub.get(name)
	if i == nil || !i.DeletionTimestamp.IsZero() {
		return
	}
	if !slices.Contains(i.Finalizers, kudo.Finalizer) {
		w.drop(w.hub, "delete Instance "+name+" "+by, name)
		return
	}
	i.DeletionTimestamp = &metav1.Time{Time: noon}
	w.store(w.hub, "delete Instance "+name+" "+by, i)
}
