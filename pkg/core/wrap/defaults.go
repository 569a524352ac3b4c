package wrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// defaults are the values of a chart as if it listed those of its subcharts, too.
type defaults struct {
	name string
	root *yaml.Node
	// described is nil if there is no schema.
	described *schema
	globals   *globals
}

// globals are the global values of a chart, and of those in it.
type globals struct {
	values map[string]any
	below  map[string]*globals
}

// defaults returns the values of a chart.
func (c Chart) defaults() (*defaults, error) {
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	d := &defaults{name: c.Name, root: root}
	if d.described, err = c.schema(); err != nil {
		return nil, err
	}
	d.globals, err = c.globals()
	return d, err
}

// root returns the values of a chart: in the form of values.yaml, where that says the same as Helm reads there.
func (c Chart) root() (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(c.Values, &document); err != nil {
		return nil, fmt.Errorf("values.yaml of chart %s is invalid: %w", text.Quote(c.Name), err)
	}
	own := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if len(document.Content) > 0 && document.Content[0].Kind == yaml.MappingNode {
		own = document.Content[0]
	}
	if len(c.Defaults) == 0 {
		return own, nil
	}
	values, err := decode(c.Defaults)
	if err != nil {
		return nil, fmt.Errorf("the values of chart %s are invalid: %w", text.Quote(c.Name), err)
	}
	return correct(own, values), nil
}

func decode(values []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(values))
	decoder.UseNumber()
	var all map[string]any
	err := decoder.Decode(&all)
	return all, err
}

// correct returns a value as Helm reads it. It has the form of a node where that is the same, with comments and order. Keys that only the node has are null for
// Helm, and remain.
func correct(node *yaml.Node, value any) *yaml.Node {
	node = resolve(node)
	below, isMap := value.(map[string]any)
	if !isMap || node.Kind != yaml.MappingNode {
		if isSame(node, value) {
			return node
		}
		return nodeOf(value)
	}
	whole := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: node.Style}
	listed := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, of := node.Content[i], node.Content[i+1]
		if key.ShortTag() == "!!merge" {
			continue
		}
		if with, known := below[key.Value]; known {
			of = correct(of, with)
		}
		whole.Content = append(whole.Content, key, of)
		listed[key.Value] = true
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if !listed[name] {
			whole.Content = append(whole.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, nodeOf(below[name]))
		}
	}
	return whole
}

// isSame reports whether a node is a list, or the text, number, true, false or null that Helm reads: the two read some words and numbers differently.
func isSame(node *yaml.Node, value any) bool {
	want := nodeOf(value)
	switch {
	case node.Kind != want.Kind:
		return false
	case node.Kind == yaml.SequenceNode:
		return true
	case node.ShortTag() != want.Tag:
		return false
	case node.Value == want.Value || want.Tag == "!!null":
		return true
	case want.Tag == "!!bool":
		return strings.EqualFold(node.Value, want.Value)
	case want.Tag == "!!float":
		a, err := strconv.ParseFloat(node.Value, 64)
		b, otherwise := strconv.ParseFloat(want.Value, 64)
		return err == nil && otherwise == nil && a == b
	}
	return false
}

// globals returns the global values of a chart and of those in it. Its own are in root, too.
func (c Chart) globals() (*globals, error) {
	g := &globals{below: map[string]*globals{}}
	if len(c.Globals) > 0 {
		var err error
		if g.values, err = decode(c.Globals); err != nil {
			return nil, fmt.Errorf("the global values of chart %s are invalid: %w", text.Quote(c.Name), err)
		}
	}
	for _, sub := range c.Subcharts {
		var err error
		if g.below[sub.Name], err = sub.globals(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// find returns the global values of the chart that a path leads to, and the rest of the path, which begins with global; nil for any other path.
func (g *globals) find(path Path) (of *globals, rest Path) {
	for i, key := range path {
		if key == "global" {
			return g, path[i+1:]
		}
		if g = g.below[key]; g == nil {
			break
		}
	}
	return nil, nil
}

// defaults returns what the chart sets a global value to, or else what those in it do: the value of a chart applies to all below it.
func (g *globals) defaults(path Path) []any {
	var value any = g.values
	for _, key := range path {
		below, _ := value.(map[string]any)
		value = below[key]
	}
	if below, isMap := value.(map[string]any); value != nil && (!isMap || len(below) > 0) {
		return []any{value}
	}
	var all []any
	for _, name := range slices.Sorted(maps.Keys(g.below)) {
		all = append(all, g.below[name].defaults(path)...)
	}
	return all
}
