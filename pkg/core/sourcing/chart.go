package sourcing

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxValues limits the values of a chart, in bytes of JSON.
const maxValues = 256 << 10

// ChartOptions are the values of a chart for its package.
type ChartOptions struct {
	// Choices are the values that become parameters.
	Choices []wrap.Choice
	// Values are set over those of the chart. Numbers are json.Number.
	Values map[string]any
}

// ReadChart returns the place of a chart, and the options of its package.
func ReadChart(c *kudo.SourceChart) (catalog.Reference, ChartOptions, error) {
	ref, err := catalog.ParseReference(c.Name, c.Repository)
	if err != nil {
		return ref, ChartOptions{}, err
	}
	if err := catalog.CheckRange(c.Version); err != nil {
		return ref, ChartOptions{}, err
	}
	ref.Version, ref.Digest = c.Version, c.Digest
	var options ChartOptions
	if options.Choices, err = choicesOf(c.Parameters); err != nil {
		return ref, options, err
	}
	options.Values, err = valuesOf(c.Values)
	return ref, options, err
}

func choicesOf(parameters []kudo.SourceParameter) ([]wrap.Choice, error) {
	choices := make([]wrap.Choice, 0, len(parameters))
	for i, p := range parameters {
		choice, err := wrap.NewChoice(p.Value, p.Name)
		if err != nil {
			return nil, fmt.Errorf("spec.chart.parameters[%d]: value %s: %w", i, text.Quote(p.Value), err)
		}
		choice.Sensitive = p.Sensitive
		choices = append(choices, choice)
	}
	if err := wrap.CheckChoices(choices); err != nil {
		return nil, fmt.Errorf("spec.chart.parameters: %w", err)
	}
	return choices, nil
}

func valuesOf(given *runtime.RawExtension) (map[string]any, error) {
	if given == nil {
		return nil, nil
	}
	if size := len(given.Raw); size > maxValues {
		return nil, fmt.Errorf("spec.chart.values has %d bytes, more than the limit of %d", size, maxValues)
	}
	decoder := json.NewDecoder(bytes.NewReader(given.Raw))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("spec.chart.values: %w", err)
	}
	return values, nil
}
