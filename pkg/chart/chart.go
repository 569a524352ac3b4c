// Package chart renders Helm charts: with the package below it, it is the only door to Helm. It reaches no cluster. Charts are loaded and executed in a child process with
// limits, because no function of ours bounds what a template of Helm may do.
package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/yaml"

	renderyaml "github.com/tandem-addons/tandem/pkg/core/render/yaml"
)

// MaxArchiveBytes limits the archive of a chart, compressed.
const MaxArchiveBytes = 16 << 20

// maxFiles limits the files of a chart, without those in archives of subcharts.
const maxFiles = 10_000

// load loads the archive (.tgz) of a chart with its subcharts, as Helm does, and refuses links, which Helm loads as empty files.
func load(archive []byte) (*helm.Chart, error) {
	if len(archive) > MaxArchiveBytes {
		return nil, fmt.Errorf("the archive of the chart has %d bytes, more than the limit of %d", len(archive), MaxArchiveBytes)
	}
	if err := checkEntries(archive); err != nil {
		return nil, fmt.Errorf("the archive of the chart %w", err)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	return loaded, checkDependencies(loaded)
}

// maxMetadataBytes limits Chart.yaml.
const maxMetadataBytes = 1 << 20

// KubeVersion returns the constraint on the version of Kubernetes in Chart.yaml of an archive; empty if there is none, or if it cannot be read, which
// rendering reports. It loads nothing else.
func KubeVersion(archive []byte) string { return metadataOf(archive).KubeVersion }

// VersionOf returns the version in Chart.yaml of an archive; empty if it cannot be read.
func VersionOf(archive []byte) string { return metadataOf(archive).Version }

// metadataOf returns Chart.yaml of an archive; nothing if it cannot be read.
func metadataOf(archive []byte) helm.Metadata {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return helm.Metadata{}
	}
	entries := tar.NewReader(unzipped)
	for range maxFiles {
		entry, err := entries.Next()
		if err != nil {
			return helm.Metadata{}
		}
		if folder, name := path.Split(path.Clean(entry.Name)); name != helmutil.ChartfileName || strings.Count(folder, "/") != 1 {
			continue
		}
		var metadata helm.Metadata
		text, err := io.ReadAll(io.LimitReader(entries, maxMetadataBytes))
		if err == nil {
			_, _, err = renderyaml.First(string(text), maxMetadataBytes)
		}
		if err != nil || yaml.Unmarshal(text, &metadata) != nil {
			return helm.Metadata{}
		}
		return metadata
	}
	return helm.Metadata{}
}

// checkEntries checks the entries of an archive before their contents are read.
func checkEntries(archive []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("is not a gzipped archive: %w", err)
	}
	entries := tar.NewReader(unzipped)
	for count := 1; ; count++ {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot be read: %w", err)
		case entry.Typeflag == tar.TypeSymlink || entry.Typeflag == tar.TypeLink:
			return fmt.Errorf("contains the link %q: replace it by the file", entry.Name)
		case count > maxFiles:
			return fmt.Errorf("has more than %d files", maxFiles)
		}
	}
}

// checkDependencies returns an error for a dependency in Chart.yaml that is not in charts/, as `helm install` does; like Helm, it does not check
// those of subcharts.
func checkDependencies(c *helm.Chart) error {
	for _, dependency := range missingOf(c) {
		return fmt.Errorf("chart %q: dependency %q is in Chart.yaml, but not in folder charts: run 'helm dependency build'", c.Name(), dependency.Name)
	}
	return nil
}

// missingOf returns the dependencies in Chart.yaml that are not in charts/.
func missingOf(c *helm.Chart) []*helm.Dependency {
	return slices.DeleteFunc(slices.Clone(c.Metadata.Dependencies), func(d *helm.Dependency) bool {
		return d == nil || slices.ContainsFunc(c.Dependencies(), func(present *helm.Chart) bool { return present.Name() == d.Name })
	})
}
