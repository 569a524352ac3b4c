// Package history keeps the list of the last executions of an Instance, bounded in number and size. It contains names of parameters, never
// their values. It touches no cluster.
package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of a history: its entries and its bytes as JSON, and of an entry the names of parameters, their bytes, and the bytes of its message.
const (
	MaxEntries        = 20
	maxBytes          = 16 << 10
	maxParameters     = 16
	maxParameterBytes = 512
	maxMessageBytes   = 256
)

// Start is an execution that has just started.
type Start struct {
	Execution *kudo.Execution
	Cause     kudo.HistoryCause
	// From is the OperatorVersion of the execution before; the zero value if there was none.
	From corev1.ObjectReference
	// Parameters are the names of the parameters whose values changed.
	Parameters []string
	// By is who has made the change; empty if it is not known, or if there was none.
	By  string
	Now time.Time
}

// Begin returns the history with an execution that has just started. What has not ended is superseded by it. A failed plan that starts again by
// itself continues its entry, so that retries leave the other entries in place.
func Begin(entries []kudo.HistoryEntry, s Start) []kudo.HistoryEntry {
	entries = slices.Clone(entries)
	if last := len(entries) - 1; last >= 0 {
		if s.continues(entries[last]) {
			entries[last] = withRetry(entries[last], s.Execution.UID)
			return bound(entries)
		}
		if entries[last].Outcome == "" {
			entries[last] = withEnd(entries[last], kudo.HistorySuperseded, fmt.Sprintf("superseded by plan %q", s.Execution.Plan), &metav1.Time{Time: s.Now})
		}
	}
	entry := entryOf(entries, s.Execution)
	entry.Cause, entry.By = s.Cause, s.By
	entry.StartedTimestamp = &metav1.Time{Time: s.Now.Truncate(time.Second)}
	if s.From.Name != s.Execution.OperatorVersion.Name {
		entry.From = s.From.Name
	}
	entry.Parameters, entry.MoreParameters = shorten(s.Parameters)
	return bound(append(entries, entry))
}

// continues reports whether the execution runs the failed plan of an entry again, without a change or a request of a user.
func (s Start) continues(last kudo.HistoryEntry) bool {
	isAgain := s.Cause == kudo.CauseRetry || s.Cause == kudo.CauseParent || s.Cause == kudo.CauseRemoval && last.Cause == kudo.CauseRemoval
	return isAgain && last.Outcome == kudo.HistoryFailed && last.Plan == s.Execution.Plan &&
		last.OperatorVersion.Name == s.Execution.OperatorVersion.Name && len(s.Parameters) == 0
}

// End returns the history of a status whose last execution may have ended: it is recorded once how. failed is the outcome of a plan that did not
// complete. An execution that an earlier release has started gets its entry when it ends.
func End(status kudo.InstanceStatus, failed kudo.HistoryOutcome) []kudo.HistoryEntry {
	last := status.Execution
	state := status.PlanStatus[last.Plan]
	if !state.Status.IsTerminal() {
		return status.History
	}
	entries := slices.Clone(status.History)
	at := slices.IndexFunc(entries, func(e kudo.HistoryEntry) bool { return e.UID == last.UID })
	if at < 0 {
		entry := entryOf(entries, last)
		entry.StartedTimestamp = state.StartedTimestamp
		at, entries = len(entries), append(entries, entry)
	}
	if entries[at].Outcome != "" {
		return status.History
	}
	if state.Status == kudo.Complete {
		failed = kudo.HistoryComplete
	}
	entries[at] = withEnd(entries[at], failed, state.Message, state.LastUpdatedTimestamp)
	return bound(entries)
}

// entryOf returns the next entry, of an execution.
func entryOf(entries []kudo.HistoryEntry, execution *kudo.Execution) kudo.HistoryEntry {
	entry := kudo.HistoryEntry{Revision: 1, UID: execution.UID, Plan: execution.Plan, OperatorVersion: execution.OperatorVersion}
	if last := len(entries) - 1; last >= 0 {
		entry.Revision = entries[last].Revision + 1
	}
	return entry
}

// withRetry returns the entry of a plan that starts again.
func withRetry(entry kudo.HistoryEntry, execution types.UID) kudo.HistoryEntry {
	entry.UID, entry.Outcome, entry.Message, entry.EndedTimestamp = execution, "", "", nil
	entry.Retries++
	return entry
}

// withEnd returns the entry with its end.
func withEnd(entry kudo.HistoryEntry, outcome kudo.HistoryOutcome, message string, at *metav1.Time) kudo.HistoryEntry {
	entry.Outcome, entry.EndedTimestamp = outcome, at.DeepCopy()
	if outcome != kudo.HistoryComplete {
		entry.Message = text.Truncate(message, maxMessageBytes)
	}
	return entry
}

// shorten returns as many of the names as an entry holds, and the number of the others.
func shorten(names []string) (kept []string, more int32) {
	size := 0
	for i, name := range names {
		if size += len(name); i == maxParameters || size > maxParameterBytes {
			return kept, int32(len(names) - i) //nolint:gosec // an OperatorVersion has far fewer parameters
		}
		kept = append(kept, name)
	}
	return kept, 0
}

// bound returns the latest entries, as many as a status holds.
func bound(entries []kudo.HistoryEntry) []kudo.HistoryEntry {
	entries = entries[max(0, len(entries)-MaxEntries):]
	for len(entries) > 1 && sizeOf(entries) > maxBytes {
		entries = entries[1:]
	}
	return slices.Clip(entries)
}

// sizeOf returns the size of entries as JSON, in bytes.
func sizeOf(entries []kudo.HistoryEntry) int {
	encoded, err := json.Marshal(entries)
	if err != nil {
		return 0 // they consist of strings, numbers and times
	}
	return len(encoded)
}
