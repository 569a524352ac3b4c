package render

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/render/structure"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// documents are the documents that one template has rendered.
type documents struct {
	*renderer
	all     []document
	decoder *decoder
	// traces are those of each document; nil if no document has any.
	traces []trace
}

// trace is what a document holds of sensitive parameters.
type trace struct {
	texts []string
	known map[string]bool
	// opaque is true if it also holds something that cannot be masked in messages.
	opaque bool
}

// of returns the trace of a document.
func (d *documents) of(document int) trace {
	if document >= len(d.traces) {
		return trace{}
	}
	return d.traces[document]
}

// note adds the trace of a document to those of its object.
func (d *documents) note(document int, object *unstructured.Unstructured) {
	found := d.of(document)
	d.renderer.traces.Texts = append(d.renderer.traces.Texts, found.texts...)
	if found.opaque {
		d.renderer.traces.Opaque = append(d.renderer.traces.Opaque, sensitive.ObjectOf(object))
	}
}

// fail returns the error of a document without sensitive values in its message.
func (d *documents) fail(name string, document int, err error) *template.Error {
	var malformed *YAMLError
	if errors.As(err, &malformed) {
		err = malformed.below(d.all[document].line - 1)
	}
	if found := d.of(document); d.confidential.Known {
		if found.opaque {
			err = &template.ConcealedError{Parameters: slices.Sorted(maps.Keys(d.confidential.Parameters))}
		}
		err = sensitive.NewMasker(d.values()).With(found.texts...).Error(err)
	}
	problem := d.all[document].fail(name, document+1, err)
	if len(d.traces) > 0 { // the number of lines may depend on a value
		problem.Line = 0
	}
	return problem
}

// values returns the values of sensitive parameters.
func (r *renderer) values() sensitive.Values {
	values := sensitive.Values{}
	for name := range r.confidential.Parameters {
		values[name] = r.Parameters[name]
	}
	return values
}

// outermost returns an output whose prints are the traces that are not inside of others.
func outermost(out template.Output) template.Output {
	outer := template.Output{Text: out.Text}
	end := 0
	for _, t := range out.Traces {
		if t.Begin >= end {
			outer.Prints, end = append(outer.Prints, t), t.End
		}
	}
	return outer
}

// maxTraceBytes limits the traces of one template. More cannot be masked.
const maxTraceBytes = 64 << 10

// traces returns what each document holds of sensitive parameters.
func (g *guard) traces() []trace {
	if len(g.out.Traces) == 0 || !g.confidential.Known {
		return nil
	}
	traces := make([]trace, len(splitDocuments(g.out.Text)))
	outer := outermost(g.out)
	parts, known := structure.Rules{Read: g.read}.Parts(outer)
	size := 0
	for i, part := range parts {
		t := &traces[part.Document]
		size += t.add(part.Text, part.IsText)
		if i == 0 || parts[i-1].Print != part.Print || parts[i-1].Document != part.Document {
			size += t.addInside(g.out, outer.Prints[part.Print])
		}
		if size > maxTraceBytes {
			break
		}
	}
	if !known || size > maxTraceBytes {
		for i := range traces {
			traces[i] = trace{opaque: true}
		}
	}
	return traces
}

// addInside adds a print and those inside of it, as they are in the rendered text.
func (t *trace) addInside(out template.Output, print template.Print) (size int) {
	first, _ := slices.BinarySearchFunc(out.Traces, print.Begin, func(t template.Print, begin int) int { return t.Begin - begin })
	for _, inside := range out.Traces[first:] {
		if inside.Begin > print.End {
			break
		}
		if inside.End <= print.End {
			size += t.add(out.Text[inside.Begin:inside.End], true)
		}
	}
	return size
}

// add adds a text to a trace, and returns its size; isText is false for another value, such as a number, which messages may format differently.
func (t *trace) add(text string, isText bool) int {
	text = unquote(strings.TrimSpace(text))
	switch {
	case text == "":
	case !isText || len(text) < sensitive.MinBytes:
		t.opaque = true
	case !t.known[text]:
		if t.known == nil {
			t.known = map[string]bool{}
		}
		t.known[text] = true
		t.texts = append(t.texts, text)
		return len(text)
	}
	return 1
}

// unquote returns a text without the quotes around it.
func unquote(text string) string {
	if last := len(text) - 1; last > 0 && text[0] == text[last] && strings.ContainsAny(text[:1], "\"'`") {
		return text[1:last]
	}
	return text
}
