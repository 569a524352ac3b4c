package pack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/release"
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
	return distorted(append(found, s.hostileClaims(c)...))
}

// claimUse matches a claim that a template names.
var claimUse = regexp.MustCompile("\\.Claims\\s+[\"`]([^\"`]+)[\"`]")

// claimsIn returns the claims that a template names, sorted.
func claimsIn(source string) []string {
	names := map[string]bool{}
	for _, found := range claimUse.FindAllStringSubmatch(source, -1) {
		names[found[1]] = true
	}
	return sortedKeys(names)
}

// claims is what a claim of a cluster is to the trials of parameters. Labels cannot have hostile values.
func claims() *kudo.Parameter { return new(facts.Definition(facts.Claims)) }

// hostileClaim returns a value of all claims.
func hostileClaim(names []string, bad string) hostileValue {
	all := make(map[string]string, len(names))
	for _, name := range names {
		all[name] = bad
	}
	encoded, _ := json.Marshal(all) // texts always marshal
	return hostileValue{string(encoded), bad}
}

// hostileClaims returns the first line of each template whose structure a claim of a cluster changes.
func (s *subject) hostileClaims(c render.Context) []distortion {
	var found []distortion
	for _, name := range sortedKeys(s.Templates) {
		names := claimsIn(s.Templates[name])
		for _, bad := range hostileTexts {
			if len(names) == 0 {
				break
			}
			with, err := c.WithValues(withClaims(c, hostileClaim(names, bad)))
			if d := s.breaksOut(with, claims(), hostileValue{shown: bad}); err == nil && d != nil && d.template == name {
				found = append(found, *d)
				break
			}
		}
	}
	return found
}

// withClaims returns the values of parameters in a context, and of claims.
func withClaims(c render.Context, value hostileValue) map[string]string {
	values := maps.Clone(c.Parameters)
	values[facts.Claims] = value.given
	return values
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
		if facts.IsVariable(first.parameter) {
			subject = first.parameter + " of the cluster"
		}
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
		Cluster: facts.Sample(), KubernetesVersion: facts.SampleVersion,
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
	refers := func(name string) bool {
		return len(s.referredTo(name, []string{parameter})) > 0 || facts.IsVariable(parameter) && facts.Use(s.Templates[name])
	}
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

// maxTrials limits how often a chart is rendered to try hostile values of parameters.
const maxTrials = 300

// hostileChartValues: no value of a parameter changes the structure of what the chart of a task renders.
func hostileChartValues(s *subject, task int, render func(values string) (release.Rendering, error)) []Problem {
	const shown = 20
	t := &chartTrial{subject: s, task: s.Tasks[task], render: render, values: map[string][]hostileValue{}}
	for i := range s.Parameters {
		def := &s.Parameters[i]
		values := slices.DeleteFunc(hostile(def), func(v hostileValue) bool { return release.IsTemplate(v.shown) })
		if len(values) > 0 && len(s.referredTo(t.task.Spec.ValuesFile, []string{def.Name})) > 0 {
			t.values[def.Name] = values
		}
	}
	for _, bad := range hostileTexts {
		if names := claimsIn(s.Templates[t.task.Spec.ValuesFile]); len(names) > 0 && !release.IsTemplate(bad) {
			t.values[facts.Claims] = append(t.values[facts.Claims], hostileClaim(names, bad))
		}
	}
	var problems []Problem
	for _, found := range t.run() {
		problems = append(problems, warningAt(taskField(task, "spec.chart"), "task %s: chart %s: %s: a value such as %s %s, and is rejected: "+
			"insert it with quote or toYaml in the chart, restrict the parameter with type or enum, or allow every value with structure: true",
			text.Quote(t.task.Name), text.Quote(t.task.Spec.Chart), found.subject(), text.Quote(found.shown), found.why))
	}
	if t.trials >= maxTrials {
		problems = append(problems, warningAt(taskField(task, "spec.chart"), "task %s: chart %s: it was rendered %d times with hostile values of "+
			"parameters, and not all were tried", text.Quote(t.task.Name), text.Quote(t.task.Spec.Chart), t.trials))
	}
	return First(problems, shown)
}

// chartTrial tries hostile values of parameters on a chart: those of all parameters at the same time, and of fewer only if that shows something.
type chartTrial struct {
	*subject
	task   kudo.Task
	render func(values string) (release.Rendering, error)
	// values are the hostile values of each parameter.
	values map[string][]hostileValue
	trials int
}

// breach is a value that is more than a value in what a chart renders.
type breach struct{ parameter, shown, why string }

func (b breach) subject() string {
	if facts.IsVariable(b.parameter) {
		return b.parameter + " of the cluster"
	}
	return "parameter " + text.Quote(b.parameter)
}

// run returns the first breach of each parameter, by their names.
func (t *chartTrial) run() []breach {
	if verdict, _ := t.try(nil, 0); len(t.values) == 0 || verdict != passes {
		return nil
	}
	found := map[string]breach{}
	groups := [][]string{sortedKeys(t.values)}
	for round := 0; len(groups) > 0; round++ {
		groups = t.round(groups, round, found)
	}
	breaches := make([]breach, 0, len(found))
	for _, name := range sortedKeys(found) {
		breaches = append(breaches, found[name])
	}
	return breaches
}

// round tries the next value of each parameter, and returns the groups of parameters to try together in the next round: those whose values pass, and
// each alone whose value the chart itself does not accept.
func (t *chartTrial) round(groups [][]string, round int, found map[string]breach) [][]string {
	var pass []string
	var next [][]string
	for len(groups) > 0 && t.trials < maxTrials {
		group := slices.DeleteFunc(groups[0], func(name string) bool { return round >= len(t.values[name]) })
		groups = groups[1:]
		if len(group) == 0 {
			continue
		}
		verdict, why := t.try(group, round)
		switch {
		case verdict == passes:
			pass = append(pass, group...)
		case len(group) > 1:
			half := len(group) / 2
			groups = append([][]string{group[:half:half], group[half:]}, groups...)
		case verdict == breaks:
			found[group[0]] = breach{group[0], t.values[group[0]][round].shown, why}
		default:
			next = append(next, group)
		}
	}
	if len(pass) > 0 {
		next = append(next, pass)
	}
	return next
}

// verdict is what a chart does with values.
type verdict string

const (
	passes verdict = "passes"
	breaks verdict = "breaks"
	// refuses: a schema, a function such as fail or the values file itself does not accept them.
	refuses verdict = "refuses"
)

// try renders the chart with the values of parameters in a round, and returns why they break out.
func (t *chartTrial) try(parameters []string, round int) (result verdict, why string) {
	c := probe(t.OperatorVersionSpec)
	for _, name := range parameters {
		c.Parameters[name] = t.values[name][round].given
	}
	c, err := c.WithValues(c.Parameters)
	if err != nil {
		return refuses, ""
	}
	defs, given := c.Guarded(t.task.Spec.ValuesFile, c.Parameters)
	guard, err := release.NewGuard(defs, given)
	if err != nil {
		return refuses, ""
	}
	rendered, err := t.with(c, given)
	switch {
	case errors.Is(err, release.ErrInvalidOutput):
		return breaks, fmt.Sprintf("makes the chart render invalid YAML (%s)", text.JoinMessage(err.Error()))
	case err != nil:
		return refuses, ""
	}
	difference, err := guard.Changes(rendered, func(values map[string]string) (release.Rendering, error) { return t.with(c, values) })
	switch {
	case err != nil:
		return breaks, "is accepted by the chart, and a plain one of the same length is not, so it is unknown whether it changes the structure"
	case difference != "":
		return breaks, fmt.Sprintf("changes the structure of what the chart renders (%s)", difference)
	}
	return passes, ""
}

// with renders the chart with values of parameters.
func (t *chartTrial) with(c render.Context, values map[string]string) (release.Rendering, error) {
	t.trials++
	c, err := c.WithValues(values)
	if err != nil {
		return release.Rendering{}, err
	}
	given, err := chartValues(c, t.task)
	if err != nil {
		return release.Rendering{}, err
	}
	return t.render(given)
}
