package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// notes collects the notes of the sent events.
type notes struct {
	mutex sync.Mutex
	kept  []string
}

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.kept = append(n.kept, fmt.Sprintf(note, args...))
}

func (n *notes) count() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return len(n.kept)
}

func TestRecorderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			through notes
			lines   []string
		)
		dropped := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropped"})
		r := NewRecorder("test", VerdictEventQPS, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}), dropped)
		r.to = &through
		flood := func(n int) {
			for i := range n {
				r.Eventf(nil, nil, corev1.EventTypeNormal, "Reason", "Action", "event %d", i)
			}
		}

		flood(eventRoom + 500) // not started yet: none of the calls may block
		var counted dto.Metric
		if err := dropped.Write(&counted); err != nil || counted.Counter.GetValue() != 500 {
			t.Errorf("dropped %v events (%v), want 500", counted.Counter, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.handOn(ctx) }()
		synctest.Wait()
		if got := through.count(); got != eventBurst {
			t.Errorf("%d events came through at once, want %d", got, eventBurst)
		}
		<-time.After(2 * time.Second) // in the time of synctest
		synctest.Wait()
		if got, want := through.count(), eventBurst+2*VerdictEventQPS; got < want-1 || got > want {
			t.Errorf("%d events came through in two seconds, want %d", got, want)
		}
		<-time.After(eventRoom / VerdictEventQPS * time.Second)
		synctest.Wait()
		var want []string
		for i := range eventRoom {
			want = append(want, fmt.Sprintf("event %d", i))
		}
		if diff := cmp.Diff(want, slices.Clone(through.kept)); diff != "" {
			t.Errorf("events in the end (-want +got):\n%s", diff)
		}
		if len(lines) != 1 {
			t.Errorf("logged %q, want one line for all that was dropped in a row", lines)
		}

		<-time.After(eventBurst / VerdictEventQPS * time.Second)
		flood(eventRoom + eventBurst + 100)
		if len(lines) != 2 {
			t.Errorf("logged %q, want one more line for the second flood", lines)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// regarded collects the objects of the sent events.
type regarded struct{ objects []runtime.Object }

func (r *regarded) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	r.objects = append(r.objects, regarding)
}

func TestRecorderReadsObjectsBeforeTheirOwnerModifiesThem(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sent := &regarded{}
	r := NewRecorder("test", VerdictEventQPS, logr.Discard(), prometheus.NewCounter(prometheus.CounterOpts{Name: "dropped"}))
	r.to, r.scheme = sent, scheme
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "data", Name: "kafka", UID: "1", ResourceVersion: "7"}}
	r.Eventf(object, nil, corev1.EventTypeNormal, "Reason", "Action", "note")
	object.ResourceVersion, object.Name = "8", "another"
	(<-r.waiting)()
	want := []runtime.Object{&corev1.ObjectReference{
		Kind: "ConfigMap", APIVersion: "v1", Namespace: "data", Name: "kafka", UID: "1", ResourceVersion: "7",
	}}
	if diff := cmp.Diff(want, sent.objects); diff != "" {
		t.Errorf("objects of the events (-want +got):\n%s", diff)
	}
}
