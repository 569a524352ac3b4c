// Package expression compiles and evaluates CEL expressions over one variable, with limits on their length, their functions and their cost. It
// is pure and touches no cluster.
package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
	"k8s.io/apiserver/pkg/cel/library"
)

// MaxBytes limits the length of an expression.
const MaxBytes = 2048

// costLimit bounds one evaluation of an expression, in the units of CEL: a tenth of what Kubernetes allows. A comparison costs less than ten, and a
// search through 60 entries about a thousand.
const costLimit = 100_000

// maxPrograms limits the compiled expressions that a Language keeps.
const maxPrograms = 1024

// Type is the type of an expression's result.
type Type string

// The types of results.
const (
	Bool   Type = "bool"
	String Type = "string"
)

// Language compiles expressions over one variable, an object. It keeps their programs, because each is evaluated again and again.
type Language struct {
	variable    string
	environment func() (*cel.Env, error)

	mutex sync.Mutex
	known map[source]compiled
}

// source is an expression with the type that it must return.
type source struct {
	text    string
	returns Type
}

type compiled struct {
	program cel.Program
	err     error
}

// Over returns the language of expressions over a variable of that name.
//
// It has what an expression needs to compare values, and nothing that builds larger ones: the limit of the cost is checked after each function, and so
// does not bound what one builds. Of the functions of OCM's Placements, it lacks + and map, those of strings that build a string or a list, parseJSON, and
// scores, which reads other objects; semver can also normalize "v1.37.2".
func Over(variable string) *Language {
	return &Language{variable: variable, known: map[source]compiled{}, environment: sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewCustomEnv(
			cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeMacros: []string{"map"}})),
			cel.Variable(variable, cel.MapType(cel.StringType, cel.DynType)),
			library.Regex(), library.Quantity(), library.IP(), library.CIDR(), library.Format(), library.SemverLib(library.SemverVersion(1)),
		)
	})}
}

// Check returns why an expression is not valid, with line and column; nil if it is. One whose type is only known when it is evaluated is valid.
func (l *Language) Check(expression string, returns Type) error {
	_, err := l.program(expression, returns)
	return err
}

// Holds returns the result of a bool expression for an object.
func (l *Language) Holds(expression string, object map[string]any) (bool, error) {
	result, err := l.evaluate(expression, Bool, object)
	if err != nil {
		return false, err
	}
	holds, is := result.(bool)
	if !is {
		return false, errors.New("the result is not bool")
	}
	return holds, nil
}

// Text returns the result of a string expression for an object.
func (l *Language) Text(expression string, object map[string]any) (string, error) {
	result, err := l.evaluate(expression, String, object)
	if err != nil {
		return "", err
	}
	text, is := result.(string)
	if !is {
		return "", errors.New("the result is not string")
	}
	return text, nil
}

// MissingError reports that an expression reads a field, or an entry of a list, that the object does not have.
type MissingError struct{ what string }

func (e *MissingError) Error() string { return e.what }

// evaluate returns the result of an expression for an object, or a *MissingError.
func (l *Language) evaluate(expression string, returns Type, object map[string]any) (any, error) {
	program, err := l.program(expression, returns)
	if err != nil {
		return nil, err
	}
	result, _, err := program.Eval(map[string]any{l.variable: object})
	if err == nil {
		return result.Value(), nil
	}
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) {
		return nil, fmt.Errorf("its cost for this object exceeds the limit of %d", costLimit)
	}
	if name, is := strings.CutPrefix(err.Error(), "no such key: "); is {
		return nil, &MissingError{fmt.Sprintf("there is no field %q", name)}
	}
	if index, is := strings.CutPrefix(err.Error(), "index out of bounds: "); is {
		return nil, &MissingError{fmt.Sprintf("there is no entry %s in a list", index)}
	}
	return nil, err
}

// program returns the compiled expression.
func (l *Language) program(expression string, returns Type) (cel.Program, error) {
	if len(expression) > MaxBytes {
		return nil, fmt.Errorf("the expression has %d bytes, more than the limit of %d", len(expression), MaxBytes)
	}
	of := source{expression, returns}
	l.mutex.Lock()
	found, known := l.known[of]
	l.mutex.Unlock()
	if !known {
		found.program, found.err = l.compile(expression, returns)
		l.keep(of, found)
	}
	return found.program, found.err
}

// keep stores a compiled expression, in place of any other one if there are too many.
func (l *Language) keep(of source, program compiled) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for other := range l.known {
		if len(l.known) < maxPrograms {
			break
		}
		delete(l.known, other)
	}
	of.text = strings.Clone(of.text)
	l.known[of] = program
}

// types maps the types of results to the ones of CEL.
var types = map[Type]*cel.Type{Bool: cel.BoolType, String: cel.StringType}

// compile returns the program of an expression that returns a value of that type, or one whose type is only known when it is evaluated.
func (l *Language) compile(expression string, returns Type) (cel.Program, error) {
	environment, err := l.environment()
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	checked, issues := environment.Compile(expression)
	if issues.Err() != nil {
		return nil, errors.New(l.firstIssue(issues, expression))
	}
	if place, adds := addition(checked.NativeRep()); adds {
		return nil, fmt.Errorf("line %d, column %d: function \"+\" is not available", place.Line(), place.Column()+1)
	}
	if result := checked.OutputType(); !result.IsExactType(types[returns]) && !result.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression returns %s and not %s", cel.FormatCELType(result), returns)
	}
	return environment.Program(checked, cel.CostLimit(costLimit), cel.CostTracking(&library.CostEstimator{}))
}

// addition returns the place of the first + in an expression, apart from those that macros consist of: filter adds entries to its result, which is not
// larger than the list.
func addition(checked *ast.AST) (place common.Location, adds bool) {
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if adds || e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Add {
			return
		}
		if to := e.AsCall().Args()[0]; to.Kind() == ast.IdentKind && to.AsIdent() == parser.HiddenAccumulatorName {
			return // no expression can name it
		}
		place, adds = checked.SourceInfo().GetStartLocation(e.ID()), true
	}))
	return place, adds
}

// firstIssue returns the first problem of an expression with its place, without the expression itself.
func (l *Language) firstIssue(issues *cel.Issues, expression string) string {
	first := issues.Errors()[0]
	message := strings.ReplaceAll(first.Message, " (in container '')", "")
	if name, is := strings.CutPrefix(message, "undeclared reference to '"); is {
		message += "; the only variable is " + l.variable
		if name = strings.TrimSuffix(name, "'"); strings.HasPrefix(name, "_") || strings.Contains(expression, name+"(") {
			message = fmt.Sprintf("function %q is not available", strings.Trim(name, "_"))
		}
	}
	return fmt.Sprintf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1, message)
}
