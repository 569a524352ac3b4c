package controller

import (
	"context"
	"errors"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source maps the objects of a manager to requests for a controller, which may be one of another manager.
func Source[O client.Object](
	of ctrl.Manager, object O, mapped handler.TypedMapFunc[O, reconcile.Request], which ...predicate.TypedPredicate[O],
) source.Source {
	return source.Kind(of.GetCache(), object, handler.TypedEnqueueRequestsFromMapFunc(mapped), which...)
}

// Lend returns the lender, for controllers of the borrower, which may stop and be replaced: their event handlers are removed from the lender's
// cache before the borrower has stopped. source.Kind leaves them there.
//
// The lender must not be stopped before the borrower has: an informer that is stopping waits for its event handlers, and the removal of one waits
// for that with locks that other handlers may need.
func Lend(lender, borrower ctrl.Manager) (ctrl.Manager, error) {
	lent := &lentCache{Cache: lender.GetCache()}
	return lentManager{Manager: lender, cache: lent}, borrower.Add(lent)
}

type lentManager struct {
	ctrl.Manager
	cache *lentCache
}

func (l lentManager) GetCache() cache.Cache { return l.cache }

// lentCache removes the event handlers that were added through it.
type lentCache struct {
	cache.Cache

	mutex   sync.Mutex
	ended   bool
	removal []func() error
}

// Start removes the event handlers when ctx ends.
func (l *lentCache) Start(ctx context.Context) error {
	<-ctx.Done()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
	var err error
	for _, remove := range l.removal {
		err = errors.Join(err, remove())
	}
	return err
}

func (l *lentCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := l.Cache.GetInformer(ctx, object, options...)
	return lentInformer{Informer: informer, to: l}, err
}

type lentInformer struct {
	cache.Informer
	to *lentCache
}

func (l lentInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	l.to.mutex.Lock()
	defer l.to.mutex.Unlock()
	if l.to.ended {
		return nil, errors.New("adding an event handler: its manager has stopped")
	}
	registration, err := l.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		l.to.removal = append(l.to.removal, func() error { return l.RemoveEventHandler(registration) })
	}
	return registration, err
}
