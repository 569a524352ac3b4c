package wrap

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Chart is what a package needs to know of a chart.
type Chart struct {
	// Name, Version and the following fields are those of Chart.yaml.
	Name, Version, AppVersion, Description, Home string
	Maintainers                                  []Maintainer
	// Subcharts are the charts in it, by alias or name. Of their fields, only Name, Subcharts, Switches, Globals and Schema are set.
	Subcharts []Chart
	// Switches are the paths of the conditions and tags in Chart.yaml, which enable subcharts. The chart need not list them.
	Switches []string
	// Globals are the global values of the chart, in JSON.
	Globals json.RawMessage `json:",omitempty"`
	// Values is values.yaml as published, with its comments.
	Values []byte
	// Defaults are the values in JSON as Helm reads them, merged with those of all subcharts; nil if that is not known.
	Defaults json.RawMessage `json:",omitempty"`
	// Schema is values.schema.json; nil if there is none.
	Schema []byte
	// Source is where the chart was fetched from; empty if it was on disk.
	Source Source
}

// Source is where a chart was fetched from.
type Source struct {
	// Repository is the URL of the repository or registry; empty for an archive at a URL, which is in From.
	Repository, From string
	// Digest is the SHA-256 of the archive, as sha256:HEX.
	Digest string
}

// Maintainer is a maintainer of a chart.
type Maintainer struct {
	Name  string `yaml:"name"`
	Email string `yaml:"email,omitempty"`
}

// schema returns the schema of a chart's values over those of its subcharts; nil if there is none. root has the values.
func (c Chart) schema(root *yaml.Node) (*schema, error) {
	var described *schema
	if len(c.Schema) > 0 {
		described = &schema{}
		if err := json.Unmarshal(c.Schema, described); err != nil {
			return nil, fmt.Errorf("values.schema.json of chart %s is invalid: %w", text.Quote(c.Name), err)
		}
	}
	below := c.switches(root)
	for _, sub := range c.Subcharts {
		_, values := find(root, Path{sub.Name})
		if values == nil {
			values = &yaml.Node{Kind: yaml.MappingNode}
		}
		of, err := sub.schema(values)
		if err != nil {
			return nil, err
		}
		if of != nil {
			first := below.property(Path{sub.Name})
			*first = *first.over(of)
		}
	}
	if below.Properties == nil {
		return described, nil
	}
	return described.over(below), nil
}

// switches returns a schema that says which values are true or false because they enable subcharts. root has the values: Helm ignores those of another type.
func (c Chart) switches(root *yaml.Node) *schema {
	all := &schema{}
	for _, name := range c.Switches {
		keys := strings.Split(name, ".")
		if checkKeys(keys) != nil { // no such value can have a parameter
			continue
		}
		if _, node := find(root, keys); isNull(node) || node.ShortTag() == "!!bool" {
			all.property(keys).Type = json.RawMessage(`"boolean"`)
		}
	}
	return all
}

// size returns how many bytes of a chart and its subcharts are parsed, apart from values.yaml.
func (c Chart) size() int {
	size := len(c.Name) + len(c.Defaults) + len(c.Globals) + len(c.Schema) + len(strings.Join(c.Switches, ","))
	for _, sub := range c.Subcharts {
		size += sub.size()
	}
	return size
}
