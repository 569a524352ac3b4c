package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// NewOptions holds the arguments and flags of the command.
type NewOptions struct {
	*hubclient.Factory
	name, folder string
}

// NewCmdNew returns the command. If runF is set, it replaces runNew.
func NewCmdNew(f *hubclient.Factory, runF func(context.Context, *NewOptions) error) *cobra.Command {
	o := &NewOptions{Factory: f}
	if runF == nil {
		runF = runNew
	}
	return &cobra.Command{
		Use:   "new NAME [DIR]",
		Short: "Create a package with the given name",
		Long: "Create a small package called NAME in DIR, or in a folder called NAME: operator.yaml, params.yaml and templates, with comments\n" +
			"that describe further features. The package is valid and runs without changes. Existing files in DIR are never changed.",
		Example: "  kubectl addon package new shop\n" +
			"  kubectl addon package new shop ./packages/shop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "expected NAME [DIR], got %s", text.Plural(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.folder = args[0], args[len(args)-1]
			return runF(cmd.Context(), o)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func runNew(_ context.Context, o *NewOptions) error {
	files, err := newPackage(o.name, o.folder)
	if err != nil {
		return err
	}
	created := ""
	for _, file := range files {
		created += fmt.Sprintf("%s created\n", file)
	}
	return printers.WriteEscaped(o.Out, created+fmt.Sprintf("\n  kubectl addon package verify %[1]s\n  kubectl addon package push %[1]s\n", text.Word(o.folder)))
}

// newPackage writes a new package to a folder that is empty or does not exist, and returns the files.
func newPackage(name, dir string) ([]string, error) {
	scaffold, err := pack.Scaffold(name)
	if err != nil {
		return nil, err
	}
	return writePackage(dir, scaffold)
}

// writePackage writes the files of a package, text by path, to a folder that is empty or does not exist, and returns their places.
func writePackage(dir string, files map[string]string) ([]string, error) {
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("folder %s is not empty: name another one as DIR", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("creating the package: %w", err)
	}
	var places []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		place := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return nil, fmt.Errorf("creating the package: %w", err)
		}
		if err := os.WriteFile(place, []byte(files[file]), 0o644); err != nil {
			return nil, fmt.Errorf("creating the package: %w", err)
		}
		places = append(places, place)
	}
	return places, nil
}
