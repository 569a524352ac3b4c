package chart

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helm "helm.sh/helm/v4/pkg/chart/v2"
)

const (
	// schemaFile is the file of the schema of a chart's values.
	schemaFile = "values.schema.json"
	// schemaRoot is the address of the chart in the references of its schema.
	schemaRoot = "file:///"
)

// violations returns what does not conform to the schemas of a chart and of its subcharts, as Helm does. References lead to files of the chart only:
// Helm would read any file and any URL.
func violations(c *helm.Chart, values map[string]any) []string {
	var found []string
	if c.Schema != nil {
		if err := validate(c, values); err != nil {
			found = append(found, fmt.Sprintf("chart %q: %v", c.ChartFullPath(), err))
		}
	}
	for _, subchart := range c.Dependencies() {
		value, has := values[subchart.Name()]
		if !has || value == nil {
			continue
		}
		below, isMap := value.(map[string]any)
		if !isMap {
			found = append(found, fmt.Sprintf("chart %q: its values must be a map, not %T", subchart.ChartFullPath(), value))
			continue
		}
		found = append(found, violations(subchart, below)...)
	}
	return found
}

// validate validates the values of one chart.
func validate(c *helm.Chart, values map[string]any) error {
	compiled, err := compile(c)
	if err != nil {
		return err
	}
	if err := compiled.Validate(values); err != nil {
		_, lines, _ := strings.Cut(err.Error(), "\n") // the first line names the schema
		return fmt.Errorf("%s", strings.Join(strings.Fields(lines), " "))
	}
	return nil
}

// compile compiles the schema of one chart.
func compile(c *helm.Chart) (*jsonschema.Schema, error) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		return nil, fmt.Errorf("%s is not valid JSON: %w", schemaFile, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(files{c})
	if err := compiler.AddResource(schemaRoot+schemaFile, schema); err != nil {
		return nil, fmt.Errorf("%s: %w", schemaFile, err)
	}
	compiled, err := compiler.Compile(schemaRoot + schemaFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", schemaFile, err)
	}
	return compiled, nil
}

// files loads the documents that a schema refers to from the chart.
type files struct{ chart *helm.Chart }

// Load returns a file of the chart.
func (f files) Load(url string) (any, error) {
	name, isFile := strings.CutPrefix(url, schemaRoot)
	if !isFile {
		return nil, fmt.Errorf("it refers to %s: it can only refer to files of the chart", url)
	}
	for _, file := range f.chart.Files {
		if file.Name == path.Clean(name) {
			return jsonschema.UnmarshalJSON(bytes.NewReader(file.Data))
		}
	}
	return nil, fmt.Errorf("it refers to file %q, which the chart does not have", name)
}
