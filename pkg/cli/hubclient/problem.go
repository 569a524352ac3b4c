package hubclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/tandem-addons/tandem/pkg/console/change"
)

// Advise adds advice to errors caused by a hub that is not set up.
func Advise(err error, namespace string) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w: check that the cluster is a hub with Tandem's CRDs; one that has just started serves them after some seconds", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: check that KUBECONFIG or --kubeconfig names the hub, and that the hub is running", err)
	case change.IsForbidden(err):
		return fmt.Errorf("%w: 'kubectl addon check' lists what your user may do", err)
	case isMissingNamespace(err):
		return fmt.Errorf("%w: run 'kubectl create namespace %s', or select another one with -n", err, namespace)
	default:
		return err
	}
}

// startTimeout limits how long a hub that has just started may not serve its kinds yet, although it says that it is ready.
const startTimeout = 10 * time.Second

// RetryUntilStarted calls read until the hub serves the kinds that it needs, and returns its error otherwise: a hub that has just started
// serves the kinds of custom resources a little later than the others.
func (h Hub) RetryUntilStarted(ctx context.Context, read func() error) error {
	discover, err := discovery.NewDiscoveryClientForConfig(h.Config)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	isReady := func() bool { return discover.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil }
	return retryUntilStarted(ctx, startTimeout, time.Second/2, isReady, read)
}

// retryUntilStarted is RetryUntilStarted, with a timeout from when the hub is ready, and an interval.
func retryUntilStarted(ctx context.Context, timeout, interval time.Duration, isReady func() bool, read func() error) error {
	var problem error
	left := timeout
	err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		if problem = read(); !meta.IsNoMatchError(problem) {
			return true, nil
		}
		if isReady() {
			left -= interval
		}
		return left < 0, nil
	})
	return cmp.Or(problem, err)
}

// isMissingNamespace reports whether a write failed because its namespace does not exist.
func isMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}
