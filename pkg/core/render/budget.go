package render

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
)

// The limits of the work of one rendering, in the steps of package template: about a microsecond each. They exceed the cost of the largest
// packages a hundred times.
const (
	// maxSteps limits one task: the executions of all its templates, and everything that is decoded, also to check values.
	maxSteps = 8_000_000
	// maxFileSteps limits parameter files, which the hub renders for its clusters.
	maxFileSteps = 2_000_000
	// bytesPerStep is how much text is read, and how large a value is decoded, in one step.
	bytesPerStep = 32
	// sourcePerStep is how much of a template is parsed in one step.
	sourcePerStep = 4
	// copiesPerDecoding is how many times a value is copied in the time in which it is decoded: each template gets a copy.
	copiesPerDecoding = 4
)

// Budget is the work that is left for rendering. It limits all renderings together that share it, and is not safe for concurrent use.
type Budget struct{ limit, left int }

// NewFileBudget returns the budget of a parameter file. The files of several children may share it.
func NewFileBudget() *Budget { return newBudget(maxFileSteps) }

// NewBudget returns the budget of a task. Several tasks may share it.
func NewBudget() *Budget { return newBudget(maxSteps) }

func newBudget(steps int) *Budget { return &Budget{limit: steps, left: steps} }

// spend takes steps from the budget. It returns an error once none are left.
func (b *Budget) spend(steps int) error {
	if b.left = max(0, b.left-steps); b.left == 0 {
		return fmt.Errorf("rendering takes more than %d steps, including the checks of values: make the template or the values smaller, "+
			"or set structure: true for parameters that insert YAML", b.limit)
	}
	return nil
}

// checkExhausted returns the error of spend if nothing is left.
func (b *Budget) checkExhausted() error { return b.spend(0) }

// stepsOf returns the cost of decoding the values of parameters.
func stepsOf(definitions []kudo.Parameter, given map[string]string) int {
	bytes := 0
	for i := range definitions {
		p := &definitions[i]
		if p.Type != kudo.ArrayType && p.Type != kudo.MapType {
			continue
		}
		if value, set := given[p.Name]; set {
			bytes += yaml.Estimate(value)
		} else if p.Default != nil {
			bytes += yaml.Estimate(*p.Default)
		}
	}
	return bytes / bytesPerStep
}

// decode decodes a text, and returns the size of the result. It costs what the text and the result cost; a text that is not valid may have been
// parsed to its end.
func (b *Budget) decode(text string, decode func() (any, error)) (decoded any, size int, err error) {
	if err := b.spend(len(text) / bytesPerStep); err != nil {
		return nil, 0, err
	}
	if decoded, err = decode(); err == nil {
		size, err = yaml.Size(decoded)
	}
	if err != nil {
		_ = b.spend(yaml.Estimate(text) / bytesPerStep)
		return nil, 0, err
	}
	return decoded, size, b.spend(size / bytesPerStep)
}
