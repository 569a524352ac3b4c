package render

import (
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// NamedObject renders the template source, which holds one object, and sets the object's name. It serves objects whose name the package
// does not choose, such as the pod of a Pipe task. It returns the errors of Objects.
func NamedObject(c Context, source, name string) (*unstructured.Unstructured, error) {
	rendered, err := NamedTemplate(c, source, name)
	if err != nil {
		return nil, err
	}
	return rendered.Objects[0], nil
}

// NamedTemplate is NamedObject with the traces of sensitive parameters in the object.
func NamedTemplate(c Context, source, name string) (Rendering, error) {
	r, err := newRenderer(c, source)
	if err != nil {
		return Rendering{}, err
	}
	docs, err := r.documents(source)
	if err != nil {
		return Rendering{}, err
	}
	if len(docs.all) != 1 {
		return Rendering{}, template.NewError(source, fmt.Errorf("must contain exactly one object, got %d documents", len(docs.all)))
	}
	decoded, err := docs.decoder.objects(docs.all[0], &r.room)
	if err == nil && len(decoded) != 1 {
		err = fmt.Errorf("must contain exactly one object, got %d", len(decoded))
	}
	if err != nil {
		return Rendering{}, docs.fail(source, 0, err)
	}
	metadata, err := child(decoded[0], "metadata", "metadata")
	if err != nil {
		return Rendering{}, docs.fail(source, 0, err)
	}
	metadata["name"] = name
	object, err := r.finish(decoded[0])
	if err != nil {
		return Rendering{}, docs.fail(source, 0, err)
	}
	docs.note(0, object)
	return Rendering{Objects: []*unstructured.Unstructured{object}, Traces: r.traces, Blocks: r.blocks, Omissions: r.omissions}, nil
}

// Mark returns a copy of an object with the labels and annotations that Objects sets.
func Mark(c Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if c.Version == nil {
		return nil, errors.New("marking an object: no OperatorVersion")
	}
	marked := object.DeepCopy()
	if err := (&renderer{Context: c}).mark(marked); err != nil {
		return nil, fmt.Errorf("%s: %w", identify(object, ""), err)
	}
	return marked, nil
}

// MarkRelease returns a copy of an object that a chart has rendered, with Tandem's labels and annotations on the object alone: its labels, selectors
// and templates stay those of the chart. The heritage label is set where the chart does not set it, and on Roles and bindings in any case: the agent
// finds those by it.
func MarkRelease(c Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if c.Version == nil {
		return nil, errors.New("marking an object: no OperatorVersion")
	}
	marked := object.DeepCopy()
	labels := map[string]string{kudo.LabelOperator: c.Version.Operator.Name, kudo.LabelInstance: InstanceName(c.Instance)}
	if marked.GetLabels()[kudo.LabelHeritage] == "" || marked.GroupVersionKind().Group == rbacv1.GroupName {
		labels[kudo.LabelHeritage] = kudo.Heritage
	}
	err := validate(marked.Object)
	if err == nil {
		err = merge(marked.Object, "", "labels", labels)
	}
	if err == nil {
		err = merge(marked.Object, "", "annotations", (&renderer{Context: c}).annotations())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", identify(object, ""), err)
	}
	return marked, nil
}

// MarkClaims sets Tandem's labels on volume claim templates of an object of a chart, so that a removal finds and deletes the claims. It has no effect
// on other kinds than StatefulSets.
func MarkClaims(c Context, object *unstructured.Unstructured, templates []string) error {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		return nil
	}
	claims, err := claimTemplatesOf(object)
	for _, claim := range claims {
		name, _, _ := unstructured.NestedString(claim.object, "metadata", "name")
		if err == nil && slices.Contains(templates, name) {
			err = merge(claim.object, claim.path, "labels", map[string]string{
				kudo.LabelHeritage: kudo.Heritage, kudo.LabelOperator: c.Version.Operator.Name, kudo.LabelInstance: InstanceName(c.Instance),
			})
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", identify(object, ""), err)
	}
	return nil
}
