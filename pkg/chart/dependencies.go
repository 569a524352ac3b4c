package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/text"
)

// missingDependencies is Missing in this process.
func missingDependencies(archive []byte) ([]catalog.Reference, error) {
	if err := checkEntries(archive); err != nil {
		return nil, fmt.Errorf("the archive of the chart %w", err)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	absent := missingOf(loaded)
	if len(absent) > 0 && !isLocked(loaded) {
		return nil, fmt.Errorf("chart %s: Chart.lock does not belong to the dependencies in Chart.yaml: run 'helm dependency update'", text.Quote(loaded.Name()))
	}
	var references []catalog.Reference
	for _, d := range absent {
		ref, err := referenceTo(loaded, d)
		if err != nil {
			return nil, fmt.Errorf("chart %s: dependency %s is in Chart.yaml, but not in folder charts, and %w", text.Quote(loaded.Name()), text.Quote(d.Name), err)
		}
		if !slices.Contains(references, ref) { // one chart may be a dependency twice, with aliases
			references = append(references, ref)
		}
	}
	return references, nil
}

// isLocked reports whether Chart.lock, if there is one, belongs to the dependencies in Chart.yaml, as Helm decides it.
func isLocked(c *helm.Chart) bool {
	if c.Lock == nil {
		return true
	}
	encoded, err := json.Marshal([2][]*helm.Dependency{c.Metadata.Dependencies, c.Lock.Dependencies})
	return err == nil && c.Lock.Digest == fmt.Sprintf("sha256:%x", sha256.Sum256(encoded))
}

// referenceTo returns where a dependency is fetched from.
func referenceTo(c *helm.Chart, d *helm.Dependency) (catalog.Reference, error) {
	const build = "run 'helm dependency build'"
	version := d.Version
	if c.Lock != nil {
		at := slices.IndexFunc(c.Lock.Dependencies, func(locked *helm.Dependency) bool { return locked.Name == d.Name && locked.Repository == d.Repository })
		if at >= 0 {
			version = c.Lock.Dependencies[at].Version
		}
	}
	repository := strings.TrimPrefix(strings.TrimPrefix(d.Repository, "alias:"), "@")
	switch {
	case repository == "":
		return catalog.Reference{}, fmt.Errorf("it has no repository: %s", build)
	case strings.HasPrefix(repository, "file:"):
		return catalog.Reference{}, fmt.Errorf("its repository is a folder: %s", build)
	case !catalog.IsExact(version):
		return catalog.Reference{}, fmt.Errorf("its version %s is not exact, and there is no Chart.lock: run 'helm dependency update'", text.Quote(version))
	}
	ref, err := catalog.ParseReference(d.Name, repository)
	if err != nil {
		return catalog.Reference{}, fmt.Errorf("its place is invalid: %w", err)
	}
	ref.Version = version
	return ref, nil
}
