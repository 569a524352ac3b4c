package read

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Cycles tracks which dependencies lead back to the add-on that declares them. An edge closes or opens a cycle for all of its members, so a
// change of one definition may affect the add-ons of others.
//
// It learns the definitions from their events and not from the cache: the cache may be newer than the events, so a short-lived cycle
// between two events could affect a verdict without being noticed here.
type Cycles struct {
	mutex sync.RWMutex
	// needs are the dependencies of each add-on; found holds the cycles of each add-on that is on one, by dependency or alternative.
	needs map[string][]addonv1alpha1.AddonDependency
	found map[string]map[string][]string
	// selective is the number of add-ons with a dependency that exists on some clusters only: then found are the cycles of a cluster that has all.
	selective int
}

// NewCycles returns Cycles without definitions.
func NewCycles() *Cycles {
	return &Cycles{needs: map[string][]addonv1alpha1.AddonDependency{}}
}

// On returns the cycles that addOn is on on a cluster, by the dependency that leads into each. They are read-only. It reads the cluster only if that
// matters.
func (c *Cycles) On(addOn string, cluster func() (selector.Cluster, error)) (map[string][]string, error) {
	found, needs := c.foundOf(addOn)
	if needs == nil {
		return found, nil
	}
	on, err := cluster()
	if err != nil {
		return nil, err
	}
	existing := map[string][]addonv1alpha1.AddonDependency{}
	return through(addOn, func(name string) []addonv1alpha1.AddonDependency {
		if _, known := existing[name]; !known {
			existing[name] = dependency.On(needs[name], on)
		}
		return existing[name]
	}), nil
}

// foundOf returns the cycles that addOn is on, and a copy of the dependencies of all add-ons if some of the cycles may exist on some clusters only.
func (c *Cycles) foundOf(addOn string) (found map[string][]string, needs map[string][]addonv1alpha1.AddonDependency) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	if c.found[addOn] != nil && c.selective > 0 {
		needs = maps.Clone(c.needs)
	}
	return c.found[addOn], needs
}

// OnClusterChange returns a function that returns the add-ons of a changed ManagedCluster if dependencies exist on some clusters only: all of them, because
// what selectors read rarely changes.
func (c *Cycles) OnClusterChange(reader client.Reader) func(ctx context.Context, cluster client.Object) ([]reconcile.Request, error) {
	return func(ctx context.Context, cluster client.Object) ([]reconcile.Request, error) {
		c.mutex.RLock()
		selective := c.selective
		c.mutex.RUnlock()
		if selective == 0 {
			return nil, nil
		}
		return addOnsOn(ctx, reader, cluster)
	}
}

// learn records the dependencies of addOn, and returns the names of the add-ons with changed cycles.
func (c *Cycles) learn(addOn string, needs []addonv1alpha1.AddonDependency) []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	selective := c.selective > 0
	c.replace(addOn, needs)
	needsOf := func(name string) []addonv1alpha1.AddonDependency { return c.needs[name] }
	// Every changed cycle leads through addOn. Usually there is none, neither before nor after.
	if c.found[addOn] == nil && through(addOn, needsOf) == nil {
		return nil
	}
	before := c.found
	c.found = map[string]map[string][]string{}
	for name := range c.needs {
		if found := through(name, needsOf); found != nil {
			c.found[name] = found
		}
	}
	// Where dependencies are missing on a cluster, it may have other cycles than those that were found.
	selective = selective || c.selective > 0
	var changed []string
	for name, cycles := range before {
		if selective || !maps.EqualFunc(cycles, c.found[name], slices.Equal) {
			changed = append(changed, name)
		}
	}
	for name := range c.found {
		if before[name] == nil {
			changed = append(changed, name)
		}
	}
	return changed
}

// replace records the dependencies of addOn.
func (c *Cycles) replace(addOn string, needs []addonv1alpha1.AddonDependency) {
	if dependency.SelectClusters(c.needs[addOn]) {
		c.selective--
	}
	if dependency.SelectClusters(needs) {
		c.selective++
	}
	c.needs[addOn] = needs
	if len(needs) == 0 {
		delete(c.needs, addOn)
	}
}

// through returns the cycles that lead through addOn, by dependency or alternative; nil if there are none.
func through(addOn string, needsOf func(name string) []addonv1alpha1.AddonDependency) map[string][]string {
	var found map[string][]string
	for _, name := range dependency.CandidatesOf(needsOf(addOn)) {
		cycle := dependency.Cycle(addOn, name, needsOf)
		if cycle == nil {
			continue
		}
		if found == nil {
			found = map[string][]string{}
		}
		found[name] = cycle
	}
	return found
}

// Follow returns a handler that learns each definition and enqueues the affected add-ons on all clusters. Definitions that exist at the
// start are only learned: every add-on is reconciled then anyway.
func (c *Cycles) Follow(reader client.Reader) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q queue, definition client.Object, changed []string, dependents bool) {
		requests, err := affectedRequests(ctx, reader, definition.GetName(), changed, dependents)
		if err != nil {
			log.FromContext(ctx).Error(err, "failed to find the objects that a change affects", "object", client.ObjectKeyFromObject(definition))
		}
		controller.Enqueue(q, requests)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			changed := c.learn(e.Object.GetName(), dependency.Needs(e.Object.(*addonv1alpha1.ClusterManagementAddOn)))
			if !e.IsInInitialList {
				enqueue(ctx, q, e.Object, changed, true)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			changed := c.learn(e.ObjectNew.GetName(), dependency.Needs(e.ObjectNew.(*addonv1alpha1.ClusterManagementAddOn)))
			before, after := e.ObjectOld.(*addonv1alpha1.ClusterManagementAddOn), e.ObjectNew.(*addonv1alpha1.ClusterManagementAddOn)
			enqueue(ctx, q, e.ObjectNew, changed, ViewDefined(before).changesVersion(ViewDefined(after)))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueue(ctx, q, e.Object, c.learn(e.Object.GetName(), nil), true)
		},
	}
}

// affectedRequests returns the add-ons, on all clusters, that a change of a definition affects: its own, those whose cycles changed, and,
// if it was created or deleted, or the version that it states has changed, its dependents.
func affectedRequests(ctx context.Context, c client.Reader, definition string, changed []string, dependents bool) ([]reconcile.Request, error) {
	names := append(changed, definition)
	if dependents {
		found, err := DefinedOn(ctx, c, definition)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	var requests []reconcile.Request
	for _, name := range slices.Compact(names) {
		named, err := AddOnsNamed(ctx, c, name)
		if err != nil {
			return nil, err
		}
		requests = append(requests, named...)
	}
	return requests, nil
}
