package pack

import (
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

type referenceKind int

const (
	// variableReference is .NAME at the top level of a template.
	variableReference referenceKind = iota
	// paramReference is .Params.NAME, or index .Params "NAME".
	paramReference
	// pipeReference is .Pipes.NAME, or index .Pipes "NAME".
	pipeReference
	// wholeParams is .Params as a value.
	wholeParams
)

// reference is a reference in a template.
type reference struct {
	kind referenceKind
	name string
	line int
}

// references returns the references of a template, in order of appearance. If the dot is rebound, inside of range, with and define, it only
// recognizes .Params and .Pipes.
func references(t *template.Template, text string) []reference {
	w := &walker{lines: lineStarts(text)}
	for _, associated := range t.Templates() {
		if associated.Tree != nil && associated.Root != nil {
			w.main = associated.Name() == t.Name()
			w.list(associated.Root, w.main)
		}
	}
	slices.SortStableFunc(w.found, func(a, b reference) int { return a.line - b.line })
	return w.found
}

type walker struct {
	// lines are the offsets at which the lines of the template begin, from the second on.
	lines []int
	found []reference
	// main is true for the template itself, and false for one defined in it: in the former, $ is the argument of the execution.
	main bool
}

func (w *walker) list(list *parse.ListNode, top bool) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		w.node(node, top)
	}
}

// node walks a node; top reports whether the dot is the argument of the template.
func (w *walker) node(node parse.Node, top bool) {
	switch n := node.(type) {
	case *parse.ListNode:
		w.list(n, top)
	case *parse.ActionNode:
		w.pipe(n.Pipe, top)
	case *parse.TemplateNode:
		w.pipe(n.Pipe, top)
	case *parse.IfNode:
		w.branch(&n.BranchNode, top, top)
	case *parse.WithNode:
		w.branch(&n.BranchNode, top, false)
	case *parse.RangeNode:
		w.branch(&n.BranchNode, top, false)
	}
}

func (w *walker) branch(b *parse.BranchNode, top, inside bool) {
	w.pipe(b.Pipe, top)
	w.list(b.List, inside)
	w.list(b.ElseList, top)
}

func (w *walker) pipe(pipe *parse.PipeNode, top bool) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		if w.index(command) {
			continue
		}
		for _, argument := range command.Args {
			w.argument(argument, top)
		}
	}
}

// index recognizes index .Params "NAME" and index .Pipes "NAME".
func (w *walker) index(command *parse.CommandNode) bool {
	if len(command.Args) < 3 || command.Args[0].String() != "index" {
		return false
	}
	name, isText := command.Args[2].(*parse.StringNode)
	path := fieldPath(command.Args[1])
	if !isText || len(path) != 1 {
		return false
	}
	kind, known := map[string]referenceKind{"Params": paramReference, "Pipes": pipeReference}[path[0]]
	if known {
		w.add(kind, name.Text, name.Pos)
	}
	return known
}

func (w *walker) argument(node parse.Node, top bool) {
	switch n := node.(type) {
	case *parse.PipeNode:
		w.pipe(n, top)
	case *parse.ChainNode:
		w.argument(n.Node, top)
	case *parse.FieldNode:
		w.path(n.Ident, top, n.Pos)
	case *parse.VariableNode:
		w.path(n.Ident[1:], w.main && n.Ident[0] == "$", n.Pos)
	}
}

// fieldPath returns the path after the dot or a variable: [Params NAME] for .Params.NAME and for $root.Params.NAME.
func fieldPath(node parse.Node) []string {
	switch n := node.(type) {
	case *parse.FieldNode:
		return n.Ident
	case *parse.VariableNode:
		return n.Ident[1:]
	}
	return nil
}

func (w *walker) path(path []string, top bool, pos parse.Pos) {
	switch {
	case len(path) == 0:
	case path[0] == "Params" && len(path) == 1:
		w.add(wholeParams, "", pos)
	case path[0] == "Params":
		w.add(paramReference, path[1], pos)
	case path[0] == "Pipes" && len(path) > 1:
		w.add(pipeReference, path[1], pos)
	case top:
		w.add(variableReference, path[0], pos)
	}
}

func (w *walker) add(kind referenceKind, name string, pos parse.Pos) {
	before, _ := slices.BinarySearch(w.lines, int(pos)+1)
	w.found = append(w.found, reference{kind: kind, name: name, line: 1 + before})
}

// lineStarts returns the offsets at which the lines of text begin, from the second on. It allows a binary search for the line of an offset,
// because a template may have a hundred thousand references.
func lineStarts(text string) []int {
	starts := make([]int, 0, strings.Count(text, "\n"))
	for at := 0; ; {
		length := strings.IndexByte(text[at:], '\n')
		if length < 0 {
			return starts
		}
		at += length + 1
		starts = append(starts, at)
	}
}
