package install

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// resolved returns the condition Resolved: True with message if there are no problems, else False with the reason of the first problem
// and all messages.
func resolved(problems []Problem, message string, generation int64) *metav1.Condition {
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
