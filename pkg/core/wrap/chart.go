package wrap

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Chart is what a package needs to know of a chart.
type Chart struct {
	// Name, Version and the following fields are those of Chart.yaml.
	Name, Version, AppVersion, Description, Home string
	Maintainers                                  []Maintainer
	// Subcharts are the charts in it, each with its alias, if it has one, as Name. Of them, Chart.yaml is not needed.
	Subcharts []Chart
	// Switches are the paths of the conditions and tags in Chart.yaml, which enable subcharts. The chart need not list them.
	Switches []string
	// Values is values.yaml as published, with its comments.
	Values []byte
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

// isGlobal reports whether a value need not be listed by the chart because it is a global one: of the chart, or of a subchart and those in it.
func (c Chart) isGlobal(path Path) bool {
	if path[0] == "global" {
		return true
	}
	at := slices.IndexFunc(c.Subcharts, func(sub Chart) bool { return sub.Name == path[0] })
	return at >= 0 && len(path) > 1 && c.Subcharts[at].isGlobal(path[1:])
}

// defaults returns the values of a chart as if it listed those of its subcharts, too, and their schema, which is nil if there is none.
func (c Chart) defaults() (*yaml.Node, *schema, error) {
	root, err := c.root()
	if err != nil {
		return nil, nil, err
	}
	described, err := c.schema()
	return root, described, err
}

// root returns the values of a chart over those of its subcharts.
func (c Chart) root() (*yaml.Node, error) {
	own, err := c.own()
	if err != nil || len(c.Subcharts) == 0 {
		return own, err
	}
	below := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, sub := range c.Subcharts {
		values, err := sub.root()
		if err != nil {
			return nil, err
		}
		below.Content = append(below.Content, keyNode(sub.Name), values)
	}
	o := overlay{left: maxMerged}
	root := o.over(below, own)
	if o.left < 0 {
		return nil, fmt.Errorf("chart %s and its subcharts have more than %d values", text.Quote(c.Name), maxMerged)
	}
	return root, nil
}

// own returns the values that a chart lists.
func (c Chart) own() (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(c.Values, &document); err != nil {
		return nil, fmt.Errorf("values.yaml of chart %s is invalid: %w", text.Quote(c.Name), err)
	}
	if len(document.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	return document.Content[0], nil
}

// schema returns the schema of a chart's values over those of its subcharts; nil if there is none.
func (c Chart) schema() (*schema, error) {
	var described *schema
	if len(c.Schema) > 0 {
		described = &schema{}
		if err := json.Unmarshal(c.Schema, described); err != nil {
			return nil, fmt.Errorf("values.schema.json of chart %s is invalid: %w", text.Quote(c.Name), err)
		}
	}
	below := &schema{}
	for _, name := range c.Switches {
		if keys := strings.Split(name, "."); checkKeys(keys) == nil { // no other value can have a parameter
			below.property(keys).Type = json.RawMessage(`"boolean"`)
		}
	}
	for _, sub := range c.Subcharts {
		of, err := sub.schema()
		if err != nil {
			return nil, err
		}
		if of != nil {
			*below.property(Path{sub.Name}) = *of.over(below.Properties[sub.Name])
		}
	}
	if below.Properties == nil {
		return described, nil
	}
	return described.over(below), nil
}

// size returns the bytes of what of a chart and its subcharts is parsed.
func (c Chart) size() int {
	size := len(c.Name) + len(c.Values) + len(c.Schema) + len(strings.Join(c.Switches, ","))
	for _, sub := range c.Subcharts {
		size += sub.size()
	}
	return size
}

// overlay merges values. It copies maps, so that an alias does not change with what is merged into it.
type overlay struct {
	// left is how many more keys are copied; less than zero if there were more.
	left int
}

// maxMerged limits the keys that are copied: an alias of a large map may be merged often.
const maxMerged = 100_000

// over returns a value with another one over it, as Helm merges values.
func (o *overlay) over(node, over *yaml.Node) *yaml.Node {
	if node != nil {
		node = resolve(node)
	}
	if node == nil || node.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	if o.left -= len(node.Content)/2 + len(over.Content)/2; o.left < 0 {
		return over
	}
	merged := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	at := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		at[node.Content[i].Value] = i + 1
		merged.Content = append(merged.Content, node.Content[i], node.Content[i+1])
	}
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		if below, is := at[key.Value]; is {
			merged.Content[below] = o.over(merged.Content[below], value)
			if key.HeadComment != "" {
				merged.Content[below-1] = key
			}
			continue
		}
		merged.Content = append(merged.Content, key, value)
	}
	return merged
}

// keyNode returns a key of a map.
func keyNode(name string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
}

// resolve follows an alias.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
