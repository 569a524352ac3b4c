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
	if d.described, err = c.schema(root); err != nil {
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

// correct returns a value as Helm reads it. It has the form of a node where that is the same, with comments and order. Keys that only the node has, with null,
// remain: the chart has such values, although Helm drops them.
func correct(node *yaml.Node, value any) *yaml.Node {
	node = resolve(node)
	switch value := value.(type) {
	case map[string]any:
		if node.Kind == yaml.MappingNode {
			return correctMap(node, value)
		}
	case []any:
		if node.Kind == yaml.SequenceNode && len(node.Content) == len(value) {
			whole := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: node.Style}
			for i, element := range value {
				whole.Content = append(whole.Content, correct(node.Content[i], element))
			}
			return whole
		}
	default:
		if value != nil && isSame(node, nodeOf(value)) { // a null of Helm's is not one that it drops
			return node
		}
	}
	return nodeOf(value)
}

func correctMap(node *yaml.Node, value map[string]any) *yaml.Node {
	whole := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: node.Style}
	listed := map[string]bool{}
	for i := len(node.Content) - 2; i >= 0; i -= 2 { // the last of equal keys counts
		key, of := node.Content[i], node.Content[i+1]
		below, known := value[key.Value]
		switch {
		case listed[key.Value] || key.ShortTag() == "!!merge":
			continue
		case known:
			of = correct(of, below)
		case !isNull(resolve(of)):
			continue // Helm reads the key as something else than a text
		}
		whole.Content = append(whole.Content, of, key)
		listed[key.Value] = true
	}
	slices.Reverse(whole.Content)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if !listed[name] {
			whole.Content = append(whole.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, nodeOf(value[name]))
		}
	}
	return whole
}

// isSame reports whether a node is the text, number, true or false that Helm reads: the two read some words and numbers differently.
func isSame(node, want *yaml.Node) bool {
	isNumber := node.ShortTag() == "!!float" && (want.Tag == "!!float" || want.Tag == "!!int")
	switch {
	case node.Kind != yaml.ScalarNode || node.ShortTag() != want.Tag && !isNumber:
		return false
	case want.Tag == "!!bool":
		return strings.EqualFold(node.Value, want.Value)
	case isNumber:
		a, err := strconv.ParseFloat(node.Value, 64)
		b, otherwise := strconv.ParseFloat(want.Value, 64)
		return err == nil && otherwise == nil && a == b
	}
	return node.Value == want.Value
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

// kind returns the type of a global value in the values of subcharts, and whether all that have one agree.
func (g *globals) kind(path Path) (one kind, agreed bool) {
	if len(path) == 0 {
		return mapKind, true
	}
	kinds := map[kind]bool{}
	g.addKinds(path, kinds)
	if len(kinds) != 1 {
		return stringKind, false
	}
	for one = range kinds {
	}
	return one, true
}

func (g *globals) addKinds(path Path, kinds map[kind]bool) {
	var value any = g.values
	for _, key := range path {
		below, _ := value.(map[string]any)
		value = below[key]
	}
	if value != nil {
		kinds[kindOf(nodeOf(value), nil)] = true
	}
	for _, sub := range g.below {
		sub.addKinds(path, kinds)
	}
}
