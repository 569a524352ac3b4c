package v1beta1

import rbacv1 "k8s.io/api/rbac/v1"

// Permissions are the permissions that the plans of an operator need on the managed cluster. The agent then acts as a user of its own for
// each Instance, which has exactly these permissions.
type Permissions struct {
	// rules is the list of permissions in the namespace of the Instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`

	// clusterRules is the list of permissions for cluster-scoped objects, and for objects in all namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	ClusterRules []rbacv1.PolicyRule `json:"clusterRules,omitempty"`

	// namespaces is the list of other namespaces, each with the permissions in it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Namespaces []NamespacePermissions `json:"namespaces,omitempty"`
}

// NamespacePermissions are permissions in a namespace.
type NamespacePermissions struct {
	// name is the name of the namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// rules is the list of permissions in the namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}
