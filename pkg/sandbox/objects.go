package sandbox

import (
	"embed"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// clusterFiles are the objects that a cluster needs in addition to Tandem's manifests.
//
//go:embed cluster/*.yaml
var clusterFiles embed.FS

// customResourceDefinitions returns Tandem's definitions for the cluster: on a managed cluster the definitions of mirrored objects, unless
// its agent's manifests include them; on a hub all of them, except OCM's if OCM runs.
func (c clusterPlan) customResourceDefinitions() ([]*unstructured.Unstructured, error) {
	all, err := manifests.Objects(manifests.FS, "crds/*.yaml", nil)
	if err != nil || c.isManaged() && c.DeliverAgents {
		return nil, err
	}
	mirrored := []string{"instances.kudo.dev", "operatorcontents.kudo.dev", "operatorversions.kudo.dev"}
	return slices.DeleteFunc(all, func(crd *unstructured.Unstructured) bool {
		if c.isManaged() {
			return !slices.Contains(mirrored, crd.GetName())
		}
		return c.OCM != "" && !strings.HasSuffix(crd.GetName(), "."+kudo.GroupVersion.Group)
	}), nil
}

// managedCluster returns the registration of a cluster on the hub, without its status.
func managedCluster(name, server string, ca []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(),
		"kind":       "ManagedCluster",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"hubAcceptsClient": true,
			"managedClusterClientConfigs": []any{
				map[string]any{"url": server, "caBundle": base64.StdEncoding.EncodeToString(ca)},
			},
		},
	}}
}

// managedClusterStatus returns the status that OCM's registration sets for a cluster that has joined and is available.
func managedClusterStatus(name string, now time.Time) *unstructured.Unstructured {
	condition := func(kind, reason, message string) any {
		return map[string]any{
			"type": kind, "status": string(metav1.ConditionTrue), "reason": reason, "message": message,
			"lastTransitionTime": now.UTC().Format(time.RFC3339),
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(),
		"kind":       "ManagedCluster",
		"metadata":   map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{
			condition(clusterv1.ManagedClusterConditionHubAccepted, "HubClusterAdminAccepted", "Accepted by the sandbox."),
			condition(clusterv1.ManagedClusterConditionJoined, "ManagedClusterJoined", "Managed cluster joined."),
			condition(clusterv1.ManagedClusterConditionAvailable, "ManagedClusterAvailable", "Managed cluster is available."),
		}},
	}}
}

// agentAddOn returns the add-on of Tandem's agent, enabled for a managed cluster.
func agentAddOn(cluster string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": upstream.GroupVersion.String(),
		"kind":       "ManagedClusterAddOn",
		"metadata":   map[string]any{"name": agentAddOnName, "namespace": cluster},
		"spec":       map[string]any{},
	}}
}
