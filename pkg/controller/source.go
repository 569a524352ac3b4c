package controller

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source maps the objects of another manager, which may outlive the controller, to requests: when the controller stops, its event handler
// is removed from the other manager's cache. source.Kind leaves it there.
func Source[O client.Object](
	of ctrl.Manager, object O, mapped handler.TypedMapFunc[O, reconcile.Request], which ...predicate.TypedPredicate[O],
) source.Source {
	return source.Kind(borrowed{of.GetCache()}, object, handler.TypedEnqueueRequestsFromMapFunc(mapped), which...)
}

// borrowed is a cache whose informers keep an event handler only until the context of GetInformer ends, which is the controller's.
type borrowed struct{ cache.Cache }

func (b borrowed) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := b.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return borrowedInformer{Informer: informer, until: ctx}, nil
}

type borrowedInformer struct {
	cache.Informer
	until context.Context
}

func (b borrowedInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := b.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		context.AfterFunc(b.until, func() {
			_ = b.RemoveEventHandler(registration) // fails only for a registration of another informer
		})
	}
	return registration, err
}
