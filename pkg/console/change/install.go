package change

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Installation is an Instance to create that no add-on owns.
type Installation struct {
	Cluster string
	// Operator is the name of an operator or of an OperatorVersion, and Name that of the Instance, by default the operator's.
	Operator, Name string
	// Namespace on the managed cluster; if empty, the name of the cluster.
	Namespace  string
	Parameters map[string]string
	Choice
}

// Install returns the creation of an Instance of the operator. An existing Instance that already matches is unchanged.
func (s *State) Install(ctx context.Context, in Installation) (Change, error) {
	version, err := s.find(in.Cluster, in.Operator, in.Choice)
	if err != nil {
		return Change{}, err
	}
	name := cmp.Or(in.Name, version.OperatorName())
	if s.fleet[in.Cluster].AddOns[name] != nil {
		return Change{}, fmt.Errorf("add-on %q is enabled on cluster %s and owns the Instance of that name; choose another name "+
			"('kubectl addon install %s NAME')", name, in.Cluster, in.Operator)
	}
	after := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: in.Cluster, Name: name}}
	after.Spec = kudo.InstanceSpec{OperatorVersion: reference(version), InstallNamespace: in.Namespace}
	if err := SetParameters(&after.Spec, in.Parameters, version); err != nil {
		return Change{}, fmt.Errorf("cluster %s: Instance %q: %w", in.Cluster, name, err)
	}
	existing := s.FindInstance(client.ObjectKeyFromObject(after))
	switch {
	case existing == nil:
		return s.completeInstance(ctx, Change{Cluster: in.Cluster, Change: preview.Change{After: after}, Remarks: reservedWarnings(after.TargetNamespace())})
	case SameSpec(existing, after) && existing.TargetNamespace() == after.TargetNamespace() && existing.Parent() == nil:
		return s.completeInstance(ctx, Change{Cluster: in.Cluster, Change: preview.Change{Before: existing, After: existing}})
	}
	return Change{}, fmt.Errorf("cluster %s: Instance %q already exists with a different configuration; change its parameters "+
		"with 'kubectl addon update', or its version with 'kubectl addon upgrade'", in.Cluster, name)
}

// find returns the OperatorVersion of that name, or the requested version of the operator of that name. It searches the packages for all
// clusters first, then the cluster's own.
func (s *State) find(cluster, name string, choice Choice) (*kudo.OperatorVersion, error) {
	var first error
	for _, namespace := range []string{kudo.DefaultPackagesNamespace, cluster} {
		versions, err := s.reader.stored(namespace)
		if err != nil {
			return nil, err
		}
		found, err := tree.Find(name, versions)
		if err == nil && choice == (Choice{}) {
			return &found, nil
		}
		if err == nil {
			chosen, err := s.choose(namespace, found.OperatorName(), choice)
			if err == nil {
				return chosen, nil
			}
			return nil, fmt.Errorf("in namespace %q of the hub: %w", namespace, err)
		}
		if first == nil {
			first = fmt.Errorf("in namespace %q of the hub: %w", namespace, err)
		}
	}
	return nil, first
}
