// Package controller holds the common parts of the controllers of the hub and of the agent: setup and retries, event filters, stale caches,
// finalizers, events, metrics, and client rate limits. It touches clusters through the clients that it is given.
package controller

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// A Runner adds a controller, a server or an index to a manager.
type Runner interface {
	SetUp(mgr manager.Manager) error
}

// Options configure one controller.
type Options = controller.Options

// New returns a builder for a controller with the retry policy of NewRateLimiter, and a queue in which a change of one object overtakes those of a
// fleet.
func New(mgr manager.Manager, name string, options Options) *builder.Builder {
	options.RateLimiter = NewRateLimiter()
	if options.NewQueue == nil {
		options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
			return newQueue(name, limiter)
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(options)
}

// DefaultConfig returns the configuration of all controllers of a manager.
func DefaultConfig() config.Controller {
	return config.Controller{
		// A process may restart its controllers, which validation would reject as duplicates. The lists of controllers keep names unique.
		SkipNameValidation: ptr.To(true),
	}
}

// MaxRetryInterval is the maximum time between two attempts for a failing object: after an outage, however long, everything is up to date
// again within that time.
const MaxRetryInterval = time.Minute

// NewRateLimiter returns a rate limiter with exponential backoff per object. client-go's default backs off longer, and limits all objects together
// to ten retries a second, so that a fleet would wait for hours. Workers and client limits bound the number of concurrent requests.
func NewRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, MaxRetryInterval)
}

// ConflictDelay is how long to wait for the cache after a conflict with another writer.
const ConflictDelay = 100 * time.Millisecond

// PostponedError is the error of a write that is not sent yet.
type PostponedError struct{ For time.Duration }

func (p *PostponedError) Error() string { return fmt.Sprintf("postponed for %s", p.For) }

// RetryConflict turns a conflict with another writer into an early retry without an error, and a PostponedError into a retry when it is
// due. It also ignores an object that no longer exists. Joined errors are ignored only if each of them is.
func RetryConflict(err error) (reconcile.Result, error) {
	var result reconcile.Result
	for _, e := range separate(err) {
		var postponed *PostponedError
		switch {
		case apierrors.IsConflict(e):
			result.RequeueAfter = ConflictDelay
		case errors.As(e, &postponed):
			result.RequeueAfter = cmp.Or(result.RequeueAfter, postponed.For)
		case !apierrors.IsNotFound(e):
			return reconcile.Result{}, err
		}
	}
	return result, nil
}

// separate returns the errors that were joined to err, or err itself.
func separate(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &joined):
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, separate(e)...)
	}
	return all
}

// Scheme returns a scheme with Kubernetes' own kinds, add-ons and Instances, and the kinds that also adds.
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
