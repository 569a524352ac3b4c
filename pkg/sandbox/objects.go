package sandbox

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/tandem-addons/tandem/manifests"
)

// clusterFiles are what a cluster needs besides Tandem's manifests.
//
//go:embed cluster/*.yaml
var clusterFiles embed.FS

// customResourceDefinitions are Tandem's: all of them for the hub, those of the mirrored objects for a managed cluster.
func customResourceDefinitions(managed bool) ([]*unstructured.Unstructured, error) {
	all, err := readObjects(manifests.FS, "crds/*.yaml", nil)
	if err != nil || !managed {
		return all, err
	}
	mirrored := []string{"instances.kudo.dev", "operatorversions.kudo.dev"}
	return slices.DeleteFunc(all, func(crd *unstructured.Unstructured) bool {
		return !slices.Contains(mirrored, crd.GetName())
	}), nil
}

// readObjects decodes the documents of all files that match the pattern, namespaces first. With parameters the files are
// templates. The error names the file.
func readObjects(fsys fs.FS, pattern string, parameters any) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(fsys, pattern)
	if err != nil {
		return nil, fmt.Errorf("finding manifests %q: %w", pattern, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, fmt.Errorf("reading manifest %s: %w", file, err)
		}
		if parameters != nil {
			if data, err = execute(file, data, parameters); err != nil {
				return nil, err
			}
		}
		decoded, err := decodeObjects(data)
		if err != nil {
			return nil, fmt.Errorf("reading manifest %s: %w", file, err)
		}
		objects = append(objects, decoded...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return objects, nil
}

func rank(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

func execute(file string, source []byte, parameters any) ([]byte, error) {
	parsed, err := template.New(file).Option("missingkey=error").Parse(string(source))
	if err != nil {
		return nil, fmt.Errorf("parsing manifest template %s: %w", file, err)
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, parameters); err != nil {
		return nil, fmt.Errorf("rendering manifest template %s: %w", file, err)
	}
	return rendered.Bytes(), nil
}

// decodeObjects decodes a YAML stream; documents without content are dropped.
func decodeObjects(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// managedCluster is the registration of a cluster on the hub, without its status.
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

// managedClusterStatus is what OCM's registration would say of a cluster that has joined and is reachable.
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
