package structure

import (
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// Part is what a print has become in a document.
type Part struct {
	// Document is the index of the document, and Print that of the print.
	Document, Print int
	// Text is the part of a text or of a key, as decoded; IsText is false if the print is part of another value, such as a number.
	Text   string
	IsText bool
}

// Parts returns what the prints of an output have become in its documents. Prints in comments have become nothing. known is false if the
// output cannot be read. Prints without text have no parts.
func (r Rules) Parts(out template.Output) (parts []Part, known bool) {
	judged := actions(out, func(*template.Action) bool { return true })
	if len(judged) == 0 {
		return nil, true
	}
	t := newTwin(out, setOf(judged))
	original, err := r.Read(out.Text)
	if err != nil {
		return nil, false
	}
	marked, err := r.Read(t.text)
	if err != nil || len(marked) != len(original) {
		return nil, false
	}
	c := collector{twin: t, prints: out.Prints, names: &comparison{twin: t, seen: make([]bool, len(t.pieces))}}
	for i := range original {
		c.document = i
		c.value(original[i], marked[i])
	}
	return c.parts, true
}

// collector collects the parts of documents.
type collector struct {
	twin     *twin
	prints   []template.Print
	names    *comparison
	document int
	parts    []Part
}

// value collects the parts of a value of the twin. A value that another structure replaces has no original.
func (c *collector) value(original, marked any) {
	switch marked := marked.(type) {
	case string:
		_, isText := original.(string)
		c.text(marked, isText || original == nil)
	case []any:
		before, _ := original.([]any)
		for i, item := range marked {
			var of any
			if i < len(before) {
				of = before[i]
			}
			c.value(of, item)
		}
	case map[string]any:
		before, _ := original.(map[string]any)
		for key, item := range marked {
			c.text(key, true)
			name, _ := c.names.key(before, key)
			c.value(before[name], item)
		}
	}
}

// text collects the parts of a text of the twin.
func (c *collector) text(text string, isText bool) {
	if !strings.ContainsRune(text, mark) {
		return
	}
	var plain strings.Builder
	begins, ends := map[int]int{}, map[int]int{}
	var order []int
	for {
		before, id, after := cutAtMark(text)
		plain.WriteString(before)
		if id < 0 || id >= len(c.twin.pieces) {
			break
		}
		if _, seen := begins[id]; !seen {
			begins[id] = plain.Len()
			order = append(order, id)
		}
		ends[id], text = plain.Len(), after
	}
	for _, id := range order {
		part := Part{Document: c.document, Print: c.twin.pieces[id].print, Text: plain.String()[begins[id]:ends[id]], IsText: isText}
		if print := c.prints[part.Print]; print.Begin < print.End {
			c.parts = append(c.parts, part)
		}
	}
}
