package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// gatherFleet reads the definitions of the hub, and the add-ons of those clusters.
func gatherFleet(ctx context.Context, c client.Reader, clusters []string) (map[string]definition, map[string]clusterView, error) {
	definitions, err := gatherDefinitions(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	fleet := make(map[string]clusterView, len(clusters))
	for _, cluster := range clusters {
		fleet[cluster] = clusterView{cluster: cluster, definitions: definitions, addOns: map[string]*addon.ManagedClusterAddOn{}}
	}
	for _, namespace := range namespacesOf(clusters) {
		for page := (addon.ManagedClusterAddOnList{}); ; {
			next := page.Continue
			page = addon.ManagedClusterAddOnList{}
			if err := c.List(ctx, &page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
				return nil, nil, listFault(namespace, err)
			}
			for i := range page.Items {
				if view, meant := fleet[page.Items[i].Namespace]; meant {
					page.Items[i].ManagedFields = nil
					view.addOns[page.Items[i].Name] = &page.Items[i]
				}
			}
			if page.Continue == "" {
				break
			}
		}
	}
	return definitions, fleet, nil
}

// namespacesOf are the namespaces to list so as to see those clusters, nil standing for all of the hub: each by itself, or all at once.
func namespacesOf(clusters []string) []string {
	if clusters == nil || len(clusters) > watchedByName {
		return []string{metav1.NamespaceAll}
	}
	return clusters
}

func listFault(namespace string, err error) error {
	if namespace == metav1.NamespaceAll {
		return fmt.Errorf("listing the add-ons of all clusters: %w", err)
	}
	return fmt.Errorf("listing the add-ons of cluster %q: %w", namespace, err)
}

// summary is what a glance over a fleet takes of a ManagedClusterAddOn. Decoding all of it, mostly managed fields, would take most of
// the time and memory of a command.
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

// addOn is the ManagedClusterAddOn, as far as it was read.
func (s *summary) addOn() *addon.ManagedClusterAddOn {
	return &addon.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Metadata.Namespace, Name: s.Metadata.Name,
			CreationTimestamp: s.Metadata.CreationTimestamp, DeletionTimestamp: s.Metadata.DeletionTimestamp,
		},
		Spec:   upstream.ManagedClusterAddOnSpec{Configs: s.Spec.Configs},
		Status: upstream.ManagedClusterAddOnStatus{Conditions: s.Status.Conditions, ConfigReferences: s.Status.ConfigReferences},
	}
}

// eachAddOn visits the add-ons of those clusters, nil standing for all, as they come from the hub: with names, times, configs and
// conditions, and nothing else.
func (h hub) eachAddOn(ctx context.Context, clusters []string, visit func(*addon.ManagedClusterAddOn)) error {
	list, err := h.addOnLists()
	if err != nil {
		return err
	}
	meant := make(map[string]bool, len(clusters))
	for _, cluster := range clusters {
		meant[cluster] = true
	}
	for _, namespace := range namespacesOf(clusters) {
		for next, first := "", true; first || next != ""; first = false {
			next, err = readPage(ctx, list(namespace, next), func(s *summary) {
				if clusters == nil || meant[s.Metadata.Namespace] {
					visit(s.addOn())
				}
			})
			if err != nil {
				return listFault(namespace, err)
			}
		}
	}
	return nil
}

// addOnLists makes the requests for the add-ons of a namespace, or of all, each for the page that begins there.
func (h hub) addOnLists() (func(namespace, page string) *rest.Request, error) {
	gvk := addon.GroupVersion.WithKind("ManagedClusterAddOn")
	mapping, err := h.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("looking for add-ons on the hub: %w", err)
	}
	httpClient, err := rest.HTTPClientFor(h.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	c, err := apiutil.RESTClientForGVK(gvk, false, false, h.config, serializer.NewCodecFactory(h.Scheme()), httpClient)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return func(namespace, page string) *rest.Request {
		request := c.Get().NamespaceIfScoped(namespace, namespace != metav1.NamespaceAll).Resource(mapping.Resource.Resource).
			Param("limit", strconv.Itoa(pageSize))
		if page == "" {
			return request
		}
		return request.Param("continue", page)
	}, nil
}

// readPage visits the items of a list as they arrive, and returns where the next page begins.
func readPage(ctx context.Context, request *rest.Request, visit func(*summary)) (string, error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	next, err := decodePage(stream, visit)
	return next, errors.Join(err, stream.Close())
}

// decodePage decodes a list of ManagedClusterAddOns, whatever the order of its fields is.
func decodePage(list io.Reader, visit func(*summary)) (string, error) {
	var metadata metav1.ListMeta
	decoder := json.NewDecoder(list)
	if _, err := decoder.Token(); err != nil {
		return "", fmt.Errorf("decoding a list: %w", err)
	}
	for decoder.More() {
		field, err := decoder.Token()
		switch {
		case err != nil:
		case field == "items":
			err = decodeItems(decoder, visit)
		case field == "metadata":
			err = decoder.Decode(&metadata)
		default:
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return "", fmt.Errorf("decoding a list: %w", err)
		}
	}
	if _, err := decoder.Token(); err != nil { // it ends too early
		return "", fmt.Errorf("decoding a list: %w", err)
	}
	return metadata.Continue, nil
}

func decodeItems(decoder *json.Decoder, visit func(*summary)) error {
	if begin, err := decoder.Token(); err != nil || begin == nil { // null is a list without items
		return err
	}
	for decoder.More() {
		var s summary
		if err := decoder.Decode(&s); err != nil {
			return err
		}
		visit(&s)
	}
	_, err := decoder.Token()
	return err
}
