// Package render renders the objects that a task applies: it turns the templates of an OperatorVersion and an Instance's parameters into
// objects with Tandem's labels and annotations. It is pure and touches no cluster.
package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// Objects renders templates, in the listed order, to the objects to apply, in document order.
//
// A template may hold several documents; empty ones are dropped and lists expanded. Built-in kinds in an API version that Kubernetes has
// removed are converted to the successor version, see Successor. Fields that the API server sets or no longer has are
// omitted, see Omission, and those into which it copies others are set. Namespaces stay as written and no owner references are
// set: the scope of a kind is only known on the cluster. Images are those of the mirrors of Registries.
//
// Every error is terminal: the same input fails again in the same way. It is a *template.Error, which names the template, or a
// *parameter.InvalidError. A *template.Error wraps a *StructureError if a parameter's value changes the structure of what a template renders,
// a *SensitiveError if a sensitive parameter would be disclosed, and a *template.ConcealedError if its message would quote one.
func Objects(c Context, templates ...string) ([]*unstructured.Unstructured, error) {
	rendered, err := Templates(c, templates...)
	return rendered.Objects, err
}

// Rendering is what templates have rendered.
type Rendering struct {
	Objects []*unstructured.Unstructured
	// Traces are what the objects hold of sensitive parameters.
	Traces sensitive.Traces
	// Blocks are the lines of the executed conditions and loops that depend on more of sensitive parameters than whether they are set.
	Blocks []int
	// Omissions are the fields of the templates that the objects lack, because they are not applied.
	Omissions []Omission
}

// Templates is Objects with the traces of sensitive parameters in the objects.
func Templates(c Context, templates ...string) (Rendering, error) {
	first := ""
	if len(templates) > 0 {
		first = templates[0]
	}
	r, err := newRenderer(c, first)
	if err != nil {
		return Rendering{}, err
	}
	var all Rendering
	seen := map[identity]string{}
	for _, name := range templates {
		rendered, err := r.objects(name)
		if err != nil {
			return Rendering{}, err
		}
		for _, obj := range rendered {
			id := identify(obj, c.Namespace)
			if other, ok := seen[id]; ok {
				return Rendering{}, template.NewError(name, fmt.Errorf("%s is also rendered by template %q: remove one", id, other))
			}
			seen[id] = name
			all.Objects = append(all.Objects, obj)
		}
	}
	all.Traces, all.Blocks, all.Omissions = r.traces, r.blocks, r.omissions
	return all, nil
}

// documents renders one template to its documents, and checks that no value changes their structure.
func (r *renderer) documents(name string) (*documents, error) {
	out, err := r.execute(name)
	if err != nil {
		return nil, err
	}
	for _, t := range out.Traces {
		if t.Action.Block != nil {
			r.blocks = append(r.blocks, t.Action.Line)
		}
	}
	d := &decoder{budget: r.Budget}
	g := &guard{renderer: r, template: name, out: out, read: d.decodeAll}
	if err := g.check(); err != nil {
		return nil, err
	}
	return &documents{renderer: r, all: splitDocuments(out.Text), decoder: d, traces: g.traces()}, nil
}

// objects renders one template to its objects.
func (r *renderer) objects(name string) ([]*unstructured.Unstructured, error) {
	docs, err := r.documents(name)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i, doc := range docs.all {
		decoded, err := docs.decoder.objects(doc, &r.room)
		if err != nil {
			return nil, docs.fail(name, i, err)
		}
		for _, object := range decoded {
			obj, err := r.finish(object)
			if err != nil {
				return nil, docs.fail(name, i, err)
			}
			docs.note(i, obj)
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
	r.omitUnknown(obj)
	err := convertToSuccessor(obj)
	if err == nil {
		r.omit(obj)
		r.omitFormer(obj)
		err = replaceAliases(obj)
	}
	if err == nil {
		err = r.images.Apply(obj)
	}
	if err == nil {
		err = r.mark(obj)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", identify(obj, ""), err)
	}
	return obj, nil
}
