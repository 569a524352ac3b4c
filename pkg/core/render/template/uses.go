package template

import (
	"text/template"
	"text/template/parse"
)

// Use is a use of parameters by a template.
type Use struct {
	// Line of the template, from 1; 0 if unknown.
	Line int
	// Parameter is the name of the parameter; empty if the template uses all parameters as a whole, or computes the name.
	Parameter string
	// Alone is true if an action prints just the value, {{ .Params.NAME }}, or tests whether it is empty, {{ if .Params.NAME }}.
	Alone bool
}

// Uses lists all uses of parameters, in any order. A value that stems from another use, such as a variable's, is not listed again.
func Uses(t *template.Template) []Use {
	u := &usage{}
	Pipes(t, func(p *parse.PipeNode, at Place) {
		u.line = at.Line
		u.pipe(p, at.Top, at.Alone)
	})
	return u.found
}

type usage struct {
	found []Use
	line  int
}

func (u *usage) pipe(p *parse.PipeNode, top, alone bool) {
	alone = alone && len(p.Cmds) == 1 && len(p.Cmds[0].Args) == 1
	for _, c := range p.Cmds {
		for _, argument := range c.Args {
			u.argument(argument, top, alone)
		}
	}
}

func (u *usage) argument(n parse.Node, top, alone bool) {
	switch n := n.(type) {
	case *parse.DotNode:
		if top {
			u.found = append(u.found, Use{Line: u.line})
		}
	case *parse.FieldNode:
		u.path(n.Ident, alone)
	case *parse.VariableNode:
		if len(n.Ident) == 1 && n.Ident[0] == "$" {
			u.found = append(u.found, Use{Line: u.line})
		}
		u.path(n.Ident[1:], alone)
	case *parse.ChainNode:
		u.argument(n.Node, top, false)
	case *parse.PipeNode:
		u.pipe(n, top, false)
	}
}

// path notes a path that begins with .Params.
func (u *usage) path(names []string, alone bool) {
	switch {
	case len(names) == 0 || names[0] != "Params":
	case len(names) == 1:
		u.found = append(u.found, Use{Line: u.line})
	default:
		u.found = append(u.found, Use{Line: u.line, Parameter: names[1], Alone: alone && len(names) == 2})
	}
}
