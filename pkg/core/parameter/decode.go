package parameter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

var (
	integerPattern = regexp.MustCompile(`^[+-]?[0-9]+$`)
	numberPattern  = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	// jsonNumberPattern is JSON's grammar of a number (RFC 8259, section 6): the valid content of json.Number.
	jsonNumberPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// zeroPadded matches an integer with leading zeros.
var zeroPadded = regexp.MustCompile(`^[+-]?0[0-9_]+$`)

// maxDepth limits the nesting of lists and maps in a value.
const maxDepth = 64

func isInteger(value string) bool { return integerPattern.MatchString(value) }

func isNumber(value string) bool { return numberPattern.MatchString(value) }

// Decode decodes the text of an array or map parameter, YAML or JSON, into []any or map[string]any.
//
// Numbers never pass through float64: an integer is an int64, or a json.Number if it does not fit; any other number is a json.Number that
// keeps its digits, and one with leading zeros, such as 0123, is text. Anchors, aliases and duplicate keys are rejected.
func Decode(t kudo.ParameterType, text string) (any, error) {
	kind, want := yamlv3.SequenceNode, "must be a list, such as [a, b]"
	if t == kudo.MapType {
		kind, want = yamlv3.MappingNode, "must be a map, such as {a: b}"
	}
	document, _, err := yaml.First(text, yaml.MaxParameter)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New(want)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", want, err)
	case document.Content[0].Kind != kind:
		return nil, errors.New(want)
	}
	return decode(document.Content[0], maxDepth)
}

// DecodeNode is Decode for parsed YAML, and for values of any kind.
func DecodeNode(node *yamlv3.Node) (any, error) { return decode(node, maxDepth) }

func decode(node *yamlv3.Node, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("lists and maps are nested deeper than %d levels", maxDepth)
	}
	switch node.Kind {
	case yamlv3.SequenceNode:
		return decodeSequence(node, depth)
	case yamlv3.MappingNode:
		return decodeMapping(node, depth)
	case yamlv3.ScalarNode:
		return decodeScalar(node), nil
	default:
		return nil, errors.New("anchors and aliases are not supported: write the value out")
	}
}

func decodeSequence(node *yamlv3.Node, depth int) (any, error) {
	list := make([]any, 0, len(node.Content))
	for _, item := range node.Content {
		value, err := decode(item, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func decodeMapping(node *yamlv3.Node, depth int) (any, error) {
	m := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yamlv3.ScalarNode || key.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: a key must be a string", key.Line)
		}
		if _, ok := m[key.Value]; ok {
			return nil, fmt.Errorf("key %s is set twice", text.Quote(key.Value))
		}
		value, err := decode(node.Content[i+1], depth-1)
		if err != nil {
			return nil, err
		}
		m[key.Value] = value
	}
	return m, nil
}

// decodeScalar decodes a scalar by YAML's core types; anything else is text.
func decodeScalar(node *yamlv3.Node) any {
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if node.Decode(&b) == nil {
			return b
		}
	case "!!int":
		return integer(node)
	default:
		// The parser treats numbers beyond float64, such as 1e400, as plain text.
		if (node.ShortTag() == "!!float" || node.Style == 0) && jsonNumberPattern.MatchString(node.Value) {
			return json.Number(node.Value)
		}
	}
	return node.Value
}

func integer(node *yamlv3.Node) any {
	if zeroPadded.MatchString(node.Value) { // an identifier, such as a postal code or a file mode; YAML 1.1 reads it as octal
		return node.Value
	}
	if i, err := strconv.ParseInt(node.Value, 10, 64); err == nil && jsonNumberPattern.MatchString(node.Value) {
		return i
	}
	if jsonNumberPattern.MatchString(node.Value) {
		return json.Number(node.Value)
	}
	var i int64 // YAML's other notations: 0x1F, 0o17, 1_000
	if node.Decode(&i) == nil {
		return i
	}
	return node.Value
}

// sameContent reports whether the text of an array or map equals a decoded value.
func sameContent(t kudo.ParameterType, text string, typed any) bool {
	if t != kudo.ArrayType && t != kudo.MapType {
		return false
	}
	decoded, err := Decode(t, text)
	return err == nil && reflect.DeepEqual(decoded, typed)
}
