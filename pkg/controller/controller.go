// Package controller holds what the controllers of the hub and of the agent share: how they are built and retried, which events wake
// them, how they wait for a stale cache, finalizers, events, metrics, and the limits of their clients. It touches clusters through the
// clients that it is given.
package controller

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// A Runner adds to a manager what it runs: a controller, a server, an index.
type Runner interface {
	SetUp(mgr manager.Manager) error
}

// Options are those of one controller.
type Options = controller.Options

// New begins a controller that tries again as Retries says.
func New(mgr manager.Manager, name string, options Options) *builder.Builder {
	options.RateLimiter = Retries()
	return ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(options)
}

// Every is what holds for all controllers of a manager.
func Every() config.Controller {
	return config.Controller{
		// A process may run its controllers again after they ended, and their names are unique where they are listed.
		SkipNameValidation: ptr.To(true),
		// The priority queue of controller-runtime 0.23 may never end while it is busy (its issue 3538): the process would hang until
		// it is killed, and keep the leader's Lease.
		UsePriorityQueue: ptr.To(false),
	}
}

// LongestRetry is how long a controller waits at most before it looks again at what it failed with: after an outage, however long, all
// is up to date again within that.
const LongestRetry = time.Minute

// Retries makes a controller try again ever more slowly what it fails with, each object for itself. client-go's default is slower in the
// end, and lets all objects together have ten retries a second, so that a fleet would wait for hours. How many requests run concurrently,
// workers and client limits say.
func Retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, LongestRetry)
}

// ConflictPause is how long to wait for the cache after another writer was faster.
const ConflictPause = 100 * time.Millisecond

// RetryConflict turns a conflict into another look soon, which is no error: another writer was faster. An object that is gone is no
// error either.
func RetryConflict(err error) (reconcile.Result, error) {
	return RetryConflictAfter(ConflictPause, err)
}

// RetryConflictAfter is RetryConflict with another pause.
func RetryConflictAfter(pause time.Duration, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// Scheme knows Kubernetes' own kinds, add-ons and Instances, and the kinds that also adds.
func Scheme(also ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.AddToScheme, kudo.AddToScheme,
	}, also...) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	return scheme, nil
}
