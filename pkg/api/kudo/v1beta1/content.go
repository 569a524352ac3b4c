package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorContent is a part of a file of an OperatorVersion that is too large for it. It is in the namespace of the OperatorVersion, which owns
// it, and named by both: no two OperatorVersions share one.
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

	// data is the part, compressed with gzip.
	// +kubebuilder:validation:MaxLength=1400000
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
