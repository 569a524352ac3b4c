// Package pack reads and verifies packages: it converts operator.yaml, params.yaml and templates/ in KUDO's format to Operator and
// OperatorVersion. It is pure (fs.FS in) and touches no cluster.
package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Load decodes operator.yaml, params.yaml and every file under templates/ strictly, and ignores other files. The problems name all unknown
// and duplicate fields, wrong types and missing required fields. The package is never nil and contains everything that could be decoded.
func Load(fsys fs.FS) (*Package, []Problem) {
	p := &Package{places: map[string]place{}}
	p.loadOperator(fsys)
	p.loadParams(fsys)
	p.loadTemplates(fsys)
	p.loadSamples(fsys)
	p.findCharts(fsys)
	sortProblems(p.problems)
	return p, slices.Clone(p.problems)
}

// Verify returns all problems about the package, sorted by file and line: the problems of Load, those of Check, and, if there are none so
// far, whether the templates disclose sensitive parameters, and render with the default ones. It omits problems of Check for lines that Load could not decode.
func (p *Package) Verify() []Problem {
	problems := slices.Clone(p.problems)
	if !p.readable {
		return problems
	}
	subject := newSubject(&p.Version)
	subject.whole = true
	subject.operator, subject.blind, subject.unread = p.Operator, !p.hasParams, p.unreadTemplates()
	judged := append(subject.judge(), objectName(subject)...)
	if len(Errors(problems)) == 0 && len(Errors(judged)) == 0 {
		judged = append(judged, disclosures(subject)...)
		problems = append(problems, p.judgeSamples()...)
		judged = append(judged, dryRun(subject)...)
		if !subject.hasCharts() { // VerifyCharts reports them
			judged = append(judged, neededPermissions(subject)...)
		}
	}
	return p.merge(problems, judged)
}

// VerifyValues returns the problems of Verify and, unless there are errors, the templates that do not accept every value of a parameter.
func (p *Package) VerifyValues() []Problem {
	problems := p.Verify()
	if !p.readable || len(Errors(problems)) > 0 {
		return problems
	}
	return p.merge(problems, hostileValues(newSubject(&p.Version)))
}

// VerifyContent returns the problems with the content of a package, once the archives of its charts are in it.
func (p *Package) VerifyContent() []Problem {
	s := newSubject(&p.Version)
	s.whole = true
	return p.merge(nil, append(boundedSize(s), contentFiles(s)...))
}

// VerifyCharts returns the problems of a package without errors that only what its charts render shows. charts are those of its Helm tasks, by
// the names of the tasks.
func (p *Package) VerifyCharts(charts map[string]Chart) []Problem {
	p.charts = charts
	s := newSubject(&p.Version)
	s.whole, s.charts = true, charts
	var judged []Problem
	for i, t := range s.Tasks {
		for _, rendering := range charts[t.Name].Renderings {
			if _, err := ofTask(t, rendering); err != nil {
				judged = append(judged, problemAt(taskField(i, "spec.chart"), "task %s: chart %s: %v", text.Quote(t.Name), text.Quote(t.Spec.Chart), err))
				break
			}
		}
	}
	if len(judged) == 0 {
		judged = neededPermissions(s)
	}
	return p.merge(nil, judged)
}

// TryChartValues tries hostile values of the parameters that the chart of a task may get, as an Instance would be checked that sets them, and
// returns those that would be rejected, because the chart inserts them without quotes. render renders the chart with values in JSON.
func (p *Package) TryChartValues(task int, render func(values string) (release.Rendering, error)) []Problem {
	return p.merge(nil, hostileChartValues(newSubject(&p.Version), task, render))
}

// merge returns located problems with judged ones, which it locates, sorted by file and line.
func (p *Package) merge(problems, judged []Problem) []Problem {
	unread := p.unread()
	for _, f := range judged {
		f = p.locate(f)
		if !unread[place{file: f.File, line: f.Line}] {
			problems = append(problems, f)
		}
	}
	sortProblems(problems)
	return slices.Compact(problems)
}

// unreadTemplates returns the templates whose files Load could not read.
func (p *Package) unreadTemplates() map[string]bool {
	names := map[string]bool{}
	for _, f := range p.problems {
		if name, isTemplate := strings.CutPrefix(f.File, templatesFolder+"/"); isTemplate {
			names[name] = true
		}
	}
	return names
}

// unread returns the places that Load could not decode.
func (p *Package) unread() map[place]bool {
	places := map[place]bool{}
	for _, f := range p.problems {
		if f.Severity == Error {
			places[place{file: f.File, line: f.Line}] = true
		}
	}
	return places
}

func (p *Package) loadOperator(fsys fs.FS) {
	d, root := p.open(fsys, operatorFile)
	if root == nil {
		return
	}
	p.readable = true
	d.operator(root, p)
	p.Version.Operator = corev1.ObjectReference{Kind: "Operator", Name: p.Name}
	p.close(d)
}

func (p *Package) loadParams(fsys fs.FS) {
	d, root := p.open(fsys, paramsFile)
	if root == nil {
		return
	}
	p.hasParams = true
	p.Version.Parameters = d.params(root)
	p.close(d)
}

func (p *Package) loadTemplates(fsys fs.FS) {
	names, err := templateFiles(fsys)
	for _, name := range names {
		p.loadTemplate(fsys, name)
	}
	if err != nil {
		p.problem(templatesFolder, 0, "%v", err)
	}
}

// templateFiles returns the files under templates/ that are not hidden.
func templateFiles(fsys fs.FS) ([]string, error) {
	info, err := fs.Stat(fsys, templatesFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // a package of Dummy tasks needs none; the rules find a task that refers to a missing template
	case err != nil:
		return nil, unreadable(err)
	case !info.IsDir():
		return nil, errors.New("is not a folder")
	}
	var names []string
	err = fs.WalkDir(fsys, templatesFolder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading the templates: %w", err)
		}
		if strings.HasPrefix(path.Base(name), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Files returns the files of a valid package that Load reads, sorted.
func Files(fsys fs.FS) ([]string, error) {
	templates, err := templateFiles(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", templatesFolder, err)
	}
	samples, err := sampleFiles(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", healthFolder, unreadable(err))
	}
	return slices.Concat(samples, []string{operatorFile, paramsFile}, templates), nil
}

// chartFile is what the folder of a chart contains.
const chartFile = "Chart.yaml"

// findCharts checks that the charts of Helm tasks are in the package.
func (p *Package) findCharts(fsys fs.FS) {
	for i := range p.Version.Tasks {
		t := &p.Version.Tasks[i]
		if _, why := chartProblem(&t.Spec.HelmTaskSpec); t.Kind != kudo.TaskHelm || why != "" || isFetched(&t.Spec.HelmTaskSpec) {
			continue
		}
		if why := missingChart(fsys, t.Spec.Chart); why != "" {
			p.problems = append(p.problems, p.locate(problemAt(taskField(i, "spec.chart"), "task %s: chart %s %s", text.Quote(t.Name), text.Quote(t.Spec.Chart), why)))
		}
	}
}

// missingChart returns why there is no chart at a path.
func missingChart(fsys fs.FS, name string) string {
	name = path.Clean(name)
	info, err := fs.Stat(fsys, name)
	switch {
	case !fs.ValidPath(name) || name == ".":
		return "is not in the package: copy it there, and set its path relative to operator.yaml"
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist: set the path of a folder or archive relative to operator.yaml"
	case err != nil:
		return unreadable(err).Error()
	case !info.IsDir() && info.Size() > content.MaxBytes:
		return fmt.Sprintf("has %d bytes, more than the limit of %d", info.Size(), content.MaxBytes)
	case !info.IsDir():
		return ""
	}
	if _, err := fs.Stat(fsys, path.Join(name, chartFile)); err != nil {
		return "is a folder without " + chartFile
	}
	return ""
}

// ChartFiles returns the files of the charts in a valid package, sorted. A chart that push fetches has none.
func (p *Package) ChartFiles(fsys fs.FS) ([]string, error) {
	var names []string
	for i := range p.Version.Tasks {
		t := &p.Version.Tasks[i]
		if t.Kind != kudo.TaskHelm || isFetched(&t.Spec.HelmTaskSpec) {
			continue
		}
		err := fs.WalkDir(fsys, path.Clean(t.Spec.Chart), func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the chart of task %q: %w", t.Name, err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (p *Package) loadTemplate(fsys fs.FS, name string) {
	text, ok := p.readFile(fsys, name, content.MaxTemplateBytes, "a template")
	if !ok {
		return
	}
	if p.Version.Templates == nil {
		p.Version.Templates = map[string]string{}
	}
	p.Version.Templates[strings.TrimPrefix(name, templatesFolder+"/")] = text
}
