package pack

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// identifier matches names that text/template accepts as a field: .Params.NAME.
var identifier = regexp.MustCompile(`^[\p{L}_][\p{L}\p{Nd}_]*$`)

func parameterField(i int, name string) string { return fmt.Sprintf("parameters[%d].%s", i, name) }

// reserved are the characters that KUDO reserves for parameter lists on a command line.
const reserved = ",;"

// parameterNames: each parameter has a unique name that templates and configurations can use.
func parameterNames(s *subject) []Problem {
	var problems []Problem
	for i, p := range s.Parameters {
		switch field := parameterField(i, "name"); {
		case p.Name == "":
			problems = append(problems, problemAt(field, "parameter %d has no name", i+1))
		case strings.ContainsAny(p.Name, reserved):
			problems = append(problems, problemAt(field, "parameter %s: the name must not contain any of %s: use letters, digits and _",
				text.Quote(p.Name), text.Quote(reserved)))
		case !identifier.MatchString(p.Name):
			problems = append(problems, warningAt(field,
				"parameter %s: templates must use index .Params %s instead of .Params.NAME, and AddOnDeploymentConfigs "+
					"cannot set it: use letters, digits and _", text.Quote(p.Name), text.Quote(p.Name)))
		}
	}
	visitRepeated(s.parameterNames, func(i, first int) {
		name, before := s.parameterNames[i], s.parameterNames[first]
		message := "parameter %s is defined twice: remove one"
		if name != before {
			message = "parameter %s differs from " + text.Quote(before) + " only in case: rename one"
		}
		problems = append(problems, problemAt(parameterField(i, "name"), message, text.Quote(name)))
	})
	return problems
}

// parameterValues: defaults and enum values have the parameter's type, and the default is in the enum.
func parameterValues(s *subject) []Problem {
	var problems []Problem
	for i, p := range s.Parameters {
		if !knownType(p.Type) {
			problems = append(problems, problemAt(parameterField(i, "value-type"),
				"parameter %s: unknown type %s: must be one of string, integer, number, boolean, array, map",
				text.Quote(p.Name), text.Quote(string(p.Type))))
			continue
		}
		problems = append(problems, valueProblems(p, p.Default, p.Enum, "default", parameterField(i, "default"))...)
		for j := range p.Enum {
			problems = append(problems, valueProblems(p, &p.Enum[j], nil, "enum", fmt.Sprintf("parameters[%d].enum[%d]", i, j))...)
		}
	}
	return problems
}

func knownType(t kudo.ParameterType) bool {
	switch t {
	case "", kudo.StringType, kudo.IntegerType, kudo.NumberType, kudo.BooleanType, kudo.ArrayType, kudo.MapType:
		return true
	}
	return false
}

// valueProblems validates one value like an Instance's parameter.
func valueProblems(p kudo.Parameter, value *string, enum []string, what, field string) []Problem {
	if value == nil {
		return nil
	}
	err := parameter.Validate(&kudo.OperatorVersionSpec{
		Parameters: []kudo.Parameter{{Name: p.Name, Type: p.Type, Default: value, Enum: enum}},
	}, nil, nil)
	var invalid *parameter.InvalidError
	if !errors.As(err, &invalid) {
		return nil
	}
	problems := make([]Problem, len(invalid.Problems))
	for i, problem := range invalid.Problems {
		problems[i] = problemAt(field, "parameter %s: %s %s: %s", text.Quote(p.Name), what, text.Quote(*value), problem.Reason)
	}
	return problems
}

// parameterTriggers: a parameter triggers an existing plan.
func parameterTriggers(s *subject) []Problem {
	var problems []Problem
	for i, p := range s.Parameters {
		if _, ok := s.Plans[p.Trigger]; p.Trigger != "" && !ok {
			problems = append(problems, problemAt(parameterField(i, "trigger"),
				"parameter %s triggers plan %s, which does not exist: %s",
				text.Quote(p.Name), text.Quote(p.Trigger), s.choices(p.Trigger, s.planNames)))
		}
	}
	return problems
}

// immutableParameters: an immutable parameter is required or has a default; otherwise it can never get a value (KUDO's rule).
func immutableParameters(s *subject) []Problem {
	var problems []Problem
	for i, p := range s.Parameters {
		if isTrue(p.Immutable) && p.Default == nil && !isTrue(p.Required) {
			problems = append(problems, warningAt(parameterField(i, "immutable"),
				"parameter %s is immutable, not required, and has no default: it can only be set when the Instance is created",
				text.Quote(p.Name)))
		}
	}
	return problems
}

// switchingParameters: a parameter that switches a task has a value whenever the task runs.
func switchingParameters(s *subject) []Problem {
	switches := map[string]string{}
	for _, t := range s.Tasks {
		for _, name := range parameter.SwitchesOf(&t) {
			switches[name] = t.Name
		}
	}
	var problems []Problem
	for i, p := range s.Parameters {
		task, switching := switches[p.Name]
		valued, asked := p.Default != nil && *p.Default != "", p.Default == nil && isTrue(p.Required)
		if switching && !valued && !asked {
			problems = append(problems, warningAt(parameterField(i, "name"),
				"parameter %s enables task %s and has no default: Instances that do not set it are rejected", text.Quote(p.Name), text.Quote(task)))
		}
	}
	return problems
}

// unusedParameters: an unused parameter may be misspelt. One with a trigger may exist to run the plan.
func unusedParameters(s *subject) []Problem {
	used, known := s.usedParameters()
	if !known {
		return nil
	}
	var problems []Problem
	for i, p := range s.Parameters {
		if p.Name != "" && p.Trigger == "" && !used[p.Name] {
			problems = append(problems, warningAt(parameterField(i,
				"name"), "parameter %s is not used by any template or task", text.Quote(p.Name)))
		}
	}
	return problems
}

// usedParameters returns the parameters that templates and tasks use. They are unknown if a template uses .Params as a whole, or cannot be
// parsed: it may use any of them.
func (s *subject) usedParameters() (used map[string]bool, known bool) {
	used = map[string]bool{}
	for _, refs := range s.references {
		for _, ref := range refs {
			if ref.kind == wholeParams {
				return nil, false
			}
			used[ref.name] = used[ref.name] || ref.kind == paramReference
		}
	}
	for _, t := range s.Tasks {
		for _, name := range parameter.SwitchesOf(&t) {
			used[name] = true
		}
	}
	return used, len(s.broken) == 0 && len(s.unread) == 0
}

// booleanProblem returns why a task cannot be switched by a parameter; "" if it can (KEP-23, KEP-36).
func (s *subject) booleanProblem(name string) string {
	p := s.parameters[name]
	switch {
	case p == nil && s.blind:
		return ""
	case p == nil:
		return fmt.Sprintf("parameter %s does not exist: %s", text.Quote(name), s.choices(name, s.parameterNames))
	case p.Type == kudo.BooleanType:
		return ""
	case p.Type != "" && p.Type != kudo.StringType:
		return fmt.Sprintf("parameter %s is of type %s: must be a boolean", text.Quote(name), p.Type)
	case p.Default == nil || *p.Default == "":
		return "" // the value is set at installation, and judged then
	}
	if _, err := strconv.ParseBool(*p.Default); err != nil {
		return fmt.Sprintf("parameter %s has the default %s: must be true or false",
			text.Quote(name), text.Quote(*p.Default))
	}
	return ""
}

func isTrue(b *bool) bool { return b != nil && *b }
