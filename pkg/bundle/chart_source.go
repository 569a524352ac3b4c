package bundle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ChartFetcher fetches charts from repositories and registries, each once.
type ChartFetcher struct {
	// open returns the client; nil for one with the credentials of the user's Helm and docker.
	open    func() (*registry.Client, error)
	client  *registry.Client
	fetched map[catalog.Reference]*registry.Chart
	// size is the number of bytes of all archives that were fetched. room limits it, unless it is 0.
	size, room int64
}

// roomForCharts limits the total size of the charts of a package, which may refer to many.
const roomForCharts = 8 * chart.MaxArchiveBytes

// Fetch returns a chart, which it fetches once.
func (f *ChartFetcher) Fetch(ctx context.Context, ref catalog.Reference) (*registry.Chart, error) {
	if known := f.fetched[ref]; known != nil {
		return known, nil
	}
	if f.client == nil {
		open := f.open
		if open == nil {
			open = registry.New
		}
		client, err := open()
		if err != nil {
			return nil, err
		}
		f.client, f.fetched = client, map[catalog.Reference]*registry.Chart{}
	}
	room := cmp.Or(f.room, roomForCharts)
	if f.size <= room {
		found, err := f.client.Fetch(ctx, ref)
		if err != nil {
			return nil, err
		}
		if f.size += int64(len(found.Archive)); f.size <= room {
			f.fetched[ref] = found
			return found, nil
		}
	}
	return nil, fmt.Errorf("the charts that the package refers to have more than %d bytes in total", room)
}

// pack returns the archive of the chart in a folder, with the dependencies that its folder charts lacks.
func (f *ChartFetcher) pack(ctx context.Context, folder fs.FS) ([]byte, error) {
	archive, err := chart.Pack(folder)
	if err != nil {
		return nil, err
	}
	missing, err := chart.Missing(ctx, archive)
	if err != nil || len(missing) == 0 {
		return archive, err
	}
	added := map[string][]byte{}
	for _, ref := range missing {
		dependency, err := f.Fetch(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("fetching a dependency that is not in folder charts: %w; or run 'helm dependency build'", err)
		}
		added[path.Join("charts", archiveName(dependency))] = dependency.Archive
	}
	return chart.PackWith(folder, added)
}

// Read returns the archive of a chart in a folder or a file.
func (f *ChartFetcher) Read(ctx context.Context, place string, info fs.FileInfo) ([]byte, error) {
	if info.IsDir() {
		return f.pack(ctx, os.DirFS(place))
	}
	if info.Size() > chart.MaxArchiveBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d for the archive of a chart", place, info.Size(), chart.MaxArchiveBytes)
	}
	archive, err := os.ReadFile(place)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return archive, nil
}

// archiveName returns the name of the archive of a chart, as Helm names it.
func archiveName(c *registry.Chart) string { return fmt.Sprintf("%s-%s.tgz", c.Name, c.Version) }

// SourceText describes where a chart was fetched from, and what it is.
func SourceText(c FetchedChart) string {
	return fmt.Sprintf("chart %s %s fetched from %s (%s)\n", c.Chart, c.Version, c.From, c.Digest)
}

// ChartOf returns the archive of the chart of a task, and its name in the content of the package.
func (m *Member) ChartOf(ctx context.Context, index int, task kudo.Task) (name string, archive []byte, err error) {
	if ref, elsewhere := pack.ChartReference(&task.Spec.HelmTaskSpec); elsewhere {
		name, archive, err = m.fetchChart(ctx, index, ref)
	} else {
		name = task.Spec.Chart
		archive, err = m.ownChart(ctx, &task.Spec.HelmTaskSpec)
	}
	if err != nil {
		return "", nil, err
	}
	if other, known := m.Charts[name]; known && !bytes.Equal(other, archive) {
		return "", nil, fmt.Errorf("another task has another chart that is called %s: put one of them into the package, in a folder", text.Quote(name))
	}
	return name, archive, nil
}

// fetchChart returns the archive of a chart that is not in the package.
func (m *Member) fetchChart(ctx context.Context, index int, ref catalog.Reference) (name string, archive []byte, err error) {
	if m.secure && strings.HasPrefix(ref.Repository, "http://") && ref.Digest == "" {
		return "", nil, fmt.Errorf("the package was read over https: repository %s must use https, or the task must have a digest", text.Quote(ref.Repository))
	}
	found, err := m.fetcher.Fetch(ctx, ref)
	if err != nil {
		return "", nil, err
	}
	if m.fetched == nil {
		m.fetched = map[int]*registry.Chart{}
	}
	m.fetched[index] = found
	return archiveName(found), found.Archive, nil
}

// ownChart returns the archive of a chart in the package.
func (m *Member) ownChart(ctx context.Context, spec *kudo.HelmTaskSpec) ([]byte, error) {
	archive, err := m.chartArchive(ctx, spec.Chart)
	if err == nil && spec.Repository != "" {
		err = checkPinned(spec, archive)
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", text.Quote(spec.Chart), err)
	}
	return archive, nil
}

// checkPinned returns an error if an archive in the package is not the one that its task says.
func checkPinned(spec *kudo.HelmTaskSpec, archive []byte) error {
	if found := content.DigestOf(archive); spec.Digest != "" && spec.Digest != found {
		return fmt.Errorf("the archive has digest %s, but the task expects %s", found, spec.Digest)
	}
	if found := chart.VersionOf(archive); !catalog.IsSame(found, spec.Version) {
		return fmt.Errorf("the archive contains version %s, but the task expects %s", text.Quote(found), text.Quote(spec.Version))
	}
	return nil
}

// chartArchive returns the archive of a chart in the package.
func (m *Member) chartArchive(ctx context.Context, name string) ([]byte, error) {
	files, done, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer done()
	name = path.Clean(name)
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return fs.ReadFile(files, name) // verification has checked its size
	}
	folder, err := fs.Sub(files, name)
	if err != nil {
		return nil, err
	}
	return m.fetcher.pack(ctx, folder)
}

// setSources sets in the tasks of an OperatorVersion what was fetched: the archive in the content, and where it is from.
func (m *Member) setSources(version *kudo.OperatorVersion) {
	for i, found := range m.fetched {
		spec := &version.Spec.Tasks[i].Spec.HelmTaskSpec
		spec.Chart, spec.Repository, spec.Version, spec.Digest = archiveName(found), found.Repository, found.Version, found.Digest
	}
}

// FetchedChart is a chart that was fetched, for programs.
type FetchedChart struct {
	Task       string `json:"task"`
	Chart      string `json:"chart"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	// From is the URL from which the archive was read: that of a mirror, for example.
	From   string `json:"from"`
	Digest string `json:"digest"`
}

// FetchedCharts returns the charts that were fetched for a package, in the order of its tasks.
func (m *Member) FetchedCharts() []FetchedChart {
	var charts []FetchedChart
	for i, task := range m.Pkg.Version.Tasks {
		if c := m.fetched[i]; c != nil {
			charts = append(charts, FetchedChart{Task: task.Name, Chart: c.Name, Version: c.Version, Repository: c.Repository, From: c.From, Digest: c.Digest})
		}
	}
	return charts
}
