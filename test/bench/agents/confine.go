package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// confinement makes a namespace of a shared API server look like a cluster: a request for all objects of a namespaced kind becomes one for
// those in the namespace, and a request for another namespace fails. Kinds without namespaces are shared.
type confinement struct {
	namespace string
	// namespaced holds the namespaced resources, such as apps/v1/deployments.
	namespaced map[string]bool
	next       http.RoundTripper
}

// namespacedResources returns the namespaced resources of a server.
func namespacedResources(config *rest.Config) (map[string]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discovering the kinds of the managed cluster: %w", err)
	}
	namespaced := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if resource.Namespaced {
				namespaced[list.GroupVersion+"/"+resource.Name] = true
			}
		}
	}
	return namespaced, nil
}

// RoundTrip sends the confined request.
func (c *confinement) RoundTrip(request *http.Request) (*http.Response, error) {
	path, err := c.confine(request.URL.Path)
	if err != nil {
		return nil, err
	}
	if path != request.URL.Path {
		request = request.Clone(request.Context())
		request.URL.Path = path
	}
	return c.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the settings of the connection.
func (c *confinement) WrappedRoundTripper() http.RoundTripper { return c.next }

// confine returns the path of a request within the namespace.
func (c *confinement) confine(path string) (string, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	start := map[string]int{"api": 2, "apis": 3}[parts[0]] // the number of parts before the resource
	if start == 0 || len(parts) <= start {
		return path, nil
	}
	switch resource := parts[start]; {
	case resource == "namespaces" && len(parts) > start+1 && parts[start+1] != c.namespace:
		return "", fmt.Errorf("the agent of %s requests %s, which is outside of its cluster", c.namespace, path)
	case len(parts) == start+1 && c.namespaced[strings.Join(parts[1:], "/")]:
		return "/" + strings.Join(slices.Insert(parts, start, "namespaces", c.namespace), "/"), nil
	}
	return path, nil
}
