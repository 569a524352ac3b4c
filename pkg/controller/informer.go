package controller

import (
	"context"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// NewInformer returns an informer that is up to date again within LongestRetry after an outage; it is cache.Options.NewInformer.
//
// client-go's takes up to twice as long: it waits up to a minute between two attempts, and again as long if the first one after the outage
// fails, which is the rule: an API server that was restarted does not know the resource versions of objects that have not changed since.
// Therefore attempts that the API server does not answer are repeated here, at the same intervals, and client-go's wait after an answer
// remains short. The intervals are random, so that the agents of a fleet do not reconnect at the same time.
func NewInformer(
	source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	from := toolscache.ToListerWatcherWithContext(source)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: from.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return answered(ctx, func() (watch.Interface, error) { return from.WatchWithContext(ctx, options) })
		},
	}, object, resync, indexers)
}

// answered repeats a request until the API server answers it.
func answered(ctx context.Context, request func() (watch.Interface, error)) (watch.Interface, error) {
	intervals := wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Cap: LongestRetry / 2, Steps: math.MaxInt}
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
