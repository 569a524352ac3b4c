package controller_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// restarted is what an informer sees of an API server that cannot be reached for a time.
type restarted struct {
	mutex    sync.Mutex
	from, to time.Time
	// forgets is set if it knows no earlier resource version after that. restored is when it is restored from a backup, and knows none that is
	// as late; zero if it is not.
	forgets  bool
	restored time.Time
	// reached is set if it has reached the last version again, by other changes, before it answers.
	reached bool
	open    *watch.FakeWatcher
	// listed is when it last returned all objects after the outage.
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
	if options.SendInitialEvents == nil && !now.Before(r.to) && r.forgets {
		r.open.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		return r.open, nil
	}
	if options.SendInitialEvents != nil {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: r.version(now)}}
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

func (r *restarted) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	now := time.Now()
	if !now.Before(r.from) && now.Before(r.to) {
		return nil, syscall.ECONNREFUSED
	}
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: r.version(now)}}, nil
}

func (r *restarted) version(now time.Time) string {
	if !r.restored.IsZero() && !now.Before(r.restored) && !r.reached {
		return "5"
	}
	return "10"
}

// interrupt ends the open watch.
func (r *restarted) interrupt() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.open.Stop()
}

// startInformer fills a cache with the objects of an API server until stop is called.
func startInformer(t *testing.T, server *restarted) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	source := &toolscache.ListWatch{ListWithContextFunc: server.list, WatchFuncWithContext: server.watch}
	informer := controller.NewInformer(source, &corev1.ConfigMap{}, 0, nil)
	var group sync.WaitGroup
	group.Go(func() { informer.RunWithContext(ctx) })
	<-time.After(time.Until(server.from))
	if !informer.HasSynced() {
		t.Error("the cache is not filled before the outage")
	}
	server.interrupt()
	return func() {
		cancel()
		group.Wait()
	}
}

func TestCacheIsUpToDateWithinMaxRetryIntervalAfterOutage(t *testing.T) {
	for _, restored := range []bool{false, true} {
		for range 100 { // attempts are at random times
			synctest.Test(t, func(t *testing.T) { outage(t, restored) })
		}
	}
}

func outage(t *testing.T, restored bool) {
	t.Helper()
	start := time.Now()
	server := &restarted{forgets: !restored, from: start.Add(time.Hour), to: start.Add(time.Hour + 2*time.Minute)}
	if restored {
		server.restored = server.to
	}
	stop := startInformer(t, server)
	<-time.After(2*time.Minute + 3*controller.MaxRetryInterval)
	stop()
	if after := server.listed.Sub(server.to); server.listed.IsZero() || after > controller.MaxRetryInterval+2*time.Second {
		t.Errorf("restored %t: up to date %s after the outage, want at most %s", restored, after, controller.MaxRetryInterval)
	}
}

func TestACacheFollowsAnAPIServerThatIsRestoredSoonAfterALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		server := &restarted{from: start.Add(time.Hour), to: start.Add(time.Hour + 15*time.Minute)} // which is longer than a watch
		server.restored = server.to.Add(3 * time.Minute)
		stop := startInformer(t, server)
		<-time.After(time.Until(server.restored))
		server.interrupt()
		<-time.After(controller.MaxRetryInterval)
		stop()
		if server.listed.Before(server.restored) {
			t.Error("the cache has not listed the objects again")
		}
	})
}

func TestACacheFollowsARestoredAPIServerThatHasReachedItsVersionAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		server := &restarted{from: start.Add(time.Hour), to: start.Add(time.Hour + 5*time.Second), reached: true}
		server.restored = server.to
		stop := startInformer(t, server)
		<-time.After(time.Until(server.to) + controller.MaxRetryInterval)
		stop()
		if server.listed.IsZero() {
			t.Error("the cache has not listed the objects again")
		}
	})
}

func TestTheFirstListOfACacheIsCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var versions []string
		source := &toolscache.ListWatch{
			ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
				versions = append(versions, options.ResourceVersion)
				return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if options.SendInitialEvents != nil {
					return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // as an API server that does not support it
				}
				return watch.NewFake(), nil
			},
		}
		informer := controller.NewInformer(source, &corev1.ConfigMap{}, 0, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { informer.RunWithContext(ctx) })
		<-time.After(time.Second)
		cancel()
		group.Wait()
		if !informer.HasSynced() || slices.ContainsFunc(versions, func(version string) bool { return version != "" }) {
			t.Errorf("listed with resource versions %q, want none", versions)
		}
	})
}

func TestAnInformerOfAKindThatIsNotServedReportsIt(t *testing.T) {
	gizmo := schema.GroupVersionKind{Group: "tandem.test", Version: "v1", Kind: "Gizmo"}
	gizmos := schema.GroupResource{Group: gizmo.Group, Resource: "gizmos"}
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", gizmos, "", "404 page not found", 0, true)
	for sentence, test := range map[string]struct {
		answer error
		sent   bool
	}{
		"not served": {unserved, true},
		"forbidden":  {apierrors.NewForbidden(gizmos, "", nil), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				kinds := make(controller.Unserved)
				object := &metav1.PartialObjectMetadata{}
				object.SetGroupVersionKind(gizmo)
				informer := kinds.NewInformer(&toolscache.ListWatch{
					ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, test.answer },
					WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, test.answer },
				}, object, 0, nil)
				// client-go's own handler pauses until the time of its last call, which the clock of this test does not reach.
				if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {}); err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				group.Go(func() { informer.RunWithContext(ctx) })
				var sent []schema.GroupVersionKind
				group.Go(func() {
					for {
						select {
						case kind := <-kinds:
							sent = append(sent, kind)
						case <-ctx.Done():
							return
						}
					}
				})
				<-time.After(time.Minute)
				cancel()
				group.Wait()
				if (len(sent) > 1) != test.sent || test.sent && sent[0] != gizmo {
					t.Errorf("in a minute it has sent %v", sent)
				}
			})
		})
	}
}
