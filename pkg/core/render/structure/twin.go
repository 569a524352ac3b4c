package structure

import (
	"strings"
	"unicode/utf8"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// A mark is a private-use character and two more that are its number. YAML treats all of them as letters.
const (
	mark   = '\U0010FFFD'
	digits = '\U00100000'
	base   = 1 << 12
)

// twin is a rendered text with marks around what actions print.
type twin struct {
	text string
	// pieces are what the marks belong to: a mark's number is the index of its piece.
	pieces []piece
}

// piece is a printed text that must stay inside one scalar or comment: a whole print, or one text of a print that is encoded.
type piece struct {
	// print is the number of the print, from 0.
	print int
	// marks is the number of its marks.
	marks int
	// encoded is true if the print is a structure that the template itself encodes.
	encoded bool
	// shifted is true if the print begins with its own indentation.
	shifted bool
}

// newTwin marks what the actions print.
func newTwin(out template.Output, among map[*template.Action]bool) *twin {
	b, edges := &builder{}, &edges{text: out.Text}
	written, prints := 0, 0
	for _, p := range out.Prints {
		if !counts(p) || !among[p.Action] {
			continue
		}
		b.out.WriteString(out.Text[written:p.Begin])
		written = p.End
		b.print = prints
		prints++
		b.write(place{
			text:   out.Text[p.Begin:p.End],
			starts: edges.blankBefore(p.Begin),
			ends:   edges.blankAfter(p.End),
		}, p.Action)
	}
	b.out.WriteString(out.Text[written:])
	return &twin{text: b.out.String(), pieces: b.pieces}
}

// counts reports whether a print has a text, or is a trace, which might have one.
func counts(p template.Print) bool { return p.Begin < p.End || p.Action.Trace }

// place is a printed text and where it is: starts and ends are true if only blanks are before and after it in its first and last line.
type place struct {
	text         string
	starts, ends bool
}

type builder struct {
	out    strings.Builder
	pieces []piece
	print  int
}

// write writes a printed text with its marks.
func (b *builder) write(p place, action *template.Action) {
	switch action.Encoding {
	case template.JSON:
		b.literals(p.text)
		return
	case template.YAML:
		b.tokens(p.text)
		return
	}
	if action.Block != nil {
		if writesNothing(action.Block, p) {
			b.out.WriteString(p.text)
			return
		}
		p = b.lead(p, action.Block.Sample)
	}
	if action.Trace && isBlank(p.text) {
		b.blank(p)
		return
	}
	p = b.prefix(p, action)
	core := strings.TrimRight(p.text, blanks+breaks)
	tail := p.text[len(core):]
	if !p.ends { // what follows belongs to the same line, or comes to be in another one
		core, tail = p.text, ""
	}
	switch {
	case core == "":
	case isQuoted(core):
		b.markQuoted(core, b.piece(piece{}))
	default:
		b.lines(core, p)
	}
	b.out.WriteString(tail)
}

// writesNothing reports whether a block writes nothing but empty lines, whatever it depends on.
func writesNothing(block *template.Block, p place) bool {
	return block.Silent && (block.Sample == "" || p.starts && p.ends)
}

// lead writes the empty lines with which a block begins, and the indentation of its first other line. It returns the rest. The sample takes
// the place of a block without text: it might have one.
func (b *builder) lead(p place, sample string) place {
	if p.text == "" {
		p.text = sample
	}
	rest := strings.TrimLeft(p.text, blanks+breaks)
	if lead := p.text[:len(p.text)-len(rest)]; strings.ContainsAny(lead, breaks) {
		b.out.WriteString(lead)
		p.text, p.starts = rest, true
	}
	return p
}

// blank marks where a trace has no text but white space.
func (b *builder) blank(p place) {
	b.out.WriteString(p.text)
	id := b.piece(piece{})
	b.mark(id)
	b.mark(id)
}

// prefix writes the line break and the indentation that belong to the template, and returns the rest.
func (b *builder) prefix(p place, action *template.Action) place {
	own := 0
	if action.Break && strings.HasPrefix(p.text, "\n") {
		own, p.starts = 1, true
	}
	for n := 0; n < action.Indent && strings.HasPrefix(p.text[own:], " "); n++ {
		own++
	}
	b.out.WriteString(p.text[:own])
	p.text = p.text[own:]
	return p
}

// markQuoted marks a quoted scalar, inside its quotes.
func (b *builder) markQuoted(text string, id int) {
	b.out.WriteString(text[:1])
	b.mark(id)
	b.out.WriteString(text[1 : len(text)-1])
	b.mark(id)
	b.out.WriteString(text[len(text)-1:])
}

// lines marks a text at its begin and end, and each of its further lines after its indentation.
func (b *builder) lines(text string, p place) {
	id := b.piece(piece{})
	if rest := strings.TrimLeft(text, blanks+breaks); p.starts && rest != "" {
		b.out.WriteString(text[:len(text)-len(rest)])
		b.pieces[id].shifted = len(rest) < len(text)
		text = rest
	}
	for first := true; text != ""; first = false {
		var line string
		line, text = cutLine(text)
		if !first && isBlank(line) {
			b.out.WriteString(line)
			continue
		}
		begins, ends := !first || p.starts, text != "" || p.ends
		own := ownOf(line, !first, begins && ends)
		b.out.WriteString(line[:own])
		b.mark(id)
		b.out.WriteString(line[own:])
	}
	b.mark(id)
}

// ownOf returns how much of a line comes before its mark: its indentation, and the begin of a comment if that is the whole line.
func ownOf(line string, indented, whole bool) int {
	own := 0
	if indented {
		own = len(line) - len(strings.TrimLeft(line, blanks))
	}
	if whole && line[own] == '#' {
		own++
	}
	return own
}

// literals marks the texts of JSON inside their quotes.
func (b *builder) literals(text string) {
	for text != "" {
		begin := strings.IndexByte(text, '"')
		if begin < 0 {
			break
		}
		length := min(quotedLength(text[begin:]), len(text)-begin)
		b.out.WriteString(text[:begin])
		b.markEncoded(text[begin : begin+length])
		text = text[begin+length:]
	}
	b.out.WriteString(text)
}

// tokens marks the words and quoted texts of YAML that toYaml wrote.
func (b *builder) tokens(text string) {
	for text != "" {
		length := strings.IndexAny(text, " \n")
		switch {
		case length == 0:
			b.out.WriteString(text[:1])
			text = text[1:]
			continue
		case text[0] == '"' || text[0] == '\'':
			length = min(quotedLength(text), len(text))
		case length < 0:
			length = len(text)
		}
		word, isKey := strings.CutSuffix(text[:length], ":")
		b.markEncoded(word)
		if isKey {
			b.out.WriteByte(':')
		}
		text = text[length:]
	}
}

// markEncoded marks one text or word of an encoded structure.
func (b *builder) markEncoded(word string) {
	switch word {
	case "", "-", "?", "[]", "{}", "null", "!!binary":
		b.out.WriteString(word)
		return
	}
	id := b.piece(piece{encoded: true})
	if isQuoted(word) {
		b.markQuoted(word, id)
		return
	}
	for first := true; word != ""; first = false { // a word has one line; if not, none of them stays unmarked
		var line string
		line, word = cutLine(word)
		if !first && isBlank(line) {
			b.out.WriteString(line)
			continue
		}
		b.mark(id)
		b.out.WriteString(line)
	}
	b.mark(id)
}

func (b *builder) piece(p piece) int {
	p.print = b.print
	b.pieces = append(b.pieces, p)
	return len(b.pieces) - 1
}

// mark writes a mark of a piece.
func (b *builder) mark(id int) {
	b.pieces[id].marks++
	b.out.WriteRune(mark)
	b.out.WriteRune(digits + rune(id/base))
	b.out.WriteRune(digits + rune(id%base))
}

// cutAtMark splits a text at its first mark. id is the number of the piece, or -1 if there is no mark.
func cutAtMark(text string) (before string, id int, after string) {
	before, after, found := strings.Cut(text, string(mark))
	if !found {
		return text, -1, ""
	}
	id = 0
	for range 2 {
		digit, size := utf8.DecodeRuneInString(after)
		if digit < digits || digit >= digits+base {
			return text, -1, ""
		}
		id, after = id*base+int(digit-digits), after[size:]
	}
	return before, id, after
}

const (
	blanks = " \t"
	// breaks are the line breaks of YAML 1.1, which the decoder knows.
	breaks = "\n\r\u0085\u2028\u2029"
)

func isBlank(line string) bool { return strings.Trim(line, blanks+breaks) == "" }

// edges finds out whether lines of a text have something else than blanks before and after a position. It reads the text once if the
// positions ascend.
type edges struct {
	text string
	// before is the last position, and isStart whether only blanks are before it in its line.
	before  int
	isStart bool
	// From the position from to the position to there are only blanks; isEnd is true if the line ends there.
	from, to int
	isEnd    bool
}

func (e *edges) blankBefore(at int) bool {
	part := ""
	if at < e.before || e.before == 0 {
		e.isStart, part = true, lastLine(e.text[:at])
	} else if part = e.text[e.before:at]; strings.Contains(part, "\n") {
		e.isStart, part = true, lastLine(part)
	}
	e.before, e.isStart = at, e.isStart && isBlank(part)
	return e.isStart
}

func (e *edges) blankAfter(at int) bool {
	if at < e.from || at > e.to || e.to == 0 {
		rest := strings.TrimLeft(e.text[at:], blanks+strings.TrimPrefix(breaks, "\n"))
		e.from, e.to = at, len(e.text)-len(rest)
		e.isEnd = rest == "" || rest[0] == '\n'
	}
	return e.isEnd
}

// lastLine returns what follows the last line break.
func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// cutLine splits a text after its first line break.
func cutLine(text string) (line, rest string) {
	end := strings.IndexAny(text, breaks)
	if end < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[end:])
	if strings.HasPrefix(text[end:], "\r\n") {
		size = 2
	}
	return text[:end+size], text[end+size:]
}

// isQuoted reports whether a text is exactly one quoted scalar, in one line.
func isQuoted(text string) bool {
	return len(text) > 1 && (text[0] == '"' || text[0] == '\'') && !strings.ContainsAny(text, breaks) && quotedLength(text) == len(text)
}

// quotedLength returns the length of the quoted scalar at the beginning of a text; more than the text's if it does not end.
func quotedLength(text string) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && strings.HasPrefix(text[i+1:], "'"):
			i++
		default:
			return i + 1
		}
	}
	return len(text) + 1
}
