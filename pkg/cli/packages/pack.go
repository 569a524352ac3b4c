package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PackOptions holds the arguments and flags of the command.
type PackOptions struct {
	*hubclient.Factory
	folder, file string
	loader
}

// NewCmdPack returns the command. If runF is set, it replaces runPack.
func NewCmdPack(f *hubclient.Factory, runF func(context.Context, *PackOptions) error) *cobra.Command {
	o := &PackOptions{Factory: f}
	if runF == nil {
		runF = runPack
	}
	cmd := &cobra.Command{
		Use:   "pack DIR",
		Short: "Create a tarball of a package",
		Long: "Verify the package in DIR and write it as a tarball for 'package verify', 'package push', KUDO and repositories.\n\n" +
			"The tarball contains operator.yaml, params.yaml, templates, charts and the child packages in DIR, and nothing else. The same package\n" +
			"always results in the same tarball. No cluster is needed.",
		Example: "  kubectl addon package pack ./kafka\n" +
			"  kubectl addon package pack ./kafka -o kafka.tgz",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.folder = args[0]
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "File to write. Defaults to OPERATORVERSION.tgz in the working directory.")
	o.addFlag(cmd)
	return cmd
}

func runPack(ctx context.Context, o *PackOptions) error {
	root, err := os.OpenRoot(o.folder) // symbolic links cannot point outside of it
	if err != nil {
		return fmt.Errorf("opening package: %w", err)
	}
	defer root.Close()
	b, err := o.LoadFolder(ctx, o.folder, root.FS())
	if err != nil {
		return err
	}
	if err := printers.WriteEscaped(o.ErrOut, b.ProblemsText()); err != nil {
		return err
	}
	if err := b.CheckValid(o.folder); err != nil {
		return err
	}
	text, err := writeTarball(cmp.Or(o.file, bundle.VersionName(b.Root().Pkg)+".tgz"), b, root.FS())
	if err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, text)
}

// writeTarball writes a bundle to a file atomically, and returns a summary.
func writeTarball(file string, b *bundle.Bundle, files fs.FS) (string, error) {
	content, count, err := b.Tarball(files)
	if err != nil {
		return "", err
	}
	if err := ReplaceFile(file, content); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s created: %s, %d bytes\nsha256=%x\n", file, text.Plural(count, "file"), len(content), sha256.Sum256(content)), nil
}

// copyFiles copies files to a folder.
func copyFiles(folder string, files fs.FS, names []string) error {
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		place := filepath.Join(folder, filepath.FromSlash(name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(place), 0o700)
		}
		if err == nil {
			err = os.WriteFile(place, data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copying %q: %w", name, err)
		}
	}
	return nil
}

// ReplaceFile replaces a file atomically.
func ReplaceFile(name string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer os.Remove(next.Name()) // fails harmlessly after a successful rename
	_, err = next.Write(content)
	err = errors.Join(err, next.Chmod(0o644), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
