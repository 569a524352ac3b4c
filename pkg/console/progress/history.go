package progress

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// History is the output of `plan history`.
type History struct {
	Instance string    `json:"instance"`
	Cluster  string    `json:"cluster"`
	Plans    []LastRun `json:"plans"`
}

// LastRun is the last run of a plan.
type LastRun struct {
	Plan   string               `json:"plan"`
	Status kudo.ExecutionStatus `json:"status"`
	// Manual is set if the run was requested manually. It is known only for the last started plan.
	Manual  bool         `json:"manual,omitempty"`
	Started *metav1.Time `json:"started,omitempty"`
	// Ended is empty while the plan runs.
	Ended   *metav1.Time `json:"ended,omitempty"`
	Message string       `json:"message,omitempty"`
}

// HistoryOf returns the last run of each plan, latest first. It omits plans that have not run in the present OperatorVersion: they may have run
// in an earlier one, which the status does not record.
func HistoryOf(view View) History {
	runs := []LastRun{}
	last := view.Instance.Status.Execution
	for name, status := range view.Instance.Status.PlanStatus {
		if State(status.Status) == kudo.NeverRun {
			continue
		}
		run := LastRun{Plan: name, Status: status.Status, Started: status.StartedTimestamp, Message: status.Message}
		if status.Status.IsTerminal() {
			run.Ended = status.LastUpdatedTimestamp
		}
		run.Manual = last != nil && last.Plan == name && last.UID == last.Request
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b LastRun) int {
		return cmp.Or(b.latest().Compare(a.latest()), cmp.Compare(a.Plan, b.Plan))
	})
	return History{Instance: view.Instance.Name, Cluster: view.Instance.Namespace, Plans: runs}
}

// latest returns the start of the run, or its last known time if the start is not recorded.
func (r LastRun) latest() time.Time {
	switch {
	case r.Started != nil:
		return r.Started.Time
	case r.Ended != nil:
		return r.Ended.Time
	default:
		return time.Time{}
	}
}
