package engine

import (
	"time"

	"github.com/tandem-addons/tandem/pkg/core/pace"
)

// What fails is tried again after minBackoff, and less and less often up to maxBackoff.
const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// What no event reports is checked again.
const (
	// pollInterval is for what usually ends within seconds: remaining objects of an Instance that is removed, and the first list of a kind.
	pollInterval = time.Second

	// recheckInterval is for what may take long: pods of a workload, which are not watched, and permissions that could not be granted. A plan or
	// step that runs for longer is slow: it is recorded and diagnosed, and the start of the plan has an event.
	recheckInterval = 10 * time.Second

	// answerLifetime is for answers of the API server that rarely change: why it refuses to update an object that is being deleted, and that an
	// object is gone although the cache has it. It exists again if the API server was restored from a backup.
	answerLifetime = 30 * time.Second

	// holdInterval is for what a plan waits for before it starts: the Kubernetes version of the cluster, a name that is in use, and content that is
	// lost.
	holdInterval = 30 * time.Second

	// missedDeletionDelay is how long the cache may show an object that is being deleted, before the API server is asked. The cache may have
	// missed the deletion: it cannot list a kind again whose definition was deleted too.
	missedDeletionDelay = 5 * time.Second

	// confirmInterval is for a changed definition: nothing shows when the API server converts objects as it says.
	confirmInterval = 5 * time.Second
)

// DriftInterval is how often all applied objects are compared with what was applied. Changes by other writers are compared immediately.
const DriftInterval = 10 * time.Minute

// RBAC applies a change of permissions after a moment, on each API server at another time. A request that lacks a permission is repeated for
// requestRetryTimeout after a change. For taskRetryTimeout after it, its task is retried; then the permission is not declared.
const (
	requestRetryTimeout = 2 * time.Second
	taskRetryTimeout    = 10 * time.Second
)

// A server that does not respond must not block unrelated Instances.
const (
	logTimeout       = 3 * time.Second  // of a kubelet, for the log of a container that has failed
	diagnosisTimeout = 10 * time.Second // of all reads for a diagnosis
	listTimeout      = 5 * time.Second  // of an API server, for one kind in a search through all
	readTimeout      = 15 * time.Second // of an API server, for an object or the first list of its kind; it waits for a webhook for ten seconds
	fileTimeout      = 30 * time.Second // of a container, for one file of a Pipe task
)

// Progress of plans that nothing depends on is recorded after progressDelay, or after recheckInterval if too many Instances progress at the same
// time: most plans continue or end earlier, and then it needs no write.
const progressDelay = 500 * time.Millisecond

// messageInterval limits the writes of changed messages, and of the progress of a removal. Timestamps in a status have whole seconds: its
// minimum is at least one.
var messageInterval = pace.Interval{Min: 2 * time.Second, Retry: recheckInterval, Max: time.Minute}

// The budgets of all these writes: one during plans and removals, and one at rest.
const (
	progressQPS   = 2
	progressBurst = 5
)
