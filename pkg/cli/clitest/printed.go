package clitest

import (
	"bytes"
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// Render returns the output of a command in a format.
func Render(t *testing.T, format string, s terminal.Shown) string {
	t.Helper()
	o := terminal.NewOutput(terminal.FormatWide, terminal.FormatName)
	if err := o.Set(format); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := o.Print(&out, s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
