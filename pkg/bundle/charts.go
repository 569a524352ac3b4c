package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/text"
)

// renderCharts renders the charts of a package without errors, like the first deployment of an Instance that sets only what it must, and its upgrade, and
// adds the problems. No cluster is needed, so look-ups find nothing. With try, hostile values of parameters are tried. It returns an error that is no
// problem of the package.
func (m *Member) renderCharts(ctx context.Context, try bool) error {
	if len(pack.Errors(m.Problems)) > 0 {
		return nil
	}
	runs, err := m.chartRuns(ctx)
	if err != nil || len(runs) == 0 {
		return err
	}
	m.Problems = append(m.Problems, m.Pkg.VerifyContent()...)
	if len(pack.Errors(m.Problems)) > 0 {
		return nil
	}
	rendered := map[string]pack.Chart{}
	for _, r := range runs {
		if rendered[r.task.Name] = r.run(ctx, try); ctx.Err() != nil {
			return ctx.Err()
		}
		m.Problems = append(m.Problems, r.problems...)
	}
	m.Rendered = rendered
	m.Problems = append(m.Problems, m.Pkg.VerifyCharts(rendered)...)
	return nil
}

// chartRun renders the chart of a task.
type chartRun struct {
	pkg      *pack.Package
	index    int
	task     kudo.Task
	renderer *chart.Renderer
	archive  []byte
	lookups  map[pack.Lookup]bool
	problems []pack.Problem
}

// chartRuns adds the archives of charts to the content of the package. A chart that cannot be packed or fetched is a problem of the
// package.
func (m *Member) chartRuns(ctx context.Context) ([]*chartRun, error) {
	renderer, err := chart.NewRenderer()
	if err != nil {
		return nil, err
	}
	var runs []*chartRun
	for i, task := range m.Pkg.Version.Tasks {
		if task.Kind != kudo.TaskHelm {
			continue
		}
		name, archive, err := m.ChartOf(ctx, i, task)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.As(err, new(*chart.ProcessError)) {
			return nil, failure{err}
		}
		if err != nil {
			m.Problems = append(m.Problems, chartProblem(m.Pkg, i, pack.Error, "task %s: %v", text.Quote(task.Name), err))
			continue
		}
		m.addChart(name, archive)
		if _, err := compatibility.ParseConstraint(cmp.Or(chart.KubeVersion(archive), "*")); err != nil {
			m.Problems = append(m.Problems, chartProblem(m.Pkg, i, pack.Error, "task %s: chart %s: kubeVersion in Chart.yaml is no constraint such as >=1.25.0-0: %v",
				text.Quote(task.Name), text.Quote(task.Spec.Chart), err))
			continue
		}
		runs = append(runs, &chartRun{pkg: m.Pkg, index: i, task: task, renderer: renderer, archive: archive, lookups: map[pack.Lookup]bool{}})
	}
	return runs, nil
}

// run renders the chart, and adds the problems.
func (r *chartRun) run(ctx context.Context, try bool) pack.Chart {
	values, isDefault, known := r.pkg.ChartValues(r.task)
	if !known { // verification reports why
		return pack.Chart{}
	}
	var done pack.Chart
	for _, upgrade := range []bool{false, true} {
		out, err := r.render(ctx, values, upgrade)
		if ctx.Err() != nil {
			return pack.Chart{}
		}
		if err != nil {
			r.report(err, isDefault && len(r.lookups) == 0, upgrade)
			break
		}
		if !upgrade {
			r.warn(out.Warnings)
		}
		done.Renderings = append(done.Renderings, *out)
	}
	done.Lookups = slices.Collect(maps.Keys(r.lookups))
	if try && len(done.Renderings) > 0 {
		r.problems = append(r.problems, r.pkg.TryChartValues(r.index, func(values string) (release.Rendering, error) {
			out, err := r.render(ctx, values, false)
			if err != nil {
				return release.Rendering{}, err
			}
			return *out, nil
		})...)
	}
	return done
}

// render renders the chart with values.
func (r *chartRun) render(ctx context.Context, values string, upgrade bool) (*release.Rendering, error) {
	of := chart.Release{Name: r.task.Spec.ReleaseName, Namespace: "namespace", Revision: 1, Upgrade: upgrade}
	if of.Name == "" {
		of.Name = "instance"
	}
	if upgrade {
		of.Revision++
	}
	return r.renderer.Render(ctx, chart.Input{Archive: r.archive, Values: []byte(values), Release: of, Capabilities: chart.DefaultCapabilities()},
		func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
			r.lookups[pack.Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}] = true
			return map[string]any{}, nil
		})
}

// report adds an error of rendering. It is a warning if an Instance may render the chart: with other values, if isDefault is false, with what it looks up,
// or on another version of Kubernetes. That of an upgrade is only reported if it is certain.
func (r *chartRun) report(err error, certain, upgrade bool) {
	certain = certain && !errors.As(err, new(*chart.VersionError)) && !errors.As(err, new(*chart.LimitError))
	name, of := text.Quote(r.task.Name), text.Quote(r.task.Spec.Chart)
	switch {
	case !upgrade && certain:
		r.add(pack.Error, "task %s: chart %s does not render with the default parameters: %v", name, of, err)
	case !upgrade:
		r.add(pack.Warning, "task %s: chart %s does not render with the default parameters: %v", name, of, err)
	case certain:
		r.add(pack.Error, "task %s: chart %s does not render with the default parameters at an upgrade: %v", name, of, err)
	}
}

func (r *chartRun) warn(warnings []string) {
	const shown = 20
	for _, warning := range text.Limit(warnings, shown, "more warnings") {
		r.add(pack.Warning, "task %s: chart %s: %s", text.Quote(r.task.Name), text.Quote(r.task.Spec.Chart), warning)
	}
}

// addChart adds the archive of a chart to the content of the package.
func (m *Member) addChart(name string, archive []byte) {
	if m.Charts == nil {
		m.Charts = map[string][]byte{}
	}
	m.Charts[name] = archive
	content.Add(&m.Pkg.Version, name, archive)
	at := slices.IndexFunc(m.Pkg.Version.Content, func(f kudo.ContentFile) bool { return f.File == name })
	m.Pkg.Version.Content[at].KubeVersion = chart.KubeVersion(archive)
}

// add adds a problem of the chart.
func (r *chartRun) add(severity pack.Severity, format string, args ...any) {
	r.problems = append(r.problems, chartProblem(r.pkg, r.index, severity, format, args...))
}

func chartProblem(p *pack.Package, task int, severity pack.Severity, format string, args ...any) pack.Problem {
	return p.At(fmt.Sprintf("tasks[%d].spec.chart", task), severity, text.JoinMessage(fmt.Sprintf(format, args...)))
}
