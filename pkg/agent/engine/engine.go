// Package engine runs the plans of mirrored Instances on the managed cluster: it observes, calls pkg/core/plan to decide, acts, and writes
// the status. It touches only that cluster, so plans continue while the hub is unreachable.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/agent/bindings"
	"github.com/tandem-addons/tandem/pkg/agent/charts"
	"github.com/tandem-addons/tandem/pkg/agent/maintenance"
	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	"github.com/tandem-addons/tandem/pkg/agent/rendering"
	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// engine runs the plans of mirrored Instances. Between two passes it only keeps the times at which failed tasks may be retried, and drafts of
// the Instance's status; everything else is in that status.
type engine struct {
	client  client.Client
	live    client.Reader
	objects *objects
	sweeper *sweeper
	backoff *flowcontrol.Backoff
	events  events.EventRecorder
	metrics *metrics
	clock   func() time.Time

	// signer recognizes the Instances and OperatorVersions that the agent has mirrored. Others are ignored.
	signer *mirror.Signer

	// contents are the files that are too large for OperatorVersions.
	contents *content.Files

	// kubernetes is the version of the managed cluster. What a plan waits for before it starts is checked again after holdInterval.
	kubernetes   *kubernetes
	holdInterval time.Duration

	// secrets are the values of sensitive parameters.
	secrets *secret.Store

	// windows are the maintenance windows.
	windows *maintenance.Windows

	// charts renders charts, and rendered keeps what they have rendered.
	charts   *charts.Renderer
	rendered *rendering.Store

	// retryDelay is the delay before the first retry of an owed plan; plan.MinRetryDelay if zero. blocked holds the failed executions after
	// which an applied object or a child was unhealthy, by the uid of the Instance. A forgotten entry only delays a retry.
	retryDelay time.Duration
	blocked    *lru.Cache

	// drafts hold progress that is not recorded yet, by Instance. It is recorded after progressDelay as long as budget admits that. A forgotten entry
	// only repeats tasks.
	drafts        *lru.Cache
	progressDelay time.Duration
	budget        flowcontrol.RateLimiter

	// started holds the executions that have just started, by the uid of the Instance. A forgotten entry only costs an event.
	started *lru.Cache

	// worded holds when only messages of a status were written last, by the uid of the Instance. A forgotten entry only costs a write. restBudget admits these
	// writes of Instances without a running plan.
	worded     *lru.Cache
	restBudget flowcontrol.RateLimiter

	// dropped has the last requests for a diagnosis, by the uid of the Instance, whose answer the API server has dropped: they are not answered again.
	dropped *lru.Cache

	// soaks hold what is remembered of the last look at an Instance that has to be healthy for a time, by its uid. startTime is when the process began.
	soaks     *lru.Cache
	startTime time.Time

	policy     rights.Policy
	bindings   *bindings.Keeper
	identities *identities

	// drifts remembers which versions of applied objects were compared.
	drifts *drift.Tracker

	// pipeImage is the image of the waiting container in the pod of a Pipe task.
	pipeImage string

	// writes are those of mirrored Instances, by all controllers of the agent.
	writes *controller.Writes
}

// Options configure the engine.
type Options struct {
	// Signer recognizes mirrors.
	Signer *mirror.Signer

	// Writes receives all writes of mirrored Instances.
	Writes *controller.Writes

	// Unserved receives the kinds of the managed cluster that its API server no longer serves.
	Unserved controller.Unserved

	// PipeImage is the image of the waiting container in the pod of a Pipe task; pipe.DefaultImage if empty.
	PipeImage string

	// Secrets are the values of sensitive parameters.
	Secrets *secret.Store

	// Windows are the maintenance windows.
	Windows *maintenance.Windows

	// Rights is what the plans of Instances may do.
	Rights rights.Policy

	// Namespace is the agent's own.
	Namespace string

	// Charts renders charts, and Rendered keeps what they have rendered.
	Charts   *chart.Renderer
	Rendered *rendering.Store

	// ProgressDelay is how long progress that nothing depends on may remain unrecorded; half a second if zero.
	ProgressDelay time.Duration

	// RetryDelay is the delay before the first retry of an owed plan; plan.MinRetryDelay if zero.
	RetryDelay time.Duration

	// HoldInterval is how often it is checked whether a plan can start that waits for another version of Kubernetes, for example; half a minute if
	// zero.
	HoldInterval time.Duration

	// DriftInterval is how often all applied objects are compared with what was applied; ten minutes if zero.
	DriftInterval time.Duration
}

// Add adds the engine to the manager of the managed cluster.
func Add(ctx context.Context, o Options, local ctrl.Manager) error {
	if err := index(ctx, local); err != nil {
		return err
	}
	keeper, err := bindings.New(ctx, local)
	if err != nil {
		return err
	}
	measured, err := newMetrics(registry.Registry)
	if err != nil {
		return err
	}
	found, acting, err := newObjects(local)
	if err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	recorder := controller.NewRecorder(fieldManager, controller.PlanEventQPS, local.GetLogger().WithName("events"), measured.eventsDropped)
	if err := recorder.SetUp(local); err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	e := &engine{
		client:  local.GetClient(),
		live:    local.GetAPIReader(),
		objects: found,
		sweeper: newSweeper(found.live, found.discovery),
		backoff: flowcontrol.NewBackOff(minBackoff, maxBackoff),
		events:  recorder,
		metrics: measured,
		clock:   time.Now,

		signer: o.Signer, secrets: o.Secrets, windows: o.Windows, drafts: lru.New(maxRemembered), started: lru.New(maxRemembered), worded: lru.New(maxRemembered), writes: o.Writes,
		budget: newBudget(), restBudget: newBudget(), progressDelay: cmp.Or(o.ProgressDelay, progressDelay),
		policy: o.Rights, bindings: keeper, identities: acting, soaks: lru.New(maxRemembered), dropped: lru.New(maxRemembered), startTime: time.Now(),

		contents: content.NewFiles(local.GetAPIReader(), content.FileDelay), charts: charts.New(o.Charts, found.discovery, o.Namespace, measured.render), rendered: o.Rendered,

		retryDelay: o.RetryDelay, holdInterval: cmp.Or(o.HoldInterval, holdInterval), blocked: lru.New(maxRemembered),
		drifts: drift.NewTracker(cmp.Or(o.DriftInterval, DriftInterval)), pipeImage: cmp.Or(o.PipeImage, pipe.DefaultImage),
	}
	e.kubernetes = &kubernetes{discovery: found.discovery, interval: e.holdInterval / 2}
	redefined := newRedefinitions(e.objects, e.withGroup, e.clock)
	built, err := keeper.Watch(controller.New(local, "engine", controller.Options{MaxConcurrentReconciles: mirror.Workers})).
		For(&kudo.Instance{}, builder.WithPredicates(specChanged())).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(e.parentsOf), builder.WithPredicates(controller.ChangeIn(viewChild))).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(e.descendantsOf), builder.WithPredicates(controller.ChangeIn(viewParent))).
		Watches(&kudo.OperatorVersion{}, handler.EnqueueRequestsFromMapFunc(e.usersOf)).
		WatchesRawSource(source.Channel(o.Secrets.Changed, handler.EnqueueRequestsFromMapFunc(e.readersOf))).
		WatchesRawSource(source.Channel(o.Windows.Changed, handler.EnqueueRequestsFromMapFunc(e.allInstances))).
		WatchesRawSource(source.Channel(e.sweeper.done, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(redefined.enqueued, &handler.EnqueueRequestForObject{})).
		Build(e)
	if err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	e.objects.watch = e.watchWith(built.Watch, local.GetCache())
	if err := redefined.add(o.Unserved, local); err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	return nil
}

// watchWith returns the function that makes the controller watch a kind of applied objects.
func (e *engine) watchWith(
	watch func(source.Source) error, from cache.Cache,
) func(context.Context, schema.GroupVersionKind) error {
	return func(ctx context.Context, gvk schema.GroupVersionKind) error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		// source.Kind would wait for an informer that may be ended before it has listed anything.
		informer, err := from.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		changed := &source.Informer{
			Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(e.affectedBy(gvk)),
			Predicates: []predicate.Predicate{judgedChanged(e.drifts, e.isJudgedByRule), e.objects.expectations.News()},
		}
		return cmp.Or(watch(changed), watch(e.enqueueOnceListed(informer, gvk.GroupKind())))
	}
}

// failAgain records a failure and returns the delay after it, which increases once for all failures within the delay: what fails is tried earlier when
// something changes.
func (e *engine) failAgain(key string, now time.Time) time.Duration {
	if !e.backoff.IsInBackOffSinceUpdate(key, now) {
		e.backoff.Next(key, now)
	}
	return e.backoff.Get(key)
}

// newBudget returns a budget of writes that may be delayed.
func newBudget() flowcontrol.RateLimiter {
	return flowcontrol.NewTokenBucketRateLimiter(progressQPS, progressBurst)
}
