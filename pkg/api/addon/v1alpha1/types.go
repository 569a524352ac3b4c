package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
)

// Upstream types, unchanged.
type (
	ManagedClusterAddOn       = upstream.ManagedClusterAddOn
	ManagedClusterAddOnList   = upstream.ManagedClusterAddOnList
	AddOnDeploymentConfig     = upstream.AddOnDeploymentConfig
	AddOnDeploymentConfigList = upstream.AddOnDeploymentConfigList
)

// ClusterManagementAddOn is upstream's type with spec.dependencies.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
type ClusterManagementAddOn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterManagementAddOnSpec `json:"spec"`
	// +optional
	Status upstream.ClusterManagementAddOnStatus `json:"status,omitempty"`
}

// ClusterManagementAddOnSpec is upstream's spec with dependencies.
type ClusterManagementAddOnSpec struct {
	upstream.ClusterManagementAddOnSpec `json:",inline"`
	DependencySpec                      `json:",inline"`
}

// DependencySpec holds the fields that Tandem adds to upstream's spec. `make generate` adds its schema to upstream's CRD.
type DependencySpec struct {
	// dependencies is a list of add-ons that this add-on depends on.
	// The add-on is only available if all its Required dependencies are installed and available on the
	// managed cluster; if it is plan-based, it is only installed once they are. Without an Optional
	// dependency it works with reduced functionality, and is reported as degraded.
	// An empty list means the add-on has no dependencies.
	// The default is an empty list.
	// +optional
	// +listType=map
	// +listMapKey=name
	Dependencies []AddonDependency `json:"dependencies,omitempty"`
}

// AddonDependency represents a dependency on another add-on.
type AddonDependency struct {
	// name is the name of the add-on that this add-on depends on. It is the name of a ClusterManagementAddOn.
	// +required
	// +kubebuilder:validation:MinLength:=1
	Name string `json:"name"`

	// type is the type of the dependency, Required or Optional. An add-on cannot function without a Required dependency, and
	// works with reduced functionality without an Optional one.
	// Defaults to Required.
	// +optional
	// +kubebuilder:default=Required
	Type DependencyType `json:"type,omitempty"`

	// message describes the impact on this add-on when the dependency is not satisfied.
	// It is included in the message of the Degraded condition.
	// +optional
	Message string `json:"message,omitempty"`

	// version is a constraint on the version of the dependency that runs on the cluster, such as >=3.8 <5. A dependency of another or of an
	// unknown version is not satisfied. The version of an add-on that runs a package is dependencyVersion of its OperatorVersion, else appVersion,
	// else version, and that of any other add-on is label app.kubernetes.io/version of its ClusterManagementAddOn.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`

	// alternatives are the names of other add-ons, any of which satisfies the dependency as name does. The version, if there is one, holds
	// for all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Alternatives []string `json:"alternatives,omitempty"`

	// clusters selects the managed clusters on which the add-on has the dependency. On other clusters, the dependency does not exist.
	// Without it, the add-on has the dependency on all clusters.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`

	// removal is what happens when the dependency is to be deleted from a cluster where this add-on requires it. With Warn, it is deleted
	// with a warning. With Protect, the deletion is refused, also that of its ClusterManagementAddOn, unless it is forced or requested by a
	// controller of OCM or Kubernetes. Only a Required dependency can have Protect.
	// Defaults to Warn.
	// +optional
	Removal RemovalPolicy `json:"removal,omitempty"`

	// install specifies who enables the dependency on a cluster where neither it nor one of its alternatives is enabled, and where this add-on has
	// the dependency. With Manual, a user or a Placement enables it. With Auto, addon-manager enables it, unless its install strategy is not
	// Manual, or it was disabled there while this add-on was enabled. addon-manager disables an add-on that it has enabled once every dependent
	// for which it was enabled is deleted, and no other add-on on the cluster names it as a dependency or an alternative, or has a declaration
	// that cannot be parsed.
	// Defaults to Manual.
	// +optional
	Install InstallPolicy `json:"install,omitempty"`
}

// InstallPolicy is what happens when a dependency is not enabled.
//
// +kubebuilder:validation:Enum=Manual;Auto
type InstallPolicy string

const (
	// InstallManual means that a user or a Placement enables the dependency.
	InstallManual InstallPolicy = "Manual"
	// InstallAuto means that addon-manager enables the dependency.
	InstallAuto InstallPolicy = "Auto"
)

// RemovalPolicy is what happens when an add-on that another one requires is to be deleted.
//
// +kubebuilder:validation:Enum=Warn;Protect
type RemovalPolicy string

const (
	// RemovalWarn means that the add-on is deleted with a warning.
	RemovalWarn RemovalPolicy = "Warn"
	// RemovalProtect means that the deletion is refused.
	RemovalProtect RemovalPolicy = "Protect"
)

// ClusterSelector selects ManagedClusters that match all of its parts, which are those of a Placement. An empty one selects all clusters.
type ClusterSelector struct {
	// labelSelector selects by the labels of the ManagedCluster, except those with the prefix feature.open-cluster-management.io/.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// claimSelector selects by the cluster claims in the status of the ManagedCluster.
	// +optional
	ClaimSelector *ClusterClaimSelector `json:"claimSelector,omitempty"`

	// celSelector selects by CEL expressions.
	// +optional
	CelSelector *ClusterCelSelector `json:"celSelector,omitempty"`
}

// ClusterClaimSelector selects ManagedClusters by their cluster claims.
type ClusterClaimSelector struct {
	// matchExpressions are requirements that all have to be met.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCelSelector selects ManagedClusters by CEL expressions.
type ClusterCelSelector struct {
	// celExpressions are expressions that all have to be true. Variable managedCluster has metadata.name, metadata.labels,
	// status.clusterClaims and status.version.kubernetes. An expression that fails on a cluster does not select it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=2048
	CelExpressions []string `json:"celExpressions,omitempty"`
}

// DependencyType is the type of a dependency: whether an add-on can work without it.
//
// +kubebuilder:validation:Enum=Optional;Required
type DependencyType string

const (
	// DependencyTypeOptional means that the add-on works without the dependency, with reduced functionality.
	DependencyTypeOptional DependencyType = "Optional"
	// DependencyTypeRequired means that the add-on cannot function without the dependency.
	DependencyTypeRequired DependencyType = "Required"
)

// AnnotationDependencies holds spec.dependencies as JSON on a ClusterManagementAddOn, for hubs with OCM's own CRDs, which do not
// have the field. If both are set, the field takes precedence.
const AnnotationDependencies = "addon.open-cluster-management.io/dependencies"

const (
	// They do not have OCM's prefix: OCM removes annotations with that from add-ons.
	//
	// AnnotationInstalledFor is on a ManagedClusterAddOn that addon-manager has created because of a dependency with install Auto. It lists the
	// dependents for which it exists, as NAME=UID separated by commas. Without the annotation, addon-manager does not delete the add-on.
	AnnotationInstalledFor = "kudo.dev/installed-for"
	// AnnotationInstalledWith is on a ManagedClusterAddOn with dependencies with install Auto. It lists those that were enabled while the add-on
	// was, separated by commas. addon-manager does not enable them again.
	AnnotationInstalledWith = "kudo.dev/installed-with"
)

// ClusterManagementAddOnList is a list of ClusterManagementAddOns.
//
// +kubebuilder:object:root=true
type ClusterManagementAddOnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterManagementAddOn `json:"items"`
}
