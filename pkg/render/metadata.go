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

// templatePaths are where the built-in kinds hold templates of other objects, the pod template last. Only these: what a
// custom resource keeps under spec.template is its own affair.
var templatePaths = map[schema.GroupKind][][]string{
	{Group: "apps", Kind: "Deployment"}:        {{"spec", "template"}},
	{Group: "apps", Kind: "StatefulSet"}:       {{"spec", "template"}},
	{Group: "apps", Kind: "DaemonSet"}:         {{"spec", "template"}},
	{Group: "apps", Kind: "ReplicaSet"}:        {{"spec", "template"}},
	{Group: "", Kind: "ReplicationController"}: {{"spec", "template"}},
	{Group: "batch", Kind: "Job"}:              {{"spec", "template"}},
	{Group: "batch", Kind: "CronJob"}:          {{"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"}},
}

// mark puts Tandem's labels on the object, on its pod templates and volume claim templates, and the annotations on the
// object alone: those change with every execution, and a pod template that changes restarts pods (KEP-27).
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

// InstanceName is what templates see as .Name: the Instance's name with dots replaced by dashes, so that it can be part of
// the names of objects.
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

// objectTemplate is a template of another object inside an object.
type objectTemplate struct {
	path   string
	object map[string]any
}

// templatesOf are the templates that the object holds. A missing one is left to the API server to refuse.
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

// claimTemplatesOf are the volume claim templates of a StatefulSet.
func claimTemplatesOf(obj *unstructured.Unstructured) ([]objectTemplate, error) {
	const path = "spec.volumeClaimTemplates"
	spec, _ := obj.Object["spec"].(map[string]any)
	claims, ok := spec["volumeClaimTemplates"].([]any)
	if !ok && spec["volumeClaimTemplates"] != nil {
		return nil, fmt.Errorf("%s must be a list, got %s", path, describe(spec["volumeClaimTemplates"]))
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

// walk follows a path of objects; nil if it ends early.
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

// merge adds entries to metadata.labels or metadata.annotations of an object, which stands at path, and checks what is
// there: strings, as the API server wants them; an empty value in YAML is the empty string.
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

// child is the object under key, made if there is none.
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
