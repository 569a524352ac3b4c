package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/availability"
)

// observe reads everything that the checks need. What cannot be read is part of the result; the error is about the selected clusters.
func observe(ctx context.Context, f *hubclient.Factory, h hubclient.Hub, where hubclient.Selection) (check.Observations, error) {
	found := check.Observations{Client: f.Version, Namespace: f.ManagerNamespace()}
	discover, err := discovery.NewDiscoveryClientForConfig(h.Config)
	if err != nil {
		return found, fmt.Errorf("connecting to the hub: %w", err)
	}
	if version, err := discover.ServerVersion(); err != nil {
		found.Hub.Problem = err
	} else {
		found.Hub.Version = version.GitVersion
	}
	if found.Hub.Problem != nil && !apierrors.IsForbidden(found.Hub.Problem) {
		return found, nil
	}
	found.Clock.Ahead, found.Clock.Known = h.Ahead()
	found.Definitions = observeDefinitions(discover)
	found.Admission = observeAdmission(ctx, h)
	found.Leader = read.Leader(ctx, h, found.Namespace)
	found.Manager = observeManager(ctx, h, found.Namespace)
	found.Permissions = observePermissions(ctx, h, where.Names)
	if found.Agents, err = observeAgents(ctx, h, where); err != nil {
		return found, err
	}
	clusters, err := clustersOf(ctx, h, where)
	if err != nil {
		return found, err
	}
	found.Suspensions = observeSuspensions(ctx, h, found.Namespace, clusters)
	found.Sources = observeSources(ctx, h)
	found.Now = h.Now()
	return found, nil
}

// observeDefinitions compares the kinds that the hub serves with those in the manifests. Every user may discover them.
func observeDefinitions(discover discovery.DiscoveryInterface) check.Objects {
	wanted, err := manifests.Objects(manifests.FS, "crds/*.yaml", nil)
	if err != nil {
		return check.Objects{Problem: err}
	}
	found := check.Objects{Wanted: len(wanted)}
	for _, definition := range wanted {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			served, err := discover.ServerResourcesForGroupVersion(schema.GroupVersion{Group: group, Version: name}.String())
			if client.IgnoreNotFound(err) != nil {
				found.Problem = err
				return found
			}
			if err != nil || !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
				found.Missing = append(found.Missing, fmt.Sprintf("%s (%s)", definition.GetName(), name))
			}
		}
	}
	return found
}

// observeAdmission compares the names of webhooks and policies with those in the manifests.
func observeAdmission(ctx context.Context, h hubclient.Hub) check.Objects {
	wanted, err := manifests.Admission()
	if err != nil {
		return check.Objects{Problem: err}
	}
	found := check.Objects{Wanted: len(wanted)}
	names := map[schema.GroupVersionKind][]string{}
	for _, object := range wanted {
		names[object.GroupVersionKind()] = append(names[object.GroupVersionKind()], object.GetName())
	}
	for _, kind := range slices.SortedFunc(maps.Keys(names), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.Kind, b.Kind) }) {
		existing, err := read.NamesIn(ctx, h, metav1.NamespaceAll, kind)
		switch {
		case meta.IsNoMatchError(err):
			found.Unserved = append(found.Unserved, kind.Kind)
		case err != nil:
			found.Problem = err
		}
		if err != nil {
			continue
		}
		for _, name := range names[kind] {
			if !slices.Contains(existing, name) {
				found.Missing = append(found.Missing, kind.Kind+" "+name)
			}
		}
	}
	return found
}

// observeManager reads the ConfigMap of addon-manager.
func observeManager(ctx context.Context, c client.Reader, namespace string) check.Manager {
	config := &metav1.PartialObjectMetadata{}
	config.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: addonv1alpha1.ManagerConfigMap}, config); err != nil {
		return check.Manager{Problem: client.IgnoreNotFound(err)}
	}
	return check.Manager{Exists: true, Version: config.Labels[addonv1alpha1.LabelVersion]}
}

// observePermissions reviews the permissions in the namespace of the first cluster, or in all namespaces. A namespace in the review of a
// cluster-scoped resource would make the API server count RoleBindings.
func observePermissions(ctx context.Context, c client.Client, clusters []string) check.Permissions {
	found := check.Permissions{Reviewed: check.NeededPermissions()}
	if len(clusters) > 0 {
		found.Namespace = clusters[0]
	}
	for i := range found.Reviewed {
		one, namespace := &found.Reviewed[i], found.Namespace
		if one.ClusterScoped {
			namespace = metav1.NamespaceAll
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: one.Verb, Group: one.Group, Resource: one.Resource},
		}}
		if found.Problem = c.Create(ctx, review); found.Problem != nil {
			return found
		}
		one.Allowed = review.Status.Allowed
	}
	return found
}

// observeAgents reads the leases of agents, and the clusters' conditions.
func observeAgents(ctx context.Context, h hubclient.Hub, where hubclient.Selection) (check.Agents, error) {
	var selected []string
	if !where.IsAll() {
		var err error
		if selected, err = where.Clusters(ctx, h); err != nil {
			return check.Agents{}, err
		}
	}
	agents := map[string]check.Agent{}
	for _, cluster := range selected {
		agents[cluster] = check.Agent{Cluster: cluster}
	}
	listed, err := addClusters(ctx, h, agents, selected == nil)
	if err != nil {
		return check.Agents{Problem: err}, nil
	}
	for _, namespace := range read.NamespacesOf(selected) {
		err := eachLease(ctx, h, namespace, func(lease *coordinationv1.Lease) {
			if agent, meant := agents[lease.Namespace]; meant || selected == nil && !listed {
				agents[lease.Namespace] = withLease(agent, lease)
			}
		})
		if err != nil {
			return check.Agents{Problem: err}, nil
		}
	}
	var found check.Agents
	for _, cluster := range slices.Sorted(maps.Keys(agents)) {
		found.Agents = append(found.Agents, agents[cluster])
	}
	return found, nil
}

// withLease returns an agent with what its lease shows.
func withLease(agent check.Agent, lease *coordinationv1.Lease) check.Agent {
	agent.Cluster, agent.Seen, agent.Version = lease.Namespace, true, lease.Labels[addonv1alpha1.LabelVersion]
	if lease.Spec.RenewTime != nil {
		agent.Renewed, agent.Timeout = lease.Spec.RenewTime.Time, availability.LeaseTimeout(lease)
	}
	return agent
}

// managedCluster has the fields of a ManagedCluster that the checks need.
type managedCluster struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// addClusters adds the availability of clusters according to OCM, and with all the clusters themselves. It reports whether the user may
// list clusters.
func addClusters(ctx context.Context, h hubclient.Hub, agents map[string]check.Agent, all bool) (bool, error) {
	list, err := h.Lists(read.ManagedClusterKind)
	if err == nil {
		err = hubclient.Each(ctx, list, metav1.NamespaceAll, func(cluster *managedCluster) {
			agent, meant := agents[cluster.Metadata.Name]
			if !meant && !all {
				return
			}
			agent.Cluster = cluster.Metadata.Name
			if available := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); available != nil {
				agent.Klusterlet = available.Status
			}
			agents[agent.Cluster] = agent
		})
	}
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// observeSources reads all PackageSources.
func observeSources(ctx context.Context, h hubclient.Hub) check.Sources {
	var found check.Sources
	list, err := h.Lists(kudo.GroupVersion.WithKind("PackageSource"))
	if err == nil {
		err = hubclient.Each(ctx, list, metav1.NamespaceAll, func(s *kudo.PackageSource) {
			found.Sources = append(found.Sources, check.Source{
				Namespace: s.Namespace, Name: s.Name, Created: s.CreationTimestamp.Time, Generation: s.Generation, Suspended: s.Spec.Suspend,
				Conditions: s.Status.Conditions,
			})
		})
	}
	if !meta.IsNoMatchError(err) {
		found.Problem = err
	}
	return found
}
