package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Limits of the unpacked content of a tarball, which may come from an untrusted source.
const (
	// MaxArchive is in bytes. The OperatorVersion of a package has at most MaxSize; the rest is for other files in the folder.
	MaxArchive = 32 << 20
	maxEntries = 10_000
)

var errTooLarge = fmt.Errorf("the tarball contains more than %d bytes", MaxArchive)

// Archive reads a package's tarball, as created by KUDO's `package create`: a tar file in gzip. It only keeps regular files. It returns an
// error if the tarball contains a path outside of it, or exceeds the limits. size is the kept size in bytes.
//
// The files are kept as a zip archive, for which the standard library provides a file system.
func Archive(r io.Reader) (files fs.FS, size int64, err error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, 0, fmt.Errorf("reading a tarball (.tgz): %w", err)
	}
	// One more byte than allowed, to distinguish the end from a truncation.
	bounded := &io.LimitedReader{R: unzipped, N: MaxArchive + 1}
	var kept bytes.Buffer
	into := zip.NewWriter(&kept)
	if err := copyFiles(into, tar.NewReader(bounded)); err != nil {
		if bounded.N == 0 {
			return nil, 0, errTooLarge
		}
		return nil, 0, err
	}
	if err := into.Close(); err != nil {
		return nil, 0, fmt.Errorf("storing the tarball's files: %w", err)
	}
	size = int64(kept.Len())
	files, err = zip.NewReader(bytes.NewReader(kept.Bytes()), size)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the tarball's files: %w", err)
	}
	if err := fs.WalkDir(files, ".", func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		return nil, 0, fmt.Errorf("the tarball contains a path twice: %w", err)
	}
	return files, size, nil
}

func copyFiles(into *zip.Writer, from *tar.Reader) error {
	left := int64(MaxArchive)
	for range maxEntries + 1 { // the last iteration is the end
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the tarball: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		// A sparse file is larger than its data in the tarball.
		if left -= header.Size; left < 0 {
			return errTooLarge
		}
		name := path.Clean(strings.TrimPrefix(header.Name, "./"))
		if !fs.ValidPath(name) || strings.Contains(name, `\`) {
			return fmt.Errorf("the tarball contains %q, a path outside of it", header.Name)
		}
		file, err := into.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.Copy(file, from)
		}
		if err != nil {
			return fmt.Errorf("reading %q in the tarball: %w", name, err)
		}
	}
	return fmt.Errorf("the tarball contains more than %d files and folders", maxEntries)
}

// WriteArchive writes files as a tarball that Archive and KUDO can read. The same files in the same order always result in the same bytes.
func WriteArchive(w io.Writer, files fs.FS, names []string) error {
	zipped := gzip.NewWriter(w)
	into := tar.NewWriter(zipped)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("reading %q: %w", name, err)
		}
		header := tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: time.Unix(0, 0)}
		if err := into.WriteHeader(&header); err != nil {
			return fmt.Errorf("writing %q: %w", name, err)
		}
		if _, err := into.Write(text); err != nil {
			return fmt.Errorf("writing %q: %w", name, err)
		}
	}
	return errors.Join(into.Close(), zipped.Close())
}
