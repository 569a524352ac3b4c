package template

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Error is a problem of one template. It is terminal: the same input fails again in the same way.
type Error struct {
	// Template is the name of the template, as tasks refer to it.
	Template string
	// Document is the number of the document in the rendered text, from 1; 0 if the template could not be rendered to text.
	Document int
	// Line is the line number, from 1: in the template or, if Document is set, in the rendered text; 0 if it is unknown, or depends on a value that
	// no message may disclose.
	Line int
	// Err is the problem, in one line of limited length.
	Err error
}

// NewError returns an Error for the template of that name. The message of err may have many lines from a package or a library.
func NewError(template string, err error) *Error {
	if line := oneLine(err.Error()); line != err.Error() {
		err = &problem{message: line, err: err}
	}
	return &Error{Template: template, Err: err}
}

// maxMessageRunes limits the message of a problem.
const maxMessageRunes = 1024

// oneLine converts a message to one line of limited length. It omits the middle, because the message begins with the position and ends with
// the problem.
func oneLine(message string) string {
	if strings.ContainsAny(message, "\n\r\v\f\u0085\u2028\u2029") {
		message = text.OneLine(message)
	}
	return text.Ends(message, maxMessageRunes)
}

func (e *Error) Error() string {
	switch {
	case e.Document > 0 && e.Line == 0:
		return fmt.Sprintf("template %q, document %d: %v", e.Template, e.Document, e.Err)
	case e.Document > 0:
		return fmt.Sprintf("template %q, document %d (line %d of the rendered text): %v", e.Template, e.Document, e.Line, e.Err)
	case e.Line > 0:
		return fmt.Sprintf("template %q, line %d: %v", e.Template, e.Line, e.Err)
	default:
		return fmt.Sprintf("template %q: %v", e.Template, e.Err)
	}
}

func (e *Error) Unwrap() error { return e.Err }

// executionError parses name and line from text/template's message, `template: NAME:LINE[:COLUMN]: MESSAGE`.
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
	for _, own := range []string{passFunction, weighFunction, printFunction} {
		if _, problem, ok := strings.Cut(message, "error calling "+own+": "); ok {
			message = problem // the function is internal: the template does not call it
		}
	}
	problem := NewError(name, &problem{message: message + wayOut(message), err: err})
	problem.Line = line
	return problem
}

// problem is an error with a shorter message.
type problem struct {
	message string
	err     error
}

func (f *problem) Error() string { return f.message }

func (f *problem) Unwrap() error { return f.err }

// wayOut lists the available variables if the template refers to an unknown one.
func wayOut(message string) string {
	switch {
	case !strings.Contains(message, "map has no entry for key"):
		return ""
	case strings.Contains(message, ".Params."):
		return ": .Params contains the parameters that the operator defines"
	case strings.Contains(message, ".Cluster.Labels."), strings.Contains(message, ".Cluster.Claims."):
		return `: the cluster does not have it; index .Cluster.Labels "NAME" and index .Cluster.Claims "NAME" are empty then`
	case strings.HasSuffix(message, `no entry for key "Cluster"`):
		return ": addon-manager has not set the facts of the cluster in the Instance: upgrade addon-manager, if it is of an earlier release"
	case strings.HasSuffix(message, `no entry for key "Capabilities"`):
		return ": the version of the cluster is not known"
	case strings.Contains(message, ".Cluster."):
		return ": .Cluster has the fields .Name, .Labels and .Claims"
	case strings.Contains(message, ".Capabilities."):
		return ": .Capabilities has the fields .KubeVersion.Version, .KubeVersion.Major and .KubeVersion.Minor"
	default:
		return ": a template may refer to .Name, .Namespace, .OperatorName, .OperatorVersion, .AppVersion, .PlanName, " +
			".PhaseName, .StepName, .Params, .Pipes, .Cluster and .Capabilities"
	}
}
