package template

import (
	"text/template"
	"text/template/parse"
)

// Place is where a template has a pipeline.
type Place struct {
	// Line of the template, from 1.
	Line int
	// Root is true if $ is the data of the template, and Top if the dot is.
	Root, Top bool
	// Alone is true if an action prints just the value of the pipeline, {{ .NAME }}, or tests whether it is empty, {{ if .NAME }}.
	Alone bool
}

// Pipes visits the pipelines of a template and of the templates that it defines, except for pipelines inside of others.
func Pipes(t *template.Template, visit func(*parse.PipeNode, Place)) {
	for _, each := range t.Templates() {
		if each.Tree != nil && each.Root != nil {
			root := each.Name() == t.Name()
			pipes(each.Root, Place{Root: root, Top: root}, visit)
		}
	}
}

// pipes visits the pipelines of a list; at states what the dot and $ are.
func pipes(l *parse.ListNode, at Place, visit func(*parse.PipeNode, Place)) {
	if l == nil {
		return
	}
	branch := func(b *parse.BranchNode, inside, alone bool) {
		visit(b.Pipe, Place{Line: b.Line, Root: at.Root, Top: at.Top, Alone: alone})
		pipes(b.List, Place{Root: at.Root, Top: inside}, visit)
		pipes(b.ElseList, at, visit)
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			visit(n.Pipe, Place{Line: n.Line, Root: at.Root, Top: at.Top, Alone: len(n.Pipe.Decl) == 0})
		case *parse.TemplateNode:
			if n.Pipe != nil {
				visit(n.Pipe, Place{Line: n.Line, Root: at.Root, Top: at.Top})
			}
		case *parse.IfNode:
			branch(&n.BranchNode, at.Top, len(n.Pipe.Decl) == 0)
		case *parse.WithNode:
			branch(&n.BranchNode, false, false)
		case *parse.RangeNode:
			branch(&n.BranchNode, false, false)
		}
	}
}
