package wrap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Release is a release of Helm that a package deploys.
type Release struct {
	Name, Namespace string
	Revision        int
	// Values are those that the release sets over those of its chart. Numbers are json.Number.
	Values map[string]any
}

// value is a value of a chart that becomes a parameter.
type value struct {
	Choice
	kind        kind
	description string
	enum        []string
	// byDefault is nil if the chart has none, or null.
	byDefault *yaml.Node
	// typed is true if the chart says what type the value has.
	typed bool
	// removes is true if a release removes the default of the chart: without a value, the parameter does that, too.
	removes bool
}

// isOptional reports whether the parameter may have no value.
func (v value) isOptional() bool { return v.byDefault == nil && !v.Sensitive }

// isOmitted reports whether the values of the package do not contain the value if the parameter has none. With null instead, a default that is not known
// here would be removed, and a schema might refuse it.
func (v value) isOmitted() bool { return v.isOptional() && !v.removes }

// entry returns the template of the value with its key, which is indented.
func (v value) entry(key string) string {
	of := ".Params." + v.Parameter
	switch {
	case v.isOmitted():
		return "{{ with " + of + " }}" + key + ": {{ " + v.kind.format(".") + " }}{{ end }}"
	case v.isOptional():
		return key + ": {{ with " + of + " }}{{ " + v.kind.format(".") + " }}{{ else }}null{{ end }}"
	default:
		return key + ": {{ " + v.kind.format(of) + " }}"
	}
}

// choose looks up chosen values in a chart.
func (c Chart) choose(choices []Choice) ([]value, error) {
	d, err := c.defaults()
	if err != nil {
		return nil, err
	}
	var chosen []value
	for _, choice := range choices {
		v, err := d.lookUp(choice)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, v)
	}
	return chosen, nil
}

// lookUp finds a value by its path in the chart's values and in their schema. Global ones need not be listed.
func (d *defaults) lookUp(choice Choice) (value, error) {
	key, node := find(d.root, choice.Path)
	global, _ := d.globals.find(choice.Path)
	if node == nil && d.described.at(choice.Path) == nil && global == nil {
		return value{}, d.unknown(choice.Path)
	}
	return d.valueOf(choice, key, node)
}

// valueOf returns a value with a key and a default.
func (d *defaults) valueOf(choice Choice, key, node *yaml.Node) (value, error) {
	described := d.described.at(choice.Path)
	v := value{Choice: choice, kind: kindOf(node, described), description: descriptionOf(key, described)}
	v.typed = described.kind() != "" || !isNull(node)
	if global, rest := d.globals.find(choice.Path); global != nil && !v.typed {
		v.kind, v.typed = global.kind(rest) // without a value, each subchart keeps its own default
	}
	if !isNull(node) {
		nodes := 0
		if v.byDefault, nodes = plain(node, maxNodes); nodes < 0 {
			return value{}, fmt.Errorf("value %s of chart %s has more than %d parts: choose some of them", choice.Path, text.Quote(d.name), maxNodes)
		}
	}
	if v.kind == stringKind && v.byDefault != nil && slices.Contains(described.texts(), v.byDefault.Value) {
		v.enum = described.texts()
	}
	return v, nil
}

// unknown returns the error for a value that a chart does not have.
func (d *defaults) unknown(path Path) error {
	named := map[string]Path{}
	var all []string
	collect(d.root, nil, func(known Path) {
		name := strings.Join(known, "/") // what follows a dot would be an extension, which does not count
		named[name] = known
		all = append(all, name)
	})
	message := fmt.Sprintf("chart %s has no value %s", text.Quote(d.name), text.Quote(path.String()))
	if closest := text.ClosestMatch(strings.Join(path, "/"), all); closest != "" {
		message += fmt.Sprintf(" (did you mean %s?)", named[closest])
	}
	return errors.New(message)
}

// maxCollected limits the values among which a similar one is sought.
const maxCollected = 2000

// collect calls found with the path of every value.
func collect(node *yaml.Node, at Path, found func(Path)) {
	count := 0
	var visit func(*yaml.Node, Path)
	visit = func(node *yaml.Node, at Path) {
		node = resolve(node)
		if node.Kind != yaml.MappingNode || len(at) >= maxKeys {
			return
		}
		for i := 0; i+1 < len(node.Content) && count < maxCollected; i += 2 {
			count++
			below := append(slices.Clone(at), node.Content[i].Value)
			found(below)
			visit(node.Content[i+1], below)
		}
	}
	visit(node, at)
}

// descriptionOf returns the description of a value: that of its schema, or the comment before it.
func descriptionOf(key *yaml.Node, described *schema) string {
	const maxLength = 500
	description := described.description()
	if description == "" && key != nil {
		description = commentOf(key)
	}
	return text.Prefix(oneLine(description), maxLength)
}

// commentOf returns the last paragraph of the comment before a key, without the marks of helm-docs and of Bitnami's generator.
func commentOf(key *yaml.Node) string {
	var lines []string
	for line := range strings.SplitSeq(key.HeadComment, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(line, "#"))
		if after, is := strings.CutPrefix(line, "@param "); is {
			_, line, _ = strings.Cut(after, " ")
		}
		switch {
		case line == "":
			lines = nil
		case !strings.HasPrefix(line, "@"):
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "--")))
		}
	}
	return strings.Join(lines, " ")
}

// oneLine returns a text of a chart in one line, without control characters.
func oneLine(s string) string { return text.Escape(text.OneLine(s)) }
