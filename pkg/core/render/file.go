package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// FileError reports that a parameter file is not valid.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("parameterFile %q: %v", e.File, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// passOn is the rule for sensitive parameters in parameter files.
const passOn = "can only be passed on as a whole: write NAME: {{ .Params.%s }}, with nothing else in the action and in the value"

// File renders the parameter file of a KudoOperator task, and returns the values of the child's parameters, and as passed those that are
// sensitive parameters of the parent, whose names it returns: they are passed on without a look at their values. It returns the errors of
// Objects, or a *FileError, which may wrap a *SensitiveError.
func File(c Context, name string) (values, passed map[string]string, err error) {
	tokens := tokensOf(&c)
	if c.Budget == nil {
		c.Budget = NewFileBudget()
	}
	r, err := newRenderer(c, name)
	if err != nil {
		return nil, nil, err
	}
	if err := r.passesOn(name, tokens); err != nil {
		return nil, nil, err
	}
	out, err := r.execute(name)
	if err != nil {
		return nil, nil, err
	}
	g := &guard{renderer: r, template: name, out: out, read: r.readFile, file: true}
	if err := g.check(); err != nil {
		return nil, nil, err
	}
	if values, err = parameter.File(out.Text); err != nil {
		return nil, nil, &FileError{File: name, Err: err}
	}
	if passed, err = take(values, tokens); err != nil {
		return nil, nil, &FileError{File: name, Err: err}
	}
	return values, passed, nil
}

// Values renders the values file of a Helm task to JSON, an object, which is YAML too. It returns the errors of Objects.
func Values(c Context, name string) (string, error) {
	r, err := newRenderer(c, name)
	if err != nil {
		return "", err
	}
	docs, err := r.documents(name)
	if err != nil {
		return "", err
	}
	if len(docs.all) == 0 {
		return "", nil
	}
	decoded, _, err := docs.decoder.decode(docs.all[0], yaml.MaxDocument)
	values, is := decoded.(map[string]any)
	switch {
	case err == nil && len(docs.all) > 1:
		err = fmt.Errorf("must contain the chart's values in one document, got %d", len(docs.all))
	case err == nil && !is && decoded != nil:
		err = fmt.Errorf("must contain the chart's values, an object, got %s", describe(decoded))
	}
	if err != nil {
		return "", docs.fail(name, 0, err)
	}
	encoded, err := json.Marshal(values)
	return string(text.EscapeJSON(encoded)), err // Helm reads it as YAML
}

// tokensOf replaces the values of sensitive parameters in the context by tokens, and returns the parameters by their tokens. No other value
// contains a token. A sensitive parameter without a value has no token.
func tokensOf(c *Context) map[string]string {
	if c.Version == nil {
		return nil
	}
	plain, tokens := maps.Clone(c.Parameters), map[string]string{}
	var given []string
	for i := range c.Version.Parameters {
		p := &c.Version.Parameters[i]
		if value := cmp.Or(c.Sensitive[p.Name], c.Parameters[p.Name]); p.IsSensitive() && value != "" {
			delete(plain, p.Name)
			given = append(given, p.Name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	prefix := "tandem-sensitive-"
	if others := withFacts(plain, c); contains(others, prefix) {
		prefix += digestOf(others) // no value contains a digest of itself
	}
	c.Parameters, c.Sensitive = plain, make(map[string]string, len(given))
	for i, name := range given {
		token := fmt.Sprintf("%s%d.", prefix, i)
		tokens[token], c.Sensitive[name] = name, token
	}
	return tokens
}

// withFacts returns values with the facts of the cluster, which a parameter file may pass on like them.
func withFacts(values map[string]string, c *Context) map[string]string {
	all := maps.Clone(values)
	if all == nil {
		all = map[string]string{}
	}
	for _, variable := range facts.Known(c.Cluster, c.KubernetesVersion) {
		all[variable] = facts.Text(variable, c.Cluster, c.KubernetesVersion)
	}
	return all
}

// digestOf returns a digest of values.
func digestOf(values map[string]string) string {
	encoded, _ := json.Marshal(values) // strings always encode
	return fmt.Sprintf("%x.", sha256.Sum256(encoded))
}

// contains reports whether any value contains the text.
func contains(values map[string]string, part string) bool {
	for _, value := range values {
		if strings.Contains(value, part) {
			return true
		}
	}
	return false
}

// passesOn returns an error if the template does anything with the parameters of tokens but pass them on.
func (r *renderer) passesOn(name string, tokens map[string]string) error {
	source, exists := r.Version.Templates[name]
	if len(tokens) == 0 || !exists {
		return nil
	}
	t, err := template.Parse(name, source)
	if err != nil {
		return err
	}
	sensitive := slices.Sorted(maps.Values(tokens))
	for _, use := range template.Uses(t) {
		var problem *SensitiveError
		switch {
		case use.Parameter == "":
			problem = &SensitiveError{Parameters: sensitive, Reason: "would be disclosed, because the parameter file uses .Params or the dot as a whole: " +
				"name each parameter, {{ .Params.NAME }}"}
		case slices.Contains(sensitive, use.Parameter) && !use.Alone:
			problem = &SensitiveError{Parameters: []string{use.Parameter}, Reason: fmt.Sprintf(passOn, use.Parameter)}
		default:
			continue
		}
		failed := template.NewError(name, problem)
		failed.Line = use.Line
		return failed
	}
	return nil
}

// take removes the tokens from the values of a parameter file, and returns the parameters that they stand for, by the name of the value. A
// token that is not a whole value is an error.
func take(values, tokens map[string]string) (passed map[string]string, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if parameter, whole := tokens[values[name]]; whole {
			if passed == nil {
				passed = map[string]string{}
			}
			passed[name] = parameter
			delete(values, name)
			continue
		}
		for _, token := range slices.Sorted(maps.Keys(tokens)) {
			if strings.Contains(values[name], token) || strings.Contains(name, token) {
				return nil, &SensitiveError{Parameters: []string{tokens[token]}, Reason: fmt.Sprintf(passOn, tokens[token])}
			}
		}
	}
	return passed, nil
}
