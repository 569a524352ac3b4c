package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
)

// Upstream's types that stand unchanged.
type (
	ManagedClusterAddOn       = upstream.ManagedClusterAddOn
	ManagedClusterAddOnList   = upstream.ManagedClusterAddOnList
	AddOnDeploymentConfig     = upstream.AddOnDeploymentConfig
	AddOnDeploymentConfigList = upstream.AddOnDeploymentConfigList
)

// ClusterManagementAddOn is upstream's type with spec.dependencies.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
type ClusterManagementAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterManagementAddOnSpec `json:"spec"`
	// +optional
	Status upstream.ClusterManagementAddOnStatus `json:"status,omitempty"`
}

// ClusterManagementAddOnSpec is upstream's spec with dependencies.
type ClusterManagementAddOnSpec struct {
	upstream.ClusterManagementAddOnSpec `json:",inline"`
	DependencySpec                      `json:",inline"`
}

// DependencySpec is what Tandem adds to upstream's spec; its schema is added to upstream's CRD by `make generate`.
type DependencySpec struct {
	// dependencies is a list of add-ons that this add-on depends on.
	// The add-on will only be installed and considered healthy if all its dependencies
	// are installed and available on the managed cluster.
	// An empty list means the add-on has no dependencies.
	// The default is an empty list.
	// +optional
	// +listType=map
	// +listMapKey=name
	Dependencies []AddonDependency `json:"dependencies,omitempty"`
}

// AddonDependency represents a dependency on another add-on.
type AddonDependency struct {
	// name is the name of the add-on depended on: that of a ClusterManagementAddOn.
	// +required
	// +kubebuilder:validation:MinLength:=1
	Name string `json:"name"`

	// type is Required (the default: the add-on cannot function without this dependency) or Optional (it works with reduced
	// functionality).
	// +optional
	// +kubebuilder:default=Required
	Type DependencyType `json:"type,omitempty"`

	// message describes what is lost when the dependency is not satisfied; it is included in condition Degraded.
	// +optional
	Message string `json:"message,omitempty"`
}

// DependencyType says how much an add-on needs another.
//
// +kubebuilder:validation:Enum=Optional;Required
type DependencyType string

const (
	// DependencyTypeOptional means that the add-on works with reduced functionality without the dependency.
	DependencyTypeOptional DependencyType = "Optional"
	// DependencyTypeRequired means that the add-on cannot function without the dependency.
	DependencyTypeRequired DependencyType = "Required"
)

// AnnotationDependencies carries spec.dependencies as JSON on a ClusterManagementAddOn of a hub whose CRDs belong to a stock
// OCM. The field wins where both exist.
const AnnotationDependencies = "addon.open-cluster-management.io/dependencies"

// ClusterManagementAddOnList is a list of ClusterManagementAddOns.
//
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterManagementAddOn `json:"items"`
}
