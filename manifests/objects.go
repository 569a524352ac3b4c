package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects decodes the documents of all files in fsys that match the pattern, and returns namespaces first, because other objects are in
// them. If parameters is not nil, the files are templates. The error names the file.
func Objects(fsys fs.FS, pattern string, parameters any) ([]*unstructured.Unstructured, error) {
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
		decoded, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("reading manifest %s: %w", file, err)
		}
		objects = append(objects, decoded...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return objects, nil
}

// Admission returns the admission policies, their bindings and the webhook configuration.
func Admission() ([]*unstructured.Unstructured, error) { return Objects(FS, "admission/*.yaml", nil) }

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

// decode decodes a YAML stream, without empty documents.
func decode(data []byte) ([]*unstructured.Unstructured, error) {
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
