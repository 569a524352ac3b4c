package install

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Problem is a problem that keeps an add-on from being installed or updated, or an Instance from running.
type Problem struct {
	// Reason is one of the reasons of condition Resolved.
	Reason string
	// Message names the object concerned and how to fix it.
	Message string
}

// problemLimit is the maximum number of problems in an error of Admit. The others are reported once those are fixed.
const problemLimit = 10

// resolvedCondition returns the condition Resolved: True with message if there are no problems, else False with the reason of the first
// problem and all messages.
func resolvedCondition(problems []Problem, message string, generation int64) *metav1.Condition {
	condition := &metav1.Condition{
		Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, Message: message,
		ObservedGeneration: generation,
	}
	if len(problems) == 0 {
		return condition
	}
	messages := make([]string, 0, len(problems))
	for _, o := range problems {
		messages = append(messages, o.Message)
	}
	condition.Status = metav1.ConditionFalse
	condition.Reason = problems[0].Reason
	condition.Message = strings.Join(messages, "\n")
	return condition
}

// withRemarks adds remarks to the message of a condition; nil stays nil.
func withRemarks(condition *metav1.Condition, remarks []string) *metav1.Condition {
	if condition != nil && len(remarks) > 0 {
		condition.Message = strings.Join(append([]string{condition.Message}, remarks...), "\n")
	}
	return condition
}

// Remarks returns the remarks in the message of an add-on's condition Resolved; none unless it is True.
func Remarks(resolved *metav1.Condition) []string {
	if resolved == nil || resolved.Status != metav1.ConditionTrue {
		return nil
	}
	return strings.Split(resolved.Message, "\n")[1:]
}

// passing are the reasons of problems that may end without a change of the object: a missing object may be created.
var passing = []string{
	addonv1alpha1.ReasonWaitingForDependencies, addonv1alpha1.ReasonWaitingForConfiguration, addonv1alpha1.ReasonConfigurationNotFound,
	addonv1alpha1.ReasonInstanceRefused, kudo.ReasonManagedClusterNotFound, kudo.ReasonOperatorVersionNotFound, kudo.ReasonChildVersionNotFound,
}

// IsLasting reports whether condition Resolved, which may be nil, reports a problem that only a change of the object ends.
func IsLasting(resolved *metav1.Condition) bool {
	return resolved != nil && resolved.Status == metav1.ConditionFalse && !slices.Contains(passing, resolved.Reason)
}

// IsWaiting reports whether condition Resolved, which may be nil, reports that a change is pending and is applied later, without a change of any object by a user.
func IsWaiting(resolved *metav1.Condition) bool {
	return resolved != nil && resolved.Status == metav1.ConditionFalse &&
		(resolved.Reason == addonv1alpha1.ReasonWaitingForDependencies || resolved.Reason == addonv1alpha1.ReasonWaitingForConfiguration)
}

// IsBlocked reports whether condition Resolved, which may be nil, reports a problem that keeps a change from being applied.
func IsBlocked(resolved *metav1.Condition) bool {
	return resolved != nil && resolved.Status == metav1.ConditionFalse && !IsWaiting(resolved)
}

// reservedProblem returns the problem that the install namespace is reserved; way is the way out. Agents decide about their own namespaces
// by their own flag, so that both have to allow one.
func reservedProblem(namespace, way string) Problem {
	return Problem{kudo.ReasonNamespaceNotAllowed, fmt.Sprintf("nothing is installed in namespace %q, which is reserved: %s "+
		"(flag --allow-namespaces of addon-manager and of addon-agent allows it)", namespace, way)}
}

// clusterNotFound returns the problem that a namespace does not belong to a managed cluster; way starts the way out.
func clusterNotFound(namespace, way string) Problem {
	return Problem{kudo.ReasonManagedClusterNotFound, fmt.Sprintf(
		"ManagedCluster %q does not exist or is being deleted: %s in the namespace of a managed cluster", namespace, way)}
}
