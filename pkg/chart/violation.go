package chart

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Violation is a value that does not conform to the schema of a chart.
type Violation struct {
	// Path leads to the value from the values of the chart; for a value that is missing, to the map that lacks it.
	Path    []string
	Message string
}

// violationsOf is Violations in this process.
func violationsOf(archive, values []byte) ([]Violation, error) {
	loaded, err := load(archive)
	if err != nil {
		return nil, err
	}
	given, err := loader.LoadValues(bytes.NewReader(values))
	if err != nil {
		return nil, fmt.Errorf("the values are invalid: %w", err)
	}
	if err := helmutil.ProcessDependencies(loaded, given); err != nil {
		return nil, fmt.Errorf("processing the dependencies of chart %q: %w", loaded.Name(), err)
	}
	all, err := util.ToRenderValuesWithSchemaValidation(loaded, given, Release{}.options(), common.DefaultCapabilities.Copy(), true)
	if err != nil {
		return nil, fmt.Errorf("merging the values of chart %q: %w", loaded.Name(), err)
	}
	merged, err := all.Table("Values")
	if err != nil {
		return nil, fmt.Errorf("merging the values of chart %q: %w", loaded.Name(), err)
	}
	return violationsAt(loaded, merged, nil)
}

// violationsAt returns the violations of a chart whose values are at a path.
func violationsAt(c *helm.Chart, values map[string]any, path []string) ([]Violation, error) {
	var found []Violation
	if c.Schema != nil {
		compiled, err := compile(c)
		if err != nil {
			return nil, fmt.Errorf("chart %q: %w", c.ChartFullPath(), err)
		}
		var invalid *jsonschema.ValidationError
		if err := compiled.Validate(values); errors.As(err, &invalid) {
			found = leaves(invalid, path)
		} else if err != nil {
			return nil, fmt.Errorf("chart %q: %w", c.ChartFullPath(), err)
		}
	}
	for _, subchart := range c.Dependencies() {
		below, isMap := values[subchart.Name()].(map[string]any)
		if !isMap { // it has none: Helm has refused others
			continue
		}
		more, err := violationsAt(subchart, below, append(slices.Clone(path), subchart.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// leaves returns the violations that have no further cause.
func leaves(of *jsonschema.ValidationError, path []string) []Violation {
	if len(of.Causes) == 0 {
		return []Violation{{Path: slices.Concat(path, of.InstanceLocation), Message: of.BasicOutput().Error.String()}}
	}
	var found []Violation
	for _, cause := range of.Causes {
		found = append(found, leaves(cause, path)...)
	}
	return found
}
