package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Upstream types, unchanged.
type (
	ManagedClusterAddOn       = upstreamv1beta1.ManagedClusterAddOn
	ManagedClusterAddOnList   = upstreamv1beta1.ManagedClusterAddOnList
	AddOnDeploymentConfig     = upstreamv1beta1.AddOnDeploymentConfig
	AddOnDeploymentConfigList = upstreamv1beta1.AddOnDeploymentConfigList
)

// ClusterManagementAddOn is upstream's type with spec.dependencies.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type ClusterManagementAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterManagementAddOnSpec `json:"spec"`
	// +optional
	Status upstreamv1beta1.ClusterManagementAddOnStatus `json:"status,omitempty"`
}

// ClusterManagementAddOnSpec is upstream's spec with dependencies. Dependencies have the same schema in both versions.
type ClusterManagementAddOnSpec struct {
	upstreamv1beta1.ClusterManagementAddOnSpec `json:",inline"`
	addonv1alpha1.DependencySpec               `json:",inline"`
}

// ClusterManagementAddOnList is a list of ClusterManagementAddOns.
//
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterManagementAddOn `json:"items"`
}
