package wrap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Given is a value of a chart that a user sets.
type Given struct {
	value
	// Node is the value in the user's file.
	Node *yaml.Node
	// Text is the value as that of a parameter.
	Text string
}

// Problem is what is wrong with a value that a user sets.
type Problem struct {
	// Node is where it is in the user's file.
	Node    *yaml.Node
	Message string
}

// Given returns the values that a map sets, each of which becomes a parameter: a map is divided where the chart lists its keys, or does not know them
// because they are global. Values that the chart does not have, or that have another type, are problems.
func (c Chart) Given(values *yaml.Node) (given []Given, problems []Problem) {
	g := c.examine(values, false)
	if len(g.given) > MaxChoices {
		g.add(values, "%d values are set, more than %d", len(g.given), MaxChoices)
	}
	return g.given, g.problems
}

// maxExamined limits the keys of values that are looked up. Each takes a time in proportion to the values of the chart.
const maxExamined = 2000

// examine looks up the values that a map sets. With discreet, problems do not quote texts.
func (c Chart) examine(values *yaml.Node, discreet bool) *givenValues {
	g := &givenValues{discreet: discreet}
	var err error
	if g.defaults, err = c.defaults(); err != nil {
		g.add(values, "%v", err)
		return g
	}
	g.visit(values, nil)
	if g.examined > maxExamined {
		g.problems = []Problem{{values, fmt.Sprintf("more than %d keys are set", maxExamined)}}
	}
	return g
}

// GivenFiles is Files with parameters for values that a user sets.
func GivenFiles(name, archive string, chart Chart, given []Given) (map[string]string, error) {
	chosen := make([]value, 0, len(given))
	for _, g := range given {
		chosen = append(chosen, g.value)
	}
	return filesOf(name, archive, chart, chosen, Release{})
}

// FilesWith is Files with values that the package sets over those of the chart. One that is chosen is the default of its parameter. A value that the chart does
// not have, as far as that can be known, or that has another type, is an error. Errors quote no texts among the values.
func FilesWith(name, archive string, chart Chart, choices []Choice, values map[string]any) (map[string]string, error) {
	if len(choices) == 0 && len(values) == 0 {
		return Files(name, archive, chart, nil) // the chart's own values are not parsed
	}
	if size := max(len(chart.Values), chart.size()); size > maxParsed {
		return nil, fmt.Errorf("the values and schemas of chart %s and its subcharts have %d bytes, more than the limit of %d for a chart with parameters or values", text.Quote(chart.Name), size, maxParsed)
	}
	set := nodeOf(values)
	g := chart.examine(set, true)
	g.requireTexts()
	if len(g.problems) > 0 {
		var messages []string
		for _, p := range g.problems {
			messages = append(messages, p.Message)
		}
		return nil, errors.New(text.List(messages, maxProblems))
	}
	var chosen []value
	for _, choice := range choices {
		v, err := g.lookUpReleased(choice, set)
		if err == nil {
			err = v.admit(set)
		}
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, v)
	}
	return filesOf(name, archive, chart, chosen, Release{Values: values})
}

// maxParsed limits values.yaml of a chart, and the values of it and its subcharts together with their schemas, each in bytes: parsed, they need about a hundred
// times as much memory.
const maxParsed = 1 << 20

// maxProblems limits the problems in an error.
const maxProblems = 3

// requireTexts adds a problem for each number, and for each true or false, that is set where the chart has a text. Without quotes, 1.20 is 1.2.
func (g *givenValues) requireTexts() {
	for _, v := range g.given {
		if v.kind == stringKind && v.Node.Kind == yaml.ScalarNode && v.Node.ShortTag() != "!!str" {
			g.add(v.Node, "value %s of chart %s must be a text: write it in quotes", v.Path, text.Quote(g.name))
		}
	}
}

// admit checks a value that becomes a parameter. A sensitive parameter has no default: it is an error if its value is no text, or set for the package.
func (v *value) admit(set *yaml.Node) error {
	_, own := find(set, v.Path)
	switch {
	case !v.Sensitive:
		return nil
	case v.kind != stringKind:
		return fmt.Errorf("value %s is not a text: only a text can be a sensitive parameter", v.Path)
	case own != nil:
		return fmt.Errorf("value %s is in values, and also a sensitive parameter, whose value the package must not contain: remove it from one of them", v.Path)
	}
	v.byDefault, v.enum = nil, nil
	return nil
}

// givenValues collects the values of a map.
type givenValues struct {
	*defaults
	given    []Given
	problems []Problem
	// examined is the number of keys; those over the limit are not looked up.
	examined int
	// discreet is set if problems do not quote texts.
	discreet bool
}

func (g *givenValues) add(node *yaml.Node, format string, args ...any) {
	g.problems = append(g.problems, Problem{node, fmt.Sprintf(format, args...)})
}

// visit visits the keys of a map at a path.
func (g *givenValues) visit(node *yaml.Node, at Path) {
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if g.examined++; g.examined > maxExamined {
			return
		}
		key, below := node.Content[i], node.Content[i+1]
		path := append(slices.Clone(at), key.Value)
		switch line, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			g.add(key, "a key must be a text; anchors, aliases and merges are not supported: write the value out")
		case twice:
			g.add(key, "value %s is set twice, first in line %d: remove one", path, line)
		case checkKeys(path) != nil:
			g.add(key, "value %s: %v", path, checkKeys(path))
		case below.Kind == yaml.MappingNode && len(below.Content) > 0 && g.isDivided(path):
			g.visit(below, path)
		default:
			g.set(key, below, path)
		}
		lines[key.Value] = key.Line
	}
}

// isDivided reports whether the keys of a map of the chart are values of their own.
func (g *givenValues) isDivided(path Path) bool {
	_, node := find(g.root, path)
	described := g.described.at(path)
	switch {
	case node != nil && node.Kind == yaml.MappingNode:
		return len(node.Content) > 0
	case described != nil:
		return len(described.Properties) > 0
	default:
		global, _ := g.globals.find(path)
		return node == nil && global != nil
	}
}

// set adds a value.
func (g *givenValues) set(key, node *yaml.Node, path Path) {
	v, err := g.lookUpGiven(path)
	if err != nil {
		g.add(key, "%v", err)
		return
	}
	if v.isOpen(node) {
		v.byDefault, v.typed = nil, false
	}
	if !v.typed {
		v.kind = kindOf(node, nil)
	}
	for _, other := range g.given {
		if err := v.excludes(other.Choice); err != nil {
			v.Parameter = uniqueName(v.Parameter, g.given)
		}
	}
	if want := v.kind.mismatch(node); want != "" {
		g.add(node, "value %s of chart %s must be %s, got %s", path, text.Quote(g.name), want, g.describe(node))
		return
	}
	written, _, err := parameter.TextOf(node)
	if err != nil {
		g.add(node, "value %s: %v", path, err)
		return
	}
	if v.isOptional() && slices.Contains([]string{"", "[]", "{}"}, written) {
		v.byDefault, _ = plain(node, maxNodes) // for a parameter, it is no value
	}
	g.given = append(g.given, Given{value: v, Node: node, Text: written})
}

// lookUpGiven returns the value of the chart at a path. The error names a value that may be meant.
func (g *givenValues) lookUpGiven(path Path) (value, error) {
	choice := Choice{Path: path, Parameter: nameOf(path)}
	v, err := g.lookUp(choice)
	if err == nil {
		return v, nil
	}
	closest, isListed := g.siblingOf(path)
	switch nested := g.nestedForm(path); {
	case closest != "":
		return v, fmt.Errorf("chart %s has no value %s (did you mean %s?)", text.Quote(g.name), text.Quote(path.String()), closest)
	case isListed:
		return value{Choice: choice}, nil // a key that is added to a map of the chart, such as a label
	case nested != "":
		return v, fmt.Errorf("chart %s has no value %s: write it as %s", text.Quote(g.name), text.Quote(strings.Join(path, ".")), nested)
	default:
		return v, err
	}
}

// siblingOf returns a value of the chart with a similar key in the same map, empty if there is none, and whether the chart lists that map.
func (g *givenValues) siblingOf(path Path) (closest string, isListed bool) {
	last := len(path) - 1
	_, parent := find(g.root, path[:last])
	if last == 0 || parent == nil || parent.Kind != yaml.MappingNode {
		return "", false
	}
	var siblings []string
	for i := 0; i+1 < len(parent.Content); i += 2 {
		siblings = append(siblings, parent.Content[i].Value)
	}
	if closest = text.ClosestMatch(path[last], siblings); closest != "" {
		closest = append(slices.Clone(path[:last]), closest).String()
	}
	return closest, true
}

// nestedForm returns how a key with dots, such as image.tag, is written as a path of the chart: image: {tag: …}; empty if the chart has no such path.
func (g *givenValues) nestedForm(path Path) string {
	last := len(path) - 1
	keys := strings.Split(path[last], ".")
	if _, node := find(g.root, append(slices.Clone(path[:last]), keys...)); node == nil || len(keys) == 1 {
		return ""
	}
	return strings.Join(keys, ": {") + ": …" + strings.Repeat("}", len(keys)-1)
}

// uniqueName returns a name with a number that no other parameter has: paths such as image.tag and image_tag have one name.
func uniqueName(name string, given []Given) string {
	for i := 2; ; i++ {
		numbered := fmt.Sprintf("%s_%d", name, i)
		if !slices.ContainsFunc(given, func(g Given) bool { return g.Parameter == numbered }) {
			return numbered
		}
	}
}

// isOpen reports whether a list or a map may replace an empty text, which some charts have as default for them.
func (v value) isOpen(node *yaml.Node) bool {
	return v.kind == stringKind && v.enum == nil && v.byDefault != nil && v.byDefault.Value == "" && node.Kind != yaml.ScalarNode && node.Kind != yaml.AliasNode
}

// describe describes a value that a user sets.
func (g *givenValues) describe(node *yaml.Node) string {
	if g.discreet && node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" {
		return "a text"
	}
	return describe(node)
}

// describe describes a node in a few words.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if node.ShortTag() == "!!null" {
		return "nothing"
	}
	return text.Quote(node.Value)
}

// NodeAt returns the value at a path in a map, or the closest map or list that contains it.
func NodeAt(values *yaml.Node, path []string) *yaml.Node {
	node := values
	for _, name := range path {
		next := childOf(node, name)
		if next == nil {
			break
		}
		node = next
	}
	return node
}

// childOf returns the value of a key, or the element of a list at an index; nil if there is none.
func childOf(node *yaml.Node, name string) *yaml.Node {
	if node.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i]
		}
		return nil
	}
	_, found := find(node, Path{name})
	return found
}
