package structure

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestPackagesAreNouns(t *testing.T) {
	vague := []string{"util", "utils", "helper", "helpers", "common", "constants", "types", "base", "misc", "shared"}
	for _, p := range packages(t) {
		if slices.Contains(vague, p.Name) || slices.Contains(vague, path.Base(p.path())) {
			t.Errorf("package %s in %s: name it for what it decides or does", p.Name, p.path())
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment: say in one sentence what it decides or does, and whether it touches a cluster",
				p.path())
		}
	}
}

func TestNothingHappensAtImport(t *testing.T) {
	for _, s := range sources(t) {
		for _, function := range functions(s) {
			if function.Name.Name == "init" && function.Recv == nil {
				t.Errorf("%s: func init: register and build where the program starts", s.at(function))
			}
		}
	}
}

// The maximum length of a function, from `func` to the closing brace; the goal is 40.
const maxLines = 60

func TestFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || s.isGenerated() {
			continue
		}
		for _, function := range functions(s) {
			if length := lines(s, function); length > maxLines {
				t.Errorf("%s: %s has %d lines, more than %d", s.at(function), function.Name.Name, length, maxLines)
			}
		}
	}
}

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

// Tests wait for conditions instead of durations, are never skipped, and use a real API server.
func TestTestsNeitherSleepNorSkipNorFake(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports {
			if isFake(imported) {
				t.Errorf("%s imports %s: test/integration has real API servers", s.path, imported)
			}
		}
		if s.isTest() {
			detours(s, func(node ast.Node, name string) { t.Errorf("%s: %s in a test", s.at(node), name) })
		}
	}
}

func isFake(importPath string) bool {
	kubernetes := strings.HasPrefix(importPath, "k8s.io/") || strings.HasPrefix(importPath, "sigs.k8s.io/")
	return kubernetes && path.Base(importPath) == "fake"
}

const ginkgo = "github.com/onsi/ginkgo/v2"

// ginkgoDetours are the names by which Ginkgo skips specs; F, P and X are also prefixes of containers and specs.
var (
	ginkgoDetours = []string{"Skip", "Pending", "Focus"}
	ginkgoNodes   = []string{"Describe", "Context", "When", "It", "Specify", "DescribeTable", "DescribeTableSubtree", "Entry"}
)

func isGinkgoDetour(name string) bool {
	return slices.Contains(ginkgoDetours, name) ||
		strings.ContainsAny(name[:1], "FPX") && slices.Contains(ginkgoNodes, name[1:])
}

// detours visits everything by which a test sleeps or is skipped: time.Sleep, t.Skip and the like, and Ginkgo's pending and focused specs.
func detours(s source, visit func(node ast.Node, name string)) {
	s.uses(func(node ast.Node, importPath, name string) {
		if importPath == "time" && name == "Sleep" || importPath == ginkgo && isGinkgoDetour(name) {
			visit(node, path.Base(importPath)+"."+name)
		}
	})
	dotted := slices.Contains(s.dotted, ginkgo)
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch function := call.Fun.(type) {
		case *ast.SelectorExpr:
			if slices.Contains([]string{"Skip", "SkipNow", "Skipf"}, function.Sel.Name) {
				visit(function, function.Sel.Name)
			}
		case *ast.Ident:
			if dotted && isGinkgoDetour(function.Name) {
				visit(function, function.Name)
			}
		}
		for _, argument := range call.Args {
			if name, ok := argument.(*ast.Ident); ok && dotted && isGinkgoDetour(name.Name) {
				visit(name, name.Name)
			}
		}
		return true
	})
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
