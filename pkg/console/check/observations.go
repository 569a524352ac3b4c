package check

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// Observations is everything that the checks need. A Problem is the error of the request, such as Forbidden.
type Observations struct {
	// Now is the time of the hub's clock.
	Now time.Time
	// Client is the version of the plugin, and Namespace the namespace of addon-manager.
	Client, Namespace string
	Hub               Hub
	Clock             Clock
	// Definitions are the kinds that the plugin, addon-manager and the agents need, and Admission the webhooks and policies.
	Definitions, Admission Objects
	Leader                 Leader
	Manager                Manager
	Agents                 Agents
	Suspensions            Suspensions
	Sources                Sources
	Permissions            Permissions
}

// Hub is the API server.
type Hub struct {
	Version string
	Problem error
}

// Clock is the difference between the clock of the hub and the local one.
type Clock struct {
	Ahead time.Duration
	Known bool
}

// Objects compares objects with those that the manifests install.
type Objects struct {
	// Wanted is the number of objects in the manifests.
	Wanted int
	// Missing names objects that do not exist, and Unserved the kinds that the API server does not serve.
	Missing, Unserved []string
	Problem           error
}

// Leader is the Lease of the leading addon-manager.
type Leader struct {
	Exists bool
	// Holder is empty after a leader has stopped in an orderly way.
	Holder   string
	Renewed  time.Time
	Duration time.Duration
	Problem  error
}

// Manager is the ConfigMap of addon-manager.
type Manager struct {
	Exists  bool
	Version string
	Problem error
}

// Agents are the agents of the selected clusters, sorted by cluster.
type Agents struct {
	Agents  []Agent
	Problem error
}

// Agent is the agent of a cluster.
type Agent struct {
	Cluster, Version string
	// Seen is whether the agent has a Lease on the hub.
	Seen bool
	// Renewed is zero if a klusterlet reports the cluster's liveness. Timeout is how long a Lease is fresh.
	Renewed time.Time
	Timeout time.Duration
	// Klusterlet is the availability of a cluster according to OCM; empty without OCM.
	Klusterlet metav1.ConditionStatus
}

// Suspensions are what is suspended on the selected clusters.
type Suspensions struct {
	// Origins are the objects that suspend many Instances.
	Origins []suspension.Origin
	// Instances are those that their own spec suspends, as CLUSTER/NAME, sorted, and First is one of them.
	Instances []string
	First     Suspended
	// Problems are the errors of requests, by what they read.
	Problems []Unread
}

// Suspended is an Instance that its own spec suspends.
type Suspended struct{ Cluster, Name string }

// Unread is what could not be read, and why.
type Unread struct {
	What string
	Err  error
}

// Sources are the PackageSources of the hub.
type Sources struct {
	Sources []Source
	Problem error
}

// Source is a PackageSource.
type Source struct {
	Namespace, Name string
	Created         time.Time
	Generation      int64
	Suspended       bool
	Conditions      []metav1.Condition
}

// Permissions are the reviewed permissions of the user. Namespace is where those of namespaced resources were reviewed; empty for all namespaces.
type Permissions struct {
	Namespace string
	Reviewed  []Permission
	Problem   error
}

// Permission is a permission that commands of the plugin need.
type Permission struct {
	Verb, Group, Resource, Commands string
	// ClusterScoped is whether the resource has no namespaces: a RoleBinding grants nothing on it.
	ClusterScoped, Allowed bool
}

// NeededPermissions returns the permissions that the main commands need.
func NeededPermissions() []Permission {
	addOns, packages, clusters := addonv1alpha1.GroupVersion.Group, kudo.GroupVersion.Group, clusterv1.GroupName
	return []Permission{
		{Verb: "list", Group: addOns, Resource: "managedclusteraddons", Commands: "get, fleet, why"},
		{Verb: "list", Group: addOns, Resource: "clustermanagementaddons", Commands: "tree, why", ClusterScoped: true},
		{Verb: "list", Group: packages, Resource: "instances", Commands: "plan status"},
		{Verb: "list", Group: packages, Resource: "operatorversions", Commands: "package list"},
		{Verb: "list", Group: clusters, Resource: "managedclusters", Commands: "--selector, --all-clusters", ClusterScoped: true},
		{Verb: "create", Group: addOns, Resource: "managedclusteraddons", Commands: "enable"},
		{Verb: "patch", Group: addOns, Resource: "managedclusteraddons", Commands: "update, upgrade"},
		{Verb: "delete", Group: addOns, Resource: "managedclusteraddons", Commands: "disable"},
		{Verb: "create", Group: addOns, Resource: "addondeploymentconfigs", Commands: "enable -p"},
		{Verb: "patch", Group: addOns, Resource: "addondeploymentconfigs", Commands: "update -p"},
		{Verb: "create", Group: packages, Resource: "instances", Commands: "install"},
		{Verb: "patch", Group: packages, Resource: "instances", Commands: "plan run"},
		{Verb: "delete", Group: packages, Resource: "instances", Commands: "uninstall"},
		{Verb: "create", Group: packages, Resource: "operatorversions", Commands: "package push"},
		{Verb: "create", Group: addOns, Resource: "clustermanagementaddons", Commands: "create", ClusterScoped: true},
	}
}
