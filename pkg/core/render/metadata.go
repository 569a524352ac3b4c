package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// templatePaths are the paths of object templates in the built-in kinds, the pod template last. spec.template of custom resources is not
// included, because its meaning is not known.
var templatePaths = map[schema.GroupKind][][]string{
	{Group: "apps", Kind: "Deployment"}:        {{"spec", "template"}},
	{Group: "apps", Kind: "StatefulSet"}:       {{"spec", "template"}},
	{Group: "apps", Kind: "DaemonSet"}:         {{"spec", "template"}},
	{Group: "apps", Kind: "ReplicaSet"}:        {{"spec", "template"}},
	{Group: "", Kind: "ReplicationController"}: {{"spec", "template"}},
	{Group: "batch", Kind: "Job"}:              {{"spec", "template"}},
	{Group: "batch", Kind: "CronJob"}:          {{"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"}},
}

// mark sets Tandem's labels on the object, its pod templates and its volume claim templates, and the annotations only on the object: those
// change with every execution, and a changed pod template restarts pods (KEP-27).
func (r *renderer) mark(obj *unstructured.Unstructured) error {
	labels := map[string]string{
		kudo.LabelHeritage: kudo.Heritage,
		kudo.LabelOperator: r.Version.Operator.Name,
		kudo.LabelInstance: InstanceName(r.Instance),
	}
	if err := merge(obj.Object, "", "labels", labels); err != nil {
		return err
	}
	if err := merge(obj.Object, "", "annotations", r.annotations()); err != nil {
		return err
	}
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", kudo.AnnotationHook) // only a chart has hooks
	templates, err := templatesOf(obj)
	if err != nil {
		return err
	}
	for _, t := range templates {
		if err := merge(t.object, t.path, "labels", labels); err != nil {
			return err
		}
		if err := merge(t.object, t.path, "annotations", nil); err != nil {
			return err
		}
	}
	return nil
}

// InstanceName returns the .Name of templates: the Instance's name with dots replaced by dashes, so that it can be part of object names.
func InstanceName(instance string) string { return strings.ReplaceAll(instance, ".", "-") }

func (r *renderer) annotations() map[string]string {
	version := r.OperatorVersion
	if version == "" {
		version = r.Version.Version
	}
	annotations := map[string]string{
		kudo.AnnotationPlan:              r.Plan,
		kudo.AnnotationPhase:             r.Phase,
		kudo.AnnotationStep:              r.Step,
		kudo.AnnotationOperatorVersion:   version,
		kudo.AnnotationExecution:         string(r.Execution),
		kudo.AnnotationInstanceNamespace: r.Namespace,
	}
	maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })
	return annotations
}

// objectTemplate is an object template within an object.
type objectTemplate struct {
	path   string
	object map[string]any
}

// templatesOf returns the templates in the object. A missing template is left to the API server to reject.
func templatesOf(obj *unstructured.Unstructured) ([]objectTemplate, error) {
	kind := obj.GroupVersionKind().GroupKind()
	var templates []objectTemplate
	for _, path := range templatePaths[kind] {
		object, err := walk(obj.Object, path)
		if err != nil {
			return nil, err
		}
		if object != nil {
			templates = append(templates, objectTemplate{path: strings.Join(path, "."), object: object})
		}
	}
	if kind != (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		return templates, nil
	}
	claims, err := claimTemplatesOf(obj)
	return append(templates, claims...), err
}

// maxClaimTemplates limits the volume claim templates of a StatefulSet, each of which gets labels.
const maxClaimTemplates = 1000

// claimTemplatesOf returns the volume claim templates of a StatefulSet.
func claimTemplatesOf(obj *unstructured.Unstructured) ([]objectTemplate, error) {
	const path = "spec.volumeClaimTemplates"
	spec, _ := obj.Object["spec"].(map[string]any)
	claims, ok := spec["volumeClaimTemplates"].([]any)
	if !ok && spec["volumeClaimTemplates"] != nil {
		return nil, fmt.Errorf("%s must be a list, got %s", path, describe(spec["volumeClaimTemplates"]))
	}
	if len(claims) > maxClaimTemplates {
		return nil, fmt.Errorf("%s has %d items, more than %d", path, len(claims), maxClaimTemplates)
	}
	var templates []objectTemplate
	for i, claim := range claims {
		object, ok := claim.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s[%d] must be an object, got %s", path, i, describe(claim))
		}
		templates = append(templates, objectTemplate{path: fmt.Sprintf("%s[%d]", path, i), object: object})
	}
	return templates, nil
}

// walk follows a path of objects; it returns nil if the path ends early.
func walk(object map[string]any, path []string) (map[string]any, error) {
	for i, key := range path {
		value := object[key]
		if value == nil {
			return nil, nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s must be an object, got %s", strings.Join(path[:i+1], "."), describe(value))
		}
		object = next
	}
	return object, nil
}

// merge adds entries to metadata.labels or metadata.annotations of the object at path, and checks existing values: they must be strings, as
// the API server requires; an empty value in YAML is the empty string.
func merge(object map[string]any, path, field string, entries map[string]string) error {
	metadata, err := child(object, "metadata", strings.TrimPrefix(path+".metadata", "."))
	if err != nil {
		return err
	}
	where := strings.TrimPrefix(path+".metadata."+field, ".")
	if metadata[field] == nil && len(entries) == 0 {
		delete(metadata, field)
		return nil
	}
	values, err := child(metadata, field, where)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key].(type) {
		case nil:
			values[key] = ""
		case string:
		default:
			return fmt.Errorf("%s: the value of %q must be a string, got %s: quote it", where, key, describe(value))
		}
	}
	for key, value := range entries {
		values[key] = value
	}
	return nil
}

// child returns the object under key, and creates it if it does not exist.
func child(object map[string]any, key, path string) (map[string]any, error) {
	switch value := object[key].(type) {
	case nil:
		made := map[string]any{}
		object[key] = made
		return made, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s must be an object, got %s", path, describe(value))
	}
}
