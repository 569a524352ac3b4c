package planstatus

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// HasEnded reports whether all plans of an Instance are complete. It returns an error if one has failed, or if the last change cannot run. An
// Instance that is being deleted has not ended.
func HasEnded(view progress.View) (bool, error) {
	instance := view.Instance
	if !instance.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if err := LastingProblem("Instance", instance, instance.Status.Conditions); err != nil {
		return false, err
	}
	if !isIdle(view) {
		return false, nil
	}
	if failed := plan.ReachedState(instance.Status, nil).FailedOwed(); failed != "" {
		return false, FailureOf(instance, failed)
	}
	if instance.Status.Returned != nil {
		return false, ReturnOf(instance)
	}
	return true, nil
}

// IsRemovalOf reports whether an Instance that no longer exists was removed, given how it was observed last: it was being deleted, or it had the finalizer
// that is released only after its removal. Deletion and removal may both lie between two looks.
func IsRemovalOf(last *kudo.Instance) bool {
	return !last.DeletionTimestamp.IsZero() || slices.Contains(last.Finalizers, kudo.Finalizer)
}

// isIdle reports whether the agent has executed everything that the Instance requests.
func isIdle(view progress.View) bool {
	status := view.Instance.Status
	return status.Execution != nil && status.ObservedGeneration >= view.Instance.Generation &&
		status.PlanStatus[status.Execution.Plan].Status.IsTerminal() && view.Due() == ""
}

// FailureOf returns the error for a plan that has failed, with the command that runs it again.
func FailureOf(instance *kudo.Instance, name string) error {
	advice := "fix the cause, and run the plan again"
	if retry := plan.FindRetry(instance.Status, name); retry != nil {
		advice = "and fix the cause: the plan starts again at " + retry.RetryTime.UTC().Format(time.RFC3339) + ", or run it now"
	}
	return fmt.Errorf("plan %q of Instance %s on cluster %s failed: %s; see 'kubectl addon plan status %[2]s --cluster %[3]s', "+
		"%[5]s: 'kubectl addon plan run %[2]s %[1]s --cluster %[3]s'%[6]s",
		name, instance.Name, instance.Namespace, text.JoinMessage(instance.Status.PlanStatus[name].Message), advice, resumeAdvice(instance, name))
}

// ReturnOf returns the error for a version that has failed and was replaced by the former one, with the command that tries it again.
func ReturnOf(instance *kudo.Instance) error {
	return fmt.Errorf("cluster %[2]s: Instance %[1]q: %[3]s; fix the cause, and try it again: 'kubectl addon plan resume %[1]s --cluster %[2]s'",
		instance.Name, instance.Namespace, text.JoinMessage(former.Text(instance.Status.Returned)))
}

// resumeAdvice names the command that resumes a failed plan; empty if it cannot be resumed, or if none of its steps can be skipped.
func resumeAdvice(instance *kudo.Instance, name string) string {
	if !progress.CanResume(instance) || instance.Status.Execution.Plan != name {
		return ""
	}
	return fmt.Sprintf(", or without its complete steps: 'kubectl addon plan resume %s --cluster %s'", instance.Name, instance.Namespace)
}

// LastingProblem returns an error if condition Resolved reports a problem of the object's current generation that requires a change by the
// user.
func LastingProblem(kind string, object client.Object, conditions []metav1.Condition) error {
	resolved := meta.FindStatusCondition(conditions, kudo.ConditionResolved)
	if !install.IsLasting(resolved) || resolved.ObservedGeneration < object.GetGeneration() {
		return nil
	}
	return fmt.Errorf("%s %s on cluster %s cannot run: %s: %s", kind, object.GetName(), object.GetNamespace(), resolved.Reason, text.JoinMessage(resolved.Message))
}
