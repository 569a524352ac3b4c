package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorContent is a part of a file of an OperatorVersion that is too large for it. It is in the namespace of the OperatorVersion, which owns
// it, and has the name of the OperatorVersion and 16 digits of its digest in its own: no two OperatorVersions share one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=operatorcontents,scope=Namespaced,categories=kudo
// +kubebuilder:validation:XValidation:rule="self.version == oldSelf.version && self.digest == oldSelf.digest && self.data == oldSelf.data",message="an OperatorContent is immutable: push a new version instead"
// +kubebuilder:printcolumn:name="Operator-Version",type=string,JSONPath=`.version`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.digest`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorContent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// version is the name of the OperatorVersion.
	Version string `json:"version"`

	// digest is the SHA-256 of the part before compression, as sha256:HEX.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`

	// data is the part, compressed with gzip, in base64. The schema does not say so (format byte), because rules of the schema cannot read such a
	// field: they expect the base64 of URLs.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=""
	// +kubebuilder:validation:MaxLength=1400000
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
	Data []byte `json:"data"`
}

// OperatorContentList is a list of OperatorContents.
//
// +kubebuilder:object:root=true
type OperatorContentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorContent `json:"items"`
}
