package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Workers is the number of Instances and add-ons that a controller of the agent reconciles in parallel.
const Workers = 8

// StaleCacheDelay is how long to wait for a stale cache.
const StaleCacheDelay = 50 * time.Millisecond

// byName is the field selector for Instances by name, which the API server supports and the cache indexes.
const byName = "metadata.name"

// Index adds the index of Instances by name to the cache of the managed cluster.
func Index(ctx context.Context, local ctrl.Manager) error {
	return local.GetFieldIndexer().IndexField(ctx, &kudo.Instance{}, byName, func(o client.Object) []string {
		return []string{o.GetName()}
	})
}

// Find reads the signed mirror of an Instance by its name, which is unique on the hub; nil if there is none. unsigned is true if instead there is
// one of an earlier release, which is signed once the hub confirms it.
func (s *Signer) Find(ctx context.Context, local client.Reader, name string) (existing *kudo.Instance, unsigned bool, err error) {
	chosen, err := s.find(ctx, local, name, nil)
	if err != nil || chosen.Instance == nil || !chosen.Proof.Signed {
		return nil, chosen.Instance != nil, err
	}
	return chosen.Instance, false, nil
}

// find reads the mirror of an Instance among the objects that claim to be it. wanted is the Instance on the hub; nil if it does not exist.
func (s *Signer) find(ctx context.Context, local client.Reader, name string, wanted *kudo.Instance) (mirror.Candidate, error) {
	claims, err := listMirrors(ctx, local, name)
	if err != nil {
		return mirror.Candidate{}, err
	}
	return mirror.Choose(s.candidates(claims), wanted), nil
}

// candidates returns Instances with what their signatures prove.
func (s *Signer) candidates(instances []kudo.Instance) []mirror.Candidate {
	found := make([]mirror.Candidate, len(instances))
	for i := range instances {
		found[i] = mirror.Candidate{Instance: &instances[i], Proof: s.ProofOf(&instances[i])}
	}
	return found
}

// listMirrors reads all Instances of that name that claim to be mirrors.
func listMirrors(ctx context.Context, local client.Reader, name string) ([]kudo.Instance, error) {
	list := &kudo.InstanceList{}
	if err := local.List(ctx, list, client.MatchingFields{byName: name}); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(i kudo.Instance) bool { return !kudo.IsMirror(&i) }), nil
}

// Source maps every mirror to its Instance on the hub.
func Source(cluster string, local ctrl.Manager, which ...predicate.TypedPredicate[*kudo.Instance]) source.Source {
	return controller.Source(local, &kudo.Instance{}, func(_ context.Context, i *kudo.Instance) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster, Name: i.Name}}}
	}, which...)
}
