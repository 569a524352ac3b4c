package webhook

import (
	"errors"
	"io"
)

// cost is the memory in bytes that a request takes for the parts of its JSON until it is answered, whether or not they have been collected
// as garbage meanwhile: a text of three bytes can become a map or a struct of more than a kilobyte.
type cost struct{ perByte, perValue, perEmpty, perContainer int64 }

// conversionCost is the cost of untyped objects, admissionCost that of typed ones: an empty object becomes a struct.
var (
	conversionCost = cost{perByte: 15, perValue: 140, perEmpty: 50, perContainer: 320}
	admissionCost  = cost{perByte: 5, perValue: 100, perEmpty: 2000, perContainer: 2000}
)

// of returns the cost of a text with those parts, without decoding it.
func (c cost) of(p parts) int64 {
	return c.perByte*p.bytes + c.perValue*p.values + c.perEmpty*p.empty + c.perContainer*p.containers
}

// parts are the numbers of parts of a JSON text.
type parts struct {
	bytes int64
	// values includes lists and objects, and is one too small: empty are those without content, containers the others.
	values, empty, containers int64
	// inText and isEscaped say where the text ends; isOpen that it is a list or an object of which nothing follows yet.
	inText, isEscaped, isOpen bool
}

// add adds the parts of the next piece of the text.
func (p *parts) add(piece []byte) {
	p.bytes += int64(len(piece))
	for _, b := range piece {
		switch {
		case p.isEscaped:
			p.isEscaped = false
		case p.inText:
			p.isEscaped, p.inText = b == '\\', b != '"'
		default:
			p.addByte(b)
		}
	}
}

// addByte adds a byte that is not in quotes.
func (p *parts) addByte(b byte) {
	switch b {
	case ' ', '\t', '\r', '\n':
		return
	}
	isEnd := b == ']' || b == '}'
	switch {
	case p.isOpen && isEnd:
		p.empty++
	case p.isOpen:
		p.containers++
		p.values++
	}
	p.isOpen = b == '[' || b == '{'
	p.inText = b == '"'
	if b == ',' {
		p.values++
	}
}

// errCostly is the error of a request whose cost is more than its limit.
var errCostly = errors.New("the request costs too much")

// weighing reads a request until its cost is more than a limit.
type weighing struct {
	io.ReadCloser
	of  cost
	max int64
	parts
}

func (w *weighing) Read(into []byte) (int, error) {
	n, err := w.ReadCloser.Read(into)
	w.add(into[:n])
	if w.cost() > w.max {
		return n, errCostly
	}
	return n, err
}

// cost returns the cost of what was read.
func (w *weighing) cost() int64 { return w.of.of(w.parts) }
