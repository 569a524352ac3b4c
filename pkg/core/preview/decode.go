package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// builtIn has the stable versions of the kinds of Kubernetes that packages apply most.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
})

// maxMisfits is the number of fields that are listed for an object.
const maxMisfits = 3

// maxShown is the number of characters of a value that a message shows.
const maxShown = 64

// misfits lists what the API server would reject in an object: a kind that Kubernetes does not have in its own API groups, fields that do not fit a
// kind of Kubernetes, and names and labels that are not valid. Sensitive values, which are not known on the hub, are not judged.
func misfits(o *unstructured.Unstructured) []string {
	s := search{kind: o.GroupVersionKind(), found: slices.Concat(kindProblems(o.GroupVersionKind()), metadataProblems(o))}
	if builtIn().Recognizes(s.kind) {
		s.fields(o)
	}
	for i := range s.found {
		s.found[i] = plan.Describe(o) + ": " + s.found[i]
	}
	return text.Limit(s.found, maxMisfits, "more")
}

// search looks for the values of an object that cannot be decoded, because the error of a decoder has no complete path.
type search struct {
	kind  schema.GroupVersionKind
	found []string
}

// fields adds the fields that do not fit the kind.
func (s *search) fields(o *unstructured.Unstructured) {
	unknown, err := s.decode(o.Object)
	if err != nil {
		s.below("", o.Object, func(value any) any { return value })
	}
	for _, field := range unknown {
		s.unknown(field)
	}
}

// unknown adds a field that the kind does not have, unless its name depends on a sensitive value.
func (s *search) unknown(field error) {
	path, isUnknown := unknownField(field)
	switch {
	case strings.Contains(path, render.Hidden):
	case isUnknown:
		object, _ := builtIn().New(s.kind) // it was decoded before
		s.found = append(s.found, misspelt(reflect.TypeOf(object), path))
	default:
		s.found = append(s.found, field.Error())
	}
}

// decode decodes the content of an object. It also returns the fields that the kind does not have.
func (s *search) decode(content any) (unknown []error, err error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	object, err := builtIn().New(s.kind)
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(encoded, object)
}

// below decodes each value below a path alone: alone returns the object that has nothing but the value there.
func (s *search) below(path string, value any, alone func(any) any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.below(strings.TrimPrefix(path+"."+key, "."), value[key], func(v any) any { return alone(map[string]any{key: v}) })
		}
	case []any:
		for i, item := range value {
			s.below(fmt.Sprintf("%s[%d]", path, i), item, func(v any) any { return alone([]any{v}) })
		}
	default:
		if written, isText := value.(string); isText && strings.Contains(written, render.Hidden) {
			return
		}
		var mismatch *json.UnmarshalTypeError
		_, err := s.decode(alone(value))
		switch {
		case errors.As(err, &mismatch):
			s.found = append(s.found, fmt.Sprintf("%s: must be %s, not %s", path, mismatch.Type, mismatch.Value))
		case errors.Is(err, resource.ErrFormatWrong):
			s.found = append(s.found, fmt.Sprintf("%s: %q is not a quantity, such as 500m or 1Gi", path, text.Head(fmt.Sprint(value), maxShown)))
		case err != nil:
			s.found = append(s.found, fmt.Sprintf("%s: %v", path, err))
		}
	}
}
