package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Guard checks that values of parameters stay values in what a chart renders. A chart may insert them without quotes, and nothing shows where.
type Guard struct {
	defs   []kudo.Parameter
	values map[string]string
	// untrusted are the parameters whose values are not the package's own, and suspects those of them whose values are not plain, in declared order.
	untrusted, suspects []string
}

// NewGuard returns a guard of the values that an Instance gives, with those of sensitive parameters. A parameter with structure: true may have any
// value, and so may one with its default or a value of its enum, which are the package's own text.
func NewGuard(defs []kudo.Parameter, given map[string]string) (*Guard, error) {
	g := &Guard{defs: defs, values: given}
	var templates []string
	for i := range defs {
		def := &defs[i]
		value, has := given[def.Name]
		if !has || isTrusted(def, value) {
			continue
		}
		g.untrusted = append(g.untrusted, def.Name)
		plain, template, err := inspect(def, value)
		if err != nil {
			return nil, err
		}
		if template {
			templates = append(templates, def.Name)
		}
		if !plain {
			g.suspects = append(g.suspects, def.Name)
		}
	}
	if len(templates) > 0 {
		return nil, &GuardError{Parameters: templates, Reason: "contains {{ or ends with {" + executed}
	}
	return g, nil
}

// executed ends the reason of a GuardError about a template in a value.
const executed = ", which the chart could execute as a template"

// CheckValues returns a *GuardError if values of parameters bring a template into the values of the chart, such as by an escape that the values file
// decodes. rendered are those values, as JSON. render renders the values file with other values of the parameters; it is called only if rendered has
// templates at all, which may be the package's own.
func (g *Guard) CheckValues(rendered string, render func(values map[string]string) (string, error)) error {
	templates, err := countTemplates(rendered)
	if err != nil || templates == 0 || len(g.untrusted) == 0 {
		return err
	}
	tokens := newTokens()
	tokens.all = true
	replaced, err := g.with(tokens, g.untrusted)
	if err != nil {
		return err
	}
	own := 0
	if plain, err := render(replaced); err == nil { // a values file that does not accept tokens has no templates of its own
		if own, err = countTemplates(plain); err != nil {
			return err
		}
	}
	if templates > own {
		return &GuardError{Parameters: g.untrusted, Reason: "brings {{ or a final { into the values of the chart" + executed}
	}
	return nil
}

// countTemplates returns the number of beginnings of actions in the texts and keys of values.
func countTemplates(encoded string) (count int, err error) {
	var values any
	if encoded == "" {
		return 0, nil
	}
	if err := json.Unmarshal([]byte(encoded), &values); err != nil {
		return 0, fmt.Errorf("decoding the values of the chart: %w", err)
	}
	visit(values, func(s string) {
		count += strings.Count(s, "{{")
		if !strings.Contains(s, "{{") && IsTemplate(s) {
			count++
		}
	})
	return count, nil
}

// with returns the values with tokens in place of those of some parameters.
func (g *Guard) with(tokens *tokens, parameters []string) (map[string]string, error) {
	values := maps.Clone(g.values)
	for i := range g.defs {
		def := &g.defs[i]
		if !slices.Contains(parameters, def.Name) || !hasText(def) {
			continue
		}
		value, err := tokens.inValue(def, values[def.Name])
		if err != nil {
			return nil, err
		}
		values[def.Name] = value
	}
	return values, nil
}

// hasText reports whether values of the parameter are, or contain, texts.
func hasText(def *kudo.Parameter) bool {
	return def.Type == "" || def.Type == kudo.StringType || def.Type == kudo.ArrayType || def.Type == kudo.MapType
}

func isTrusted(def *kudo.Parameter, value string) bool {
	return value == "" || def.Structure != nil && *def.Structure || def.Default != nil && value == *def.Default || slices.Contains(def.Enum, value)
}

// inspect reports whether all texts and keys of a value are plain, and whether one of them is a template.
func inspect(def *kudo.Parameter, value string) (plain, template bool, err error) {
	plain = true
	see := func(s string) { plain, template = plain && isPlain(s), template || IsTemplate(s) }
	switch def.Type {
	case kudo.ArrayType, kudo.MapType:
		decoded, err := parameter.Decode(def.Type, value)
		if err != nil {
			return false, false, fmt.Errorf("parameter %q: %w", def.Name, err)
		}
		visit(decoded, see)
	case "", kudo.StringType:
		see(value)
	}
	return plain, template, nil
}

// GuardError reports that values of parameters are more than values in what a chart renders. It contains no part of them.
type GuardError struct {
	// Parameters are one or more that cause it, in declared order.
	Parameters []string
	Reason     string
}

func (e *GuardError) Error() string {
	if facts.IsVariable(e.Parameters[0]) && len(e.Parameters) == 1 {
		return fmt.Sprintf("what the cluster has as %s %s: change its label or claim, or insert the value with quote or toYaml in the chart",
			e.Parameters[0], e.Reason)
	}
	subject := "the value of parameter " + namesOf(e.Parameters)
	if len(e.Parameters) > 1 {
		subject = "one of the values of " + namesOf(e.Parameters)
	}
	return fmt.Sprintf("%s %s: use a value without characters that are special in YAML or templates; only structure: true of the parameter, "+
		"in the package, allows any value", subject, e.Reason)
}

func namesOf(parameters []string) string {
	const shown = 8
	quoted := make([]string, len(parameters))
	for i, name := range parameters {
		quoted[i] = name
		if !facts.IsVariable(name) {
			quoted[i] = text.Quote(name)
		}
	}
	return strings.Join(text.Limit(quoted, shown, "more"), ", ")
}

// maxAlone limits how many parameters are tried alone in order to find the one that changes the structure.
const maxAlone = 8

// Check returns a *GuardError if values change the structure of a rendering. It renders nothing if all are plain; otherwise a second time, with plain
// texts of the same length in place of the others, and if the structure differs, a few times more in order to name the parameter. render renders the
// chart with other values of the parameters, and everything else unchanged.
func (g *Guard) Check(rendered Rendering, render func(values map[string]string) (Rendering, error)) error {
	difference, err := g.Changes(rendered, render)
	if err != nil || difference == "" {
		return err
	}
	if len(g.suspects) > 1 && len(g.suspects) <= maxAlone {
		for _, suspect := range g.suspects {
			alone, err := g.difference(rendered, render, []string{suspect})
			if err != nil {
				return err
			}
			if alone != "" {
				return &GuardError{Parameters: []string{suspect}, Reason: reasonOf(alone)}
			}
		}
	}
	return &GuardError{Parameters: g.suspects, Reason: reasonOf(difference)}
}

// Changes returns how values change the structure of a rendering; empty if they do not. It is the first step of Check.
func (g *Guard) Changes(rendered Rendering, render func(values map[string]string) (Rendering, error)) (string, error) {
	if len(g.suspects) == 0 {
		return "", nil
	}
	return g.difference(rendered, render, g.suspects)
}

func reasonOf(difference string) string {
	return fmt.Sprintf("changes the structure of what the chart renders (%s)", difference)
}

// difference returns how the structure differs from that with plain values of some parameters. A chart that does not accept these is a difference.
func (g *Guard) difference(rendered Rendering, render func(map[string]string) (Rendering, error), parameters []string) (string, error) {
	tokens := newTokens()
	values, err := g.with(tokens, parameters)
	if err != nil {
		return "", err
	}
	plain, err := render(values)
	if err != nil {
		return "", fmt.Errorf("the chart renders with the given values of %s, but not with plain ones of the same length, so it is unknown whether they "+
			"change the structure; only structure: true of the parameters, in the package, allows any value: %w", namesOf(parameters), err)
	}
	return tokens.sameStructure(rendered, plain), nil
}

// inValue returns a value with tokens in place of texts and keys that are not plain.
func (t *tokens) inValue(def *kudo.Parameter, value string) (string, error) {
	if def.Type != kudo.ArrayType && def.Type != kudo.MapType {
		return t.of(value), nil
	}
	decoded, err := parameter.Decode(def.Type, value)
	if err != nil {
		return "", fmt.Errorf("parameter %q: %w", def.Name, err)
	}
	encoded, err := json.Marshal(t.in(decoded))
	return string(encoded), err
}

// Shadow returns the values of sensitive parameters with plain texts of the same length in their places.
func Shadow(defs []kudo.Parameter, sensitive map[string]string) (map[string]string, error) {
	tokens, shadow := newTokens(), maps.Clone(sensitive)
	tokens.all = true
	for i := range defs {
		value, has := sensitive[defs[i].Name]
		if !has || value == "" {
			continue
		}
		var err error
		if shadow[defs[i].Name], err = tokens.inValue(&defs[i], value); err != nil {
			return nil, err
		}
	}
	return shadow, nil
}

// CheckNames returns an error if a rendering has other objects than one with a shadow of sensitive values: the hub knows which objects there are.
func CheckNames(rendered, shadow Rendering) error {
	first, second := rendered.All(), shadow.All()
	for i := range max(len(first), len(second)) {
		if i < min(len(first), len(second)) && plan.Entry(first[i], "") == plan.Entry(second[i], "") {
			continue
		}
		return errors.New("sensitive parameters decide which objects the chart renders, or are part of the name or namespace of an object. " +
			"The hub shows kinds, names and namespaces: use parameters that are not sensitive there")
	}
	return nil
}
