// Package template parses the templates of packages, and executes them with a limited set of functions and a limited cost. It is pure and
// touches no cluster.
package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// noValue is what text/template prints for a missing index of a list or map, which missingkey=error does not cover.
const noValue = "<no value>"

// Parse parses a template of a package with the functions that packages may use. A reference to an unknown variable is an error when the
// template is executed. The error is an *Error with the line. The template has no functions yet: Execute adds those that it calls. A copy of the
// map of all functions would cost more than the parser.
func Parse(name, text string) (*template.Template, error) {
	if err := checkSource(name, text); err != nil {
		return nil, err
	}
	trees, err := parse.Parse(name, text, "", "", functions, builtins)
	if err != nil {
		return nil, executionError(name, err)
	}
	t := template.New(name).Option("missingkey=error")
	for each, tree := range trees {
		if _, err := t.AddParseTree(each, tree); err != nil {
			return nil, executionError(name, err)
		}
	}
	return t, nil
}

// builtins are the names of text/template's own functions, for the parser.
var builtins = map[string]any{
	"and": true, "call": true, "html": true, "index": true, "js": true, "len": true, "not": true, "or": true, "print": true, "printf": true,
	"println": true, "slice": true, "urlquery": true, "eq": true, "ge": true, "gt": true, "le": true, "lt": true, "ne": true,
}

// Execute runs a parsed template once, within its limits. It passes a copy of the data, because templates can modify maps and lists. The
// error is an *Error; the output has only its Steps then.
func Execute(t *template.Template, data map[string]any) (Output, error) {
	return ExecuteWith(t, data, Sensitive{})
}

// Sensitive are the sensitive parameters of a template that have a value.
type Sensitive struct {
	// Parameters are their names.
	Parameters map[string]bool
	// Known is true if the data has their values, which no message may quote.
	Known bool
}

// ExecuteWith is Execute for a template with sensitive parameters. An *Error that may depend on a known value wraps a *ConcealedError.
func ExecuteWith(t *template.Template, data map[string]any, sensitive Sensitive) (Output, error) {
	i := instrument(t, sensitive.Parameters)
	err := t.Execute(&i.out, clone(data))
	steps := maxSteps - i.budget.steps
	if err != nil {
		if sensitive.Known {
			if concealed := i.confidential.conceal(t.Name(), err); concealed != nil {
				return Output{Steps: steps}, concealed
			}
		}
		return Output{Steps: steps}, executionError(t.Name(), err)
	}
	out := i.out.output()
	out.Steps = steps
	if before, _, found := strings.Cut(out.Text, noValue); found {
		where := fmt.Sprintf("line %d of the rendered text", lineAt(before))
		if sensitive.Known && len(out.Traces) > 0 { // the number of lines may depend on a value
			where = "the rendered text"
		}
		return Output{Steps: steps}, NewError(t.Name(), fmt.Errorf("%s contains %s: an index or lookup found nothing; set a default", where, noValue))
	}
	return out, nil
}

// Blocks returns the conditions and loops of a template that depend on more of sensitive parameters than whether they are set, by line.
func Blocks(t *template.Template, sensitive map[string]bool) []*Action {
	blocks := slices.Collect(maps.Values(analyze(t, sensitive).blocks))
	slices.SortFunc(blocks, func(a, b *Action) int { return a.Line - b.Line })
	return blocks
}

// lineAt returns the number of the line, from 1, that follows the text before it.
func lineAt(before string) int { return strings.Count(before, "\n") + 1 }
