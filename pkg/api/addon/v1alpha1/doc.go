// Package v1alpha1 contains the addon.open-cluster-management.io/v1alpha1 API as Tandem extends it: upstream's
// ClusterManagementAddOn with the additional field spec.dependencies (OCM's Addon Dependency Management proposal), and the
// condition types and reasons that Tandem writes on a ManagedClusterAddOn. All other types are upstream's, unchanged. The
// package contains data only and accesses no cluster.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the objects in this package.
	GroupVersion = schema.GroupVersion{Group: "addon.open-cluster-management.io", Version: "v1alpha1"}

	// SchemeBuilder registers the types of this package and the upstream types used with them.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds these types to a scheme. Do not also call upstream's AddToScheme on that scheme: it registers a
	// ClusterManagementAddOn without dependencies.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterManagementAddOn{}, &ClusterManagementAddOnList{},
		&ManagedClusterAddOn{}, &ManagedClusterAddOnList{},
		&AddOnDeploymentConfig{}, &AddOnDeploymentConfigList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
