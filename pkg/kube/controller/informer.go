package controller

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// NewInformer returns an informer that is up to date again within MaxRetryInterval after an outage; it is cache.Options.NewInformer.
//
// client-go's takes up to twice as long: it waits up to a minute between two attempts, and again as long if the first one after the outage
// fails, which is the rule: an API server that was restarted does not know the resource versions of objects that have not changed since.
// Therefore attempts that the API server does not answer are repeated here, at the same intervals, and client-go's wait after an answer
// remains short. The intervals are random, so that the agents of a fleet do not reconnect at the same time.
//
// The informer also lists all objects again if the API server was, or may have been, restored from a backup. Its first list is current: with
// client-go's, which may be that of an API server whose cache is stale, a program that starts would not see what it has written before.
func NewInformer(
	source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return Unserved(nil).NewInformer(source, object, resync, indexers)
}

// Unserved receives the kinds of informers that the API server does not serve, or no longer: their objects in the cache are stale. A kind
// that is not received is sent again with the next attempt of its informer.
type Unserved chan schema.GroupVersionKind

// NewInformer is like the function of that name, and sends the kind of the informer if the API server does not serve it.
func (u Unserved) NewInformer(
	source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	r := &rewatcher{from: toolscache.ToListerWatcherWithContext(source), kind: object.GetObjectKind().GroupVersionKind(), unserved: u}
	return toolscache.NewSharedIndexInformer(
		&toolscache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}, object, resync, indexers)
}

// rewatcher watches the objects of an informer.
type rewatcher struct {
	from toolscache.ListerWatcherWithContext
	// until is when the API server ends the last watch. A watch that ends earlier was interrupted.
	until time.Time

	kind     schema.GroupVersionKind
	unserved Unserved
}

// report sends the kind if the error is that the API server does not serve it.
func (r *rewatcher) report(err error) {
	if !IsUnserved(err) {
		return
	}
	select {
	case r.unserved <- r.kind:
	default:
	}
}

// list lists the current objects if client-go asks for those of any version.
func (r *rewatcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	listed, err := r.from.ListWithContext(ctx, options)
	r.report(err)
	return listed, err
}

// watch begins a watch. If the last one was interrupted, or the API server does not answer, the API server may have been restored since.
func (r *rewatcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	interrupted, down := time.Now().Before(r.until), false
	return retryUntilAnswered(ctx, func() (w watch.Interface, err error) {
		defer func() {
			r.report(err)
			down = down || isUnanswered(err) && !apierrors.IsTooManyRequests(err)
		}()
		if interrupted {
			if err := r.checkVersion(ctx, options, down); err != nil {
				return nil, err
			}
		}
		interrupted = true // for the next attempt
		r.until = time.Now().Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second)
		return r.from.WatchWithContext(ctx, options)
	})
}

// checkVersion returns an error, which makes client-go list all objects again, if the API server has not reached the version to watch from,
// or was down. An API server that was restored from a backup accepts such a watch, but sends no events until its versions have reached that
// version again, and never sends events about the changes by the restoration. One that was down may have reached the version again by now.
func (r *rewatcher) checkVersion(ctx context.Context, options metav1.ListOptions, down bool) error {
	if options.SendInitialEvents != nil {
		return nil // the watch lists the objects
	}
	current, err := r.from.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if down {
		return apierrors.NewResourceExpired("the API server was down: it may have been restored from a backup")
	}
	list, err := meta.ListAccessor(current)
	if err != nil {
		return err
	}
	order, err := resourceversion.CompareResourceVersion(list.GetResourceVersion(), options.ResourceVersion)
	if err == nil && order < 0 {
		return apierrors.NewResourceExpired(fmt.Sprintf("the API server is at resource version %s, before %s: it was restored from a backup",
			list.GetResourceVersion(), options.ResourceVersion))
	}
	return nil // versions of some aggregated API servers have no order
}

// retryUntilAnswered repeats a request until the API server answers it.
func retryUntilAnswered(ctx context.Context, request func() (watch.Interface, error)) (watch.Interface, error) {
	intervals := wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Cap: MaxRetryInterval / 2, Steps: math.MaxInt}
	for first := true; ; first = false {
		w, err := request()
		if err == nil || !isUnanswered(err) {
			return w, err
		}
		if first {
			klog.FromContext(ctx).Info("the API server does not answer a watch; retrying", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(intervals.Step()):
		}
	}
}

// isUnanswered reports whether a request failed because the API server is down, starting, unreachable or overloaded.
func isUnanswered(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsTimeout(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
