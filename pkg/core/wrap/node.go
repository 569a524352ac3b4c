package wrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodeOf returns a value of JSON as one of YAML; a map has sorted keys.
func nodeOf(value any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text} }
	switch value := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			node.Content = append(node.Content, scalar("!!str", key), nodeOf(value[key]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, element := range value {
			node.Content = append(node.Content, nodeOf(element))
		}
		return node
	case string:
		node := scalar("!!str", value)
		if strings.HasPrefix(value, "\t") { // in a block, the encoder indents by the tab
			node.Style = yaml.DoubleQuotedStyle
		}
		return node
	case bool:
		return scalar("!!bool", fmt.Sprint(value))
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") {
			return scalar("!!float", value.String())
		}
		return scalar("!!int", value.String())
	default:
		return scalar("!!null", "null")
	}
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

// resolve follows an alias.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool { return node == nil || node.ShortTag() == "!!null" }

// keysOf returns the keys of a map in their order, and its values.
func keysOf(node *yaml.Node) (keys []string, values map[string]*yaml.Node) {
	values = map[string]*yaml.Node{}
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, values
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		keys, values[node.Content[i].Value] = append(keys, node.Content[i].Value), node.Content[i+1]
	}
	return keys, values
}

// isDropped reports whether a value in a map is one of values.yaml, where it has a line, and null: Helm drops such values.
func isDropped(node *yaml.Node) bool { return isNull(resolve(node)) && node.Line > 0 }

// maxNodes limits the parts of a default.
const maxNodes = 10_000

// plain returns a value without comments, anchors and aliases, and how many of nodes are left; less than zero if it has more.
func plain(node *yaml.Node, nodes int) (*yaml.Node, int) {
	node = resolve(node)
	copied := *node
	copied.HeadComment, copied.LineComment, copied.FootComment, copied.Anchor = "", "", "", ""
	copied.Content = nil
	nodes--
	for i, part := range node.Content {
		if nodes < 0 {
			break
		}
		if node.Kind == yaml.MappingNode && isDropped(node.Content[i|1]) {
			continue
		}
		var below *yaml.Node
		below, nodes = plain(part, nodes)
		copied.Content = append(copied.Content, below)
	}
	return &copied, nodes
}
