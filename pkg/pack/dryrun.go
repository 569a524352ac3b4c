package pack

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pipe"
	"github.com/tandem-addons/tandem/pkg/render"
	"github.com/tandem-addons/tandem/pkg/template"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dryRun renders every template once, with the default parameters, like the first deployment. It is not a rule of Check: controllers do not
// run templates of third parties to judge them. It does nothing unless every required parameter has a default.
func dryRun(s *subject) []Problem {
	c, complete := firstDeployment(s.OperatorVersionSpec)
	if !complete {
		return nil
	}
	var problems []Problem
	for _, name := range sortedKeys(s.templatesOfObjects()) {
		rendered, err := render.Templates(c, name)
		if err != nil && !isDisclosure(err) {
			problems = append(problems, dryRunProblem(name, err))
		}
		problems = append(problems, omissions(s.Templates[name], name, rendered.Omissions)...)
	}
	for _, t := range s.Tasks {
		if t.Kind == kudo.TaskPipe {
			problems = append(problems, tryPod(s, c, t)...)
		}
		if makesChild(t.Kind) {
			if _, _, err := childParameters(c, t); err != nil && !isDisclosure(err) {
				problems = append(problems, dryRunProblem(t.Spec.ParameterFile, err))
			}
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

// lineOf returns the line of a template that sets a field, 0 if it may be one of several.
func lineOf(source, field string) int {
	key := regexp.MustCompile(`(?:^|[\s{,])["']?` + regexp.QuoteMeta(field[strings.LastIndex(field, ".")+1:]) + `["']?:`)
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

// firstDeployment returns the rendering context of an Instance that sets only sensitive parameters, unless others are required.
func firstDeployment(spec *kudo.OperatorVersionSpec) (c render.Context, complete bool) {
	sensitive := map[string]string{}
	for i := range spec.Parameters {
		p := &spec.Parameters[i]
		switch {
		case p.IsSensitive():
			sensitive[p.Name] = render.Hidden
		case isTrue(p.Required) && p.Default == nil:
			return c, false
		}
	}
	return render.Context{
		Version: spec, Sensitive: sensitive, Instance: "instance", Namespace: "namespace",
		Plan: "deploy", Phase: "phase", Step: "step", Execution: "uid", Pipes: pipe.Keys(spec, "instance"),
	}, true
}

// ChildParameters returns the parameters that a task sets on its child when an Instance is deployed that sets only sensitive parameters, and
// the sensitive ones that it passes on. They are unknown if other parameters are required, or if Verify reports a problem.
func (p *Package) ChildParameters(task kudo.Task) (parameters map[string]string, from []kudo.ParameterFrom, known bool) {
	c, complete := firstDeployment(&p.Version)
	if !complete && task.Spec.ParameterFile != "" {
		return nil, nil, false
	}
	parameters, passed, err := childParameters(c, task)
	for _, name := range sortedKeys(passed) {
		from = append(from, kudo.ParameterFrom{Name: name})
	}
	return parameters, from, err == nil
}

func childParameters(c render.Context, task kudo.Task) (parameters, passed map[string]string, err error) {
	if task.Spec.ParameterFile == "" {
		return nil, nil, nil
	}
	return render.File(c, task.Spec.ParameterFile)
}

// tryPod renders the pod of a Pipe task like its first run.
func tryPod(s *subject, c render.Context, t kudo.Task) []Problem {
	rendered, err := render.NamedTemplate(c, t.Spec.Pod, pipe.PodName(c.Instance, t.Name))
	if isDisclosure(err) {
		return nil
	}
	if err != nil {
		return []Problem{dryRunProblem(t.Spec.Pod, err)}
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

// dryRunProblem returns a warning: the template may render with other parameters.
func dryRunProblem(name string, err error) Problem {
	if file := (*render.FileError)(nil); errors.As(err, &file) {
		err = file.Err
	}
	problem := warningAt(templateField(name), "does not render with the default parameters: %v", err)
	var failed *template.Error
	if !errors.As(err, &failed) {
		return problem
	}
	message := failed.Err.Error()
	if failed.Document > 0 {
		message = fmt.Sprintf("document %d, line %d of the rendered text: %s", failed.Document, failed.Line, message)
	} else {
		problem.Line = failed.Line
	}
	problem.Message = "does not render with the default parameters: " + message
	return problem
}
