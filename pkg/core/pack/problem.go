package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Severity is the severity of a problem.
type Severity string

const (
	// Error means that the package cannot run.
	Error Severity = "error"
	// Warning means that the package runs, but perhaps not as intended.
	Warning Severity = "warning"
)

// Problem is one result of verification.
type Problem struct {
	// File in the package, with slashes; empty in problems over an OperatorVersion.
	File string
	// Line in File, from 1; in problems over an OperatorVersion the line in the template that Field names. 0 if unknown.
	Line int
	// Column in Line, from 1, in characters. 0 if unknown: only YAML files have columns.
	Column int
	// Field is the path of the field, such as tasks[0].spec.resources[1].
	Field string
	// Severity of the problem.
	Severity Severity
	// Message names the object, the value and how to fix the problem.
	Message string
}

// String formats the problem as FILE:LINE:COLUMN: SEVERITY: MESSAGE like a compiler, with the field in place of a missing file.
func (f Problem) String() string {
	place := f.File
	if place == "" {
		place = f.Field
	}
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	if f.Column > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Column)
	}
	return fmt.Sprintf("%s: %s: %s", place, f.Severity, f.Message)
}

// Errors returns the problems of severity Error, in their order.
func Errors(problems []Problem) []Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(f Problem) bool { return f.Severity != Error })
}

// messageBytes limits a message: it may list names.
const messageBytes = 2048

func problemAt(field, format string, args ...any) Problem {
	return Problem{Field: field, Severity: Error, Message: text.Truncate(fmt.Sprintf(format, args...), messageBytes)}
}

func warningAt(field, format string, args ...any) Problem {
	problem := problemAt(field, format, args...)
	problem.Severity = Warning
	return problem
}

// First returns the first problems, and counts the others in a last one. It keeps no memory of the others.
func First(problems []Problem, limit int) []Problem {
	left := len(problems) - limit
	if left <= 0 {
		return problems
	}
	first := slices.Clone(problems[:limit])
	return append(first, Problem{
		Field: problems[limit].Field, Severity: problems[limit].Severity, Message: fmt.Sprintf("and %d more problems", left),
	})
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
}

// templateField returns the path of a template in an OperatorVersion; templateOf is its inverse.
func templateField(name string) string { return "templates[" + name + "]" }

func templateOf(field string) (name string, ok bool) {
	name, ok = strings.CutPrefix(field, "templates[")
	return strings.TrimSuffix(name, "]"), ok
}
