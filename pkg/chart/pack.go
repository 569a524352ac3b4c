package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/tandem-addons/tandem/pkg/core/record"
)

// packedFolder is the folder in archives that Pack creates. Helm ignores its name.
const packedFolder = "chart/"

// Pack packs the folder of a chart, with the files that Helm would load from it. The same files always result in the same bytes. Like an archive,
// the folder may have no links.
func Pack(folder fs.FS) ([]byte, error) { return PackWith(folder, nil) }

// PackWith is Pack with more files, by their names: archives of dependencies.
func PackWith(folder fs.FS, added map[string][]byte) ([]byte, error) {
	if _, err := fs.Stat(folder, helmutil.ChartfileName); err != nil {
		return nil, fmt.Errorf("the folder of the chart has no %s: %w", helmutil.ChartfileName, err)
	}
	rules, err := ignoredFiles(folder)
	if err != nil {
		return nil, err
	}
	names, err := packedFiles(folder, rules)
	if err != nil {
		return nil, err
	}
	w := newPacker()
	for _, name := range names {
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("packing the chart: %w", err)
		}
		if err := w.add(name, content); err != nil {
			return nil, err
		}
	}
	if err := w.addAll(added); err != nil {
		return nil, err
	}
	return w.close()
}

// Restore packs the chart of a release from its record.
func Restore(of *record.Chart) ([]byte, error) {
	files, err := of.Files()
	if err != nil {
		return nil, err
	}
	w := newPacker()
	if err := w.addAll(files); err != nil {
		return nil, err
	}
	return w.close()
}

// ignoredFiles returns the rules in .helmignore.
func ignoredFiles(folder fs.FS) (*ignore.Rules, error) {
	rules := ignore.Empty()
	text, err := fs.ReadFile(folder, ignore.HelmIgnore)
	if err == nil {
		rules, err = ignore.Parse(bytes.NewReader(text))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", ignore.HelmIgnore, err)
	}
	rules.AddDefaults()
	return rules, nil
}

// packedFiles returns the names of the files that are packed, in their order.
func packedFiles(folder fs.FS, rules *ignore.Rules) ([]string, error) {
	var names []string
	var size int64
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("packing the chart: %w", err)
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return fmt.Errorf("packing the chart: %w", err)
		case rules.Ignore(name, info):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("the folder of the chart contains %q, which is no regular file: replace a link by the file", name)
		}
		names, size = append(names, name), size+info.Size()
		switch {
		case len(names) > maxFiles:
			return fmt.Errorf("the folder of the chart has more than %d files: list those that it does not need in %s", maxFiles, ignore.HelmIgnore)
		case size > archive.MaxDecompressedChartSize:
			return fmt.Errorf("the folder of the chart has more than %d bytes: list files that it does not need in %s",
				archive.MaxDecompressedChartSize, ignore.HelmIgnore)
		}
		return nil
	})
	return names, err
}

// packer packs files.
type packer struct {
	packed bytes.Buffer
	zipped *gzip.Writer
	files  *tar.Writer
}

func newPacker() *packer {
	w := &packer{}
	w.zipped = gzip.NewWriter(&w.packed)
	w.files = tar.NewWriter(w.zipped)
	return w
}

func (w *packer) add(name string, content []byte) error {
	header := tar.Header{Name: packedFolder + name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := w.files.WriteHeader(&header); err != nil {
		return fmt.Errorf("packing %q: %w", name, err)
	}
	if _, err := w.files.Write(content); err != nil {
		return fmt.Errorf("packing %q: %w", name, err)
	}
	return nil
}

// addAll adds files in the order of their names.
func (w *packer) addAll(files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.add(name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

// close returns the archive.
func (w *packer) close() ([]byte, error) {
	if err := errors.Join(w.files.Close(), w.zipped.Close()); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	if w.packed.Len() > MaxArchiveBytes {
		return nil, fmt.Errorf("the archive of the chart has %d bytes, more than the limit of %d: list files that it does not need in %s",
			w.packed.Len(), MaxArchiveBytes, ignore.HelmIgnore)
	}
	return w.packed.Bytes(), nil
}
