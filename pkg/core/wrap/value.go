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
	// required is true if there is no default that can be known.
	required bool
}

// isOptional reports whether a parameter without a default may be empty. Then the value is null, which has the same effect as none.
func (v value) isOptional() bool { return v.byDefault == nil && !v.Sensitive && !v.required }

// template returns the template of the value. A parameter without a default may be empty.
func (v value) template() string {
	if v.isOptional() {
		return "{{ with .Params." + v.Parameter + " }}{{ " + v.kind.format(".") + " }}{{ else }}null{{ end }}"
	}
	return "{{ " + v.kind.format(".Params."+v.Parameter) + " }}"
}

// choose looks up chosen values in a chart.
func (c Chart) choose(choices []Choice) ([]value, error) {
	root, described, err := c.defaults()
	if err != nil {
		return nil, err
	}
	var chosen []value
	for _, choice := range choices {
		v, err := c.lookUp(choice, root, described)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, v)
	}
	return chosen, nil
}

// lookUp finds a value by its path in the chart's values and in their schema. Global ones need not be listed.
func (c Chart) lookUp(choice Choice, root *yaml.Node, described *schema) (value, error) {
	key, node := find(root, choice.Path)
	described = described.at(choice.Path)
	if node == nil && described == nil && !c.isGlobal(choice.Path) {
		return value{}, c.unknown(choice.Path, root)
	}
	v, err := c.valueOf(choice, key, node, described)
	v.required = node == nil && c.inherits(root, choice.Path)
	return v, err
}

// inherits reports whether a global value that a chart does not list has a default in its subcharts, which may be another one in each. root has the values of
// the chart. Null would remove it.
func (c Chart) inherits(root *yaml.Node, path Path) bool {
	return slices.ContainsFunc(c.Subcharts, func(sub Chart) bool {
		_, below := find(root, Path{sub.Name})
		switch {
		case below == nil:
			return false
		case path[0] == "global":
			_, listed := find(below, path)
			return listed != nil || sub.inherits(below, path)
		default:
			return path[0] == sub.Name && len(path) > 1 && sub.inherits(below, path[1:])
		}
	})
}

// valueOf returns a value with a key and a default.
func (c Chart) valueOf(choice Choice, key, node *yaml.Node, described *schema) (value, error) {
	v := value{Choice: choice, kind: kindOf(node, described), description: descriptionOf(key, described)}
	if node != nil && node.ShortTag() != "!!null" {
		nodes := 0
		if v.byDefault, nodes = plain(node, maxNodes); nodes < 0 {
			return value{}, fmt.Errorf("value %s of chart %s has more than %d parts: choose some of them", choice.Path, text.Quote(c.Name), maxNodes)
		}
	}
	if v.kind == stringKind && v.byDefault != nil && slices.Contains(described.texts(), v.byDefault.Value) {
		v.enum = described.texts()
	}
	return v, nil
}

// unknown returns the error for a value that a chart does not have.
func (c Chart) unknown(path Path, root *yaml.Node) error {
	named := map[string]Path{}
	var all []string
	collect(root, nil, func(known Path) {
		name := strings.Join(known, "/") // what follows a dot would be an extension, which does not count
		named[name] = known
		all = append(all, name)
	})
	message := fmt.Sprintf("chart %s has no value %s in values.yaml", text.Quote(c.Name), text.Quote(path.String()))
	if closest := named[text.ClosestMatch(strings.Join(path, "/"), all)]; closest != nil {
		message += fmt.Sprintf(" (did you mean %s?)", closest)
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

// find returns the key and the value at a path; nil if there is none.
func find(node *yaml.Node, path Path) (key, found *yaml.Node) {
	for _, name := range path {
		node = resolve(node)
		if node.Kind != yaml.MappingNode {
			return nil, nil
		}
		at := -1
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				at = i
			}
		}
		if at < 0 {
			return nil, nil
		}
		key, node = node.Content[at], node.Content[at+1]
	}
	return key, resolve(node)
}

// kindOf returns the type of a value: what the schema says, or else that of the default.
func kindOf(node *yaml.Node, described *schema) kind {
	if known := described.kind(); known != "" {
		return known
	}
	if node == nil {
		return stringKind
	}
	switch node.ShortTag() {
	case "!!int":
		return integerKind
	case "!!float":
		return numberKind
	case "!!bool":
		return booleanKind
	case "!!seq":
		return arrayKind
	case "!!map":
		return mapKind
	default:
		return stringKind
	}
}

// mismatch returns what a value has to be; empty if it is that.
func (k kind) mismatch(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return "set: leave it out to have the default of the chart"
	}
	given := kindOf(node, nil)
	switch {
	case node.Kind == yaml.AliasNode:
		return "written out"
	case given == k || k == numberKind && given == integerKind:
		return ""
	case k == stringKind && node.Kind == yaml.ScalarNode:
		return ""
	}
	return map[kind]string{
		stringKind: "a text", integerKind: "an integer", numberKind: "a number", booleanKind: "true or false", arrayKind: "a list", mapKind: "a map",
	}[k]
}

// maxNodes limits the parts of a default.
const maxNodes = 10_000

// plain returns a value without comments, anchors and aliases, and how many of nodes are left; less than zero if it has more.
func plain(node *yaml.Node, nodes int) (*yaml.Node, int) {
	node = resolve(node)
	copied := *node
	copied.HeadComment, copied.LineComment, copied.FootComment, copied.Anchor = "", "", "", ""
	copied.Content = nil
	nodes--
	for _, part := range node.Content {
		if nodes < 0 {
			break
		}
		var below *yaml.Node
		below, nodes = plain(part, nodes)
		copied.Content = append(copied.Content, below)
	}
	return &copied, nodes
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
