// Package v1beta1 is the part of addon.open-cluster-management.io/v1beta1 that Tandem extends: upstream's
// ClusterManagementAddOn with the one field spec.dependencies, and the conversion between this version and v1alpha1, which is
// the stored one. It is plain data and touches no cluster.
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

	// SchemeBuilder collects the types of this package and upstream's types that stand beside them.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers them in a scheme; upstream's own AddToScheme must not be called on the same scheme, for it
	// registers a ClusterManagementAddOn without dependencies.
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
