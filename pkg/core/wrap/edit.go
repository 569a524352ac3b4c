package wrap

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Field is a field of operator.yaml: of the spec of a task, or of the file.
type Field struct{ Name, Value string }

// Edit sets fields of the spec of a task, by its index, and of the file itself in operator.yaml. Everything else, with comments and order, stays as it is.
// A field of the spec that does not exist is added after chart.
func Edit(operator []byte, task int, spec, top []Field) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(operator, &document); err != nil {
		return nil, fmt.Errorf("operator.yaml is invalid: %w", err)
	}
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("operator.yaml is empty")
	}
	root := document.Content[0]
	_, tasks := find(root, Path{"tasks"})
	if tasks == nil || tasks.Kind != yaml.SequenceNode || task >= len(tasks.Content) {
		return nil, fmt.Errorf("operator.yaml has no task %d", task)
	}
	_, of := find(tasks.Content[task], Path{"spec"})
	e := editor{lines: strings.Split(string(operator), "\n")}
	if of == nil || of.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("task %d of operator.yaml has no spec", task)
	}
	if err := e.set(of, spec); err != nil {
		return nil, err
	}
	if err := e.set(root, top); err != nil {
		return nil, err
	}
	return []byte(e.text()), nil
}

// editor replaces parts of lines.
type editor struct {
	lines []string
	edits []edit
}

// edit replaces the characters of a line from one to another.
type edit struct {
	line, from, to int
	with           string
}

// set sets fields of a map.
func (e *editor) set(of *yaml.Node, fields []Field) error {
	var missing []Field
	for _, f := range fields {
		_, value := find(of, Path{f.Name})
		if value == nil {
			missing = append(missing, f)
			continue
		}
		at, err := e.place(f.Name, value)
		if err != nil {
			return err
		}
		at.with = scalar(f.Value)
		e.edits = append(e.edits, at)
	}
	if len(missing) == 0 {
		return nil
	}
	key, value := find(of, Path{"chart"})
	if value == nil {
		return fmt.Errorf("operator.yaml has no %s: add it", missing[0].Name)
	}
	at, err := e.place("chart", value)
	if err != nil {
		return err
	}
	for _, f := range missing {
		separator := "\n" + strings.Repeat(" ", key.Column-1)
		if of.Style&yaml.FlowStyle != 0 {
			separator = ", "
		}
		at.with += separator + f.Name + ": " + scalar(f.Value)
	}
	if of.Style&yaml.FlowStyle == 0 { // behind a comment
		at.to = len([]rune(strings.TrimRight(e.lines[at.line], "\r")))
	}
	at.from = at.to
	e.edits = append(e.edits, at)
	return nil
}

// place returns where a value is. It must be in one line, as users write it.
func (e *editor) place(name string, value *yaml.Node) (edit, error) {
	written := value.Value
	switch {
	case value.Style&yaml.DoubleQuotedStyle != 0:
		written = `"` + written + `"`
	case value.Style&yaml.SingleQuotedStyle != 0:
		written = `'` + written + `'`
	}
	line := []rune(e.lines[value.Line-1])
	from := value.Column - 1
	to := from + len([]rune(written))
	if value.Kind != yaml.ScalarNode || value.Anchor != "" || to > len(line) || string(line[from:to]) != written {
		return edit{}, fmt.Errorf("operator.yaml:%d: %s is not a plain value in one line: change it by hand, to the new one", value.Line, name)
	}
	return edit{line: value.Line - 1, from: from, to: to}, nil
}

// text returns the edited lines.
func (e *editor) text() string {
	slices.SortFunc(e.edits, func(a, b edit) int {
		if a.line != b.line {
			return b.line - a.line
		}
		return b.from - a.from
	})
	lines := slices.Clone(e.lines)
	for _, change := range e.edits {
		line := []rune(lines[change.line])
		lines[change.line] = string(line[:change.from]) + change.with + string(line[change.to:])
	}
	return strings.Join(lines, "\n")
}

// scalar returns a value as YAML, quoted if that is necessary, also in a flow map.
func scalar(value string) string {
	encoded, err := yaml.Marshal(value)
	plain := strings.TrimSuffix(string(encoded), "\n")
	if err != nil || strings.ContainsAny(value, ",[]{}\n") {
		return text.Quote(value)
	}
	return plain
}
