package controller

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconciler reconciles the objects of a kind that a controller reads from the cache and writes.
type Reconciler[T client.Object] struct {
	// Client reads from the cache, with GetOptions.
	Client     client.Reader
	GetOptions []client.GetOption
	// Written tracks the last writes of the objects.
	Written *Writes
	// IsIgnored reports objects that are handled as if they did not exist; nil for none.
	IsIgnored func(metav1.Object) bool
	// Forget drops what is remembered of an object that does not exist; nil for nothing.
	Forget func(types.NamespacedName)
	// ReconcileObject reconciles an object whose last write is in the cache.
	ReconcileObject func(context.Context, T) (reconcile.Result, error)
}

// Reconcile reconciles one object.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	kind := reflect.TypeFor[T]().Elem()
	object := reflect.New(kind).Interface().(T)
	err := r.Client.Get(ctx, request.NamespacedName, object, r.GetOptions...)
	switch {
	case apierrors.IsNotFound(err), err == nil && r.IsIgnored != nil && r.IsIgnored(object):
		r.Written.Forget(request.NamespacedName)
		if r.Forget != nil {
			r.Forget(request.NamespacedName)
		}
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading %s %s: %w", kind.Name(), request.NamespacedName, err)
	}
	// The cache lacks the last write, which would be repeated. Usually its own event triggers the next reconciliation.
	if wait := r.Written.WaitTime(object); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	defer r.Written.NoteSince(object, object.GetResourceVersion())
	return r.ReconcileObject(ctx, object)
}

// IsDeleted reports whether the deletion of an object has started.
func IsDeleted(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }
