package hubclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// Look reads the current state and reports whether the wait is over.
type Look func(ctx context.Context, reader client.Reader) (done bool, err error)

// Follow calls look initially, whenever an add-on or Instance of the clusters changes, and every managerInterval, until look is done or fails, or ctx ends; then it
// returns the context's cause. It uses watches that survive interruptions; look reads add-ons and Instances from their cache.
func (h Hub) Follow(ctx context.Context, clusters []string, look Look) error {
	ctx, stop := context.WithCancelCause(ctx)
	watched, changed, err := h.watch(ctx, clusters, stop)
	if err != nil {
		stop(nil)
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- watched.Start(ctx) }()
	defer func() { stop(nil); <-ended }()
	if !watched.WaitForCacheSync(ctx) {
		return context.Cause(ctx)
	}
	reader := view{Reader: read.NewCachingReader(h.Client), watched: watched}
	h.checkManager(ctx)
	due := time.NewTicker(managerInterval)
	defer due.Stop()
	for {
		done, err := look(ctx, reader)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || done {
			return err
		}
		if err := h.wait(ctx, changed, due.C); err != nil {
			return err
		}
	}
}

// managerInterval is the time after which a command that follows the hub checks again whether addon-manager runs.
const managerInterval = 30 * time.Second

// checkManager records the hint about an addon-manager that does not run. It does not change while it applies, so that it is printed once.
func (h Hub) checkManager(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, managerInterval/6)
	defer cancel()
	if hint := check.Hint(read.Leader(limited, h.Client, AgentNamespace), h.Now()); hint == "" || h.contact.hint == "" {
		h.contact.hint = hint
	}
}

// wait waits for a change or until it is due, and reports an unreachable hub meanwhile.
func (h Hub) wait(ctx context.Context, changed <-chan struct{}, due <-chan time.Time) error {
	for {
		select {
		case <-changed:
			return nil
		case <-h.contact.changed:
			if err := h.contact.print(); err != nil {
				return err
			}
		case <-due:
			h.checkManager(ctx)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Progress returns a progress that is written to out and reports an unreachable hub.
func (h Hub) Progress(out io.Writer) *terminal.Progress {
	p := terminal.NewProgress(out)
	p.Away, p.Hint, h.contact.print = h.contact.text, func() string { return h.contact.hint }, p.Refresh
	return p
}

// trim trims the managed fields of an object before it is cached.
func trim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		progress.TrimManagedFields(o)
	}
	return object, nil
}

// watch returns a cache of the clusters' add-ons and Instances, and a channel that signals changes; several changes may share a signal. A
// forbidden watch stops everything.
func (h Hub) watch(ctx context.Context, clusters []string, stop context.CancelCauseFunc) (cache.Cache, <-chan struct{}, error) {
	options := cache.Options{
		Scheme: h.Scheme(), Mapper: h.RESTMapper(), DefaultTransform: trim,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
				stop(fmt.Errorf("watching the hub: %w", err))
			}
		},
	}
	if len(clusters) <= read.WatchedByName {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, cluster := range clusters {
			options.DefaultNamespaces[cluster] = cache.Config{}
		}
	}
	watched, err := cache.New(h.Config, options)
	if err != nil {
		return nil, nil, fmt.Errorf("watching the hub: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a signal is already pending
		}
	}
	for _, kind := range []client.Object{&addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}} {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
			})
		}
		if err != nil {
			return nil, nil, fmt.Errorf("watching the hub: %w", err)
		}
	}
	return watched, changed, nil
}

// view is the reader of a command that follows the hub: add-ons and Instances come from the watch cache, and everything else from the hub.
type view struct {
	client.Reader
	watched client.Reader
}

func (v view) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object.(type) {
	case *addonv1alpha1.ManagedClusterAddOn, *kudo.Instance:
		return v.watched.Get(ctx, key, object, options...)
	default:
		return v.Reader.Get(ctx, key, object, options...)
	}
}

func (v view) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	switch list.(type) {
	case *addonv1alpha1.ManagedClusterAddOnList, *kudo.InstanceList:
		return v.watched.List(ctx, list, options...)
	default:
		return v.Reader.List(ctx, list, options...)
	}
}

// errTimedOut is the cause of a context that ends because --timeout has expired.
var errTimedOut = errors.New("timed out")

// Await follows the hub until timeout expires; 0 means no timeout. After a timeout or an interruption it returns an error
// with the text that unfinished creates.
func (h Hub) Await(ctx context.Context, clusters []string, timeout time.Duration, look Look, unfinished func(after string) error) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, timeout, errTimedOut)
	}
	defer cancel()
	switch err := h.Follow(limited, clusters, look); {
	case errors.Is(err, errTimedOut):
		return terminal.Timeoutf("%v", unfinished(" after "+timeout.String()))
	case ctx.Err() != nil:
		return terminal.Interruptedf("interrupted; the operation continues on the hub and its clusters: %v", unfinished(""))
	default:
		return err
	}
}
