package action

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/fleet"
	"github.com/tandem-addons/tandem/pkg/survey"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// ErrAbsent is returned for a cluster that has no object of the requested name.
var ErrAbsent = errors.New("absent")

// State holds what is read from the hub before changes.
type State struct {
	reader Reader
	fleet  map[string]fleet.Cluster
	// instances lists the Instances by cluster.
	instances map[string][]kudo.Instance
	// stored returns the OperatorVersions of a namespace.
	stored func(namespace string) ([]kudo.OperatorVersion, error)
}

// NewState returns a state without clusters, which reads OperatorVersions with c.
func NewState(ctx context.Context, c client.Reader) *State {
	return &State{
		instances: map[string][]kudo.Instance{}, reader: NewReader(ctx, c),
		stored: onceEach(func(namespace string) ([]kudo.OperatorVersion, error) {
			return survey.StoredVersions(ctx, c, namespace)
		}),
	}
}

// Gather reads the add-ons and Instances of the clusters.
func Gather(ctx context.Context, c client.Reader, clusters []string) (*State, error) {
	return gather(ctx, c, clusters, survey.NamespacesOf(clusters))
}

// GatherCached is Gather from a cache, which copies what it lists: it lists no other clusters, however many there are.
func GatherCached(ctx context.Context, cached client.Reader, clusters []string) (*State, error) {
	return gather(ctx, cached, clusters, clusters)
}

func gather(ctx context.Context, c client.Reader, clusters, namespaces []string) (*State, error) {
	found := NewState(ctx, c)
	var err error
	if _, found.fleet, err = survey.FleetIn(ctx, c, clusters, namespaces); err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		var list kudo.InstanceList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, survey.ListingProblem("Instances", namespace, err)
		}
		for _, instance := range list.Items {
			found.instances[instance.Namespace] = append(found.instances[instance.Namespace], instance)
		}
	}
	return found, nil
}

// View returns what was read about a cluster.
func (s *State) View(cluster string) fleet.Cluster { return s.fleet[cluster] }

// Lacks returns the error for a cluster that has no object of that name.
func (s *State) Lacks(key client.ObjectKey) error {
	there := survey.Inventory{
		ManagedClusters: survey.ManagedClusters{Cluster: key.Namespace, Unreadable: true}, AddOns: s.fleet[key.Namespace].Installed(),
	}
	for _, instance := range s.instances[key.Namespace] {
		there.Instances = append(there.Instances, instance.Name)
	}
	slices.Sort(there.Instances)
	return there.Lacks(key.Name)
}

// Existing returns the existing Instance, or nil.
func (s *State) Existing(key client.ObjectKey) *kudo.Instance {
	i := slices.IndexFunc(s.instances[key.Namespace], func(i kudo.Instance) bool { return i.Name == key.Name })
	if i < 0 {
		return nil
	}
	return &s.instances[key.Namespace][i]
}

// Version returns the OperatorVersion of that name, or nil.
func (s *State) Version(ctx context.Context, name client.ObjectKey) (*kudo.OperatorVersion, error) {
	version := &kudo.OperatorVersion{}
	err := s.reader.Get(ctx, name, version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %s: %w", name, err)
	}
	return version, nil
}

// startedVersion returns the OperatorVersion that was last started for an Instance, or nil if it no longer exists.
func (s *State) startedVersion(ctx context.Context, instance *kudo.Instance) (*kudo.OperatorVersion, error) {
	if instance == nil || instance.Status.Execution == nil {
		return nil, nil
	}
	started := instance.Status.Execution.OperatorVersion
	version, err := s.Version(ctx, client.ObjectKey{Namespace: started.Namespace, Name: started.Name})
	if err != nil || version == nil || version.UID != started.UID {
		return nil, err
	}
	return version, nil
}

// candidates returns the OperatorVersions that child Instances of the parents may run: the ones in the namespace of the parents. They are
// read only if one of the parents has children.
func (s *State) candidates(namespace string, parents ...*kudo.OperatorVersion) ([]kudo.OperatorVersion, error) {
	hasChildren := func(v *kudo.OperatorVersion) bool {
		return v != nil && slices.ContainsFunc(v.Spec.Tasks, tree.MakesChild)
	}
	if !slices.ContainsFunc(parents, hasChildren) {
		return nil, nil
	}
	return s.stored(namespace)
}

// onceEach returns a function that caches the results of a function by name. Errors are not cached.
func onceEach[T any](of func(name string) (T, error)) func(name string) (T, error) {
	known := map[string]T{}
	return func(name string) (T, error) {
		if found, asked := known[name]; asked {
			return found, nil
		}
		found, err := of(name)
		if err == nil {
			known[name] = found
		}
		return found, err
	}
}
