package structure

import (
	"go/ast"
	"slices"
	"testing"
)

// The maximum median length of methods named Reconcile.
const medianReconcile = 40

func TestReconcileIsShort(t *testing.T) {
	var lengths []int
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		for _, function := range functions(s) {
			if function.Name.Name == "Reconcile" && function.Recv != nil {
				length := lines(s, function)
				t.Logf("%3d lines: %s", length, s.at(function))
				lengths = append(lengths, length)
			}
		}
	}
	if len(lengths) == 0 {
		return
	}
	slices.Sort(lengths)
	median := lengths[len(lengths)/2]
	t.Logf("%d methods Reconcile, median length %d lines", len(lengths), median)
	if median > medianReconcile {
		t.Errorf("the median Reconcile has %d lines, more than %d", median, medianReconcile)
	}
}

func functions(s source) []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, declaration := range s.syntax.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			found = append(found, function)
		}
	}
	return found
}

func lines(s source, function *ast.FuncDecl) int {
	return s.files.Position(function.End()).Line - s.files.Position(function.Pos()).Line + 1
}
