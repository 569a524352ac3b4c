package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/image"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
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
	// Sensitive are the values of sensitive parameters: on the managed cluster the values themselves, and Hidden elsewhere.
	Sensitive map[string]string
	// Registries are the image registries that the Instance replaces with mirrors.
	Registries []kudo.ImageRegistry
	// Cluster are the facts of the cluster, and KubernetesVersion its version. Templates cannot use them if they are not known.
	Cluster           *kudo.ClusterFacts
	KubernetesVersion string
	// Plan, Phase and Step are the names of the running plan, phase and step.
	Plan, Phase, Step string
	// Execution is the uid of the plan's execution.
	Execution types.UID
	// Pipes maps the keys of Pipe tasks to the names of the objects that store their files.
	Pipes map[string]string
	// Strict also refuses values of parameters whose own defaults change the structure. It serves the verification of packages.
	Strict bool
	// Budget is the work that is left for this and other renderings. If nil, each rendering has a budget of its own.
	Budget *Budget
}

// Hidden replaces the value of a sensitive parameter where the value is not known.
const Hidden = "(sensitive)"

// HiddenOf returns Hidden as the value of each referenced parameter.
func HiddenOf(from []kudo.StartedParameterFrom) map[string]string {
	if len(from) == 0 {
		return nil
	}
	hidden := make(map[string]string, len(from))
	for _, f := range from {
		hidden[f.Name] = Hidden
	}
	return hidden
}

// renderer is a Context with the values of its parameters. All of them are in Parameters.
type renderer struct {
	Context
	params map[string]any
	// confidential are the sensitive parameters that have a value, and traces what the objects rendered so far hold of them.
	confidential template.Sensitive
	traces       sensitive.Traces
	// blocks are the lines of executed conditions and loops that depend on them.
	blocks []int
	// images replaces registries in the objects of all templates.
	images *image.Override
	// omissions are the fields that are not applied.
	omissions []Omission
	// decoding is the cost of decoding them.
	decoding int
	// room is how much larger the objects of all templates may become.
	room int
}

// newRenderer returns a renderer of templates. An error names the first one.
func newRenderer(c Context, first string) (*renderer, error) {
	if c.Version == nil {
		return nil, errors.New("rendering templates: no OperatorVersion")
	}
	if len(c.Sensitive) > 0 {
		all := maps.Clone(c.Sensitive)
		maps.Copy(all, c.Parameters)
		c.Parameters, c.Sensitive = all, nil
	}
	if c.Budget == nil {
		c.Budget = NewBudget()
	}
	decoding := stepsOf(c.Version.Parameters, c.Parameters)
	if err := c.Budget.spend(decoding); err != nil {
		return nil, template.NewError(first, err)
	}
	params, err := parameter.Values(c.Version.Parameters, c.Parameters)
	if err != nil {
		return nil, err
	}
	return &renderer{
		Context: c, params: params, decoding: decoding, confidential: confidentialOf(&c), room: yaml.MaxTask, images: image.NewOverride(c.Registries),
	}, nil
}

// confidentialOf returns the sensitive parameters that have a value.
func confidentialOf(c *Context) template.Sensitive {
	var found template.Sensitive
	for i := range c.Version.Parameters {
		p := &c.Version.Parameters[i]
		value := c.Parameters[p.Name]
		if !p.IsSensitive() || value == "" {
			continue
		}
		if found.Parameters == nil {
			found.Parameters = map[string]bool{}
		}
		found.Parameters[p.Name] = true
		found.Known = found.Known || value != Hidden
	}
	return found
}

// execute executes one template.
func (r *renderer) execute(name string) (template.Output, error) {
	source, ok := r.Version.Templates[name]
	if !ok {
		return template.Output{}, template.NewError(name, r.noSuchTemplate(name))
	}
	if err := r.Budget.spend(len(source)/sourcePerStep + r.decoding/copiesPerDecoding); err != nil {
		return template.Output{}, template.NewError(name, err)
	}
	t, err := template.Parse(name, source)
	if err != nil {
		return template.Output{}, err
	}
	out, err := template.ExecuteWith(t, r.data(), r.confidential)
	if spent := r.Budget.spend(out.Steps); spent != nil && err == nil {
		err = template.NewError(name, spent)
	}
	return out, err
}

// ErrNoContent is the error of a template that the content of the OperatorVersion stores, where that was not read: it may be incomplete, or the
// user may not read it.
var ErrNoContent = errors.New("the OperatorContents that store it cannot be read")

func (r *renderer) noSuchTemplate(name string) error {
	if _, isContent := content.Find(r.Version, name); isContent {
		return ErrNoContent
	}
	if len(r.Version.Templates) == 0 {
		return errors.New("not found: the operator has no templates")
	}
	const shown = 12
	names := text.Limit(slices.Sorted(maps.Keys(r.Version.Templates)), shown, "more")
	return fmt.Errorf("not found: the operator has %s", strings.Join(names, ", "))
}

// data returns the variables of templates: KUDO's, and the facts of the cluster.
func (r *renderer) data() map[string]any {
	variables := facts.Variables(r.Cluster, r.KubernetesVersion)
	maps.Copy(variables, map[string]any{
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
	})
	return variables
}
