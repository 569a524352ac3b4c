package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// commands visits every runnable command of the plugin, except those that cobra adds.
func commands(visit func(*cobra.Command)) {
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		if cmd.Long != "" && cmd.HasParent() || !cmd.HasSubCommands() {
			visit(cmd)
		}
		for _, below := range cmd.Commands() {
			each(below)
		}
	}
	each(New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, "v0.0.0"))
}

func TestEveryCommandIsExplained(t *testing.T) {
	commands(func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: want a short text without a full stop, got %q", cmd.CommandPath(), cmd.Short)
		}
		if !strings.HasSuffix(cmd.Long, ".") {
			t.Errorf("%s: want a long text of sentences, got %q", cmd.CommandPath(), cmd.Long)
		}
		shown := false
		for line := range strings.Lines(cmd.Example) {
			shown = example(t, strings.TrimSuffix(line, "\n")) == cmd.CommandPath() || shown
		}
		if !shown {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	})
}

// example checks that a line is a valid command of the plugin with existing flags and arguments, and returns the command's name.
func example(t *testing.T, line string) string {
	words, ran := strings.CutPrefix(line, "  kubectl addon ")
	if !ran {
		t.Errorf("%q is not an indented line that begins with kubectl addon", line)
		return ""
	}
	root := New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, "v0.0.0")
	cmd, rest, err := root.Find(strings.Fields(strings.ReplaceAll(words, "'", "")))
	if err != nil {
		t.Errorf("%q: %v", line, err)
		return ""
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	return cmd.CommandPath()
}

// TestEveryCommandHasGoldens checks that each command has a golden file of its output and one of an error. A golden file is named after the
// command, or the command and its parents, with an optional suffix.
func TestEveryCommandHasGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	written, err := filepath.Glob("../../test/integration/cli/testdata/*.golden") // of commands that write to the hub
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, written...)
	commands(func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[2:]
		prints, fails := false, false
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".golden")
			if !goldenOf(name, path) {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(append([]byte("\n"), content...), []byte("\nerror: ")) {
				fails = true
			} else {
				prints = true
			}
		}
		if !prints || !fails {
			t.Errorf("%s: a golden of what it prints: %t, of an error: %t", cmd.CommandPath(), prints, fails)
		}
	})
}

// goldenOf reports whether a golden file of that name belongs to the command with that path.
func goldenOf(name string, path []string) bool {
	for from := range path {
		if called := strings.Join(path[from:], "-"); name == called || strings.HasPrefix(name, called+"-") {
			return true
		}
	}
	return false
}
