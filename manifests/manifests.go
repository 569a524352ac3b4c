// Package manifests holds, embedded, what Tandem puts on a hub and on managed clusters: CRDs, RBAC, admission and workloads. It is data
// and touches no cluster.
package manifests

import "embed"

// FS has one folder for each destination:
//
//	crds/       the CustomResourceDefinitions; generated
//	hub/        once on the hub: namespaces, the rights and the Service of addon-manager, what every agent may read
//	admission/  once on the hub, after hub/: the webhooks that addon-manager serves, and policies of the API server's own
//	cluster/    once on the hub for each managed cluster: text/template sources, given ClusterParameters
//	agent/      on each managed cluster: the rights of addon-agent, and the policy that keeps others off what it mirrors
//	deployment/ on each managed cluster: addon-agent in a pod
//	ocm/        once on a hub with OCM, after hub/: addon-agent as an add-on, and what addon-manager needs to deliver it
//	klusterlet/ on each managed cluster of such a hub: what OCM's work agent needs for that
//
//go:embed */*.yaml
var FS embed.FS

// The label of what is Tandem's on a hub, and its value.
const (
	LabelPartOf = "app.kubernetes.io/part-of"
	PartOf      = "tandem"
)

// ClusterParameters is what the templates in cluster/ are given.
type ClusterParameters struct {
	// Cluster is the name of the managed cluster, which is also the name of its namespace on the hub.
	Cluster string
}
