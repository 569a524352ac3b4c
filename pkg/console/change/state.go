package change

import (
	"context"
	"errors"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// ErrAbsent is returned for a cluster that has no object of the requested name.
var ErrAbsent = errors.New("absent")

// State holds what is read from the hub before changes.
type State struct {
	reader Reader
	fleet  map[string]fleet.Cluster
	// instances lists the Instances by cluster.
	instances map[string][]kudo.Instance
}

// NewState returns a state without clusters, which reads OperatorVersions with c.
func NewState(ctx context.Context, c client.Reader) *State {
	return &State{instances: map[string][]kudo.Instance{}, reader: NewReader(ctx, c)}
}

// Gather reads the add-ons and Instances of the clusters.
func Gather(ctx context.Context, c client.Reader, clusters []string) (*State, error) {
	return gather(ctx, c, clusters, read.NamespacesOf(clusters))
}

// GatherCached is Gather from a cache, which copies what it lists: it lists no other clusters, however many there are.
func GatherCached(ctx context.Context, cached client.Reader, clusters []string) (*State, error) {
	return gather(ctx, cached, clusters, clusters)
}

func gather(ctx context.Context, c client.Reader, clusters, namespaces []string) (*State, error) {
	found := NewState(ctx, c)
	var err error
	if _, found.fleet, err = read.FleetIn(ctx, c, clusters, namespaces); err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		var list kudo.InstanceList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, read.ListingProblem("Instances", namespace, err)
		}
		for _, instance := range list.Items {
			found.instances[instance.Namespace] = append(found.instances[instance.Namespace], instance)
		}
	}
	return found, nil
}

// clusters returns the sorted names of the clusters.
func (s *State) clusters() []string { return slices.Sorted(maps.Keys(s.fleet)) }

// View returns what was read about a cluster.
func (s *State) View(cluster string) fleet.Cluster { return s.fleet[cluster] }

// viewWithInstances returns what was read about a cluster, with its Instances.
func (s *State) viewWithInstances(cluster string) fleet.Cluster {
	view := s.fleet[cluster]
	view.Instances = make(map[string]*kudo.Instance, len(s.instances[cluster]))
	for i := range s.instances[cluster] {
		view.Instances[s.instances[cluster][i].Name] = &s.instances[cluster][i]
	}
	return view
}

// NotFoundError returns the error for a cluster that has no object of that name.
func (s *State) NotFoundError(key client.ObjectKey) error {
	there := read.Inventory{
		ManagedClusters: read.ManagedClusters{Cluster: key.Namespace, Unreadable: true}, AddOns: s.fleet[key.Namespace].AddOnNames(),
	}
	for _, instance := range s.instances[key.Namespace] {
		there.Instances = append(there.Instances, instance.Name)
	}
	slices.Sort(there.Instances)
	_, there.IsDefined = s.fleet[key.Namespace].Definitions[key.Name]
	return there.NotFoundError(key.Name)
}

// FindInstance returns the existing Instance, or nil.
func (s *State) FindInstance(key client.ObjectKey) *kudo.Instance {
	i := slices.IndexFunc(s.instances[key.Namespace], func(i kudo.Instance) bool { return i.Name == key.Name })
	if i < 0 {
		return nil
	}
	return &s.instances[key.Namespace][i]
}

// Version returns the OperatorVersion of that name, or nil.
func (s *State) Version(ctx context.Context, name client.ObjectKey) (*kudo.OperatorVersion, error) {
	return s.reader.version(ctx, name)
}
