package text

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// EscapeJSON returns the same JSON with escapes for characters that Escape replaces: YAML has no control characters. Characters of more
// than 16 bits are not escaped, because YAML does not have JSON's escapes for them.
func EscapeJSON(encoded []byte) []byte {
	hidden := func(r rune) bool { return !Visible(r) && r <= 0xffff }
	if !bytes.ContainsFunc(encoded, hidden) {
		return encoded
	}
	var b bytes.Buffer
	for _, r := range string(encoded) {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// YAML returns an object as YAML, whatever characters its texts have.
func YAML(object any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(EscapeJSON(encoded))
}
