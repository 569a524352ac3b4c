package stack

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// AddOn is an add-on that runs a package.
type AddOn struct {
	Name string
	// Version is the OperatorVersion that runs on clusters that request no other.
	Version types.NamespacedName
	// Config is the AddOnDeploymentConfig with its parameters on clusters that request no other; nil for none.
	Config *types.NamespacedName
	// Values is the ConfigMap with its parameters that are too long for an AddOnDeploymentConfig; nil for none.
	Values       *types.NamespacedName
	Dependencies []addonv1alpha1.AddonDependency
	// Placements select the clusters on which OCM installs it. It is installed manually if there are none.
	Placements []types.NamespacedName
	// RolloutStrategy is how OCM rolls out to what each placement selects; nil for all clusters at once.
	RolloutStrategy *clusterv1alpha1.RolloutStrategy
}

// Definition returns the ClusterManagementAddOn of an add-on.
func (a AddOn) Definition() *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ClusterManagementAddOn"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
	}
	definition.Spec.Dependencies = a.Dependencies
	versions := upstream.ConfigMeta{ConfigGroupResource: upstream.ConfigGroupResource{
		Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions,
	}}
	versions.DefaultConfig = new(upstream.ConfigReferent(a.Version))
	configs := upstream.ConfigMeta{ConfigGroupResource: upstream.ConfigGroupResource{
		Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
	}}
	if a.Config != nil {
		configs.DefaultConfig = new(upstream.ConfigReferent(*a.Config))
	}
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{versions, configs}
	if a.Values != nil {
		values := upstream.ConfigMeta{ConfigGroupResource: upstream.ConfigGroupResource{Resource: addonv1alpha1.ResourceConfigMaps}}
		values.DefaultConfig = new(upstream.ConfigReferent(*a.Values))
		definition.Spec.SupportedConfigs = append(definition.Spec.SupportedConfigs, values)
	}
	for _, placement := range a.Placements {
		selected := upstream.PlacementStrategy{PlacementRef: upstream.PlacementRef{Namespace: placement.Namespace, Name: placement.Name}}
		if a.RolloutStrategy != nil {
			selected.RolloutStrategy = *a.RolloutStrategy.DeepCopy()
		}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyPlacements
		definition.Spec.InstallStrategy.Placements = append(definition.Spec.InstallStrategy.Placements, selected)
	}
	return definition
}

// Annotated returns a ClusterManagementAddOn that declares its dependencies in the annotation, for hubs with OCM's resource definitions.
func Annotated(definition *addonv1alpha1.ClusterManagementAddOn) (*addonv1alpha1.ClusterManagementAddOn, error) {
	if len(definition.Spec.Dependencies) == 0 {
		return definition, nil
	}
	declared, err := json.Marshal(definition.Spec.Dependencies)
	if err != nil {
		return nil, fmt.Errorf("encoding the dependencies of add-on %q: %w", definition.Name, err)
	}
	definition = definition.DeepCopy()
	definition.Spec.Dependencies = nil
	metav1.SetMetaDataAnnotation(&definition.ObjectMeta, addonv1alpha1.AnnotationDependencies, string(declared))
	return definition, nil
}

// Manifest returns an object as users write it: without a status, and without empty fields that its type has.
func Manifest(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting an object of the stack: %w", err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	for _, field := range []string{"addOnMeta", "installStrategy", "addOnConfiguration", "proxyConfig"} {
		if value, found, err := unstructured.NestedMap(content, "spec", field); err == nil && found && isEmpty(value) {
			unstructured.RemoveNestedField(content, "spec", field)
		}
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// isEmpty reports whether a map has no values, or only empty texts.
func isEmpty(values map[string]any) bool {
	for _, value := range values {
		if value != "" {
			return false
		}
	}
	return true
}
