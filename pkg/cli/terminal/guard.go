package terminal

import (
	"io"

	"github.com/tandem-addons/tandem/pkg/text"
)

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
