package structure

import (
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"
)

// minEventually is the least timeout of a wait for a condition: on a busy machine, everything takes long.
const minEventually = time.Minute

// Tests wait for conditions, and assert no durations: on a busy machine, a correct program may take any time. Benchmarks measure time. A
// test with testing/synctest has its own time.
func TestTestsDoNotAssertDurations(t *testing.T) {
	byFolder := map[string][]source{}
	for _, s := range sources(t) {
		if s.isTest() && !slices.Contains(s.imports, "testing/synctest") {
			byFolder[s.folder()] = append(byFolder[s.folder()], s)
		}
	}
	for folder, files := range byFolder {
		durations := constants(files)
		var waits, limited bool
		for _, s := range files {
			waits = waits || hasCallOf(s.syntax, "Eventually")
			limited = limited || hasCallOf(s.syntax, "SetDefaultEventuallyTimeout")
			ast.Inspect(s.syntax, func(node ast.Node) bool {
				if problem := timeProblem(node, durations); problem != "" {
					t.Errorf("%s: %s", s.at(node), problem)
				}
				return true
			})
		}
		if waits && !limited {
			t.Errorf("%s: no SetDefaultEventuallyTimeout: the default is one second", folder)
		}
	}
}

// timeProblem returns what is wrong with a node that asserts a duration, or gives up too early; empty if it does neither.
func timeProblem(node ast.Node, durations map[string]time.Duration) string {
	switch node := node.(type) {
	case *ast.IfStmt:
		measured := hasCallOf(node.Init, "Since") || hasCallOf(node.Cond, "Since")
		if measured && hasCallOf(node.Body, "Error", "Errorf", "Fatal", "Fatalf", "Fail") {
			return "a failure after some time"
		}
	case *ast.CallExpr:
		if name, _ := calleeOf(node); (name == "To" || name == "Should") && isLimit(chainStart(node), node.Args[0]) {
			return "an upper bound of a duration"
		}
		if timeout, known := duration(timeoutOf(node), durations); known && timeout < minEventually {
			return "a timeout of " + timeout.String() + ", less than " + minEventually.String()
		}
	}
	return ""
}

// timeoutOf returns the timeout that a call sets for Eventually; nil if it sets none.
func timeoutOf(call *ast.CallExpr) ast.Expr {
	switch name, _ := calleeOf(call); {
	case name == "Eventually" && len(call.Args) > 1:
		return call.Args[1]
	case name == "SetDefaultEventuallyTimeout", name == "WithTimeout" && isCallOf(chainStart(call), "Eventually"):
		return call.Args[0]
	}
	return nil
}

// isLimit reports whether an assertion fails because a duration is too long, or because it is too late. Those of Consistently do not: they end
// earlier on a busy machine.
func isLimit(root *ast.CallExpr, matcher ast.Expr) bool {
	bound, ok := matcher.(*ast.CallExpr)
	if !ok || root == nil || isCallOf(root, "Consistently") || len(root.Args)*len(bound.Args) == 0 {
		return false
	}
	operator, last := literalText(bound.Args[0]), bound.Args[len(bound.Args)-1]
	switch name, _ := calleeOf(bound); name {
	case "BeNumerically":
		return strings.HasPrefix(operator, "<") && (hasCallOf(root.Args[0], "Since", "Sub") || isDuration(last))
	case "BeTemporally":
		return operator == "~" || strings.HasPrefix(operator, "<") && isCallOf(root.Args[0], "Now")
	}
	return false
}

// isDuration reports whether an expression is a constant with a unit of time.
func isDuration(e ast.Expr) bool {
	_, isNumber := e.(*ast.BasicLit)
	_, known := duration(e, nil)
	return known && !isNumber
}

// calleeOf returns the name of the function or method of a call, and what a method is called on.
func calleeOf(call *ast.CallExpr) (name string, subject ast.Expr) {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name, nil
	case *ast.SelectorExpr:
		return function.Sel.Name, function.X
	}
	return "", nil
}

func isCallOf(node ast.Node, name string) bool {
	call, ok := node.(*ast.CallExpr)
	if !ok || call == nil {
		return false
	}
	is, _ := calleeOf(call)
	return is == name
}

// chainStart returns the first call of a chain such as Eventually(f).WithContext(ctx).Should(m); nil if the call is the first one.
func chainStart(call *ast.CallExpr) *ast.CallExpr {
	_, subject := calleeOf(call)
	before, ok := subject.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if first := chainStart(before); first != nil {
		return first
	}
	return before
}

// hasCallOf reports whether a function or method of one of these names is called below a node.
func hasCallOf(below ast.Node, names ...string) (found bool) {
	if below == nil {
		return false
	}
	ast.Inspect(below, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			name, _ := calleeOf(call)
			found = found || slices.Contains(names, name)
		}
		return !found
	})
	return found
}

func literalText(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		return strings.Trim(literal.Value, `"`)
	}
	return ""
}

// constants returns the values of the package's constants that are durations.
func constants(files []source) map[string]time.Duration {
	found := map[string]time.Duration{}
	for _, s := range files {
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					if d, known := duration(spec.Values[i], nil); known {
						found[name.Name] = d
					}
				}
			}
			return true
		})
	}
	return found
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// duration returns the value of a constant expression, such as 2 * time.Second.
func duration(e ast.Expr, names map[string]time.Duration) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.INT {
			return 0, false
		}
		value, exact := constant.Int64Val(constant.MakeFromLiteral(e.Value, e.Kind, 0))
		return time.Duration(value), exact
	case *ast.Ident:
		d, known := names[e.Name]
		return d, known
	case *ast.SelectorExpr:
		d, known := units[e.Sel.Name]
		return d, known
	case *ast.BinaryExpr:
		x, knownX := duration(e.X, names)
		y, knownY := duration(e.Y, names)
		switch e.Op {
		case token.MUL:
			return x * y, knownX && knownY
		case token.ADD:
			return x + y, knownX && knownY
		}
	}
	return 0, false
}
