package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

// said matches a command in pages, comments and messages.
var said = regexp.MustCompile(`kubectl addon( +[a-z]+(?:-[a-z]+)*(?: +[-\w./=%\[\]:,*]+)*)`)

// TestCommandsThatAreNamedExist checks the commands in pages and messages.
func TestCommandsThatAreNamedExist(t *testing.T) {
	root := New(clitest.StreamsOf(""), "devel")
	root.InitDefaultHelpFlag()
	root.InitDefaultCompletionCmd("completion")
	module, found := os.DirFS("../.."), 0
	err := fs.WalkDir(module, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") || path == "bin" {
			return fs.SkipDir
		}
		if page := filepath.Ext(path) == ".md"; !page && (filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go")) {
			return nil
		}
		text, err := fs.ReadFile(module, path)
		if err != nil {
			return err
		}
		for _, match := range said.FindAllStringSubmatch(string(text), -1) {
			found++
			if wrong := lacks(root, strings.Fields(match[1])); wrong != "" {
				t.Errorf("%s: %q: %s", path, match[0], wrong)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no commands found")
	}
}

// lacks returns the part of a command that does not exist.
func lacks(root *cobra.Command, words []string) string {
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if takesNone := !strings.Contains(cmd.Use, " "); takesNone && cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "no command " + rest[0]
	}
	for _, word := range rest {
		name, _, _ := strings.Cut(strings.TrimRight(word, ".,:"), "=")
		switch {
		case strings.HasPrefix(name, "--"):
			if cmd.Flag(name[2:]) == nil && name != "--help" {
				return "no flag " + name
			}
		case len(name) == 2 && name[0] == '-':
			if cmd.Flags().ShorthandLookup(name[1:]) == nil && cmd.InheritedFlags().ShorthandLookup(name[1:]) == nil {
				return "no flag " + name
			}
		}
	}
	return ""
}
