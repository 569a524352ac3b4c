package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// Width returns the width of the terminal that is written to; 0 if out is not a terminal.
func Width(out io.Writer) int {
	file, ok := Raw(out).(*os.File)
	if !ok || !printers.IsTerminal(file) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
