package pack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// document decodes one YAML file strictly and collects its problems, with lines.
type document struct {
	file     string
	problems []Problem
	places   map[string]place
}

// reader decodes one value; path names it in messages.
type reader func(node *yamlv3.Node, path string)

// key is one field of an object.
type key struct {
	name     string
	read     reader
	required bool
	// describes is true if the field is only informational: nothing depends on it.
	describes bool
	// formerly is the name of the field in KUDO before 0.10, whose packages are still published.
	formerly string
}

// open parses a file that holds one object. If that fails, it returns nil and adds a problem.
func (p *Package) open(fsys fs.FS, file string) (*document, *yamlv3.Node) {
	if _, err := fs.Stat(fsys, file); errors.Is(err, fs.ErrNotExist) {
		p.problem(file, 0, "file not found: a package consists of operator.yaml, params.yaml and templates/")
		return nil, nil
	}
	text, ok := p.readFile(fsys, file, MaxSize, "an OperatorVersion")
	if !ok {
		return nil, nil
	}
	root, second, err := yaml.First(text, yaml.MaxFile)
	if err != nil {
		line, message := yamlProblem(err)
		p.problem(file, line, "%s", message)
		return nil, nil
	}
	if second != nil {
		p.problem(file, second.Line, "contains more than one YAML document: must contain exactly one")
	}
	return &document{file: file, places: map[string]place{}}, root.Content[0]
}

// close takes over the problems of the document.
func (p *Package) close(d *document) {
	p.problems = append(p.problems, d.problems...)
	maps.Copy(p.places, d.places)
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// yamlProblem splits a parser's error.
func yamlProblem(err error) (line int, message string) {
	var exceeded *yaml.Error
	switch {
	case errors.Is(err, io.EOF):
		return 0, "is empty"
	case errors.As(err, &exceeded):
		return 0, "is not valid: " + err.Error()
	}
	message = err.Error()
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
	}
	return line, "is not valid YAML: " + strings.TrimPrefix(message, "yaml: ")
}

func (d *document) problem(node *yamlv3.Node, path, format string, args ...any) {
	d.find(Error, node, path, format, args...)
}

func (d *document) find(severity Severity, node *yamlv3.Node, path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	switch {
	case path == "":
	case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		message = text.Quote(path) + ": " + message
	default:
		message = path + ": " + message
	}
	d.problems = append(d.problems, Problem{
		File: d.file, Line: node.Line, Column: node.Column, Field: path, Severity: severity, Message: message,
	})
}

// object decodes the fields of a mapping: each at most once, and no others.
func (d *document) object(node *yamlv3.Node, path string, keys ...key) {
	seen := map[string]bool{}
	d.entries(node, path, func(name, value *yamlv3.Node, at string) {
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name.Value })
		if former := slices.IndexFunc(keys, func(k key) bool { return k.formerly == name.Value }); i < 0 && former >= 0 {
			seen[keys[former].name] = true
			d.problem(name, at, "unknown field: KUDO 0.10 renamed it to %s", keys[former].name)
			return
		}
		if i < 0 {
			d.unknown(name, at, keys)
			return
		}
		seen[name.Value] = true
		keys[i].read(value, at)
	})
	for _, k := range keys {
		if k.required && !seen[k.name] && node.Kind == yamlv3.MappingNode {
			d.reportMissing(node, path, k.name)
		}
	}
}

// unknown reports a field that does not exist, and suggests a similar one. It is only a warning if that one is informational, because only
// the description is lost: KUDO's own packages have such mistakes, and run.
func (d *document) unknown(name *yamlv3.Node, path string, keys []key) {
	meant := text.ClosestMatch(name.Value, names(keys))
	if meant == "" {
		d.problem(name, path, "unknown field: must be one of %s", strings.Join(names(keys), ", "))
		return
	}
	severity := Error
	if slices.ContainsFunc(keys, func(k key) bool { return k.name == meant && k.describes }) {
		severity = Warning
	}
	d.find(severity, name, path, "unknown field: did you mean %s?", meant)
}

// reportMissing reports a missing field, at the line of its object; the file itself has none.
func (d *document) reportMissing(node *yamlv3.Node, path, name string) {
	d.problem(node, path, "required field %s is missing", name)
	if path == "" {
		last := &d.problems[len(d.problems)-1]
		last.Line, last.Column = 0, 0
	}
}

// entries decodes a mapping with arbitrary unique keys. An empty value is an empty mapping.
func (d *document) entries(node *yamlv3.Node, path string, entry func(name, value *yamlv3.Node, path string)) {
	if isNull(node) {
		return
	}
	if node.Kind != yamlv3.MappingNode {
		d.problem(node, path, "must be a map, got %s", describe(node))
		return
	}
	first := map[string]int{} // index of each name in the node's content
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		at := join(path, name.Value)
		if before, ok := first[name.Value]; ok {
			d.repeats(name, value, at, node.Content[before:before+2])
			continue
		}
		first[name.Value] = i
		if name.Kind != yamlv3.ScalarNode {
			d.problem(name, path, "must be the name of a field, got %s", describe(name))
			continue
		}
		d.places[at] = d.placeOf(name)
		entry(name, value, at)
	}
}

// repeats reports a duplicate field; before is its first name and value. Equal values are only a warning, because the result is the same.
func (d *document) repeats(name, value *yamlv3.Node, path string, before []*yamlv3.Node) {
	severity := Error
	if value.Kind == yamlv3.ScalarNode && before[1].Kind == yamlv3.ScalarNode && value.Value == before[1].Value {
		severity = Warning
	}
	d.find(severity, name, path, "is set twice, first in line %d: remove one", before[0].Line)
}

func (d *document) placeOf(node *yamlv3.Node) place { return place{d.file, node.Line, node.Column} }

// list decodes a sequence. An empty value is an empty sequence.
func (d *document) list(item reader) reader {
	return func(node *yamlv3.Node, path string) {
		if isNull(node) {
			return
		}
		if node.Kind != yamlv3.SequenceNode {
			d.problem(node, path, "must be a list, got %s", describe(node))
			return
		}
		for i, value := range node.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			d.places[at] = d.placeOf(value)
			item(value, at)
		}
	}
}

// text decodes a scalar of any type as its literal text, so that an appVersion of 1.10 stays 1.10.
func (d *document) text(into *string) reader {
	return func(node *yamlv3.Node, path string) {
		if isNull(node) {
			return
		}
		if node.Kind != yamlv3.ScalarNode {
			d.problem(node, path, "must be a string, got %s", describe(node))
			return
		}
		*into = node.Value
	}
}

// texts decodes a list of texts.
func (d *document) texts(into *[]string) reader {
	return d.list(func(node *yamlv3.Node, path string) {
		var item string
		d.text(&item)(node, path)
		*into = append(*into, item)
	})
}

// flag decodes a boolean.
func (d *document) flag(into *bool) reader {
	return func(node *yamlv3.Node, path string) {
		quoted := node.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) != 0
		if node.Kind != yamlv3.ScalarNode || quoted || node.Decode(into) != nil {
			d.problem(node, path, "must be true or false without quotes, got %s", describe(node))
		}
	}
}

// number decodes an integer.
func (d *document) number(node *yamlv3.Node, path string) {
	if _, err := strconv.Atoi(node.Value); node.Kind != yamlv3.ScalarNode || err != nil {
		d.problem(node, path, "must be an integer, got %s", describe(node))
	}
}

// optionalFlag decodes a boolean that distinguishes unset from false.
func (d *document) optionalFlag(into **bool) reader {
	return func(node *yamlv3.Node, path string) {
		if isNull(node) {
			return
		}
		*into = new(bool)
		d.flag(*into)(node, path)
	}
}

// quotedFlag is optionalFlag that also accepts quoted booleans (as in KEP-27's forcePodRestart).
func (d *document) quotedFlag(into **kudo.Flag) reader {
	return func(node *yamlv3.Node, path string) {
		if isNull(node) {
			return
		}
		value, err := strconv.ParseBool(node.Value)
		if node.Kind != yamlv3.ScalarNode || err != nil {
			d.problem(node, path, "must be true or false, got %s", describe(node))
			return
		}
		*into = new(kudo.Flag(value))
	}
}

// The durations that an OperatorVersion can hold in the format of the resource definition: from a millisecond, its smallest unit, to below
// 100,000 hours, because it allows five digits.
const (
	minDuration  = time.Millisecond
	overDuration = 100_000 * time.Hour
)

// duration decodes a duration that an OperatorVersion can hold, such as 90s or 5m.
func (d *document) duration(into **metav1.Duration) reader {
	return func(node *yamlv3.Node, path string) {
		value, err := time.ParseDuration(node.Value)
		switch {
		case node.Kind != yamlv3.ScalarNode || err != nil:
			d.problem(node, path, "must be a duration such as 90s or 5m, got %s", describe(node))
			return
		case value < minDuration || value >= overDuration:
			d.problem(node, path, "must be a duration from 1ms to 99999h, such as 90s or 5m, got %s", describe(node))
			return
		}
		*into = &metav1.Duration{Duration: value}
	}
}

func isNull(node *yamlv3.Node) bool {
	return node.Kind == yamlv3.ScalarNode && node.ShortTag() == "!!null"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func names(keys []key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return list
}

// describe describes a node in a few words.
func describe(node *yamlv3.Node) string {
	switch node.Kind {
	case yamlv3.MappingNode:
		return "a map"
	case yamlv3.SequenceNode:
		return "a list"
	case yamlv3.AliasNode:
		return "the alias *" + node.Value + ": write the value out"
	}
	if isNull(node) {
		return "nothing"
	}
	return text.Quote(node.Value)
}
