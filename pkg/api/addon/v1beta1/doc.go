// Package v1beta1 contains the addon.open-cluster-management.io/v1beta1 API as Tandem extends it: upstream's
// ClusterManagementAddOn with the additional field spec.dependencies, and the conversion between this version and v1alpha1,
// the storage version. The package accesses no cluster.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the objects in this package.
	GroupVersion = schema.GroupVersion{Group: "addon.open-cluster-management.io", Version: "v1beta1"}

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
