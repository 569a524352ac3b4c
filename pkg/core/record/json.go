package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/text"
)

// mapOf decodes a map; nil or null is an empty one.
func mapOf(encoded json.RawMessage) (map[string]any, error) {
	values := map[string]any{}
	if len(encoded) == 0 {
		return values, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, errors.New("no map")
	}
	return values, checkDepth(values, maxLevels)
}

// maxLevels limits the nesting of values.
const maxLevels = 100

func checkDepth(value any, levels int) error {
	if levels == 0 {
		return fmt.Errorf("nested more than %d levels deep", maxLevels)
	}
	var below []any
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			below = append(below, v)
		}
	case []any:
		below = value
	}
	for _, v := range below {
		if err := checkDepth(v, levels-1); err != nil {
			return err
		}
	}
	return nil
}

// shorten returns an error of the decoder without what it quotes of values.
func shorten(err error) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		kind, _, _ := strings.Cut(wrong.Value, " ") // of a number, also its value
		return fmt.Errorf("field %s must not be a %s", text.Quote(wrong.Field), kind)
	}
	return errors.New(text.Truncate(text.Escape(err.Error()), 200))
}

// toYAML returns JSON as YAML that is read as the same, or as it is if there is none, for a number that is too large.
func toYAML(encoded json.RawMessage) ([]byte, error) {
	values, err := mapOf(encoded)
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(values) // sorted keys
	if err != nil {
		return nil, err
	}
	plain = text.EscapeJSON(plain)
	written, err := yaml.JSONToYAML(plain)
	if err != nil {
		return nil, err
	}
	if read, err := yaml.YAMLToJSON(written); err == nil && isSame(read, values) {
		return written, nil
	}
	return plain, nil
}

// isSame reports whether JSON has these values.
func isSame(encoded []byte, values map[string]any) bool {
	read, err := mapOf(encoded)
	if err != nil {
		return false
	}
	one, _ := json.Marshal(read)
	other, _ := json.Marshal(values)
	return string(one) == string(other)
}
