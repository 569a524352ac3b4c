package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorSpec describes an operator, independent of any version of it.
type OperatorSpec struct {
	// description says what the operator does.
	// +optional
	Description string `json:"description,omitempty"`

	// kudoVersion is the version of KUDO that the package was written for.
	// +optional
	KudoVersion string `json:"kudoVersion,omitempty"`

	// kubernetesVersion is the lowest Kubernetes version that the package supports.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// maintainers are the people to ask about the package.
	// +optional
	// +listType=atomic
	Maintainers []Maintainer `json:"maintainers,omitempty"`

	// url leads to the operator's home page.
	// +optional
	URL string `json:"url,omitempty"`

	// namespaceManifest names the template of the namespace that the operator wants to be installed in.
	// +optional
	NamespaceManifest string `json:"namespaceManifest,omitempty"`
}

// Maintainer is a person who looks after a package.
type Maintainer struct {
	// name of the person.
	// +optional
	Name string `json:"name,omitempty"`

	// email of the person.
	// +optional
	Email string `json:"email,omitempty"`
}

// OperatorStatus is empty, as in KUDO.
type OperatorStatus struct{}

// Operator names an operator of which OperatorVersions exist.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=operators,scope=Namespaced,shortName=op,categories=kudo
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Operator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec OperatorSpec `json:"spec,omitzero"`
	// +optional
	Status OperatorStatus `json:"status,omitzero"`
}

// OperatorList is a list of Operators.
//
// +kubebuilder:object:root=true
type OperatorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Operator `json:"items"`
}
