package action

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Removal is an add-on or Instance to remove from a cluster.
type Removal struct {
	client.ObjectKey
	// AddOn is nil if the Instance belongs to no add-on, and Instance if the add-on has none. Definition is the add-on's; nil if there is none.
	AddOn      *addonv1alpha1.ManagedClusterAddOn
	Definition *addonv1alpha1.ClusterManagementAddOn
	Instance   *kudo.Instance
	// Below lists the Instance's descendants, each before its own children.
	Below []kudo.Instance
	// Dependents lists the add-ons on the cluster that depend on the add-on.
	Dependents []dependency.Dependent
}

// Removal returns the removal of the existing add-on, or else of the Instance. It returns ErrAbsent if there is neither, and an error if the
// hub would re-create it.
func (s *State) Removal(key client.ObjectKey) (Removal, error) {
	view, existing := s.fleet[key.Namespace], s.Existing(key)
	r := Removal{ObjectKey: key, AddOn: view.AddOns[key.Name]}
	if existing != nil && (r.AddOn == nil || metav1.IsControlledBy(existing, r.AddOn)) {
		r.Instance, r.Below = existing, Descendants(existing, s.instances[key.Namespace])
	}
	switch {
	case r.AddOn != nil:
		r.Definition, r.Dependents = view.Definitions[key.Name].Object, view.Dependents(key.Name)
	case r.Instance == nil:
		return r, ErrAbsent
	}
	return r, r.Refused()
}

// Refused returns an error for an object that would be re-created: an add-on by OCM, or a child Instance by its parent.
func (r Removal) Refused() error {
	switch {
	case r.AddOn != nil && r.AddOn.DeletionTimestamp.IsZero():
		return Reenabled(r.Definition, "cluster "+r.Namespace)
	case r.AddOn != nil || r.Instance == nil || !r.Instance.DeletionTimestamp.IsZero():
		return nil
	}
	owner := metav1.GetControllerOf(r.Instance)
	if owner == nil || owner.Kind != "Instance" {
		return nil
	}
	return fmt.Errorf("%q is a child of Instance %q, which would re-create it; uninstall the parent, or change its parameters", r.Name, owner.Name)
}

// Object returns the name of the object to delete on the hub.
func (r Removal) Object() string {
	if r.AddOn != nil {
		return text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", r.Name)
	}
	return text.ObjectName(kudo.GroupVersion.Group, "Instance", r.Name)
}

// Remove returns the change that the removal makes.
func (s *State) Remove(ctx context.Context, r Removal) (Change, error) {
	affected, _ := Affected(r.Name, r.Dependents)
	going := Change{Cluster: r.Namespace, Warnings: affected, Object: r.Object()}
	if r.Instance == nil {
		return going, nil
	}
	var err error
	if going.Started, err = s.reader.startedVersion(ctx, r.Instance); err != nil {
		return going, err
	}
	going.Before, going.Instances = r.Instance, r.Below
	going.Candidates, err = s.reader.candidates(install.VersionOf(r.Instance).Namespace, going.Started)
	return going, err
}

// Descendants returns the Instance's descendants among instances, each before its own children.
func Descendants(root *kudo.Instance, instances []kudo.Instance) []kudo.Instance {
	var found []kudo.Instance
	met := map[types.UID]bool{root.UID: true} // stops at owner references that form a cycle
	var add func(parent *kudo.Instance)
	add = func(parent *kudo.Instance) {
		for i := range instances {
			if child := &instances[i]; metav1.IsControlledBy(child, parent) && !met[child.UID] {
				met[child.UID] = true
				found = append(found, *child)
				add(child)
			}
		}
	}
	add(root)
	return found
}
