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
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/pkg/text"
)

// The rate per second and the burst of a recorder, and how many events wait at most: little beside the hundreds of verdicts a second that
// an API server takes, so that a change of the whole fleet is not held up by what is told of it.
const (
	eventQPS   = 10
	eventBurst = 25
	eventRoom  = 500
)

// Recorder hands the events of all controllers on at a modest rate, so that a verdict over a whole fleet does not put as many
// events beside its writes. It never blocks a controller: what does not fit is dropped, counted, and logged once for all that are
// dropped in a row. client-go's own queue is no bound, because every event in it is a goroutine that waits.
type Recorder struct {
	program string
	to      events.EventRecorder
	sink    events.EventBroadcaster
	log     logr.Logger
	dropped prometheus.Counter
	waiting chan func()
	full    atomic.Bool
}

// NewRecorder records as the program of that name, and counts what it drops.
func NewRecorder(program string, log logr.Logger, dropped prometheus.Counter) *Recorder {
	return &Recorder{program: program, log: log, dropped: dropped, waiting: make(chan func(), eventRoom)}
}

// SetUp gives the recorder a client of its own: what is told of verdicts must not take requests from those who write them.
func (r *Recorder) SetUp(mgr manager.Manager) error {
	client, err := eventsclient.NewForConfigAndClient(Apart(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing to record events: %w", err)
	}
	r.sink = events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	r.to = r.sink.NewRecorder(mgr.GetScheme(), r.program)
	return mgr.Add(r)
}

// Eventf records an event, as events.EventRecorder does. The objects must not be changed afterwards.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	select {
	case r.waiting <- func() { r.to.Eventf(regarding, related, eventType, reason, action, note, args...) }:
	default:
		r.dropped.Inc()
		if !r.full.Swap(true) {
			r.log.Info("dropping events that come too fast; metric addon_events_dropped_total counts them", "waiting", eventRoom)
		}
	}
}

// Start hands events on until ctx ends. What waits then is lost with the process, as in client-go.
func (r *Recorder) Start(ctx context.Context) error {
	defer r.sink.Shutdown()
	if err := r.sink.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	return r.handOn(ctx)
}

func (r *Recorder) handOn(ctx context.Context) error {
	limiter := flowcontrol.NewTokenBucketRateLimiter(eventQPS, eventBurst)
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

// noteLimit is the length of an event's note in bytes at most, as the API server has it.
const noteLimit = 1024

// Note is a message as it fits into an event.
func Note(message string) string { return text.Truncate(message, noteLimit) }
