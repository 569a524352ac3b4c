// Package render renders the objects that a task applies: it turns the templates of an OperatorVersion and an Instance's parameters into
// objects with Tandem's labels and annotations. It is pure and touches no cluster.
package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/expansion"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/template"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Context holds everything that rendering depends on. It is read-only.
type Context struct {
	// Version holds the templates and the definitions of the parameters.
	Version *kudo.OperatorVersionSpec
	// OperatorVersion is the value of the version annotation on the objects; Version.Version if empty.
	OperatorVersion string
	// Instance is the Instance's name, with its dots.
	Instance string
	// Namespace is the Instance's namespace on the managed cluster.
	Namespace string
	// Parameters are the values that the Instance sets; the others have their defaults.
	Parameters map[string]string
	// Plan, Phase and Step are the names of the running plan, phase and step.
	Plan, Phase, Step string
	// Execution is the uid of the plan's execution.
	Execution types.UID
	// Pipes maps the keys of Pipe tasks to the names of the objects that store their files.
	Pipes map[string]string
}

// Objects renders templates, in the listed order, to the objects to apply, in document order.
//
// A template may hold several documents; empty ones are dropped and lists expanded. Built-in kinds in an API version that Kubernetes has
// removed are converted to the successor version, see Successor. Namespaces stay as written and no owner references are set: the scope of a
// kind is only known on the cluster.
//
// Every error is terminal: the same input fails again in the same way. It is a *template.Error, which names the template, or a
// *parameter.InvalidError.
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

// Text renders one template to text, such as the parameter file of a KudoOperator task. It returns the errors of Objects.
func Text(c Context, name string) (string, error) {
	r, err := newRenderer(c)
	if err != nil {
		return "", err
	}
	return r.text(name)
}

// renderer is a Context with the values of its parameters.
type renderer struct {
	Context
	params map[string]any
	// room is how much larger the objects of all templates may become.
	room int
}

func newRenderer(c Context) (*renderer, error) {
	if c.Version == nil {
		return nil, errors.New("rendering templates: no OperatorVersion")
	}
	params, err := parameter.Values(c.Version.Parameters, c.Parameters)
	if err != nil {
		return nil, err
	}
	return &renderer{Context: c, params: params, room: expansion.MaxTask}, nil
}

// text executes one template.
func (r *renderer) text(name string) (string, error) {
	source, ok := r.Version.Templates[name]
	if !ok {
		return "", template.NewError(name, r.noSuchTemplate())
	}
	t, err := template.Parse(name, source)
	if err != nil {
		return "", err
	}
	return template.Execute(t, r.data())
}

func (r *renderer) noSuchTemplate() error {
	if len(r.Version.Templates) == 0 {
		return errors.New("not found: the operator has no templates")
	}
	const shown = 12
	names := text.Limit(slices.Sorted(maps.Keys(r.Version.Templates)), shown, "more")
	return fmt.Errorf("not found: the operator has %s", strings.Join(names, ", "))
}

// data returns the variables of templates (KUDO's variables).
func (r *renderer) data() map[string]any {
	return map[string]any{
		"Name":            InstanceName(r.Instance),
		"Namespace":       r.Namespace,
		"OperatorName":    r.Version.Operator.Name,
		"OperatorVersion": r.Version.Version,
		"AppVersion":      r.Version.AppVersion,
		"PlanName":        r.Plan,
		"PhaseName":       r.Phase,
		"StepName":        r.Step,
		"Params":          r.params,
		"Pipes":           r.Pipes,
	}
}

// objects renders one template to its objects.
func (r *renderer) objects(name string) ([]*unstructured.Unstructured, error) {
	text, err := r.text(name)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i, doc := range splitDocuments(text) {
		decoded, err := doc.objects(&r.room)
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
