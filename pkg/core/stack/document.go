package stack

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Place is a position in a stack file, from 1; zero if it is unknown.
type Place struct{ Line, Column int }

// Problem is what is wrong in a stack file.
type Problem struct {
	Place
	Message string
}

// Error lists the problems of a stack file.
type Error struct {
	// File is its name.
	File     string
	Problems []Problem
}

// maxProblems is the number of problems in one error. The others are reported once those are fixed.
const maxProblems = 20

// Error returns a line for each problem, as FILE:LINE:COLUMN: error: MESSAGE.
func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		at := e.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", at, p.Line, p.Column)
		}
		lines = append(lines, fmt.Sprintf("%s: error: %s", at, text.JoinMessage(p.Message)))
	}
	return fmt.Sprintf("stack file %s is not valid: %s\n%s", e.File, text.Plural(len(e.Problems), "error"),
		strings.Join(text.Limit(lines, maxProblems, "more problems"), "\n"))
}

// ErrorOf returns an Error with the problems in the order of their places, or nil if there are none.
func ErrorOf(file string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return &Error{File: file, Problems: sorted}
}

// document decodes a stack file strictly, and collects its problems.
type document struct{ problems []Problem }

// field is a field of a map.
type field struct {
	name string
	read func(node *yamlv3.Node)
}

// maxFile limits a stack file, in bytes with its aliases written out.
const maxFile = 16 << 20

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// root parses a file with one document; nil if that fails.
func (d *document) root(content string) *yamlv3.Node {
	first, second, err := yaml.First(content, maxFile)
	var exceeded *yaml.Error
	switch {
	case errors.Is(err, io.EOF):
		d.problems = append(d.problems, Problem{Message: "is empty: it must be a stack, see 'kubectl addon apply --help'"})
		return nil
	case errors.As(err, &exceeded):
		d.problems = append(d.problems, Problem{Message: err.Error()})
		return nil
	case err != nil:
		message, place := strings.TrimPrefix(err.Error(), "yaml: "), Place{}
		if found := yamlLine.FindStringSubmatch(message); found != nil {
			place.Line, _ = strconv.Atoi(found[1])
			place.Column, message = 1, message[len(found[0]):]
		}
		d.problems = append(d.problems, Problem{Place: place, Message: "not valid YAML: " + message})
		return nil
	case second != nil:
		d.add(second, "a second document: a file has one stack")
	}
	return first.Content[0]
}

func placeOf(node *yamlv3.Node) Place { return Place{Line: node.Line, Column: node.Column} }

func (d *document) add(node *yamlv3.Node, format string, args ...any) {
	d.problems = append(d.problems, Problem{Place: placeOf(node), Message: fmt.Sprintf(format, args...)})
}

// object decodes the fields of a map: each at most once, and no others.
func (d *document) object(node *yamlv3.Node, what string, fields ...field) {
	d.entries(node, what, func(key, value *yamlv3.Node) {
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		if at >= 0 {
			fields[at].read(value)
			return
		}
		var names []string
		for _, f := range fields {
			names = append(names, f.name)
		}
		if meant := text.ClosestMatch(key.Value, names); meant != "" {
			d.add(key, "unknown field %s of %s: did you mean %s?", text.Quote(key.Value), what, meant)
			return
		}
		d.add(key, "unknown field %s of %s: must be one of %s", text.Quote(key.Value), what, strings.Join(names, ", "))
	})
}

// entries decodes a map with unique keys.
func (d *document) entries(node *yamlv3.Node, what string, read func(key, value *yamlv3.Node)) {
	if node.Kind != yamlv3.MappingNode {
		d.add(node, "%s must be a map, got %s", what, describe(node))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch line, twice := lines[key.Value]; {
		case key.Kind != yamlv3.ScalarNode || key.ShortTag() == "!!merge":
			d.add(key, "%s: anchors, aliases and merges are not supported: write the field out", what)
		case twice:
			d.add(key, "%s is set twice, first in line %d: remove one", text.Quote(key.Value), line)
		default:
			lines[key.Value] = key.Line
			read(key, value)
		}
	}
}

// list decodes a list.
func (d *document) list(what string, read func(node *yamlv3.Node)) func(node *yamlv3.Node) {
	return func(node *yamlv3.Node) {
		if node.Kind != yamlv3.SequenceNode {
			d.add(node, "%s must be a list, got %s", what, describe(node))
			return
		}
		for _, item := range node.Content {
			read(item)
		}
	}
}

// text decodes a text, and remembers where it is.
func (d *document) text(what string, into *Text) func(node *yamlv3.Node) {
	return func(node *yamlv3.Node) {
		if node.Kind != yamlv3.ScalarNode || node.ShortTag() == "!!null" || node.Value == "" {
			d.add(node, "%s must be a text, got %s", what, describe(node))
			return
		}
		*into = Text{Value: node.Value, Place: placeOf(node)}
	}
}

// Text is a text in a stack file, and its place.
type Text struct {
	Value string
	Place
}

// describe describes a node in a few words.
func describe(node *yamlv3.Node) string {
	switch {
	case node.Kind == yamlv3.MappingNode:
		return "a map"
	case node.Kind == yamlv3.SequenceNode:
		return "a list"
	case node.Kind == yamlv3.AliasNode:
		return "the alias *" + node.Value + ": write the value out"
	case node.ShortTag() == "!!null":
		return "nothing"
	default:
		return text.Quote(node.Value)
	}
}
