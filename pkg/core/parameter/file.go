package parameter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// errorLine finds the line of a YAML syntax error.
var errorLine = regexp.MustCompile(`line ([0-9]+)`)

// File reads a rendered parameter file (KEP-29): a YAML map from names to values. Numbers, booleans and texts are taken literally. Lists
// and maps are converted to JSON. A name without a value is not set, so that its default applies.
//
// The file may hold secrets: an error gives the position of the problem, and never a value.
func File(text string) (map[string]string, error) {
	root, err := rootOf(text, yaml.MaxParameters)
	if err != nil || root == nil {
		return map[string]string{}, err
	}
	return valuesOf(root)
}

// ReadFile returns the one document of a rendered parameter file, with its structure, within a limit of package expansion.
func ReadFile(text string, limit int) ([]any, error) {
	root, err := rootOf(text, limit)
	if err != nil || root == nil {
		return nil, err
	}
	content, err := DecodeNode(root)
	return []any{content}, err
}

// rootOf returns the content of a parameter file; nil if it is empty.
func rootOf(text string, limit int) (*yamlv3.Node, error) {
	document, more, err := yaml.First(text, limit)
	var exceeded *yaml.Error
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case errors.As(err, &exceeded):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%snot valid YAML: quote values with special characters (in a template with | quote or toYaml)", placeOf(err))
	case more != nil:
		return nil, errors.New("contains more than one YAML document: must be one map of parameters")
	}
	return document.Content[0], nil
}

// placeOf returns the line of a YAML parser's error, as the beginning of a sentence.
func placeOf(err error) string {
	if found := errorLine.FindString(err.Error()); found != "" {
		return found + ": "
	}
	return ""
}

func valuesOf(root *yamlv3.Node) (map[string]string, error) {
	values := map[string]string{}
	if root.Kind == yamlv3.ScalarNode && root.ShortTag() == "!!null" {
		return values, nil
	}
	if root.Kind != yamlv3.MappingNode {
		return nil, fmt.Errorf("line %d: must be a map of parameters, such as NAME: value", root.Line)
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, node := root.Content[i], root.Content[i+1]
		if name.Kind != yamlv3.ScalarNode || name.ShortTag() == "!!merge" {
			return nil, fmt.Errorf("line %d: must be the name of a parameter", name.Line)
		}
		if earlier, twice := lines[name.Value]; twice {
			return nil, fmt.Errorf("line %d: parameter %s is already set on line %d: remove one of them", name.Line, text.Quote(name.Value), earlier)
		}
		lines[name.Value] = name.Line
		value, given, err := TextOf(node)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", node.Line, err)
		}
		if given {
			values[name.Value] = value
		}
	}
	return values, nil
}

// TextOf returns a value in the form of an Instance's parameter, and whether it is set: a scalar exactly as written, a list or map as Compact
// returns it.
func TextOf(node *yamlv3.Node) (written string, given bool, err error) {
	if node.Kind == yamlv3.ScalarNode {
		return node.Value, node.ShortTag() != "!!null", nil
	}
	content, err := DecodeNode(node)
	if err != nil {
		return "", false, errors.New("the list or map is not valid: it must not contain anchors, aliases or duplicate keys")
	}
	return Compact(content), true, nil
}

// Compact encodes what DecodeNode returns as JSON that is also YAML, without HTML escapes, so that templates and readers get the original text.
func Compact(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "" // values decoded from YAML always encode
	}
	return string(text.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
}
