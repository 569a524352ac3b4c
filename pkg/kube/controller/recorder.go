package controller

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/pkg/text"
)

// The rates per second and the burst of a recorder, and the maximum number of queued events: small compared to the hundreds of verdicts and
// the dozen plans a second that an API server accepts, so that events do not slow down a change of the whole fleet or cluster.
const (
	VerdictEventQPS = 10
	PlanEventQPS    = 4

	eventBurst = 25
	eventRoom  = 500
)

// EventsDropped returns the counter of a program's dropped events.
func EventsDropped() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "addon_events_dropped_total",
		Help: "Number of Kubernetes events that were dropped because too many were emitted at once.",
	})
}

// Recorder sends the events of all controllers at a limited rate, so that verdicts on a whole fleet do not cause the same number of event
// writes. It never blocks a controller: excess events are dropped, counted, and logged once per series. client-go's own queue has no limit,
// because every queued event is a waiting goroutine.
type Recorder struct {
	program string
	scheme  *runtime.Scheme
	to      events.EventRecorder
	sink    events.EventBroadcaster
	qps     float32
	log     logr.Logger
	dropped prometheus.Counter
	waiting chan func()
	full    atomic.Bool
}

// NewRecorder returns a recorder that reports that many events a second as the program of that name, and counts dropped events.
func NewRecorder(program string, qps float32, log logr.Logger, dropped prometheus.Counter) *Recorder {
	return &Recorder{program: program, qps: qps, log: log, dropped: dropped, waiting: make(chan func(), eventRoom)}
}

// SetUp gives the recorder its own client: events must not delay the requests of the controllers.
func (r *Recorder) SetUp(mgr manager.Manager) error {
	client, err := eventsclient.NewForConfig(WithoutLimits(mgr.GetConfig()))
	if err != nil {
		return fmt.Errorf("preparing to record events: %w", err)
	}
	r.sink = events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	r.scheme = mgr.GetScheme()
	r.to = r.sink.NewRecorder(r.scheme, r.program)
	return mgr.Add(r)
}

// Eventf records an event, like events.EventRecorder.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	regarding, related = r.reference(regarding), r.reference(related) // the caller may modify the objects before the event is sent
	select {
	case r.waiting <- func() { r.to.Eventf(regarding, related, eventType, reason, action, note, args...) }:
	default:
		r.dropped.Inc()
		if !r.full.Swap(true) {
			r.log.Info("dropping events because the queue is full; see metric addon_events_dropped_total", "waiting", eventRoom)
		}
	}
}

// reference returns a reference to an object, or a copy if its kind is not registered; nil for nil.
func (r *Recorder) reference(object runtime.Object) runtime.Object {
	if object == nil {
		return nil
	}
	found, err := reference.GetReference(r.scheme, object)
	if err != nil {
		return object.DeepCopyObject() // client-go reports the error
	}
	return found
}

// Start sends events until ctx ends. Queued events are then lost, as in client-go.
func (r *Recorder) Start(ctx context.Context) error {
	defer r.sink.Shutdown()
	if err := r.sink.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	return r.handOn(ctx)
}

func (r *Recorder) handOn(ctx context.Context) error {
	limiter := flowcontrol.NewTokenBucketRateLimiter(r.qps, eventBurst)
	for {
		select {
		case <-ctx.Done():
			return nil
		case send := <-r.waiting:
			if limiter.Wait(ctx) != nil {
				return nil
			}
			send()
			if len(r.waiting) == 0 {
				r.full.Store(false)
			}
		}
	}
}

// noteLimit is the API server's limit for an event's note, in bytes.
const noteLimit = 1024

// TruncateNote truncates a message to fit into an event.
func TruncateNote(message string) string { return text.Truncate(message, noteLimit) }
