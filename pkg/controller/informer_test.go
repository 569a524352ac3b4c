package controller_test

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tandem-addons/tandem/pkg/controller"
)

// restarted is what an informer sees of an API server that is down for a time, and knows no earlier resource version after that.
type restarted struct {
	mutex    sync.Mutex
	from, to time.Time
	open     *watch.FakeWatcher
	// listed is when it returned all objects after the outage.
	listed time.Time
}

func (r *restarted) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := time.Now()
	if !now.Before(r.from) && now.Before(r.to) {
		return nil, syscall.ECONNREFUSED
	}
	r.open = watch.NewFakeWithChanSize(2, false)
	if options.SendInitialEvents == nil && !now.Before(r.to) {
		r.open.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		return r.open, nil
	}
	if options.SendInitialEvents != nil {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
		r.open.Add(object)
		end := object.DeepCopy()
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		r.open.Action(watch.Bookmark, end)
		if !now.Before(r.to) {
			r.listed = now
		}
	}
	return r.open, nil
}

func TestACacheIsUpToDateAgainWithinTheLongestRetryAfterAnOutage(t *testing.T) {
	for range 100 { // attempts are at random times
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			start := time.Now()
			server := &restarted{from: start.Add(time.Hour), to: start.Add(time.Hour + 2*time.Minute)}
			informer := controller.NewInformer(&toolscache.ListWatch{WatchFuncWithContext: server.watch}, &corev1.ConfigMap{}, 0, nil)
			var group sync.WaitGroup
			group.Go(func() { informer.RunWithContext(ctx) })
			<-time.After(time.Hour)
			if !informer.HasSynced() {
				t.Error("the cache is not filled before the outage")
			}
			server.mutex.Lock()
			server.open.Stop()
			server.mutex.Unlock()
			<-time.After(2*time.Minute + 3*controller.LongestRetry)
			cancel()
			group.Wait()
			if after := server.listed.Sub(server.to); server.listed.IsZero() || after > controller.LongestRetry+2*time.Second {
				t.Errorf("up to date %s after the outage, want at most %s", after, controller.LongestRetry)
			}
		})
	}
}
