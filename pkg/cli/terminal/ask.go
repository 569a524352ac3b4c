package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// ErrDeclined is returned if the user declines.
var ErrDeclined = errors.New("nothing was changed")

// Confirm prompts for confirmation and accepts only yes.
func Confirm(streams genericiooptions.IOStreams, question string) error {
	if err := printers.WriteEscaped(streams.ErrOut, question+" [y/N] "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(streams.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return ErrDeclined
	}
	return nil
}

// Warn prints warnings.
func Warn(out io.Writer, warnings ...string) error {
	for _, warning := range warnings {
		if err := printers.WriteEscaped(out, "Warning: "+warning+"\n"); err != nil {
			return err
		}
	}
	return nil
}
