package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/render/structure"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// StructureError reports that the value of a parameter changes the structure of what a template renders. It does not quote the value, which
// may be a secret.
type StructureError struct {
	// Parameters are the possible parameters, usually one.
	Parameters []string
	// Encoded is true if the template encodes the value as YAML or JSON.
	Encoded bool
}

func (e *StructureError) Error() string {
	names := make([]string, len(e.Parameters))
	for i, name := range e.Parameters {
		names[i] = name
		if !facts.IsVariable(name) {
			names[i] = text.Quote(name)
		}
	}
	const shown = 12
	subject := "the value of parameter " + names[0]
	switch {
	case len(names) > 1:
		subject = "one of the values of " + strings.Join(text.Limit(names, shown, "more"), ", ")
	case facts.IsVariable(e.Parameters[0]):
		subject = "what the cluster has as " + e.Parameters[0]
	}
	const problem = " changes the structure of the rendered YAML: "
	if e.Encoded {
		return subject + problem + "indent all of its lines in the template (nindent), and use keys that differ from those beside it"
	}
	return subject + problem + "use a value without YAML syntax and line breaks, or quote it in the template (quote, toYaml)"
}

// SensitiveError reports that a template uses a sensitive parameter in a way that would disclose its value.
type SensitiveError struct {
	// Parameters are the possible parameters, usually one.
	Parameters []string
	Reason     string
}

func (e *SensitiveError) Error() string {
	names := make([]string, len(e.Parameters))
	for i, name := range e.Parameters {
		names[i] = text.Quote(name)
	}
	if len(names) == 1 {
		return fmt.Sprintf("sensitive parameter %s %s", names[0], e.Reason)
	}
	const shown = 12
	return fmt.Sprintf("one of the sensitive parameters %s %s", strings.Join(text.Limit(names, shown, "more"), ", "), e.Reason)
}

// guard checks what one template has rendered.
type guard struct {
	*renderer
	template string
	out      template.Output
	// read decodes the rendered text; file is true for a parameter file.
	read func(text string) ([]any, error)
	file bool
	// free are the parameters whose values may change the structure.
	free map[string]bool
}

// check returns an error if a value that the Instance sets changes the structure of the rendered text. Defaults may: they are the package's
// own text.
func (g *guard) check() error {
	problem := g.judge()
	if err := g.Budget.checkExhausted(); err != nil { // the problem may be that decoding has ended
		return template.NewError(g.template, err)
	}
	return problem
}

func (g *guard) judge() error {
	g.free = map[string]bool{}
	for first := true; ; first = false {
		suspects := g.suspects()
		rules := structure.Rules{Read: g.read, Values: g.file}
		suspect := func(a *template.Action) bool { return a.DependsOn(suspects) }
		if !rules.Changes(g.out, suspect) {
			return cmp.Or(g.unreadable(slices.Sorted(maps.Keys(suspects))), g.checkDisclosure())
		}
		if first && !g.Strict && g.freesTogether(suspects) {
			continue
		}
		culprit := rules.FindChange(g.out, suspect)
		if culprit == nil { // the budget is exhausted
			return nil
		}
		involved := slices.DeleteFunc(slices.Sorted(maps.Keys(suspects)), func(p string) bool {
			return !culprit.DependsOn(map[string]bool{p: true})
		})
		if g.Strict || !g.frees(involved) {
			return g.fail(g.responsible(involved), culprit)
		}
	}
}

func (g *guard) fail(parameters []string, action *template.Action) error {
	problem := template.NewError(g.template, &StructureError{Parameters: parameters, Encoded: action.Encoding != ""})
	problem.Line = action.Line
	return problem
}

// checkDisclosure returns an error if a sensitive parameter is part of the type, the name or the namespace of an object, or if it decides
// about more than text inside of a field: the hub knows which objects there are.
func (g *guard) checkDisclosure() error {
	if g.file {
		return nil
	}
	rules := structure.Rules{Read: g.read, Names: true}
	culprit := rules.FindChange(outermost(g.out), func(*template.Action) bool { return true })
	if culprit == nil {
		return nil
	}
	reason := "is part of the name or namespace of an object, which is no secret: use another parameter there"
	if culprit.Block != nil {
		reason = "decides about more than text inside of a field, such as which objects or fields there are, which is no secret: " +
			"only whether it is set may decide that, as in {{ if .Params.NAME }}"
	}
	problem := template.NewError(g.template, &SensitiveError{Parameters: g.parametersOf(culprit), Reason: reason})
	problem.Line = culprit.Line
	return problem
}

// parametersOf returns the sensitive parameters that an action may depend on.
func (g *guard) parametersOf(a *template.Action) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.confidential.Parameters)), func(p string) bool {
		return !a.DependsOn(map[string]bool{p: true})
	})
}

// unreadable returns an error if the rendered text is not valid YAML because of the value of one parameter: no mark could mend it.
func (g *guard) unreadable(suspects []string) error {
	const tried = 32
	if len(suspects) == 0 || len(suspects) > tried {
		return nil
	}
	var tooLarge *yaml.Error
	if _, err := g.read(g.out.Text); err == nil || errors.As(err, &tooLarge) {
		return nil
	}
	for _, p := range suspects {
		depends := func(printed template.Print) bool { return printed.Action.DependsOn(map[string]bool{p: true}) }
		i := slices.IndexFunc(g.out.Prints, depends)
		if i < 0 {
			continue
		}
		if _, readable := g.without(p, func(*template.Action) bool { return false }); readable {
			return g.fail([]string{p}, g.out.Prints[i].Action)
		}
	}
	return nil
}

// suspects returns the parameters whose values are not the package's own, and must not change the structure.
func (g *guard) suspects() map[string]bool {
	suspects := map[string]bool{}
	for i := range g.Version.Parameters {
		p := &g.Version.Parameters[i]
		value, given := g.Parameters[p.Name]
		inserts := p.Structure != nil && *p.Structure
		if given && value != parameter.InForce(p, nil) && !inserts && !g.free[p.Name] {
			suspects[p.Name] = true
		}
	}
	for _, variable := range facts.Known(g.Cluster, g.KubernetesVersion) {
		suspects[variable] = true
	}
	return suspects
}

// plain matches values that change the structure at few places.
var plain = regexp.MustCompile(`^[A-Za-z0-9._/-]*$`)

// freesTogether adds parameters to the free ones if their defaults change the structure where an action prints them alone, and reports whether
// there are any. It decides about all of them in one rendering, and may miss some, about which frees decides one by one.
func (g *guard) freesTogether(suspects map[string]bool) bool {
	candidates := maps.Clone(suspects)
	maps.DeleteFunc(candidates, func(p string, _ bool) bool { return facts.IsVariable(p) || plain.MatchString(g.Parameters[p]) })
	if len(candidates) == 0 {
		return false
	}
	out, rules, known := g.withDefaults(slices.Collect(maps.Keys(candidates))...)
	if !known {
		return false
	}
	inserted := rules.InsertedParameters(out, candidates)
	maps.Copy(g.free, inserted)
	return len(inserted) > 0
}

// frees adds parameters to the free ones if the default of each of them alone changes the structure: there the package inserts YAML on
// purpose. It reports whether all are free.
func (g *guard) frees(involved []string) bool {
	for _, p := range involved {
		if facts.IsVariable(p) {
			return false // no fact is the package's own text
		}
		changed, known := g.without(p, func(a *template.Action) bool { return len(a.Parameters) == 1 && a.Parameters[0] == p })
		if !changed || !known {
			return false
		}
		g.free[p] = true
	}
	return true
}

// responsible returns the parameter that changes the structure; all of the possible ones if none does so alone.
func (g *guard) responsible(involved []string) []string {
	const tried = 32
	if len(involved) == 1 || len(involved) > tried {
		return involved
	}
	all := map[string]bool{}
	for _, p := range involved {
		all[p] = true
	}
	for _, p := range involved {
		changed, known := g.without(p, func(a *template.Action) bool { return a.DependsOn(all) })
		if !changed && known {
			return []string{p}
		}
	}
	return involved
}

// without reports whether the checked actions change the structure if a parameter has its default; known is false if the template does not
// render then.
func (g *guard) without(p string, checked func(*template.Action) bool) (changed, known bool) {
	out, rules, known := g.withDefaults(p)
	return known && rules.FindChange(out, checked) != nil, known
}

// withDefaults renders the template with the defaults of parameters, and without the facts of variables; known is false if it does not render then.
func (g *guard) withDefaults(parameters ...string) (out template.Output, rules structure.Rules, known bool) {
	c := g.Context
	c.Parameters = maps.Clone(c.Parameters)
	for _, p := range parameters {
		delete(c.Parameters, p)
		c.Cluster, c.KubernetesVersion = facts.Without(p, c.Cluster, c.KubernetesVersion)
	}
	r, err := newRenderer(c, g.template)
	if err != nil {
		return out, rules, false
	}
	if out, err = r.execute(g.template); err != nil {
		return out, rules, false
	}
	rules = structure.Rules{Read: (&decoder{budget: r.Budget}).decodeAll, Values: g.file, AnyType: true}
	if g.file {
		rules.Read = r.readFile
	}
	_, err = rules.Read(out.Text)
	return out, rules, err == nil
}
