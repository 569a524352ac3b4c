package pack

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dryRun renders every template once, with the default parameters and samples of the required ones without a default, like the first deployment.
// It is not a rule of Check: controllers do not run templates of third parties to judge them.
func dryRun(s *subject) []Problem {
	c, samples := firstDeployment(s.OperatorVersionSpec)
	var problems []Problem
	objects := map[string][]*unstructured.Unstructured{}
	for _, name := range sortedKeys(s.templatesOfObjects()) {
		rendered, err := render.Templates(c, name)
		objects[name] = rendered.Objects
		if err != nil && !isDisclosure(err) {
			problems = append(problems, s.dryRunProblem(samples, name, err))
		}
		problems = append(problems, omissions(s.Templates[name], name, rendered.Omissions)...)
	}
	problems = append(problems, checkAutoscaled(s, objects)...)
	problems = append(problems, misunderstood(s, objects)...)
	for _, t := range s.Tasks {
		if t.Kind == kudo.TaskPipe {
			problems = append(problems, s.tryPod(c, samples, t)...)
		}
		if makesChild(t.Kind) {
			if _, _, err := childParameters(c, t); err != nil && !isDisclosure(err) {
				problems = append(problems, s.dryRunProblem(samples, t.Spec.ParameterFile, err))
			}
		}
		if _, err := chartValues(c, t); err != nil && !isDisclosure(err) {
			problems = append(problems, s.dryRunProblem(samples, t.Spec.ValuesFile, err))
		}
	}
	return problems
}

// omissions warns of the fields of a template that are not applied.
func omissions(source, name string, omitted []render.Omission) []Problem {
	const shown = 100
	var problems []Problem
	for _, o := range omitted {
		problem := warningAt(templateField(name), "%s is not applied, because %s: remove it", o, o.Reason)
		problem.Line = lineOf(source, o.Field)
		problems = append(problems, problem)
	}
	return First(problems, shown)
}

// checkAutoscaled warns of workloads that a HorizontalPodAutoscaler of the package scales, and whose template sets the number of replicas
// as well. rendered holds the objects of each template.
func checkAutoscaled(s *subject, rendered map[string][]*unstructured.Unstructured) []Problem {
	var autoscalers []*unstructured.Unstructured
	for _, name := range sortedKeys(rendered) {
		for _, o := range rendered[name] {
			if kind := o.GroupVersionKind(); kind.GroupKind() == render.AutoscalerKind.GroupKind() {
				autoscalers = append(autoscalers, o)
			}
		}
	}
	var problems []Problem
	for _, name := range sortedKeys(rendered) {
		for _, o := range rendered[name] {
			for _, autoscaler := range autoscalers {
				if _, sets, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas"); !sets || !render.Scales(autoscaler, o) {
					continue
				}
				problem := warningAt(templateField(name), "spec.replicas of %s only counts until %s scales it: remove the field",
					plan.Describe(o), plan.Describe(autoscaler))
				problem.Line = lineOf(s.Templates[name], "replicas")
				problems = append(problems, problem)
			}
		}
	}
	return First(problems, maxAutoscaled)
}

// maxAutoscaled is the number of warnings of workloads that are scaled.
const maxAutoscaled = 20

// misunderstood warns of annotations that are meant to keep an object and do not. rendered holds the objects of each template.
func misunderstood(s *subject, rendered map[string][]*unstructured.Unstructured) []Problem {
	const shown = 20
	var problems []Problem
	for _, name := range sortedKeys(rendered) {
		for _, o := range rendered[name] {
			annotation, why := plan.KeepProblem(o)
			if annotation == "" {
				continue
			}
			problem := warningAt(templateField(name), "%s: %s", plan.Describe(o), why)
			problem.Line = lineOfKey(s.Templates[name], annotation)
			problems = append(problems, problem)
		}
	}
	return First(problems, shown)
}

// lineOf returns the line of a template that sets a field, 0 if it may be one of several.
func lineOf(source, field string) int {
	return lineOfKey(source, field[strings.LastIndex(field, ".")+1:])
}

// lineOfKey returns the line of a template with a key, 0 if it may be one of several.
func lineOfKey(source, name string) int {
	key := regexp.MustCompile(`(?:^|[\s{,])["']?` + regexp.QuoteMeta(name) + `["']?:`)
	found := 0
	for i, line := range strings.Split(source, "\n") {
		switch {
		case !key.MatchString(line):
		case found > 0:
			return 0
		default:
			found = i + 1
		}
	}
	return found
}

// isDisclosure reports whether disclosures reports an error.
func isDisclosure(err error) bool {
	var discloses *render.SensitiveError
	return errors.As(err, &discloses)
}

// firstDeployment returns the rendering context of an Instance that sets only what it must, and the names of the parameters that have a sample
// as value. Sensitive ones have none.
func firstDeployment(spec *kudo.OperatorVersionSpec) (c render.Context, samples []string) {
	sensitive, given := map[string]string{}, map[string]string{}
	for i := range spec.Parameters {
		p := &spec.Parameters[i]
		switch {
		case p.IsSensitive():
			sensitive[p.Name] = render.Hidden
		case isTrue(p.Required) && p.Default == nil:
			given[p.Name] = sampleOf(p)
			samples = append(samples, p.Name)
		}
	}
	return render.Context{
		Version: spec, Parameters: given, Sensitive: sensitive, Instance: "instance", Namespace: "namespace",
		Plan: "deploy", Phase: "phase", Step: "step", Execution: "uid", Pipes: pipe.Keys(spec, "instance"),
		Cluster: facts.Sample(), KubernetesVersion: facts.SampleVersion,
	}, samples
}

// sampleOf returns a value that a parameter accepts.
func sampleOf(p *kudo.Parameter) string {
	samples := map[kudo.ParameterType]string{
		kudo.IntegerType: "1", kudo.NumberType: "1", kudo.BooleanType: "true", kudo.ArrayType: `["x"]`, kudo.MapType: `{"x":"x"}`,
	}
	switch sample, exists := samples[p.Type]; {
	case len(p.Enum) > 0:
		return p.Enum[0]
	case exists:
		return sample
	default:
		return "x"
	}
}

// ChildParameters returns the parameters that a task sets on its child when an Instance is deployed that sets only sensitive parameters, and
// the sensitive ones that it passes on. They are unknown if other parameters are required, or if Verify reports a problem.
func (p *Package) ChildParameters(task kudo.Task) (parameters map[string]string, from []kudo.ParameterFrom, known bool) {
	c, samples := firstDeployment(&p.Version)
	if len(samples) > 0 && task.Spec.ParameterFile != "" {
		return nil, nil, false
	}
	parameters, passed, err := childParameters(c, task)
	for _, name := range sortedKeys(passed) {
		from = append(from, kudo.ParameterFrom{Name: name})
	}
	return parameters, from, err == nil
}

// ChartValues returns the values of a Helm task's chart when an Instance is deployed that sets only what it must. isDefault is true if no parameter has
// a sample as value. They are unknown if Verify reports a problem.
func (p *Package) ChartValues(task kudo.Task) (values string, isDefault, known bool) {
	c, samples := firstDeployment(&p.Version)
	values, err := chartValues(c, task)
	return values, len(samples)+len(c.Sensitive) == 0, err == nil
}

// ChartValuesWith is ChartValues with values of sensitive parameters, by name.
func (p *Package) ChartValuesWith(task kudo.Task, sensitive map[string]string) (values string, known bool) {
	c, samples := firstDeployment(&p.Version)
	maps.Copy(c.Sensitive, sensitive)
	values, err := chartValues(c, task)
	return values, len(samples) == 0 && err == nil
}

func chartValues(c render.Context, task kudo.Task) (string, error) {
	if task.Kind != kudo.TaskHelm || task.Spec.ValuesFile == "" {
		return "", nil
	}
	return render.Values(c, task.Spec.ValuesFile)
}

func childParameters(c render.Context, task kudo.Task) (parameters, passed map[string]string, err error) {
	if task.Spec.ParameterFile == "" {
		return nil, nil, nil
	}
	return render.File(c, task.Spec.ParameterFile)
}

// tryPod renders the pod of a Pipe task like its first run.
func (s *subject) tryPod(c render.Context, samples []string, t kudo.Task) []Problem {
	rendered, err := render.NamedTemplate(c, t.Spec.Pod, pipe.PodName(c.Instance, t.Name))
	if isDisclosure(err) {
		return nil
	}
	if err != nil {
		return []Problem{s.dryRunProblem(samples, t.Spec.Pod, err)}
	}
	problems := omissions(s.Templates[t.Spec.Pod], t.Spec.Pod, rendered.Omissions)
	if _, _, err := pipe.Pod(rendered.Objects[0], t.Spec.Pipe, pipe.DefaultImage); err != nil {
		problems = append(problems, warningAt(templateField(t.Spec.Pod), "task %s: %v", text.Quote(t.Name), err))
	}
	return problems
}

// templatesOfObjects returns the existing templates that become objects.
func (s *subject) templatesOfObjects() map[string]bool {
	used := map[string]bool{}
	for _, t := range s.Tasks {
		for _, name := range t.Spec.Resources {
			if _, ok := s.Templates[name]; ok && hasResources(t.Kind) {
				used[name] = true
			}
		}
	}
	return used
}

// dryRunProblem returns a warning, because the template may render with other parameters. It returns an error if the template renders invalid YAML
// with the values that the package itself chooses.
func (s *subject) dryRunProblem(samples []string, name string, err error) Problem {
	if file := (*render.FileError)(nil); errors.As(err, &file) {
		err = file.Err
	}
	samples = s.referredTo(name, samples)
	problem := warningAt(templateField(name), "does not render with the default parameters%s: ", ofSamples(samples))
	if len(samples) == 0 && errors.As(err, new(*render.YAMLError)) {
		problem.Severity = Error
	}
	var failed *template.Error
	switch {
	case !errors.As(err, &failed):
		problem.Message += err.Error()
	case failed.Document > 0:
		problem.Message += fmt.Sprintf("document %d, line %d of the rendered text: %v", failed.Document, failed.Line, failed.Err)
		if isVerbatim(s.Templates[name]) {
			problem.Line = failed.Line
		}
	default:
		problem.Message += failed.Err.Error()
		problem.Line = failed.Line
	}
	problem.Message = text.Truncate(problem.Message, messageBytes)
	return problem
}

// referredTo returns the parameters that a template may refer to.
func (s *subject) referredTo(name string, parameters []string) []string {
	return slices.DeleteFunc(slices.Clone(parameters), func(p string) bool {
		return !slices.ContainsFunc(s.references[name], func(r reference) bool {
			return r.kind == wholeParams || r.kind == paramReference && r.name == p
		})
	})
}

// ofSamples names the parameters with a sample as value.
func ofSamples(samples []string) string {
	const shown = 5
	if len(samples) == 0 {
		return ""
	}
	return ", and samples of " + strings.Join(text.Limit(samples, shown, "more"), ", ")
}

// simpleAction matches an action that prints a variable or a parameter.
var simpleAction = regexp.MustCompile(`\{\{ *\.[A-Za-z0-9_.]+(?: *\| *quote)? *\}\}`)

// isVerbatim reports whether the lines of a template are those of what it renders, because all its actions print into a line.
func isVerbatim(source string) bool {
	return !strings.Contains(simpleAction.ReplaceAllString(source, ""), "{{")
}
