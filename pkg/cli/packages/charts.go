package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// renderCharts renders the charts of a package without errors, like the first deployment of an Instance that sets only what it must, and adds the
// problems. No cluster is needed, so look-ups find nothing. It returns an error that is no problem of the package.
func (m *member) renderCharts(ctx context.Context) error {
	if len(pack.Errors(m.problems)) > 0 {
		return nil
	}
	for i, task := range m.pkg.Version.Tasks {
		if task.Kind != kudo.TaskHelm {
			continue
		}
		if err := cmp.Or(m.renderChart(ctx, i, task), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// renderChart renders the chart of a task. It returns an error that is no problem of the package.
func (m *member) renderChart(ctx context.Context, i int, task kudo.Task) error {
	renderer, err := chart.NewRenderer()
	if err != nil {
		return err
	}
	archive, err := m.chartArchive(task.Spec.Chart)
	if err != nil {
		m.chartProblem(i, pack.Error, "task %s: chart %s: %v", text.Quote(task.Name), text.Quote(task.Spec.Chart), err)
		return nil
	}
	m.addChart(task.Spec.Chart, archive)
	values, isDefault, known := m.pkg.ChartValues(task)
	if !known { // verification reports why
		return nil
	}
	release := chart.Release{Name: task.Spec.ReleaseName, Namespace: "namespace", Revision: 1}
	if release.Name == "" {
		release.Name = "instance"
	}
	out, err := renderer.Render(ctx, chart.Input{Archive: archive, Values: []byte(values), Release: release, Capabilities: chart.DefaultCapabilities()},
		func(context.Context, string, string, string, string) (map[string]any, error) {
			isDefault = false // an Instance may find something
			return map[string]any{}, nil
		})
	if err != nil {
		severity := pack.Error
		if !isDefault || errors.As(err, new(*chart.VersionError)) || errors.As(err, new(*chart.LimitError)) {
			severity = pack.Warning
		}
		m.chartProblem(i, severity, "task %s: chart %s does not render with the default parameters: %v", text.Quote(task.Name), text.Quote(task.Spec.Chart), err)
		return nil
	}
	const shown = 20
	for _, warning := range text.Limit(out.Warnings, shown, "more warnings") {
		m.chartProblem(i, pack.Warning, "task %s: chart %s: %s", text.Quote(task.Name), text.Quote(task.Spec.Chart), warning)
	}
	return nil
}

// addChart adds the archive of a chart to the content of the package.
func (m *member) addChart(name string, archive []byte) {
	if m.charts == nil {
		m.charts = map[string][]byte{}
	}
	m.charts[name] = archive
	content.Add(&m.pkg.Version, name, archive)
}

// chartArchive returns the archive of a chart in the package.
func (m *member) chartArchive(name string) ([]byte, error) {
	files, done, err := m.open()
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
	return chart.Pack(folder)
}

func (m *member) chartProblem(task int, severity pack.Severity, format string, args ...any) {
	m.problems = append(m.problems, m.pkg.At(fmt.Sprintf("tasks[%d].spec.chart", task), severity, text.JoinMessage(fmt.Sprintf(format, args...))))
}
