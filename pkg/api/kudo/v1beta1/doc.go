// Package v1beta1 contains the kudo.dev/v1beta1 API: Operator, OperatorVersion and Instance, wire-compatible with KUDO 0.19.
// Fields that Tandem adds to KUDO's types are optional and marked "Not part of KUDO's API". The package contains data only and
// accesses no cluster.
//
// +kubebuilder:object:generate=true
// +groupName=kudo.dev
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the objects in this package.
	GroupVersion = schema.GroupVersion{Group: "kudo.dev", Version: "v1beta1"}

	// SchemeBuilder collects the types of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types of this package in a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Operator{}, &OperatorList{},
		&OperatorVersion{}, &OperatorVersionList{},
		&Instance{}, &InstanceList{},
		&OperatorContent{}, &OperatorContentList{},
		&PackageSource{}, &PackageSourceList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
