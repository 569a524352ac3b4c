package pack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/text"
)

// hostileTexts are values that change the structure of YAML into which a template inserts them without quotes, or with other ones.
var hostileTexts = []string{
	"x\ny: z", "x\n---\ny: z", "{", "[x]", "*x", "|1", "x #", `"`, "'", `", "x`, "', 'x", "x: y", "x, y", "x: y, z: x", " x", "x\n", "- x", "?",
}

// hostileStructures are values of several lines, some of which may leave the place where a template inserts the first one.
var hostileStructures = map[kudo.ParameterType][]string{
	kudo.ArrayType: {"[x, y]", "[{x: x, y: y}]"},
	kudo.MapType:   {"{x: x, y: y}", "{x: {y: y}}", "{x: [y, z]}"},
}

// hostileValues: no value of a parameter changes the structure of what a template renders. Such values are rejected when they are used; the
// author learns here which ones they are. Like dryRun it is not a rule of Check.
func hostileValues(s *subject) []Problem {
	c := probe(s.OperatorVersionSpec)
	var found []distortion
	for i := range s.Parameters {
		p := &s.Parameters[i]
		for _, value := range hostile(p) {
			c.Parameters[p.Name] = value.given
			if d := s.breaksOut(c, p, value); d != nil {
				found = append(found, *d)
				break
			}
		}
		restore(c, p)
	}
	return distorted(found)
}

// distortion is the first line of a template whose structure a value of a parameter changes.
type distortion struct {
	template  string
	line      int
	parameter string
	// shown is the value; empty if the default of the parameter already changes it.
	shown  string
	wayOut string
}

// distorted returns the problems of distortions: one for all parameters of a template that have the same way out, at its first line.
func distorted(found []distortion) []Problem {
	const shown = 10
	slices.SortStableFunc(found, func(a, b distortion) int {
		return cmp.Or(cmp.Compare(a.template, b.template), cmp.Compare(a.wayOut, b.wayOut), cmp.Compare(a.line, b.line))
	})
	var problems []Problem
	for len(found) > 0 {
		first := found[0]
		var names []string
		for len(found) > 0 && found[0].template == first.template && found[0].wayOut == first.wayOut {
			names, found = append(names, text.Quote(found[0].parameter)), found[1:]
		}
		subject, defaults := "parameter ", "the default changes"
		if len(names) > 1 {
			subject, defaults = fmt.Sprintf("%d parameters: ", len(names)), "the defaults change"
		}
		subject += strings.Join(text.Limit(names, shown, "more"), ", ")
		problem := warningAt(templateField(first.template), "%s: a value such as %s would change the structure of the rendered YAML, and is rejected: %s",
			subject, text.Quote(first.shown), first.wayOut)
		if first.shown == "" {
			problem = warningAt(templateField(first.template), "%s: %s the structure of the rendered YAML, so any value may: %s", subject, defaults, first.wayOut)
		}
		problem.Line = first.line
		problems = append(problems, problem)
	}
	return problems
}

// probe returns the rendering context of an Instance that only sets what it must.
func probe(spec *kudo.OperatorVersionSpec) render.Context {
	c := render.Context{
		Version: spec, Instance: "instance", Namespace: "namespace", Strict: true, Parameters: map[string]string{},
		Plan: "deploy", Phase: "phase", Step: "step", Execution: "uid", Pipes: pipe.Keys(spec, "instance"),
	}
	for i := range spec.Parameters {
		restore(c, &spec.Parameters[i])
	}
	return c
}

// restore unsets a parameter, or sets it to a harmless value if it must be set.
func restore(c render.Context, p *kudo.Parameter) {
	delete(c.Parameters, p.Name)
	if !isTrue(p.Required) || p.Default != nil {
		return
	}
	c.Parameters[p.Name] = sampleOf(p)
}

// hostileValue is a value of a parameter, and the text in it that a message shows.
type hostileValue struct{ given, shown string }

// hostile returns values that a parameter accepts.
func hostile(p *kudo.Parameter) []hostileValue {
	if len(p.Enum) > 0 || isTrue(p.Structure) {
		return nil
	}
	var values []hostileValue
	for _, bad := range hostileStructures[p.Type] {
		values = append(values, hostileValue{bad, bad})
	}
	for _, bad := range hostileTexts {
		quoted, _ := json.Marshal(bad) // a string always marshals
		switch p.Type {
		case "", kudo.StringType:
			values = append(values, hostileValue{bad, bad})
		case kudo.ArrayType:
			values = append(values, hostileValue{fmt.Sprintf("[%s]", quoted), bad})
		case kudo.MapType:
			values = append(values, hostileValue{fmt.Sprintf(`{"x":%s}`, quoted), bad}, hostileValue{fmt.Sprintf(`{%s:"x"}`, quoted), bad})
		}
	}
	return values
}

// breaksOut returns where a value changes the structure of the first template.
func (s *subject) breaksOut(c render.Context, p *kudo.Parameter, value hostileValue) *distortion {
	for _, try := range s.tries(p.Name) {
		err := try.render(c)
		var failed *template.Error
		var changes *render.StructureError
		if !errors.As(err, &failed) || !errors.As(err, &changes) || !slices.Equal(changes.Parameters, []string{p.Name}) {
			continue
		}
		c.Strict = false
		if err := try.render(c); !errors.As(err, &changes) {
			return &distortion{try.template, failed.Line, p.Name, "", "insert it with toYaml, or set structure: true to confirm it"}
		}
		return &distortion{try.template, failed.Line, p.Name, value.shown, wayOut(p)}
	}
	return nil
}

// wayOut returns how a template inserts any value of a parameter.
func wayOut(p *kudo.Parameter) string {
	switch {
	case p.Type == kudo.ArrayType || p.Type == kudo.MapType:
		return "insert it with quote, with toYaml and nindent, or with indent in a block of text"
	case p.Default != nil && integer.MatchString(*p.Default):
		return "set type: integer, or insert it with quote or toYaml"
	default:
		return "insert it with quote or toYaml, or with indent in a block of text"
	}
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// try is one way in which the package renders a template.
type try struct {
	template string
	render   func(render.Context) error
}

// tries returns the templates that may refer to a parameter.
func (s *subject) tries(parameter string) []try {
	refers := func(name string) bool { return len(s.referredTo(name, []string{parameter})) > 0 }
	var all []try
	for _, name := range sortedKeys(s.templatesOfObjects()) {
		all = append(all, try{name, func(c render.Context) error { _, err := render.Objects(c, name); return err }})
	}
	for _, t := range s.Tasks {
		switch {
		case t.Kind == kudo.TaskPipe:
			all = append(all, try{t.Spec.Pod, func(c render.Context) error {
				_, err := render.NamedObject(c, t.Spec.Pod, pipe.PodName(c.Instance, t.Name))
				return err
			}})
		case makesChild(t.Kind) && t.Spec.ParameterFile != "":
			all = append(all, try{t.Spec.ParameterFile, func(c render.Context) error { _, _, err := render.File(c, t.Spec.ParameterFile); return err }})
		case t.Spec.ValuesFile != "":
			all = append(all, try{t.Spec.ValuesFile, func(c render.Context) error { _, err := render.Values(c, t.Spec.ValuesFile); return err }})
		}
	}
	return slices.DeleteFunc(all, func(t try) bool { return !refers(t.template) })
}
