package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// LoadFolder loads the package in a folder as if it were packed in a tarball: packages referred to by path must be inside the folder.
func (l *Loader) LoadFolder(ctx context.Context, name string, files fs.FS) (*Bundle, error) {
	if inner := operatorFolders(files); len(inner) == 1 {
		return nil, fmt.Errorf("%s contains no operator.yaml, but %s does: use that folder", name, filepath.Join(name, inner[0]))
	}
	l.Begin()
	return l.LoadFrom(ctx, source{Name: filepath.Clean(name), Archive: files, folder: "."})
}

// Tarball returns a tarball of a bundle, and the number of files in it. The same package always results in the same tarball.
func (b *Bundle) Tarball(files fs.FS) (tarball []byte, count int, err error) {
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
func (b *Bundle) files(folder fs.FS) ([]string, error) {
	var names []string
	for _, m := range b.Members {
		if m.Archive != folder {
			continue // it is in a tarball or at a URL
		}
		files, err := fs.Sub(folder, m.folder)
		if err != nil {
			return nil, fmt.Errorf("opening package: %w", err)
		}
		own, err := m.OwnFiles(files)
		if err != nil {
			return nil, err
		}
		for _, task := range m.Pkg.Version.Tasks {
			if name := task.Spec.Package; tree.MakesChild(task) && !IsURL(name) && !artifact.IsReference(name) && IsTarball(name) {
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

// OwnFiles returns the files of a package with its charts.
func (m *Member) OwnFiles(files fs.FS) ([]string, error) {
	own, err := pack.Files(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	charts, err := m.Pkg.ChartFiles(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return append(own, charts...), nil
}

// LoadPortable loads a package as it is packed, with the files that contain it. The caller calls done in the end.
func (l *Loader) LoadPortable(ctx context.Context, name string) (b *Bundle, files fs.FS, done func(), err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		root, err := os.OpenRoot(name) // symbolic links cannot point outside of it
		if err != nil {
			return nil, nil, nil, fmt.Errorf("opening package: %w", err)
		}
		b, err = l.LoadFolder(ctx, name, root.FS())
		if err != nil {
			_ = root.Close()
			return nil, nil, nil, err
		}
		return b, b.Root().Archive, func() { _ = root.Close() }, nil
	}
	l.Begin()
	at, err := l.OpenSource(ctx, name)
	if err == nil {
		b, err = l.LoadFrom(ctx, at)
	}
	return b, at.Archive, func() {}, err
}
