package manifests

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestObjectsHaveNamespacesFirst(t *testing.T) {
	fsys := fstest.MapFS{
		"a/1.yaml": {Data: []byte(`---
kind: Role
metadata: {name: r}
---
# nothing
---
kind: Namespace
metadata: {name: spoke}
`)},
		"a/2.yaml": {Data: []byte("kind: Namespace\nmetadata: {name: {{ .Cluster }}}\n")},
	}
	objects, err := Objects(fsys, "a/*.yaml", ClusterParameters{Cluster: "cluster1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Namespace spoke", "Namespace cluster1", "Role r"}, titles(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestObjectsNameTheFileAtFault(t *testing.T) {
	for name, content := range map[string]string{
		"not YAML":             "kind: [",
		"not a template":       "kind: {{ .Cluster",
		"an unknown parameter": "kind: {{ .Color }}",
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"a/1.yaml": {Data: []byte(content)}}
			_, err := Objects(fsys, "a/*.yaml", ClusterParameters{Cluster: "cluster1"})
			if err == nil || !strings.Contains(err.Error(), "a/1.yaml") {
				t.Errorf("the error is %v, want one that names the file", err)
			}
		})
	}
}

func TestManifestsDecode(t *testing.T) {
	for pattern, parameters := range map[string]any{
		"hub/*.yaml": nil, "admission/*.yaml": nil, "agent/*.yaml": nil, "cluster/*.yaml": ClusterParameters{Cluster: "cluster1"},
		"deployment/*.yaml": nil, "ocm/*.yaml": nil, "klusterlet/*.yaml": nil,
	} {
		objects, err := Objects(FS, pattern, parameters)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s gives %d objects, %v", pattern, len(objects), err)
		}
		for _, object := range objects {
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				t.Errorf("%s has an object without API version, kind or name: %v", pattern, object.Object)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("kind: Role\n---\nkind: Namespace\n"))
	f.Add([]byte("[]"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := decode(data)
		if err != nil && objects != nil {
			t.Errorf("%d objects together with error %v", len(objects), err)
		}
		for _, object := range objects {
			if len(object.Object) == 0 {
				t.Error("an empty document was kept")
			}
		}
	})
}

func titles(objects []*unstructured.Unstructured) []string {
	var titles []string
	for _, object := range objects {
		titles = append(titles, object.GetKind()+" "+object.GetName())
	}
	return titles
}
