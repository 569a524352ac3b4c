// Package template parses the templates of packages, and executes them with a limited set of functions and a limited cost. It is pure and
// touches no cluster.
package template

import (
	"fmt"
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
// error is an *Error.
func Execute(t *template.Template, data map[string]any) (Output, error) {
	out := instrument(t)
	if err := t.Execute(out, clone(data)); err != nil {
		return Output{}, executionError(t.Name(), err)
	}
	text := out.String()
	if before, _, found := strings.Cut(text, noValue); found {
		return Output{}, NewError(t.Name(), fmt.Errorf(
			"line %d of the rendered text contains %s: an index or lookup found nothing; set a default", lineAt(before), noValue))
	}
	return Output{Text: text, Prints: out.prints}, nil
}

// lineAt returns the number of the line, from 1, that follows the text before it.
func lineAt(before string) int { return strings.Count(before, "\n") + 1 }
