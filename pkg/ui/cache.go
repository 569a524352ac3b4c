package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/diagnosis"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/ui/contact"
)

// Hub is a read-only cache of the hub's add-ons, Instances, packages and clusters. It reports when an object changes, and since when the
// hub cannot be read.
type Hub struct {
	client.Client
	Config *rest.Config
	cache  cache.Cache
	// pulse sends the requests that detect a hub that does not respond.
	pulse rest.Interface
	// kinds are the cached kinds; refused holds the reason why a kind is not read.
	kinds   []kind
	refused map[schema.GroupVersionKind]error
	contact *contact.Tracker
	changes changes
	// histories has the histories of Instances that pages have shown lately: the cache has the last execution only, because they are most of an
	// Instance.
	histories *contact.Answers[instanceState, []kudo.HistoryEntry]
	// hint is the sentence about an addon-manager that does not run; nil or empty if it runs, or if that is unknown.
	hint atomic.Pointer[string]
}

const (
	// answerTimeout is how long the hub may take to answer a request, except for those of the cache.
	answerTimeout = 10 * time.Second
	// pulse is the interval of requests that detect a hub that does not respond; pulseTimeout is how long the hub may take to answer one.
	pulse        = 5 * time.Second
	pulseTimeout = 3 * time.Second
	// managerInterval is the interval of requests that detect an addon-manager that does not run.
	managerInterval = 30 * time.Second
	// managerNamespace is the namespace of the Lease of addon-manager.
	managerNamespace = "tandem-system"
)

// kind is a kind of objects that is cached.
type kind struct {
	object   client.Object
	gvk      schema.GroupVersionKind
	resource string
	// quiet is set if changes are not shown at once, because the objects change all the time.
	quiet bool
	// optional is set if a hub may not have the kind, or users need not be allowed to read it.
	optional bool
	// field selects the objects that are cached, and namespaces are those of cached objects; nil for all.
	field      fields.Selector
	namespaces []string
}

// has reports whether the objects of a namespace, or of all if it is empty, are cached.
func (k kind) has(namespace string) bool {
	return k.namespaces == nil || namespace == metav1.NamespaceAll || slices.Contains(k.namespaces, namespace)
}

// kindsOf returns the kinds to cache.
func kindsOf() []kind {
	return []kind{
		{object: &addonv1alpha1.ManagedClusterAddOn{}, gvk: addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"), resource: "managedclusteraddons"},
		{object: &addonv1alpha1.ClusterManagementAddOn{}, gvk: addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"),
			resource: "clustermanagementaddons", optional: true},
		{object: &kudo.Instance{}, gvk: kudo.GroupVersion.WithKind("Instance"), resource: "instances", optional: true},
		{object: &kudo.OperatorVersion{}, gvk: kudo.GroupVersion.WithKind("OperatorVersion"), resource: "operatorversions", optional: true},
		{object: &clusterv1.ManagedCluster{}, gvk: read.ManagedClusterKind, resource: "managedclusters", optional: true},
		{object: &coordinationv1.Lease{}, gvk: coordinationv1.SchemeGroupVersion.WithKind("Lease"), resource: "leases", quiet: true, optional: true,
			field: fields.OneTermEqualSelector("metadata.name", addonv1alpha1.AgentLease)},
	}
}

// clusterWide lists the resources that belong to no namespace.
var clusterWide = []string{"clustermanagementaddons", "managedclusters"}

// NewHub returns a cache of the hub. With clusters, only the objects of these clusters are read, and the packages for all clusters. What the
// user of the config may not read is omitted, except the add-ons.
func NewHub(ctx context.Context, config *rest.Config, clusters []string) (*Hub, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kudo.AddToScheme, addonv1alpha1.AddToScheme, coordinationv1.AddToScheme, authorizationv1.AddToScheme, authenticationv1.AddToScheme,
		metav1.AddMetaToScheme, clusterv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	h := &Hub{Config: rest.CopyConfig(config), refused: map[schema.GroupVersionKind]error{}, contact: &contact.Tracker{}, changes: newChanges()}
	h.histories = contact.NewAnswers[instanceState, []kudo.HistoryEntry]()
	h.Config.Timeout = answerTimeout
	var err error
	if h.Client, err = client.New(h.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	if err := h.choose(ctx, clusters); err != nil {
		return nil, err
	}
	options := cache.Options{
		Scheme: scheme, Mapper: h.RESTMapper(), DefaultTransform: trim, NewInformer: controller.NewInformer, ByObject: h.limits(),
		DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
			logr.FromContextOrDiscard(ctx).Info("failed to read the hub; retrying", "error", err.Error())
		},
	}
	observed := h.contact.Observe(config, h.changes.notify)
	if h.cache, err = cache.New(observed, options); err != nil {
		return nil, fmt.Errorf("reading the hub: %w", err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(observed)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	h.pulse = discovered.RESTClient()
	return h, h.inform(ctx)
}

// limits returns which objects of the kinds are cached.
func (h *Hub) limits() map[client.Object]cache.ByObject {
	limits := map[client.Object]cache.ByObject{}
	for _, k := range h.kinds {
		limit := cache.ByObject{Field: k.field}
		if k.namespaces != nil {
			limit.Namespaces = map[string]cache.Config{}
		}
		for _, namespace := range k.namespaces {
			limit.Namespaces[namespace] = cache.Config{}
		}
		limits[k.object] = limit
	}
	return limits
}

// choose determines the kinds that the hub has and the user may read.
func (h *Hub) choose(ctx context.Context, clusters []string) error {
	for _, k := range kindsOf() {
		_, err := h.RESTMapper().RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
		if err == nil {
			k.namespaces, err = h.readable(ctx, k, clusters)
		}
		switch {
		case err == nil:
			h.kinds = append(h.kinds, k)
		case k.optional && (meta.IsNoMatchError(err) || apierrors.IsForbidden(err)):
			h.refused[k.gvk] = err
		case meta.IsNoMatchError(err):
			return fmt.Errorf("%w; check that the cluster is a hub with Tandem's CRDs", err)
		default:
			return fmt.Errorf("reading the hub: %w", err)
		}
	}
	return nil
}

// readable returns the namespaces whose objects of a kind the user of the connection may list and watch: those of the clusters, or nil for all.
// Packages may also be in the namespace of those for all clusters, and the user need not be allowed to read both.
func (h *Hub) readable(ctx context.Context, k kind, clusters []string) ([]string, error) {
	if clusters == nil || slices.Contains(clusterWide, k.resource) {
		return nil, h.mayRead(ctx, k, metav1.NamespaceAll)
	}
	packages, asked := k.resource == "operatorversions", clusters
	if packages {
		asked = append(slices.Clone(clusters), kudo.DefaultPackagesNamespace)
	}
	var namespaces []string
	var refused error
	for _, namespace := range asked {
		err := h.mayRead(ctx, k, namespace)
		switch {
		case err == nil:
			namespaces = append(namespaces, namespace)
		case packages && apierrors.IsForbidden(err):
			refused = err
		default:
			return nil, err
		}
	}
	if len(namespaces) == 0 {
		return nil, refused
	}
	return namespaces, nil
}

// mayRead returns an error unless the user of the connection may list and watch the objects of a kind in a namespace.
func (h *Hub) mayRead(ctx context.Context, k kind, namespace string) error {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: k.gvk.Group, Resource: k.resource},
		}}
		if err := h.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return refusal(k.gvk.Group, k.resource, "", namespace)
		}
	}
	return nil
}

// refusal returns the error for objects that a user may not read. It says nothing about what exists.
func refusal(group, resource, name, namespace string) error {
	where := "in all namespaces"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, name, fmt.Errorf("you are not allowed to read %s %s", resource, where))
}

// inform starts to read the kinds and signals changes.
func (h *Hub) inform(ctx context.Context) error {
	for _, k := range h.kinds {
		informer, err := h.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
		if err == nil && !k.quiet {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { h.changes.notify() }, UpdateFunc: func(any, any) { h.changes.notify() }, DeleteFunc: func(any) { h.changes.notify() },
			})
		}
		if err != nil {
			return fmt.Errorf("reading the hub: %w", err)
		}
	}
	return nil
}

// Run reads the hub until the context ends.
func (h *Hub) Run(ctx context.Context) error {
	go func() {
		if h.cache.WaitForCacheSync(ctx) {
			h.contact.MarkComplete()
			h.changes.notify()
		}
	}()
	go wait.UntilWithContext(ctx, h.ask, pulse)
	go wait.UntilWithContext(ctx, h.checkManager, managerInterval)
	return h.cache.Start(ctx)
}

// ask asks the hub for its version: without requests, a hub that is silent looks like one where nothing changes.
func (h *Hub) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	_ = h.pulse.Get().AbsPath(contact.VersionPath).Do(ctx).Error() // contact notes it
}

// checkManager reads the Lease of addon-manager, with the permissions of the dashboard. Pages show the hint to every user.
func (h *Hub) checkManager(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	hint := check.Hint(read.Leader(ctx, h.Client, managerNamespace), h.contact.Now())
	if before := h.hint.Swap(&hint); before != nil && *before != hint || before == nil && hint != "" {
		h.changes.notify()
	}
}

// managerHint returns the sentence about an addon-manager that does not run; empty if it runs, or if that is unknown.
func (h *Hub) managerHint() string {
	if hint := h.hint.Load(); hint != nil {
		return *hint
	}
	return ""
}

// instanceState is an Instance in one state.
type instanceState struct {
	uid     types.UID
	version string
}

// errLost is the error of a request that is not sent because the hub does not respond.
var errLost = errors.New("the hub does not respond")

// history reads the history of a cached Instance, with the permissions of the dashboard: the caller has checked those of the user.
func (h *Hub) history(ctx context.Context, cached *kudo.Instance) ([]kudo.HistoryEntry, error) {
	if _, lost := h.contact.State(); !lost.IsZero() {
		return nil, errLost
	}
	return h.histories.Get(instanceState{cached.UID, cached.ResourceVersion}, func() ([]kudo.HistoryEntry, error) {
		ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
		defer cancel()
		instance := &kudo.Instance{}
		err := h.Client.Get(ctx, client.ObjectKeyFromObject(cached), instance)
		return instance.Status.History, err
	})
}

// trim drops what no page shows, or shows of a single object only, before an object is cached.
func trim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		progress.TrimManagedFields(o)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := object.(type) {
	case *kudo.Instance:
		if o.Status.Diagnosis != nil {
			o.Status.Diagnosis = new(diagnosis.Bound(*o.Status.Diagnosis))
		}
		o.Status.Drift = nil // pages show the condition
		o.Status.History = slices.Clone(progress.Revisions{Revisions: o.Status.History}.Last().Revisions)
	case *kudo.OperatorVersion:
		o.Spec.Templates = nil
	case *clusterv1.ManagedCluster:
		available := meta.FindStatusCondition(o.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		selector.Trim(o)
		if available != nil {
			o.Status.Conditions = []metav1.Condition{*available}
		}
	}
	return object, nil
}

// changes signals changes to all that listen. A listener that has not taken a signal yet gets no second one.
type changes struct {
	lock      *sync.Mutex
	listeners map[chan struct{}]bool
}

func newChanges() changes { return changes{lock: &sync.Mutex{}, listeners: map[chan struct{}]bool{}} }

// listen returns a channel that signals changes, and a function that ends it.
func (c changes) listen() (signals <-chan struct{}, end func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	channel := make(chan struct{}, 1)
	c.listeners[channel] = true
	return channel, func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		delete(c.listeners, channel)
	}
}

func (c changes) notify() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for channel := range c.listeners {
		select {
		case channel <- struct{}{}:
		default: // a signal is already pending
		}
	}
}
