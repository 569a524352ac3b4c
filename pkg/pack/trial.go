package pack

import (
	"errors"
	"fmt"

	"github.com/tandem-addons/tandem/pkg/render"
)

// trial renders every template once, with the default parameters, as the first deployment would. It is no rule of Check:
// controllers do not run other people's templates to judge them. Without a default for each required parameter there is
// nothing to try.
func trial(s *subject) []Finding {
	for _, p := range s.Parameters {
		if isTrue(p.Required) && p.Default == nil {
			return nil
		}
	}
	c := render.Context{
		Version: s.OperatorVersionSpec, Instance: "instance", Namespace: "namespace",
		Plan: "deploy", Phase: "phase", Step: "step", Execution: "uid", Pipes: map[string]string{},
	}
	for _, key := range s.pipeKeys() {
		c.Pipes[key] = "pipe"
	}
	var findings []Finding
	for _, name := range sortedKeys(s.templatesOfObjects()) {
		if _, err := render.Objects(c, name); err != nil {
			findings = append(findings, trialFinding(name, err))
		}
	}
	return findings
}

// templatesOfObjects are the templates that exist and become objects.
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

// trialFinding is a warning: other parameters may make the template render.
func trialFinding(name string, err error) Finding {
	finding := warningAt(templateField(name), "does not render with the default parameters: %v", err)
	var fault *render.Error
	if !errors.As(err, &fault) {
		return finding
	}
	message := fault.Err.Error()
	if fault.Document > 0 {
		message = fmt.Sprintf("document %d, line %d of the rendered text: %s", fault.Document, fault.Line, message)
	} else {
		finding.Line = fault.Line
	}
	finding.Message = "does not render with the default parameters: " + message
	return finding
}
