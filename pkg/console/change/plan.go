// Package change decides what users change, for the kubectl plugin and the dashboard. It reads and writes the hub with the client that it
// is given.
package change

import (
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/resume"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Run returns the Instance's spec with a request for a plan under that UID and with changed parameters, and the warnings of the hub. It
// omits the request if the parameters alone trigger the plan. It returns an error if the plan cannot be requested.
func Run(v progress.View, plan string, uid types.UID, parameters map[string]string) (kudo.InstanceSpec, []string, error) {
	return specWith(v, kudo.PlanExecution{PlanName: plan, UID: uid}, parameters)
}

// specWith is Run for a request, which may be to resume the plan.
func specWith(v progress.View, asked kudo.PlanExecution, parameters map[string]string) (kudo.InstanceSpec, []string, error) {
	if err := checkRequest(v, asked.PlanName, parameters); err != nil {
		return kudo.InstanceSpec{}, nil, err
	}
	wanted := v.Instance.DeepCopy()
	if err := SetParameters(&wanted.Spec, Merge(TextsOf(wanted.Spec), parameters), v.Version); err != nil {
		return kudo.InstanceSpec{}, nil, fmt.Errorf("parameters of Instance %q: %w", wanted.Name, err)
	}
	wanted.Spec.PlanExecution = kudo.PlanExecution{}
	if due := (progress.View{Instance: wanted, Version: v.Version}).Due(); due != asked.PlanName || asked.Resume != "" {
		wanted.Spec.PlanExecution = asked
	}
	warnings, err := install.Admit(
		&install.Instance{Instance: v.Instance, Version: v.Version}, install.Instance{Instance: wanted, Version: v.Version},
	)
	return wanted.Spec, warnings, err
}

// Resumption is a request to resume the last execution of an Instance, and what is known about it on the hub.
type Resumption struct {
	// Spec is the desired spec of the Instance, and Plan the plan that runs again.
	Spec kudo.InstanceSpec
	Plan string
	// Skipped are the steps that the agent skips if they would render the same and their objects are healthy, Reruns those that were complete and run
	// again, with the reasons, and Steps those that were not complete, all as PHASE/STEP.
	Skipped, Reruns, Steps []string
	// Warnings are those of the hub.
	Warnings []string
}

// Resume returns the request to resume the last execution of the Instance under that UID, and with changed parameters. The name of the plan is optional. It
// returns an error if there is nothing to resume.
func Resume(v progress.View, name string, uid types.UID, parameters map[string]string) (Resumption, error) {
	if hasReturned(v.Instance) && (name == "" || name == v.Instance.Status.Returned.Plan) {
		return tryAgain(v, uid, parameters)
	}
	if err := resumeProblem(v, name); err != nil {
		return Resumption{}, err
	}
	last := v.Instance.Status.Execution
	spec, warnings, err := specWith(v, kudo.PlanExecution{PlanName: last.Plan, UID: uid, Resume: last.UID}, parameters)
	r := Resumption{Spec: spec, Plan: last.Plan, Warnings: warnings}
	if err != nil || v.Version == nil || v.Instance.Status.Returned != nil { // the version of the last execution is another one
		return r, err
	}
	changed := v.Instance.DeepCopy()
	changed.Spec.Parameters, changed.Spec.ParametersFrom, changed.Spec.PlanExecution = spec.Parameters, spec.ParametersFrom, kudo.PlanExecution{}
	if due := (progress.View{Instance: changed, Version: v.Version}).Due(); due != "" && due != last.Plan {
		return r, fmt.Errorf("plan %q of Instance %q on cluster %q cannot be resumed: plan %q runs first because of the changed parameters",
			last.Plan, changed.Name, changed.Namespace, due)
	}
	planned, before := v.Version.Spec.Plans[last.Plan], v.Instance.Status.PlanStatus[last.Plan]
	r.addSteps(resume.Prepare(&v.Version.Spec, planned, before, plan.Begin(last.Plan, planned, uid, time.Time{})))
	return r, nil
}

// addSteps adds the steps of a plan that is about to be resumed.
func (r *Resumption) addSteps(prepared kudo.PlanStatus) {
	for _, phase := range prepared.Phases {
		for _, step := range phase.Steps {
			at := phase.Name + "/" + step.Name
			switch {
			case step.RerunReason != "":
				r.Reruns = append(r.Reruns, at+": "+step.RerunReason)
			case resume.MayBeSkipped(step):
				r.Skipped = append(r.Skipped, at)
			default:
				r.Steps = append(r.Steps, at)
			}
		}
	}
}

// hasReturned reports whether an Instance runs its former version because another one has failed.
func hasReturned(i *kudo.Instance) bool {
	return i.Status.Returned != nil && i.Status.Execution != nil && i.Status.PlanStatus[i.Status.Execution.Plan].Status != kudo.FatalError
}

// tryAgain is Resume for an Instance that has returned to its former version: the plan of the failed version runs again, from its beginning.
func tryAgain(v progress.View, uid types.UID, parameters map[string]string) (Resumption, error) {
	failed := v.Instance.Status.Returned
	spec, warnings, err := specWith(v, kudo.PlanExecution{PlanName: failed.Plan, UID: uid, Resume: failed.Execution}, parameters)
	r := Resumption{Spec: spec, Plan: failed.Plan, Warnings: warnings}
	if err != nil || v.Version == nil {
		return r, err
	}
	for _, phase := range v.Version.Spec.Plans[failed.Plan].Phases {
		for _, step := range phase.Steps {
			r.Steps = append(r.Steps, phase.Name+"/"+step.Name)
		}
	}
	return r, nil
}

// resumeProblem returns an error that states why the last execution cannot be resumed, and what to do instead.
func resumeProblem(v progress.View, name string) error {
	instance, last := v.Instance, v.Instance.Status.Execution
	at := fmt.Sprintf("Instance %q on cluster %q", instance.Name, instance.Namespace)
	runs := func(plan string) string {
		return fmt.Sprintf("run the whole plan with 'kubectl addon plan run %s %s --cluster %s'", instance.Name, plan, instance.Namespace)
	}
	if last == nil {
		return idlef("nothing to resume: no plan of %s has run yet", at)
	}
	switch status := instance.Status.PlanStatus[last.Plan].Status; {
	case name != "" && name != last.Plan:
		return idlef("plan %q of %s cannot be resumed: plan %q has run since; %s", name, at, last.Plan, runs(name))
	case status == kudo.Complete:
		return idlef("nothing to resume: plan %q of %s is complete; %s", last.Plan, at, runs(last.Plan))
	case status != kudo.FatalError:
		return idlef("plan %q of %s is running; wait for its end with 'kubectl addon plan wait %s --cluster %s'",
			last.Plan, at, instance.Name, instance.Namespace)
	case instance.Status.Returned == nil && last.OperatorVersion.Name != instance.Spec.OperatorVersion.Name:
		return idlef("plan %q of %s cannot be resumed: its OperatorVersion has changed since, from %q to %q; %s",
			last.Plan, at, last.OperatorVersion.Name, instance.Spec.OperatorVersion.Name, runs(last.Plan))
	default:
		return nil
	}
}

// checkRequest returns an error for a plan that cannot be requested.
func checkRequest(v progress.View, plan string, parameters map[string]string) error {
	instance := v.Instance
	if !instance.DeletionTimestamp.IsZero() {
		return fmt.Errorf("only plan %s can run for Instance %q of cluster %q because the Instance is being removed; "+
			"see 'kubectl addon plan status %s --cluster %s'",
			kudo.CleanupPlan, instance.Name, instance.Namespace, instance.Name, instance.Namespace)
	}
	if apierrors.IsNotFound(v.Unreadable) {
		return fmt.Errorf("%w; push its package first ('kubectl addon package push DIR')", v.Unreadable)
	}
	if v.Version != nil {
		if err := checkPlan(v.Version, plan); err != nil {
			return err
		}
	}
	owner := metav1.GetControllerOf(instance)
	switch {
	case len(parameters) == 0 || owner == nil:
		return nil
	case owner.Kind == "Instance":
		return fmt.Errorf("the parameters of Instance %q come from its parent, Instance %q; change them there", instance.Name, owner.Name)
	default:
		return fmt.Errorf("the parameters of Instance %q come from add-on %q; "+
			"change them with 'kubectl addon update %s --cluster %s -p NAME=VALUE'",
			instance.Name, owner.Name, owner.Name, instance.Namespace)
	}
}

// checkPlan returns an error if the OperatorVersion does not have the plan.
func checkPlan(version *kudo.OperatorVersion, plan string) error {
	plans := slices.Sorted(maps.Keys(version.Spec.Plans))
	if slices.Contains(plans, plan) {
		return nil
	}
	return fmt.Errorf("OperatorVersion %q has no plan %q%s; available plans: %s",
		version.Name, plan, text.DidYouMean(plan, plans), text.ListOrNone(plans))
}

// PrecedingText states which plan runs before a requested one; empty if none does.
func PrecedingText(v progress.View, plan string) string {
	if first := v.Due(); first != "" && first != plan {
		return fmt.Sprintf("Plan %s runs first because of the changed parameters.", first)
	}
	if running := progress.RunningPlan(v.Instance); running != "" && running != plan {
		return fmt.Sprintf("It is queued until the running plan %s ends.", running)
	}
	return ""
}

// Cancellation is what ends the running plan of an Instance and withdraws a request that has not started.
type Cancellation struct {
	// Spec is the desired spec of the Instance.
	Spec kudo.InstanceSpec
	// Running and Pending are the running plan, and the one that is no longer requested; empty if there is none.
	Running, Pending string
}

// Cancel returns the cancellation of the Instance's plan. If there is nothing to cancel, it returns an error that names the last plan.
func Cancel(instance *kudo.Instance) (Cancellation, error) {
	if err := cancelProblem(instance); err != nil {
		return Cancellation{}, err
	}
	c := Cancellation{Spec: *instance.Spec.DeepCopy(), Running: progress.RunningPlan(instance), Pending: pendingPlan(instance)}
	c.Spec.PlanExecution = kudo.PlanExecution{}
	if c.Running != "" {
		c.Spec.PlanExecution = kudo.PlanExecution{PlanName: c.Running, UID: instance.Status.Execution.UID, Cancel: true}
	}
	return c, nil
}

// pendingPlan returns the plan that was requested manually and has not started, or an empty string.
func pendingPlan(instance *kudo.Instance) string {
	request, last := instance.Spec.PlanExecution, instance.Status.Execution
	if request.Cancel || last != nil && (request.UID == last.Request || request.UID == last.UID) {
		return ""
	}
	return request.PlanName
}

// IdleError is the error for an Instance that has no plan to cancel or to resume.
type IdleError struct{ message string }

// Error returns the message.
func (e *IdleError) Error() string { return e.message }

func idlef(format string, args ...any) error { return &IdleError{fmt.Sprintf(format, args...)} }

// cancelProblem returns an error that states why there is nothing to cancel.
func cancelProblem(instance *kudo.Instance) error {
	last := instance.Status.Execution
	switch {
	case !instance.DeletionTimestamp.IsZero():
		return fmt.Errorf("the removal of Instance %q from cluster %q cannot be cancelled; to release the Instance, "+
			"see 'kubectl addon uninstall --help'", instance.Name, instance.Namespace)
	case progress.RunningPlan(instance) != "" || pendingPlan(instance) != "":
		return nil
	case last == nil:
		return idlef("no plan of Instance %q on cluster %q is running: no plan has run yet", instance.Name, instance.Namespace)
	default:
		return idlef("no plan of Instance %q on cluster %q is running: the last plan, %q, is %s; "+
			"see 'kubectl addon plan history %s --cluster %s'",
			instance.Name, instance.Namespace, last.Plan, progress.State(instance.Status.PlanStatus[last.Plan].Status), instance.Name, instance.Namespace)
	}
}
