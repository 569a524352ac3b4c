package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
)

// CannotChangeText says that the fields of an existing object cannot be changed, and how to proceed.
func CannotChangeText(fields ...string) string {
	return strings.Join(fields, ", ") + " cannot be changed while the object exists: delete the object and run the plan again, or give it another name " +
		"in the package"
}

// CanReplace reports whether a task that has not started may delete the object to re-create it. This is true for Jobs, except those that
// the execution itself has applied: no Job is replaced twice in one execution, whatever its tasks render.
func (o Object) CanReplace(execution types.UID) bool {
	return o.Live != nil && IsJob(o.Live) && !o.AppliedBy(execution)
}

// IsSpent reports whether the object can no longer become healthy by applying it: it is being deleted, or has failed.
func (o Object) IsSpent() bool {
	return o.IsDeleted() || health.Of(o.Live).Status == health.Failed
}

// ReplaceOutcome returns the outcome for objects that are deleted before their task can begin: Pending until all are deleted.
func ReplaceOutcome(objects []Object) Outcome {
	outcome := DeleteOutcome(objects)
	if outcome.Status != kudo.Complete {
		outcome = Outcome{Status: kudo.Pending, Message: outcome.Message + ", and will be re-created"}
	}
	return outcome
}
