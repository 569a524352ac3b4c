package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/text"
)

// escapeJSON returns the same JSON with escapes for characters that Escape replaces: YAML has no control characters. Characters of more than
// 16 bits stay, because YAML does not have JSON's escapes for them.
func escapeJSON(encoded []byte) []byte {
	hidden := func(r rune) bool { return !text.Visible(r) && r <= 0xffff }
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
	return yaml.JSONToYAML(escapeJSON(encoded))
}

// Guard returns a writer that escapes all text. Everything that a command writes passes it, except what is written to Raw.
func Guard(out io.Writer) io.Writer { return guard{out} }

// Raw returns the writer below Guard: for archives, for data that no terminal shows, and for the plugin's own control sequences.
func Raw(out io.Writer) io.Writer {
	for {
		guarded, ok := out.(guard)
		if !ok {
			return out
		}
		out = guarded.out
	}
}

type guard struct{ out io.Writer }

func (g guard) Write(written []byte) (int, error) {
	if _, err := io.WriteString(g.out, text.Escape(string(written))); err != nil {
		return 0, err
	}
	return len(written), nil
}
