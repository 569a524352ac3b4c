package packages

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/tree"
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
	b, err := o.loadFolder(ctx, o.folder, root.FS())
	if err != nil {
		return err
	}
	if err := printers.WriteEscaped(o.ErrOut, b.problemsText()); err != nil {
		return err
	}
	if err := b.checkValid(o.folder); err != nil {
		return err
	}
	text, err := writeTarball(cmp.Or(o.file, versionName(b.root().pkg)+".tgz"), b, root.FS())
	if err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, text)
}

// loadFolder loads the package in a folder as if it were packed in a tarball: packages referred to by path must be inside the folder.
func (l *loader) loadFolder(ctx context.Context, name string, files fs.FS) (*bundle, error) {
	if inner := operatorFolders(files); len(inner) == 1 {
		return nil, fmt.Errorf("%s contains no operator.yaml, but %s does: use that folder", name, filepath.Join(name, inner[0]))
	}
	l.begin()
	return l.loadFrom(ctx, source{name: filepath.Clean(name), archive: files, folder: "."})
}

// writeTarball writes a bundle to a file atomically, and returns a summary.
func writeTarball(file string, b *bundle, files fs.FS) (string, error) {
	content, count, err := b.tarball(files)
	if err != nil {
		return "", err
	}
	if err := ReplaceFile(file, content); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s created: %s, %d bytes\nsha256=%x\n", file, text.Plural(count, "file"), len(content), sha256.Sum256(content)), nil
}

// tarball returns a tarball of a bundle, and the number of files in it. The same package always results in the same tarball.
func (b *bundle) tarball(files fs.FS) (tarball []byte, count int, err error) {
	names, err := b.files(files)
	if err != nil {
		return nil, 0, err
	}
	var content bytes.Buffer
	if err := pack.WriteArchive(&content, files, names); err != nil {
		return nil, 0, err
	}
	if _, _, err := pack.Archive(bytes.NewReader(content.Bytes())); err != nil {
		return nil, 0, err // it exceeds the size limit of readers
	}
	return content.Bytes(), len(names), nil
}

// files returns the files of all packages in a folder, and the tarballs there that they refer to.
func (b *bundle) files(folder fs.FS) ([]string, error) {
	var names []string
	for _, m := range b.members {
		if m.archive != folder {
			continue // it is in a tarball or at a URL
		}
		files, err := fs.Sub(folder, m.folder)
		if err != nil {
			return nil, fmt.Errorf("opening package: %w", err)
		}
		own, err := m.ownFiles(files)
		if err != nil {
			return nil, err
		}
		for _, task := range m.pkg.Version.Tasks {
			if name := task.Spec.Package; tree.MakesChild(task) && !isURL(name) && !artifact.IsReference(name) && isTarball(name) {
				own = append(own, name)
			}
		}
		for _, name := range own {
			names = append(names, path.Join(m.folder, name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ownFiles returns the files of a package with its charts.
func (m *member) ownFiles(files fs.FS) ([]string, error) {
	own, err := pack.Files(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	charts, err := m.pkg.ChartFiles(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	return append(own, charts...), nil
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
