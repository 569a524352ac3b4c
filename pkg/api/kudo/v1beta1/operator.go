package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorSpec describes an operator, independent of any version of it.
type OperatorSpec struct {
	// description describes the operator.
	// +optional
	Description string `json:"description,omitempty"`

	// kudoVersion is the version of KUDO that the package was written for.
	// +optional
	KudoVersion string `json:"kudoVersion,omitempty"`

	// kubernetesVersion is the lowest Kubernetes version that the package supports, or a constraint. It describes the operator's highest version;
	// clusters compare that of OperatorVersions.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// maintainers is the list of the package's maintainers.
	// +optional
	// +listType=atomic
	Maintainers []Maintainer `json:"maintainers,omitempty"`

	// url is the URL of the operator's home page.
	// +optional
	URL string `json:"url,omitempty"`

	// namespaceManifest is the name of the template of the namespace to install the operator into.
	// +optional
	NamespaceManifest string `json:"namespaceManifest,omitempty"`
}

// Maintainer is a maintainer of a package.
type Maintainer struct {
	// name is the name of the maintainer.
	// +optional
	Name string `json:"name,omitempty"`

	// email is the email address of the maintainer.
	// +optional
	Email string `json:"email,omitempty"`
}

// OperatorStatus is empty, as in KUDO.
type OperatorStatus struct{}

// Operator is an operator. Its versions are OperatorVersions.
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
