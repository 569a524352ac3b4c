package hubclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// GatherFleet reads the definitions of the hub and the add-ons of the clusters.
func GatherFleet(ctx context.Context, c client.Reader, clusters []string) (map[string]Definition, map[string]Cluster, error) {
	definitions, err := GatherDefinitions(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	fleet := make(map[string]Cluster, len(clusters))
	for _, cluster := range clusters {
		fleet[cluster] = Cluster{Name: cluster, Definitions: definitions, AddOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}}
	}
	for _, namespace := range NamespacesOf(clusters) {
		for page := (addonv1alpha1.ManagedClusterAddOnList{}); ; {
			next := page.Continue
			page = addonv1alpha1.ManagedClusterAddOnList{}
			if err := c.List(ctx, &page, client.InNamespace(namespace), client.Limit(PageSize), client.Continue(next)); err != nil {
				return nil, nil, listProblem(namespace, err)
			}
			for i := range page.Items {
				if view, meant := fleet[page.Items[i].Namespace]; meant {
					page.Items[i].ManagedFields = nil
					view.AddOns[page.Items[i].Name] = &page.Items[i]
				}
			}
			if page.Continue == "" {
				break
			}
		}
	}
	return definitions, fleet, nil
}

// NamespacesOf returns the namespaces to list for the clusters, with nil for all: each one separately, or all in one list.
func NamespacesOf(clusters []string) []string {
	if clusters == nil || len(clusters) > watchedByName {
		return []string{metav1.NamespaceAll}
	}
	return clusters
}

func listProblem(namespace string, err error) error {
	if namespace == metav1.NamespaceAll {
		return fmt.Errorf("listing the add-ons of all clusters: %w", err)
	}
	return fmt.Errorf("listing the add-ons of cluster %q: %w", namespace, err)
}

// summary has the fields of a ManagedClusterAddOn that a fleet overview needs; managed fields, which are most of an object, are not
// decoded.
type summary struct {
	Metadata struct {
		Namespace         string       `json:"namespace"`
		Name              string       `json:"name"`
		CreationTimestamp metav1.Time  `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Configs []upstream.AddOnConfig `json:"configs"`
	} `json:"spec"`
	Status struct {
		Conditions       []metav1.Condition         `json:"conditions"`
		ConfigReferences []upstream.ConfigReference `json:"configReferences"`
	} `json:"status"`
}

// addOn returns a ManagedClusterAddOn with the decoded fields.
func (s *summary) addOn() *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Metadata.Namespace, Name: s.Metadata.Name,
			CreationTimestamp: s.Metadata.CreationTimestamp, DeletionTimestamp: s.Metadata.DeletionTimestamp,
		},
		Spec:   upstream.ManagedClusterAddOnSpec{Configs: s.Spec.Configs},
		Status: upstream.ManagedClusterAddOnStatus{Conditions: s.Status.Conditions, ConfigReferences: s.Status.ConfigReferences},
	}
}

// EachAddOn visits the add-ons of the clusters, with nil for all, in the order of the hub's response. Only names, times, configs and
// conditions are set.
func (h Hub) EachAddOn(ctx context.Context, clusters []string, visit func(*addonv1alpha1.ManagedClusterAddOn)) error {
	list, err := h.Lists(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	if err != nil {
		return err
	}
	meant := make(map[string]bool, len(clusters))
	for _, cluster := range clusters {
		meant[cluster] = true
	}
	for _, namespace := range NamespacesOf(clusters) {
		err := Each(ctx, list, namespace, func(s *summary) {
			if clusters == nil || meant[s.Metadata.Namespace] {
				visit(s.addOn())
			}
		})
		if err != nil {
			return listProblem(namespace, err)
		}
	}
	return nil
}
