package drift

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// pointerPattern is the grammar of ignored paths, the same as in the definition of Instances.
var pointerPattern = regexp.MustCompile(`^(/([^/~]|~[01])+)+$`)

// maxPointerBytes is the maximum length of an ignored path.
const maxPointerBytes = 512

// CheckPath returns an error if a path is no JSON pointer.
func CheckPath(path string) error {
	if !pointerPattern.MatchString(path) || len(path) > maxPointerBytes {
		return fmt.Errorf("%s is not a JSON pointer: write a path such as /data/key or /spec/template/spec/containers/web/image", text.Quote(path))
	}
	return nil
}

// isIgnored reports whether changes of a field of an object are no drift.
func isIgnored(ignored []kudo.IgnoredFields, o *unstructured.Unstructured, pointer string) bool {
	for _, rule := range ignored {
		if rule.Kind != "" && rule.Kind != o.GetKind() || rule.Name != "" && rule.Name != o.GetName() {
			continue
		}
		for _, path := range rule.Paths {
			if CheckPath(path) == nil && covers(path, pointer) {
				return true
			}
		}
	}
	return false
}

// covers reports whether a path is a field, or contains it. A part of it that is * covers any one element.
func covers(path, pointer string) bool {
	parts, elements := strings.Split(path, "/"), strings.Split(pointer, "/")
	if len(parts) > len(elements) {
		return false
	}
	for i, part := range parts {
		if part != "*" && part != elements[i] {
			return false
		}
	}
	return true
}
