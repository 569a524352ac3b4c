package template

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Error says what is wrong with one template. It is fatal: the same input fails the same way again.
type Error struct {
	// Template is its name, as tasks refer to it.
	Template string
	// Document counts the documents of the rendered text from 1; 0 if the template could not be rendered to text.
	Document int
	// Line counts from 1: in the template or, where Document is set, in the rendered text; 0 if there is none.
	Line int
	// Err is the fault, said in one bounded line.
	Err error
}

// NewError makes an Error of a fault of the template of that name, whose message may hold what a package or a library says in many lines.
func NewError(template string, err error) *Error {
	if line := oneLine(err.Error()); line != err.Error() {
		err = &fault{message: line, err: err}
	}
	return &Error{Template: template, Err: err}
}

// maxMessageRunes bounds the message of a fault.
const maxMessageRunes = 1024

// oneLine makes a message one line of bounded length: its middle is left out, for it begins with the place and ends with the
// fault.
func oneLine(message string) string {
	if strings.ContainsAny(message, "\n\r\v\f\u0085\u2028\u2029") {
		message = text.OneLine(message)
	}
	return text.Ends(message, maxMessageRunes)
}

func (e *Error) Error() string {
	switch {
	case e.Document > 0:
		return fmt.Sprintf("template %q, document %d (line %d of the rendered text): %v", e.Template, e.Document, e.Line, e.Err)
	case e.Line > 0:
		return fmt.Sprintf("template %q, line %d: %v", e.Template, e.Line, e.Err)
	default:
		return fmt.Sprintf("template %q: %v", e.Template, e.Err)
	}
}

func (e *Error) Unwrap() error { return e.Err }

// executionError takes name and line out of text/template's message, `template: NAME:LINE[:COLUMN]: MESSAGE`.
func executionError(name string, err error) *Error {
	message, ok := strings.CutPrefix(err.Error(), "template: "+name+":")
	if !ok {
		return NewError(name, err)
	}
	position, message, _ := strings.Cut(message, ": ")
	number, _, _ := strings.Cut(position, ":")
	line, convErr := strconv.Atoi(number)
	if convErr != nil {
		return NewError(name, err)
	}
	message = strings.TrimPrefix(message, fmt.Sprintf("executing %q ", name))
	for _, own := range []string{passFunction, weighFunction} {
		if _, fault, ok := strings.Cut(message, "error calling "+own+": "); ok {
			message = fault // the template does not call it
		}
	}
	fault := NewError(name, &fault{message: message + wayOut(message), err: err})
	fault.Line = line
	return fault
}

// fault is an error with a shorter message.
type fault struct {
	message string
	err     error
}

func (f *fault) Error() string { return f.message }

func (f *fault) Unwrap() error { return f.err }

// wayOut says what a template may refer to, where it referred to something else.
func wayOut(message string) string {
	switch {
	case !strings.Contains(message, "map has no entry for key"):
		return ""
	case strings.Contains(message, ".Params."):
		return ": .Params holds the parameters that the operator defines"
	default:
		return ": a template may refer to .Name, .Namespace, .OperatorName, .OperatorVersion, .AppVersion, .PlanName, " +
			".PhaseName, .StepName, .Params and .Pipes"
	}
}
