package change

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/preview"
)

// Edit is a change of an existing Instance, or of the add-on that owns it.
type Edit struct {
	// ObjectKey is the cluster and the name.
	client.ObjectKey
	// Parameters are the parameters to set as given on the command line, and Unset lists those to reset to their defaults.
	Parameters map[string]string
	Unset      []string
	// Reset is set to reset all parameters that are not given.
	Reset bool
	// Upgrade is set if the OperatorVersion changes too: to Choice.
	Upgrade bool
	Choice
	// WhatIf is set if the change is not made: a version that OCM rolls out by a Placement may change then.
	WhatIf bool
}

// Edit returns the change of the existing object: of the Instance, or of the add-on that owns it. It returns ErrAbsent if there is neither.
func (s *State) Edit(ctx context.Context, e Edit) (Change, error) {
	existing, addOn := s.FindInstance(e.ObjectKey), s.fleet[e.Namespace].AddOns[e.Name]
	switch {
	case existing == nil && addOn == nil:
		return Change{}, ErrAbsent
	case addOn != nil && (existing == nil || install.OwnedBy(existing, addOn)):
		return s.editAddOn(ctx, e)
	case !existing.DeletionTimestamp.IsZero():
		return Change{}, fmt.Errorf("cluster %s: Instance %q is being removed; see 'kubectl addon plan status %s --cluster %s'",
			e.Namespace, e.Name, e.Name, e.Namespace)
	case existing.Parent() != nil:
		return Change{}, childError(existing)
	}
	after := existing.DeepCopy()
	version, err := s.versionAfter(ctx, existing, e)
	if err != nil {
		return Change{}, fmt.Errorf("cluster %s: %w", e.Namespace, err)
	}
	if e.Upgrade {
		after.Spec.OperatorVersion = reference(version)
	}
	if err := e.setParameters(&after.Spec, version); err != nil {
		return Change{}, fmt.Errorf("cluster %s: Instance %q: %w", e.Namespace, e.Name, err)
	}
	return s.completeInstance(ctx, Change{Cluster: e.Namespace, Change: preview.Change{Before: existing, After: after}})
}

// childError returns the error for a change of a child, which only its parent changes.
func childError(child *kudo.Instance) error {
	return fmt.Errorf("cluster %s: Instance %q is a child of Instance %q, which determines its version and parameters; change the parent instead",
		child.Namespace, child.Name, child.Parent().Name)
}

// setParameters changes the parameters in the spec of an Instance.
func (e Edit) setParameters(spec *kudo.InstanceSpec, version *kudo.OperatorVersion) error {
	current := TextsOf(*spec)
	if err := checkUnset(version, e.Unset, func(name string) bool { _, set := current[name]; return set }); err != nil {
		return err
	}
	if e.Reset {
		current = nil
	}
	return SetParameters(spec, WithChanges(current, e.Parameters, e.Unset), version)
}

// versionAfter returns the OperatorVersion that the Instance runs after the change; nil if it does not change and does not exist.
func (s *State) versionAfter(ctx context.Context, existing *kudo.Instance, e Edit) (*kudo.OperatorVersion, error) {
	if e.Upgrade {
		return s.chooseFor(ctx, install.VersionOf(existing), e.Choice)
	}
	return s.Version(ctx, install.VersionOf(existing))
}

// DefaultVersion returns the OperatorVersion of an add-on on clusters where it does not have its own; empty if there is none.
func DefaultVersion(definition *addonv1alpha1.ClusterManagementAddOn) client.ObjectKey {
	for _, config := range definition.Spec.SupportedConfigs {
		if config.ConfigGroupResource == versionResource && config.DefaultConfig != nil {
			return types.NamespacedName(*config.DefaultConfig)
		}
	}
	return client.ObjectKey{}
}

// editAddOn changes the add-on that determines the Instance, with a remark if the version does not start yet.
func (s *State) editAddOn(ctx context.Context, edit Edit) (Change, error) {
	found, err := s.configureAddOn(ctx, edit)
	if err == nil {
		found.Remarks = append(found.Remarks, s.orderRemarks(found)...)
		if edit.WhatIf && edit.Upgrade {
			found.Remarks = append(found.Remarks, s.rolloutRemarks(edit.ObjectKey)...)
		}
	}
	return found, err
}

// rolloutRemarks returns a remark if OCM rolls out the version of an add-on by a Placement.
func (s *State) rolloutRemarks(key client.ObjectKey) []string {
	view := s.fleet[key.Namespace]
	if err := CheckVersionNotRolledOut(view.Definitions[key.Name].Object, view.AddOns[key.Name]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// IsRolledOut reports whether OCM rolls out the version of an add-on by a Placement: then no upgrade changes it on a cluster.
func (s *State) IsRolledOut(key client.ObjectKey) bool {
	return s.fleet[key.Namespace].AddOns[key.Name] != nil && len(s.rolloutRemarks(key)) > 0
}

// IsPlaced reports whether OCM enables and disables an add-on by Placements: then uninstall refuses it.
func (s *State) IsPlaced(key client.ObjectKey) bool {
	view := s.fleet[key.Namespace]
	return view.AddOns[key.Name] != nil && CheckRecreation(view.Definitions[key.Name].Object, "") != nil
}

// configureAddOn changes the parameters of an add-on and, with Upgrade, its OperatorVersion.
func (s *State) configureAddOn(ctx context.Context, edit Edit) (Change, error) {
	found := Change{Cluster: edit.Namespace}
	view := s.fleet[edit.Namespace]
	if err := CheckDefined(view.Definitions, edit.Name); err != nil {
		return found, err
	}
	definition := view.Definitions[edit.Name]
	if !definition.PlanManaged {
		return found, fmt.Errorf("add-on %q on cluster %s is not plan-based; change it in the way that its provider documents",
			edit.Name, edit.Namespace)
	}
	e := EnableRequest{View: view, AddOn: edit.Name, Desired: Desired{Parameters: edit.Parameters, Unset: edit.Unset, Reset: edit.Reset}}
	next, err := e.step(edit.Name)
	if err == nil && (edit.Reset || len(edit.Parameters)+len(edit.Unset) > 0) {
		next, err = next.withConfig(ctx, s.reader, definition.Object, e.Desired)
	}
	if err == nil && edit.Upgrade {
		err = s.upgrade(ctx, definition.Object, next.Wanted, edit)
	}
	if err != nil {
		return found, err
	}
	found.Step = &next
	if found, err = s.completeAddOn(ctx, found, definition.Object, e); err == nil {
		err = e.checkUnset(found.Version, next.CurrentConfig)
		found.Remarks = append(found.Remarks, next.keptRemarks(ctx, s.reader, definition.Object)...)
	}
	return found, err
}

// orderRemarks returns a remark if the version does not start yet because it and another add-on on the cluster exclude each other.
func (s *State) orderRemarks(c Change) []string {
	if c.Version == nil || c.Before == nil || c.After == nil || install.VersionOf(c.Before) == install.VersionOf(c.After) {
		return nil
	}
	waits := s.orderView(c.Cluster, c.After.Name, c.Version).WaitReason(c.After.Name, dependency.ReleaseOf(c.Version))
	if waits == "" {
		return nil
	}
	return []string{"the version does not start yet, and the one before keeps running: " + waits}
}

// orderView returns a cluster with what the order of upgrades depends on if an add-on changes to a version. The OperatorVersions are read only if the
// change has to wait, or if an agent has not reported what runs: they decide what changes first, or with which version in between a deadlock ends. Those that
// cannot be read are missing.
func (s *State) orderView(cluster, addOn string, to *kudo.OperatorVersion) whatif.Cluster {
	view := whatif.Cluster{Cluster: s.viewWithInstances(cluster)}
	if !view.NeedsVersions() && view.WaitReason(addOn, dependency.ReleaseOf(to)) == "" {
		return view
	}
	if versions, err := read.VersionsOf(s.reader.stored, view.Cluster); err == nil {
		view.Versions = versions
	}
	return view
}

// upgrade sets the add-on's reference to the requested version. The reference is omitted if the version is the definition's default.
func (s *State) upgrade(
	ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, edit Edit,
) error {
	if err := CheckVersionNotRolledOut(definition, addOn); err != nil && !edit.WhatIf {
		return err
	}
	resolved, predicted := resolveConfigs(definition, addOn)
	version, err := s.chooseFor(ctx, install.Configure(resolved, predicted, install.Namespaces{}).OperatorVersion, edit.Choice)
	if err != nil {
		return fmt.Errorf("add-on %q on cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	referent := upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name}
	ofVersion := func(c upstream.AddOnConfig) bool { return c.ConfigGroupResource == versionResource }
	addOn.Spec.Configs = slices.DeleteFunc(addOn.Spec.Configs, ofVersion)
	for _, supported := range definition.Spec.SupportedConfigs {
		if supported.ConfigGroupResource == versionResource && supported.DefaultConfig != nil && *supported.DefaultConfig == referent {
			return nil
		}
	}
	addOn.Spec.Configs = append(addOn.Spec.Configs, upstream.AddOnConfig{ConfigGroupResource: versionResource, ConfigReferent: referent})
	return nil
}

// completeAddOn completes the change of an add-on with the Instance that the hub derives from it. It returns an error if a given parameter is
// not defined.
func (s *State) completeAddOn(
	ctx context.Context, found Change, definition *addonv1alpha1.ClusterManagementAddOn, e EnableRequest,
) (Change, error) {
	a, err := gatherInstall(ctx, s.reader, definition, *found.Step)
	if err == nil {
		err = e.checkGiven(a, *found.Step)
	}
	if err != nil {
		return found, err
	}
	a.Instances = s.instances[found.Cluster]
	if found, err = s.reader.follow(ctx, found, a); err == nil && found.After == nil {
		err = notReadyError(a.ManagedAddOn)
	}
	return found, err
}
