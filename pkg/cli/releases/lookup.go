package releases

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Capabilities returns what the cluster serves.
func (c *Cluster) Capabilities() (chart.Capabilities, error) {
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return chart.Capabilities{}, fmt.Errorf("discovering the version of cluster %s: %w", text.Quote(c.context), err)
	}
	groups, resources, err := c.discovery.ServerGroupsAndResources()
	if err != nil {
		return chart.Capabilities{}, fmt.Errorf("discovering the kinds of cluster %s: %w", text.Quote(c.context), err)
	}
	found := chart.Capabilities{KubeVersion: version.GitVersion}
	for _, group := range groups {
		for _, v := range group.Versions {
			found.APIVersions = append(found.APIVersions, v.GroupVersion)
		}
	}
	for _, list := range resources {
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				found.APIVersions = append(found.APIVersions, list.GroupVersion+"/"+resource.Kind)
			}
		}
	}
	return found, nil
}

// Lookup answers Helm's function lookup with the permissions of the user.
func (c *Cluster) Lookup(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	if name != "" {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return map[string]any{}, nil
		}
		return object.Object, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	err := c.client.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize))
	switch {
	case meta.IsNoMatchError(err):
		return map[string]any{}, nil
	case err != nil:
		return nil, err
	case list.GetContinue() != "":
		return nil, fmt.Errorf("the chart looks up more than %d objects of kind %s", pageSize, text.Quote(kind))
	}
	return list.UnstructuredContent(), nil
}
