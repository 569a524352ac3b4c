package pack

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Rights returns the permissions that a valid package needs, for the tasks of all plans and for the Secrets of sensitive parameters, and notes
// about what they do not include because it depends on the cluster or on parameters. Templates are rendered with the default parameters; for charts, it is what
// VerifyCharts received.
func (p *Package) Rights() (permissions *kudo.Permissions, unknown []string) {
	s := newSubject(&p.Version)
	s.charts = p.charts
	needs := needsOf(s)
	return needs.Permissions(), needs.Unknown()
}

// use is a template and what a task does with its objects.
type use struct {
	task, template string
	kind           rights.Use
	objects        []*unstructured.Unstructured
	err            error
}

// TaskObjects are the objects that a task renders from a template or a chart.
type TaskObjects struct {
	Task string
	// Template is the template; empty for a chart, and for the files of a Pipe task.
	Template string
	Objects  []*unstructured.Unstructured
	// Err is why a template does not render.
	Err error
}

// TaskObjects returns the objects of all tasks that a plan runs, as for Rights: with the default parameters, and for charts at an install and at an upgrade.
func (p *Package) TaskObjects() []TaskObjects {
	s := newSubject(&p.Version)
	s.charts = p.charts
	c, _ := firstDeployment(s.OperatorVersionSpec)
	var all []TaskObjects
	for _, t := range s.Tasks {
		if !s.runs(t.Name) {
			continue
		}
		for _, u := range slices.Concat(usesOf(c, t), s.usesOfChart(t)) {
			all = append(all, TaskObjects{Task: t.Name, Template: u.template, Objects: u.objects, Err: u.err})
		}
	}
	return all
}

// needsOf works out the permissions that all tasks need. A task that no plan runs needs none.
func needsOf(s *subject) *rights.Needs {
	c := probe(s.OperatorVersionSpec)
	var uses []use
	for _, t := range s.Tasks {
		if s.runs(t.Name) {
			uses = append(uses, slices.Concat(usesOf(c, t), s.usesOfChart(t))...)
		}
	}
	var all []*unstructured.Unstructured
	for _, u := range uses {
		all = append(all, u.objects...)
	}
	needs := rights.NewNeeds(c.Namespace, all)
	for _, p := range s.Parameters {
		if p.IsSensitive() {
			needs.AddReference(p.Name)
		}
		if isTrue(p.Structure) {
			needs.Note("parameter %s is inserted as YAML: objects in it are included only from the default", text.Quote(p.Name))
		}
	}
	for _, u := range uses {
		for _, object := range u.objects {
			needs.Add(u.task, u.kind, object)
		}
		s.beyondDefaults(needs, u)
	}
	s.noteCharts(needs)
	return needs
}

// runs reports whether a step of any plan names the task.
func (s *subject) runs(task string) bool {
	found := false
	s.eachStep(func(_ string, step *kudo.Step, _ string) { found = found || slices.Contains(step.Tasks, task) })
	return found
}

// usesOf renders the templates of a task.
func usesOf(c render.Context, t kudo.Task) []use {
	kinds := map[string]rights.Use{kudo.TaskApply: rights.Applies, kudo.TaskDelete: rights.Deletes, kudo.TaskToggle: rights.Toggles}
	if t.Kind == kudo.TaskPipe {
		pod := use{task: t.Name, template: t.Spec.Pod, kind: rights.Pipes}
		var object *unstructured.Unstructured
		if object, pod.err = render.NamedObject(c, t.Spec.Pod, pipe.PodName(c.Instance, t.Name)); pod.err == nil {
			pod.objects = []*unstructured.Unstructured{object}
		}
		return []use{pod, {task: t.Name, kind: rights.Applies, objects: pipe.Artifacts(c.Instance, t)}}
	}
	if !hasResources(t.Kind) {
		return nil
	}
	var uses []use
	for _, name := range t.Spec.Resources {
		u := use{task: t.Name, template: name, kind: kinds[t.Kind]}
		u.objects, u.err = render.Objects(c, name)
		uses = append(uses, u)
	}
	return uses
}

// ofTask returns what a Helm task applies of a rendering.
func ofTask(t kudo.Task, rendering release.Rendering) (release.Rendering, error) {
	return rendering.ForTask(t.Spec.HelmTaskSpec, func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) { return o.DeepCopy(), nil })
}

// usesOfChart returns what a Helm task does with the objects that its chart renders.
func (s *subject) usesOfChart(t kudo.Task) []use {
	var uses []use
	for _, rendering := range s.charts[t.Name].Renderings {
		applied, err := ofTask(t, rendering)
		if err != nil { // VerifyCharts reports it
			continue
		}
		hooks := release.Rendering{Hooks: applied.Hooks}.All()
		applied.Hooks = nil
		uses = append(uses, use{task: t.Name, kind: rights.Applies, objects: applied.All()}, use{task: t.Name, kind: rights.Hooks, objects: hooks})
	}
	return uses
}

// noteCharts adds the permissions for what charts look up, and notes about what is not known of them.
func (s *subject) noteCharts(needs *rights.Needs) {
	for _, t := range s.Tasks {
		if t.Kind == kudo.TaskHelm && s.runs(t.Name) {
			s.noteChart(needs, t)
		}
	}
}

func (s *subject) noteChart(needs *rights.Needs, t kudo.Task) {
	chart, name := s.charts[t.Name], text.Quote(t.Spec.Chart)
	if len(chart.Renderings) == 0 {
		needs.Note("chart %s does not render with the default parameters and without a cluster: what it renders and looks up is not included", name)
		return
	}
	needs.Note("chart %s is rendered with the default parameters and without a cluster: what it renders with others, and looks up then, is not included", name)
	for _, l := range chart.Lookups {
		gv, err := schema.ParseGroupVersion(l.APIVersion)
		if err != nil {
			continue // the lookup fails on every cluster
		}
		needs.AddLookup(t.Name, gv.WithKind(l.Kind), l.Namespace, l.Name != "")
	}
}

var (
	// variableType matches a kind or an API version that a template prints.
	variableType = regexp.MustCompile(`(?m)^(?:-? *)(?:apiVersion|kind):.*\{\{`)
	// variableNamespace matches a namespace that a template prints, other than the Instance's.
	variableNamespace = regexp.MustCompile(`(?m)^ +namespace:[ \t]*["']?\{\{-?[ \t]*([^}]*?)[ \t]*-?\}\}`)
)

// beyondDefaults adds what a template may render with other parameters than the defaults: the kinds that are written in it, and notes about
// kinds and namespaces that are not.
func (s *subject) beyondDefaults(needs *rights.Needs, u use) {
	source := s.Templates[u.template]
	if u.err != nil {
		needs.Note("template %s does not render with the default parameters: only the kinds that are written in it are known", text.Quote(u.template))
	}
	for _, written := range writtenKinds(source) {
		kind, _ := render.Successor(written.gvk)
		if !slices.ContainsFunc(u.objects, func(o *unstructured.Unstructured) bool { return sameKind(o, kind) }) {
			needs.AddKind(u.task, u.kind, kind)
		}
	}
	if variableType.MatchString(source) {
		needs.Note("the kinds of template %s depend on parameters: those of the defaults are included", text.Quote(u.template))
	}
	for _, m := range variableNamespace.FindAllStringSubmatch(source, -1) {
		if expression, _, _ := strings.Cut(m[1], "|"); strings.TrimSpace(expression) != ".Namespace" {
			needs.Note("the namespaces of template %s depend on parameters: those of the defaults are included", text.Quote(u.template))
		}
	}
}

func sameKind(o *unstructured.Unstructured, kind schema.GroupVersionKind) bool {
	return o.GroupVersionKind().GroupKind() == kind.GroupKind()
}
