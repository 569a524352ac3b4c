package controller_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// slow is an informer that takes its time to remove an event handler.
type slow struct {
	toolscache.SharedIndexInformer
	added   func()
	removed *atomic.Int32
}

func (s slow) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	defer s.added()
	return s.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
}

func (s slow) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	<-time.After(200 * time.Millisecond)
	defer s.removed.Add(1)
	return s.SharedIndexInformer.RemoveEventHandler(handle)
}

// managerOf returns a manager that finds no API server and watches nothing. It calls added after it has added an event handler, and counts
// those that it has removed.
func managerOf(t *testing.T, added func(), removed *atomic.Int32) ctrl.Manager {
	t.Helper()
	nothing := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
	m, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
		Cache: cache.Options{NewInformer: func(
			_ toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			source := toolscache.ToListWatcherWithWatchListSemantics(nothing, unable{})
			return slow{toolscache.NewSharedIndexInformer(source, object, resync, indexers), added, removed}
		}},
		Controller: controller.DefaultConfig(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// unable is a client that can only list with a list.
type unable struct{}

func (unable) IsWatchListSemanticsUnSupported() bool { return true }

func TestALentCacheHasNoHandlersOfAManagerThatHasStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var removed atomic.Int32
	lender, borrower := managerOf(t, stop, &removed), managerOf(t, stop, &removed)
	ended := make(chan error, 1)
	go func() { ended <- lender.Start(t.Context()) }()
	lent, err := controller.Lend(lender, borrower)
	if err != nil {
		t.Fatal(err)
	}
	err = controller.New(borrower, "borrower", controller.Options{}).
		WatchesRawSource(controller.Source(lent, &corev1.ConfigMap{}, func(context.Context, *corev1.ConfigMap) []reconcile.Request { return nil })).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := borrower.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if removed.Load() != 1 {
		t.Errorf("%d event handlers removed, want 1", removed.Load())
	}
	informer, err := lent.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{}, toolscache.HandlerOptions{}); err == nil {
		t.Error("an event handler was added after the manager had stopped")
	}
	select {
	case err := <-ended:
		t.Errorf("the lending manager ended: %v", err)
	default:
	}
}
