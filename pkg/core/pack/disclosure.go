package pack

import (
	"errors"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// disclosures: no template discloses a sensitive parameter by the objects that it renders. The agent refuses a template that does. Like dryRun it
// is not a rule of Check.
func disclosures(s *subject) []Problem {
	sensitive := map[string]bool{}
	for i := range s.Parameters {
		if p := &s.Parameters[i]; p.IsSensitive() {
			sensitive[p.Name] = true
		}
	}
	if len(sensitive) == 0 {
		return nil
	}
	var problems []Problem
	renderings := s.renderings()
	for _, name := range sortedKeys(renderings) {
		problems = append(problems, s.discloses(name, renderings[name], sensitive)...)
	}
	return problems
}

// renderings returns how the package renders each of its templates.
func (s *subject) renderings() map[string]func(render.Context) (render.Rendering, error) {
	all := map[string]func(render.Context) (render.Rendering, error){}
	for name := range s.templatesOfObjects() {
		all[name] = func(c render.Context) (render.Rendering, error) { return render.Templates(c, name) }
	}
	for _, t := range s.Tasks {
		switch {
		case t.Kind == kudo.TaskPipe:
			all[t.Spec.Pod] = func(c render.Context) (render.Rendering, error) {
				return render.NamedTemplate(c, t.Spec.Pod, pipe.PodName(c.Instance, t.Name))
			}
		case makesChild(t.Kind) && t.Spec.ParameterFile != "":
			all[t.Spec.ParameterFile] = func(c render.Context) (render.Rendering, error) {
				_, _, err := render.File(c, t.Spec.ParameterFile)
				return render.Rendering{}, err
			}
		}
	}
	return all
}

// discloses returns the problem of a template that discloses a sensitive parameter. It warns of conditions on one that no probe executes.
func (s *subject) discloses(name string, rendered func(render.Context) (render.Rendering, error), sensitive map[string]bool) []Problem {
	executed, complete := map[int]bool{}, true
	for _, c := range s.confidentialProbes(sensitive) {
		rendering, err := rendered(c)
		var failed *template.Error
		var discloses *render.SensitiveError
		if errors.As(err, &discloses) {
			problem := problemAt(templateField(name), "%v", discloses)
			if errors.As(err, &failed) {
				problem.Line = failed.Line
			}
			return []Problem{problem}
		}
		complete = complete && err == nil
		for _, line := range rendering.Blocks {
			executed[line] = true
		}
	}
	parsed, err := template.Parse(name, s.Templates[name])
	if err != nil || !complete {
		return nil // the template has other problems
	}
	var problems []Problem
	for _, block := range template.Blocks(parsed, sensitive) {
		if !executed[block.Line] && !block.Block.Silent {
			problem := warningAt(templateField(name), "the condition depends on the value of a sensitive parameter, and is not met by any value that "+
				"verification tries for other parameters: the agent refuses it if it decides about more than text inside of a field")
			problem.Line = block.Line
			problems = append(problems, problem)
		}
	}
	return problems
}

// likelyValue is a value that templates can divide in the most usual ways.
const likelyValue = "https://user:password@host.example.com:5432/path-a/path-b?key=value,other"

// confidentialProbes returns rendering contexts in which all sensitive parameters are set: one that sets only what it must, and two that differ
// in all boolean and optional parameters.
func (s *subject) confidentialProbes(sensitive map[string]bool) []render.Context {
	var probes []render.Context
	for _, set := range []string{"", "true", "false"} {
		c := probe(s.OperatorVersionSpec)
		for i := range s.Parameters {
			p := &s.Parameters[i]
			if value := probeValue(p, set); value != "" && !sensitive[p.Name] {
				c.Parameters[p.Name] = value
			}
		}
		for name := range sensitive {
			c.Parameters[name] = likelyValue
			if set == "" {
				c.Parameters[name] = render.Hidden
			}
		}
		probes = append(probes, c)
	}
	return probes
}

// probeValue returns the value of a parameter in the probe that sets booleans to set; empty if the probe does not set the parameter.
func probeValue(p *kudo.Parameter, set string) string {
	isText := p.Type == "" || p.Type == kudo.StringType
	switch {
	case p.Type == kudo.BooleanType:
		return set
	case set == "true" && isText && p.Default == nil && len(p.Enum) == 0:
		return "x"
	}
	return ""
}
