// Package manifests embeds the objects that Tandem installs on a hub and on managed clusters: CRDs, RBAC, admission and workloads. It
// contains data only and accesses no cluster.
package manifests

import "embed"

// FS has one folder for each destination:
//
//	crds/       the CustomResourceDefinitions; generated
//	hub/        once on the hub: namespaces, permissions and Service of addon-manager, read permissions of all agents
//	admission/  once on the hub, after hub/: the webhooks of addon-manager, and admission policies
//	cluster/    once on the hub for each managed cluster: text/template sources with ClusterParameters
//	agent/      on each managed cluster: the permissions of addon-agent, and the policy that protects the mirror
//	deployment/ on each managed cluster: the Deployment of addon-agent
//	ocm/        once on a hub with OCM, after hub/: addon-agent as an add-on, and permissions of addon-manager to deliver it
//	klusterlet/ on each managed cluster of a hub with OCM: permissions of OCM's work agent to deliver addon-agent
//
//go:embed */*.yaml
var FS embed.FS

// The label of Tandem's objects on a hub, and its value.
const (
	LabelPartOf = "app.kubernetes.io/part-of"
	PartOf      = "tandem"
)

// ClusterParameters holds the parameters of the templates in cluster/.
type ClusterParameters struct {
	// Cluster is the name of the managed cluster, which is also the name of its namespace on the hub.
	Cluster string
}
