package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/tandem-addons/tandem/pkg/text"
)

// ConcealedError replaces an error whose message may depend on the values of sensitive parameters.
type ConcealedError struct {
	// Parameters are the possible parameters; empty if it may be any.
	Parameters []string
}

func (e *ConcealedError) Error() string {
	const shown = 12
	subject := "sensitive parameters"
	if len(e.Parameters) > 0 {
		names := make([]string, len(e.Parameters))
		for i, name := range e.Parameters {
			names[i] = text.Quote(name)
		}
		subject = strings.TrimSuffix(subject, "s") + " " + strings.Join(text.Limit(names, shown, "more"), " or ")
	}
	return fmt.Sprintf("rendering fails, and its message is not shown, because it depends on %s", subject)
}

// conceal returns the error to return for an error of text/template if that may depend on the parameters that the analysis follows; nil if it
// does not. An error from an unknown place may. The line is where the outermost condition or loop begins that depends on them: the line of an action
// inside would reveal which one was executed.
func (a *analysis) conceal(name string, err error) *Error {
	dependent := slices.ContainsFunc(a.pipelines, func(p pipeline) bool { return !p.none() })
	if !dependent {
		return nil
	}
	for _, limit := range []error{errTooLong, errTooManySteps, errTooDeep} {
		if errors.Is(err, limit) { // where it is reached depends on everything before
			return NewError(name, limit)
		}
	}
	place := placeOf(err)
	i := slices.IndexFunc(a.pipelines, func(p pipeline) bool { return place != "" && p.at(place) })
	if i < 0 {
		return NewError(name, &ConcealedError{})
	}
	from := a.pipelines[i]
	if from.none() {
		return nil
	}
	problem := NewError(name, &ConcealedError{Parameters: from.names})
	if problem.Line = from.line; !from.selected {
		problem.Line = executionError(name, err).Line
	}
	return problem
}

// placeOf returns where an error of text/template comes from, `NAME:LINE:COLUMN`; empty if it is unknown.
func placeOf(err error) string {
	message, ok := strings.CutPrefix(err.Error(), "template: ")
	if !ok {
		return ""
	}
	place, _, _ := strings.Cut(message, ": ")
	return place
}

// at reports whether the pipeline or its node is at a place, or contains it.
func (p pipeline) at(place string) bool {
	is := func(n parse.Node) bool {
		found, _ := p.tree.ErrorContext(n)
		return found == place
	}
	return is(p.node) || contains(p.pipe, is)
}

// contains reports whether a node or one inside of it satisfies a condition.
func contains(n parse.Node, is func(parse.Node) bool) bool {
	if is(n) {
		return true
	}
	inside := func(n parse.Node) bool { return contains(n, is) }
	switch n := n.(type) {
	case *parse.PipeNode:
		return slices.ContainsFunc(n.Cmds, func(c *parse.CommandNode) bool { return inside(c) })
	case *parse.CommandNode:
		return slices.ContainsFunc(n.Args, inside)
	case *parse.ChainNode:
		return inside(n.Node)
	}
	return false
}
