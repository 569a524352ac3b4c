package pace

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Draft is the progress of an Instance's execution that is not recorded yet. If the agent is killed, the tasks since the last record run again in
// the same execution, which changes nothing (plan.EarlyTasks).
type Draft struct {
	uid       types.UID
	base      kudo.InstanceStatus // as read
	progress  kudo.PlanStatus
	inventory []kudo.InventoryEntry

	// Started is false if there is no progress beyond the status as read. Due is when the progress is recorded; zero if that is not decided.
	Started bool
	Due     time.Time

	// Round is the next round of tasks since the last record, and Claims holds the first round that applied each object.
	Round  int
	Claims map[kudo.InventoryEntry]int
}

// NewDraft returns a draft without progress.
func NewDraft(read *kudo.Instance) Draft { return Draft{uid: read.UID, base: read.Status} }

// IsOf reports whether the draft continues the status of an Instance as read.
func (d Draft) IsOf(read *kudo.Instance) bool {
	return d.uid == read.UID && hasSameProgress(d.base, read.Status)
}

// hasSameProgress reports whether two statuses have the same execution, in the same state: other controllers write the rest.
func hasSameProgress(a, b kudo.InstanceStatus) bool {
	return equality.Semantic.DeepEqual(a.Execution, b.Execution) && equality.Semantic.DeepEqual(a.PlanStatus, b.PlanStatus) &&
		equality.Semantic.DeepEqual(a.Inventory, b.Inventory)
}

// With returns the draft with the status of a later pass.
func (d Draft) With(status kudo.InstanceStatus, round int, claims map[kudo.InventoryEntry]int) Draft {
	d.Started = !hasSameProgress(d.base, status)
	d.progress, d.inventory = status.PlanStatus[status.Execution.Plan], status.Inventory
	d.Round, d.Claims = round, claims
	return d
}

// Onto returns the Instance with the progress of the draft.
func (d Draft) Onto(read *kudo.Instance) *kudo.Instance {
	if !d.Started {
		return read
	}
	seen := *read
	seen.Status.PlanStatus = map[string]kudo.PlanStatus{}
	maps.Copy(seen.Status.PlanStatus, read.Status.PlanStatus)
	seen.Status.PlanStatus[read.Status.Execution.Plan] = d.progress
	seen.Status.Inventory = d.inventory
	return &seen
}
