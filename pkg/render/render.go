// Package render renders the objects that a task applies: it turns the templates of an OperatorVersion and an Instance's parameters into
// objects with Tandem's labels and annotations. It is pure and touches no cluster.
package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/template"
)

// Objects renders templates, in the listed order, to the objects to apply, in document order.
//
// A template may hold several documents; empty ones are dropped and lists expanded. Built-in kinds in an API version that Kubernetes has
// removed are converted to the successor version, see Successor. Namespaces stay as written and no owner references are set: the scope of a
// kind is only known on the cluster.
//
// Every error is terminal: the same input fails again in the same way. It is a *template.Error, which names the template, or a
// *parameter.InvalidError. A *template.Error wraps a *StructureError if a parameter's value changes the structure of what a template renders.
func Objects(c Context, templates ...string) ([]*unstructured.Unstructured, error) {
	r, err := newRenderer(c)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	seen := map[identity]string{}
	for _, name := range templates {
		rendered, err := r.objects(name)
		if err != nil {
			return nil, err
		}
		for _, obj := range rendered {
			id := identify(obj, c.Namespace)
			if other, ok := seen[id]; ok {
				return nil, template.NewError(name, fmt.Errorf("%s is also rendered by template %q: remove one", id, other))
			}
			seen[id] = name
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// documents renders one template to its documents, and checks that no value changes their structure.
func (r *renderer) documents(name string) ([]document, *decoder, error) {
	out, err := r.execute(name)
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{}
	g := &guard{renderer: r, template: name, out: out, read: d.read}
	if err := g.check(); err != nil {
		return nil, nil, err
	}
	return splitDocuments(out.Text), d, nil
}

// objects renders one template to its objects.
func (r *renderer) objects(name string) ([]*unstructured.Unstructured, error) {
	documents, decoder, err := r.documents(name)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i, doc := range documents {
		decoded, err := decoder.objects(doc, &r.room)
		if err != nil {
			return nil, doc.fail(name, i+1, err)
		}
		for _, object := range decoded {
			obj, err := r.finish(object)
			if err != nil {
				return nil, doc.fail(name, i+1, err)
			}
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// finish creates an object from a rendered map.
func (r *renderer) finish(object map[string]any) (*unstructured.Unstructured, error) {
	if err := validate(object); err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: object}
	err := succeed(obj)
	if err == nil {
		err = r.mark(obj)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", identify(obj, ""), err)
	}
	return obj, nil
}
