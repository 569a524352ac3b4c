package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// newTestPace returns a Pace, and the clock that it reads.
func newTestPace() (*Pace, *time.Time) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return NewPace(func() time.Time { return now }), &now
}

// delayOf returns how long a write is postponed; zero if it is not.
func delayOf(t *testing.T, err error) time.Duration {
	t.Helper()
	var p *PostponedError
	if err != nil && !errors.As(err, &p) {
		t.Fatalf("unexpected error %v", err)
	}
	if p == nil {
		return 0
	}
	return p.For
}

func TestPace(t *testing.T) {
	addOn := types.NamespacedName{Namespace: "cluster1", Name: "kafka"}
	const ms = time.Millisecond
	// every returns the times of changes that follow each other without a write delay in between.
	every := func(interval, until time.Duration) (times []time.Duration) {
		for at := time.Duration(0); at <= until; at += interval {
			times = append(times, at)
		}
		return times
	}
	for name, tc := range map[string]struct {
		changes, created []time.Duration
		asks             []time.Duration
		want             time.Duration // of the last ask
	}{
		"an unchanged object is written at once": {asks: []time.Duration{0}},
		"after a change, the status waits two seconds": {
			changes: []time.Duration{0}, asks: []time.Duration{10 * ms}, want: 1990 * ms},
		"a write that comes later waits for the rest": {
			changes: []time.Duration{0}, asks: []time.Duration{1500 * ms}, want: 500 * ms},
		"a write that is asked for again waits no longer": {
			changes: []time.Duration{0}, asks: []time.Duration{10 * ms, 1500 * ms}, want: 500 * ms},
		"then it is written": {
			changes: []time.Duration{0}, asks: []time.Duration{10 * ms, 2000 * ms}},
		"another change makes it wait again": {
			changes: []time.Duration{0, 1500 * ms}, asks: []time.Duration{10 * ms, 2000 * ms}, want: 1500 * ms},
		"a stream of changes makes it wait a minute at most": {
			changes: every(time.Second, 2*time.Minute), asks: []time.Duration{10 * ms, 59500 * ms}, want: 510 * ms},
		"after that it is written although the changes continue": {
			changes: every(time.Second, 2*time.Minute), asks: []time.Duration{10 * ms, 60010 * ms}},
		"and the next write waits again": {
			changes: every(time.Second, 2*time.Minute), asks: []time.Duration{10 * ms, 60010 * ms, 61500 * ms}, want: 1500 * ms},
		"changes that no write waits for do not count": {
			changes: every(time.Second, 2*time.Minute), asks: []time.Duration{90500 * ms}, want: 1500 * ms},
		"nor does a write that became unnecessary": {
			changes: []time.Duration{0, 90 * time.Second}, asks: []time.Duration{10 * ms, 90500 * ms}, want: 1500 * ms},
		"a new object is written at once": {created: []time.Duration{0}, asks: []time.Duration{10 * ms}},
		"as is one that is created again": {
			changes: []time.Duration{0}, created: []time.Duration{10 * ms}, asks: []time.Duration{20 * ms}},
		"one that is changed after its creation is not": {
			created: []time.Duration{0}, changes: []time.Duration{10 * ms}, asks: []time.Duration{20 * ms}, want: 1990 * ms},
		"a change that was handled before does not matter": {changes: []time.Duration{0}, asks: []time.Duration{time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			pace, now := newTestPace()
			start := *now
			var got time.Duration
			moments := slices.Concat(tc.changes, tc.created, tc.asks)
			slices.Sort(moments)
			for _, at := range slices.Compact(moments) {
				*now = start.Add(at)
				if slices.Contains(tc.created, at) {
					pace.Reset(addOn)
				}
				if slices.Contains(tc.changes, at) {
					pace.Delay(addOn)
				}
				if slices.Contains(tc.asks, at) {
					got = delayOf(t, pace.Allow(addOn))
				}
				if at == slices.Max(tc.asks) {
					break
				}
			}
			if got != tc.want {
				t.Errorf("the write waits for %v, want %v", got, tc.want)
			}
			if err := pace.Allow(types.NamespacedName{Namespace: "cluster2", Name: "kafka"}); err != nil {
				t.Errorf("another object waits, too: %v", err)
			}
		})
	}
}

func TestPaceForgetsEndedDelays(t *testing.T) {
	pace, now := newTestPace()
	name := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: fmt.Sprint("cluster", i), Name: "kafka"}
	}
	const addOns = 5000
	for i := range addOns {
		pace.Delay(name(i))
	}
	*now = now.Add(minWriteDelay)
	for i := range addOns / 2 {
		if err := pace.Allow(name(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(pace.delays); got != addOns/2 {
		t.Errorf("%d periods are left after half of the add-ons were written", got)
	}
	*now = now.Add(maxWriteDelay)
	pace.Delay(name(addOns))
	if got := len(pace.delays); got != 1 {
		t.Errorf("%d periods are left of add-ons that needed no write", got-1)
	}
}

func TestChangesThatDelayWrites(t *testing.T) {
	object := func(change func(*addonv1alpha1.ManagedClusterAddOn)) *addonv1alpha1.ManagedClusterAddOn {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "a", UID: "1", Generation: 1}}
		change(addOn)
		return addOn
	}
	before := object(func(*addonv1alpha1.ManagedClusterAddOn) {})
	deleted := object(func(a *addonv1alpha1.ManagedClusterAddOn) { a.Generation, a.DeletionTimestamp = 2, new(metav1.Now()) })
	for name, tc := range map[string]struct {
		after *addonv1alpha1.ManagedClusterAddOn
		want  bool
	}{
		"another spec":               {object(func(a *addonv1alpha1.ManagedClusterAddOn) { a.Generation = 2 }), true},
		"another status":             {object(func(a *addonv1alpha1.ManagedClusterAddOn) { a.ResourceVersion = "2" }), false},
		"another object":             {object(func(a *addonv1alpha1.ManagedClusterAddOn) { a.UID, a.Generation = "2", 2 }), false},
		"the beginning of a removal": {deleted, false},
	} {
		t.Run(name, func(t *testing.T) {
			pace, _ := newTestPace()
			if !pace.OnSpecChange().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}) {
				t.Error("the event was dropped")
			}
			if got := pace.Allow(client.ObjectKeyFromObject(before)) != nil; got != tc.want {
				t.Errorf("it begins a quiet period: %v, want %v", got, tc.want)
			}

			pace, _ = newTestPace()
			affected := types.NamespacedName{Namespace: "c", Name: "affected"}
			noticed := false
			observer := handler.Funcs{UpdateFunc: func(context.Context, event.UpdateEvent, queue) {
				noticed = true
				if got := pace.Allow(affected) != nil; got != tc.want {
					t.Errorf("what it affects is quiet before it is enqueued: %v, want %v", got, tc.want)
				}
			}}
			pace.Before(observer, func(context.Context, client.Object) ([]reconcile.Request, error) {
				return []reconcile.Request{{NamespacedName: affected}}, nil
			}).Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}, nil)
			if !noticed {
				t.Error("the event was dropped")
			}
		})
	}
}
