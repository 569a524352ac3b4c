package change

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Default is the change of the default OperatorVersion of an add-on.
type Default struct {
	// Current is the ClusterManagementAddOn, and Wanted its desired state.
	Current, Wanted *addonv1alpha1.ClusterManagementAddOn
	// From and To are the names of the OperatorVersions.
	From, To string
	// Changes are those of the clusters that follow the default, and Refused has the reasons why others of them cannot.
	Changes []Change
	Refused Refusals
	// Keeping lists the clusters that do not follow.
	Keeping []Keeping
}

// Keeping is a cluster on which an add-on does not follow its default OperatorVersion.
type Keeping struct {
	Cluster string `json:"cluster"`
	// OperatorVersion is the version that the add-on keeps.
	OperatorVersion string `json:"operatorVersion"`
}

// SetDefault returns the change of the default OperatorVersion of a plan-based add-on to another version of the same operator, on the clusters
// of the state.
func (s *State) SetDefault(ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, choice Choice) (Default, error) {
	before := DefaultVersion(definition)
	if before.Name == "" {
		return Default{}, fmt.Errorf("ClusterManagementAddOn %q has no default OperatorVersion: "+
			"set the defaultConfig of %s in spec.supportedConfigs ('kubectl edit clustermanagementaddon %[1]s')", definition.Name, versionResource.Resource)
	}
	version, err := s.nextDefault(ctx, before, choice)
	if err != nil {
		return Default{}, fmt.Errorf("add-on %q: %w", definition.Name, err)
	}
	d := Default{Current: definition, Wanted: definition.DeepCopy(), From: before.Name, To: version.Name, Refused: Refusals{}}
	for i := range d.Wanted.Spec.SupportedConfigs {
		if config := &d.Wanted.Spec.SupportedConfigs[i]; config.ConfigGroupResource == versionResource && config.DefaultConfig != nil {
			config.DefaultConfig = &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name}
		}
	}
	if equality.Semantic.DeepEqual(d.Current, d.Wanted) {
		return d, nil
	}
	for _, cluster := range s.clusters() {
		if err := s.followDefault(ctx, &d, cluster); err != nil {
			d.Refused[cluster] = err
		}
	}
	return d, nil
}

// nextDefault returns the requested version of the operator of the present default.
func (s *State) nextDefault(ctx context.Context, before client.ObjectKey, choice Choice) (*kudo.OperatorVersion, error) {
	current, err := s.Version(ctx, before)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, fmt.Errorf("the operator is unknown because the default OperatorVersion %s does not exist; "+
			"set another one in spec.supportedConfigs of the ClusterManagementAddOn", before)
	}
	return s.choose(before.Namespace, current.OperatorName(), choice)
}

// followDefault adds the change of the add-on on a cluster, or that it keeps its version. An add-on that is being removed does neither.
func (s *State) followDefault(ctx context.Context, d *Default, cluster string) error {
	addOn := s.fleet[cluster].AddOns[d.Current.Name]
	if addOn == nil || !addOn.DeletionTimestamp.IsZero() {
		return nil
	}
	if own := ownVersion(d.Current, addOn); own != "" {
		d.Keeping = append(d.Keeping, Keeping{cluster, own})
		return nil
	}
	next := addOn.DeepCopy()
	next.Status.ConfigReferences = slices.DeleteFunc(next.Status.ConfigReferences, func(r upstream.ConfigReference) bool {
		return r.ConfigGroupResource == versionResource // that of the present default
	})
	a, err := gatherInstall(ctx, s.reader, d.Wanted, Step{Current: addOn, Wanted: next})
	if err != nil {
		return err
	}
	a.Instances = s.instances[cluster]
	found, err := s.reader.follow(ctx, Change{Cluster: cluster, Step: &Step{Current: addOn, Wanted: addOn}}, a)
	if err != nil {
		return err
	}
	if found.After == nil {
		found.Unknown = text.JoinMessage(notReadyError(addOn).Error())
	}
	found.Remarks = append(found.Remarks, s.orderRemarks(found)...)
	d.Changes = append(d.Changes, found)
	return nil
}

// ownVersion returns the OperatorVersion that an add-on does not take from the default: its own, or that of a Placement; empty if it follows the
// default.
func ownVersion(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) string {
	for _, config := range addOn.Spec.Configs {
		if config.ConfigGroupResource == versionResource {
			return config.Name
		}
	}
	isPlaced := checkNotRolledOut(definition, addOn, versionResource, "OperatorVersion") != nil
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.ConfigGroupResource != versionResource || reference.DesiredConfig == nil {
			continue
		}
		if isPlaced || reference.DesiredConfig.ConfigReferent != upstream.ConfigReferent(DefaultVersion(definition)) {
			return reference.DesiredConfig.Name
		}
	}
	return ""
}

// Write writes the ClusterManagementAddOn. If it has changed since it was read, that is a conflict.
func (d Default) Write(ctx context.Context, c client.Client) error {
	if err := patchIfUnchanged(ctx, c, d.Current, d.Wanted.DeepCopy()); err != nil {
		return fmt.Errorf("changing ClusterManagementAddOn %q: %w", d.Current.Name, err)
	}
	return nil
}
