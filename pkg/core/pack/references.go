package pack

import (
	"slices"
	"strings"
	texttemplate "text/template"
	"text/template/parse"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

type referenceKind int

const (
	// variableReference is .NAME at the top level of a template.
	variableReference referenceKind = iota
	// paramReference is .Params.NAME, or index .Params "NAME".
	paramReference
	// pipeReference is .Pipes.NAME, or index .Pipes "NAME".
	pipeReference
	// clusterReference is .Cluster.NAME.
	clusterReference
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
func references(t *texttemplate.Template, text string) []reference {
	f := &finder{lines: lineStarts(text)}
	template.Pipes(t, func(p *parse.PipeNode, at template.Place) {
		f.root = at.Root
		f.pipe(p, at.Top)
	})
	slices.SortStableFunc(f.found, func(a, b reference) int { return a.line - b.line })
	return f.found
}

// finder finds the references of pipelines.
type finder struct {
	// lines are the offsets at which the lines of the template begin, from the second on.
	lines []int
	found []reference
	// root reports whether $ is the argument of the execution. It is not in a template that is defined in another one.
	root bool
}

// pipe finds the references of a pipeline; top reports whether the dot is the argument of the execution.
func (f *finder) pipe(pipe *parse.PipeNode, top bool) {
	for _, command := range pipe.Cmds {
		if f.index(command) {
			continue
		}
		for _, argument := range command.Args {
			f.argument(argument, top)
		}
	}
}

// index recognizes index .Params "NAME" and index .Pipes "NAME".
func (f *finder) index(command *parse.CommandNode) bool {
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
		f.add(kind, name.Text, name.Pos)
	}
	return known
}

func (f *finder) argument(node parse.Node, top bool) {
	switch n := node.(type) {
	case *parse.PipeNode:
		f.pipe(n, top)
	case *parse.ChainNode:
		f.argument(n.Node, top)
	case *parse.FieldNode:
		f.path(n.Ident, top, n.Pos)
	case *parse.VariableNode:
		f.path(n.Ident[1:], f.root && n.Ident[0] == "$", n.Pos)
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

func (f *finder) path(path []string, top bool, pos parse.Pos) {
	switch {
	case len(path) == 0:
	case path[0] == "Params" && len(path) == 1:
		f.add(wholeParams, "", pos)
	case path[0] == "Params":
		f.add(paramReference, path[1], pos)
	case path[0] == "Pipes" && len(path) > 1:
		f.add(pipeReference, path[1], pos)
	case top && path[0] == "Cluster" && len(path) > 1:
		f.add(clusterReference, path[1], pos)
	case top:
		f.add(variableReference, path[0], pos)
	}
}

func (f *finder) add(kind referenceKind, name string, pos parse.Pos) {
	before, _ := slices.BinarySearch(f.lines, int(pos)+1)
	f.found = append(f.found, reference{kind: kind, name: name, line: 1 + before})
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
