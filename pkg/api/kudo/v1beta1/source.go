package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PackageSourceSpec is the desired state of a PackageSource.
//
// +kubebuilder:validation:XValidation:rule="has(self.package) != has(self.chart)",message="exactly one of package and chart is required"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || !has(self.chart)",message="verify is for packages: set chart.digest to pin a chart"
type PackageSourceSpec struct {
	// package is a package in an OCI registry.
	// +optional
	Package *SourcePackage `json:"package,omitempty"`

	// chart is a Helm chart in a repository or in an OCI registry. It is stored as a package with one Helm task, as `kubectl addon package from-chart` does.
	// +optional
	Chart *SourceChart `json:"chart,omitempty"`

	// interval is the time between two attempts, from a minute to a day. A failed attempt is repeated earlier.
	// +optional
	// +kubebuilder:default="10m0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be between 1m and 24h"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// timeout limits an attempt with everything that it downloads, at most five minutes.
	// +optional
	// +kubebuilder:default="1m0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="must be between 1s and 5m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// suspend specifies that no attempt starts.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// verify specifies that the package must be signed. Nothing else is stored.
	// +optional
	Verify *SourceVerification `json:"verify,omitempty"`

	// pullSecret names a Secret in the same namespace with the credentials for the registry or repository: of type kubernetes.io/dockerconfigjson, or of type
	// kubernetes.io/basic-auth with annotation kudo.dev/hosts, which lists the hosts that get them. Its key ca.crt, if it exists, has further certificate authorities.
	// +optional
	PullSecret *LocalName `json:"pullSecret,omitempty"`

	// allowedHosts lists further hosts (HOST or HOST:PORT) to which the package and its registry may refer: of child packages, charts and redirects.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$`
	AllowedHosts []string `json:"allowedHosts,omitempty"`
}

// SourcePackage is a package in an OCI registry.
//
// +kubebuilder:validation:XValidation:rule="[has(self.version), has(self.tag), has(self.digest)].filter(x, x).size() == 1",message="exactly one of version, tag and digest is required"
type SourcePackage struct {
	// reference is the place of the package, without a tag: oci://HOST/PATH.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^oci://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`
	Reference string `json:"reference"`

	// version is a semver range, such as ">=1.0.0 <2": the tag of the highest version in it is pulled. Pre-releases count only if the range names one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// tag is the tag to pull. It may move to another version.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`
	Tag string `json:"tag,omitempty"`

	// digest is the digest of the manifest to pull.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// SourceChart is a Helm chart in a repository or in an OCI registry.
type SourceChart struct {
	// repository is the URL of the repository (https://), or of the path above the chart in a registry (oci://).
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(https?|oci)://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?(/[-A-Za-z0-9._~%]+)*/?$`
	Repository string `json:"repository"`

	// name is the name of the chart.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]{0,249}$`
	Name string `json:"name"`

	// version is a version of the chart, or a semver range: then the highest version in it is pulled.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version"`

	// digest is the SHA-256 that the archive of the chart must have, or its manifest in a registry.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// parameters are values of the chart that become parameters of the package, which Instances can set.
	// +optional
	// +listType=map
	// +listMapKey=value
	// +kubebuilder:validation:MaxItems=100
	Parameters []SourceParameter `json:"parameters,omitempty"`

	// values are set for all Instances, over those of the chart. One that is also a parameter is its default. They are part of the package, which many can read:
	// put passwords into sensitive parameters. At most 256 KiB.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
}

// SourceParameter is a value of a chart that becomes a parameter. Its type, default and description are those of the chart, or of a subchart.
type SourceParameter struct {
	// value is the path of the value in the chart, such as image.tag. A dot in a key has a backslash before it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Value string `json:"value"`

	// name is the name of the parameter. By default, it is derived from the path: IMAGE_TAG for image.tag.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name,omitempty"`

	// sensitive specifies that the value is a secret: each Instance sets it from a Secret, and the package has no default for it. It must be a text.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// SourceVerification specifies who must have signed a package.
type SourceVerification struct {
	// keys names a ConfigMap in the same namespace whose entries are public keys (PEM, ECDSA on P-256, as cosign's). One of them must have signed the package
	// and all of its OperatorVersions.
	Keys LocalName `json:"keys"`
}

// LocalName refers to an object in the same namespace.
type LocalName struct {
	// name is the name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// PackageSourceStatus is the observed state of a PackageSource. It changes only if an attempt has another result than the one before.
type PackageSourceStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, and Stalled while an attempt would fail again until the spec, the keys or the registry change.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// artifact is what was stored last. It stays if a later attempt fails.
	// +optional
	Artifact *SourceArtifact `json:"artifact,omitempty"`

	// refused lists versions that were found and not stored, the latest first, at most ten. A change of the spec clears it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Refused []RefusedVersion `json:"refused,omitempty"`

	// lastHandledReconcileAt is the value of annotation kudo.dev/reconcile-at that was handled last.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// SourceArtifact is a package or a chart that was stored.
type SourceArtifact struct {
	// reference is where it was read, with the digest.
	// +kubebuilder:validation:MaxLength=1024
	Reference string `json:"reference"`

	// version is the version or tag that was chosen; empty if spec.package.digest chooses.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// lowerThan is the version that was stored before, if it is higher and in the range too: it is no longer in the registry.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LowerThan string `json:"lowerThan,omitempty"`

	// operatorVersion is the name of its OperatorVersion.
	// +kubebuilder:validation:MaxLength=253
	OperatorVersion string `json:"operatorVersion"`

	// versions lists all OperatorVersions that were stored: those of child operators first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Versions []string `json:"versions,omitempty"`

	// signedBy lists the IDs of the public keys of spec.verify that have signed it, and identities.yaml with a digest if one of the identities has.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	SignedBy []string `json:"signedBy,omitempty"`
}

// RefusedVersion is a version that was found and not stored.
type RefusedVersion struct {
	// version is the version or tag.
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version"`

	// digest is its digest, if it was read.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`

	// reason is the reason of condition Ready at that time.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// The reasons of condition Ready of a PackageSource.
const (
	// ReasonStored means that the chosen version is stored as OperatorVersions.
	ReasonStored = "Stored"
	// ReasonSourceSuspended means that spec.suspend is set. The status of the condition stays as the last attempt left it, Unknown if there was none.
	ReasonSourceSuspended = "Suspended"
	// ReasonInvalidSource means that a field of the spec has an invalid value that the API server cannot detect, such as a malformed range.
	ReasonInvalidSource = "InvalidSource"
	// ReasonReferenceNotFound means that the Secret or the ConfigMap that the spec names does not exist, or has not the required content.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonPullFailed means that the registry or the repository could not be read.
	ReasonPullFailed = "PullFailed"
	// ReasonHostNotAllowed means that the package, its registry or a redirect refers to a host that is not allowed.
	ReasonHostNotAllowed = "HostNotAllowed"
	// ReasonVersionNotFound means that no version is in the range.
	ReasonVersionNotFound = "VersionNotFound"
	// ReasonVerificationFailed means that none of the keys and identities has signed the package.
	ReasonVerificationFailed = "VerificationFailed"
	// ReasonInvalidPackage means that the package has errors.
	ReasonInvalidPackage = "InvalidPackage"
	// ReasonVersionConflict means that an OperatorVersion of that name exists with other content. It is never overwritten.
	ReasonVersionConflict = "Conflict"
	// ReasonStoreFailed means that the hub has refused to store the package.
	ReasonStoreFailed = "StoreFailed"
)

// PackageSource stores a package of an OCI registry, or a Helm chart, as OperatorVersions in its own namespace, and follows new versions of it. It changes no
// Instance: which version runs is decided elsewhere. Its deletion deletes no OperatorVersion. Not part of KUDO's API. It has an effect only where
// package-controller runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packagesources,scope=Namespaced,shortName=pks,categories=kudo
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Operator-Version",type=string,JSONPath=`.status.artifact.operatorVersion`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PackageSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PackageSourceSpec `json:"spec"`
	// status is the observed state. The default makes tools that use kstatus, such as Flux, wait until the controller has observed a new PackageSource.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status PackageSourceStatus `json:"status,omitzero"`
}

// PackageSourceList is a list of PackageSources.
//
// +kubebuilder:object:root=true
type PackageSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageSource `json:"items"`
}
