// Package image finds the container images in objects: in pod templates, wherever an object has them, and in fields of custom resources. It replaces
// their registries. It is pure.
package image

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Found is an image in an object.
type Found struct {
	// Path leads to the field, such as spec.template.spec.containers[0].image.
	Path string
	// Container is the name of the container; empty for a volume, and for a field outside of containers.
	Container string
	Image     string
}

// maxDepth limits the nesting of what is searched.
const maxDepth = 64

// Of returns the images of an object, in the order of their paths: those of all containers and image volumes, and for a custom resource also those of
// fields called image or …Image. notes state where the object may have further ones that cannot be known.
func Of(object *unstructured.Unstructured) (found []Found, notes []string) {
	w := search(object)
	for _, f := range w.found {
		found = append(found, f.Found)
	}
	return found, w.notes
}

// search returns a walk that has searched an object.
func search(object *unstructured.Unstructured) *walk {
	w := &walk{custom: isCustom(object)}
	switch kind := object.GroupVersionKind(); {
	case kind.Kind == "CustomResourceDefinition":
		return w
	case kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret"):
		if mentionsImage(object) {
			w.note("its data mentions images")
		}
		return w
	}
	for _, field := range slices.Sorted(maps.Keys(object.Object)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field) {
			w.visit(object.Object[field], field, maxDepth)
		}
	}
	if w.custom && len(w.found) == 0 {
		w.note("its controller may run images")
	}
	return w
}

// isCustom reports whether a kind is not Kubernetes' own: its groups have no dot, or end in k8s.io.
func isCustom(object *unstructured.Unstructured) bool {
	group := object.GroupVersionKind().Group
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// mention matches a field for an image in text.
var mention = regexp.MustCompile(`(?i)image["']?\s*[:=]`)

// mentionsImage reports whether a value of a ConfigMap or a Secret may contain an image, such as the template of a sidecar.
func mentionsImage(object *unstructured.Unstructured) bool {
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedStringMap(object.Object, field)
		for _, value := range values {
			if mention.MatchString(value) {
				return true
			}
		}
	}
	return false
}

// walk searches an object.
type walk struct {
	custom bool
	found  []field
	notes  []string
}

// field is a field with an image: a key of a map in the object.
type field struct {
	Found
	in  map[string]any
	key string
	// named is true if only its name says that it has an image.
	named bool
}

func (w *walk) note(note string) {
	if !slices.Contains(w.notes, note) {
		w.notes = append(w.notes, note)
	}
}

// visit searches a value at a path.
func (w *walk) visit(value any, path string, depth int) {
	if depth == 0 {
		w.note("it is nested too deeply to search all of it")
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			w.visitField(value, key, path+"."+key, depth-1)
		}
	case []any:
		for i, item := range value {
			w.visit(item, fmt.Sprintf("%s[%d]", path, i), depth-1)
		}
	}
}

// visitField searches a field of a map.
func (w *walk) visitField(in map[string]any, key, path string, depth int) {
	value := in[key]
	switch items, isList := value.([]any); {
	case isList && slices.Contains([]string{"containers", "initContainers", "ephemeralContainers"}, key):
		w.visitContainers(items, path, depth)
		return
	case isList && key == "volumes":
		w.visitVolumes(items, path)
	}
	if w.custom && (key == "image" || strings.HasSuffix(key, "Image")) {
		switch value := value.(type) {
		case string:
			w.add(field{Found: Found{Path: path, Image: value}, in: in, key: key, named: true})
			return
		case map[string]any:
			w.note("field " + path + " may describe an image")
		}
	}
	w.visit(value, path, depth)
}

func (w *walk) visitContainers(items []any, path string, depth int) {
	for i, item := range items {
		container, isMap := item.(map[string]any)
		at := fmt.Sprintf("%s[%d]", path, i)
		image, named := container["image"].(string)
		if !isMap || !named {
			w.visit(item, at, depth)
			continue
		}
		name, _ := container["name"].(string)
		w.add(field{Found: Found{Path: at + ".image", Container: name, Image: image}, in: container, key: "image"})
	}
}

// visitVolumes finds image volumes.
func (w *walk) visitVolumes(items []any, path string) {
	for i, item := range items {
		volume, _ := item.(map[string]any)
		source, _ := volume["image"].(map[string]any)
		if reference, isText := source["reference"].(string); isText {
			w.add(field{Found: Found{Path: fmt.Sprintf("%s[%d].image.reference", path, i), Image: reference}, in: source, key: "reference"})
		}
	}
}

func (w *walk) add(found field) {
	if found.Image != "" {
		w.found = append(w.found, found)
	}
}
