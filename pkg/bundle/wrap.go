package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Wrap loads a package around a chart, which is read from a place, in memory. Every given value becomes a parameter. The version of the package is the
// chart's with a digest of its files: the same chart with the same values given is the same OperatorVersion.
func (l *Loader) Wrap(
	ctx context.Context, place, name string, archive []byte, described wrap.Chart, given []wrap.Given,
) (*Bundle, error) {
	packed := described.Name + ".tgz"
	files, err := wrap.GivenFiles(name, packed, described, given)
	if err != nil {
		return nil, err
	}
	described.Version = digestVersion(described.Version, files, archive)
	if files, err = wrap.GivenFiles(name, packed, described, given); err != nil {
		return nil, err
	}
	files[packed] = string(archive)
	return l.LoadFiles(ctx, place, files)
}

// LoadFiles loads a package from the texts of its files, by name. The place is for messages.
func (l *Loader) LoadFiles(ctx context.Context, place string, files map[string]string) (*Bundle, error) {
	kept, err := filesOf(files)
	if err != nil {
		return nil, fmt.Errorf("reading the files of package %s: %w", text.Word(place), err)
	}
	l.Begin()
	return l.LoadFrom(ctx, source{Name: place, Archive: kept, folder: "."})
}

// filesOf returns a file system with files, by their names.
func filesOf(texts map[string]string) (fs.FS, error) {
	var kept bytes.Buffer
	into := zip.NewWriter(&kept)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		file, err := into.Create(name)
		if err == nil {
			_, err = io.WriteString(file, texts[name])
		}
		if err != nil {
			return nil, err
		}
	}
	if err := into.Close(); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(kept.Bytes()), int64(kept.Len()))
}

// digestVersion returns a version of a chart with a digest of files, as a pre-release: metadata after a plus cannot be in the name of an object.
func digestVersion(version string, files map[string]string, archive []byte) string {
	const digits = 10
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%q %q\n", name, files[name])
	}
	sum.Write(archive)
	version, _, _ = strings.Cut(version, "+")
	separator := "-"
	if strings.Contains(version, "-") {
		separator = "."
	}
	return version + separator + "s" + fmt.Sprintf("%x", sum.Sum(nil))[:digits]
}
