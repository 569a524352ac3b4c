package progress

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Revisions is the output of `history` for a single cluster.
type Revisions struct {
	Instance string `json:"instance"`
	Cluster  string `json:"cluster"`
	// Revisions lists the executions, oldest first.
	Revisions []kudo.HistoryEntry `json:"revisions"`
}

// RevisionsOf returns the history of an Instance.
func RevisionsOf(instance *kudo.Instance) Revisions {
	return Revisions{
		Instance: instance.Name, Cluster: instance.Namespace, Revisions: append([]kudo.HistoryEntry{}, instance.Status.History...),
	}
}

// Last returns the history with its last execution only.
func (r Revisions) Last() Revisions {
	r.Revisions = r.Revisions[max(0, len(r.Revisions)-1):]
	return r
}
