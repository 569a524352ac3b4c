package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Progress shows the progress of several trees: on a terminal it redraws them in place, elsewhere it prints a line for each change.
type Progress struct {
	out io.Writer
	// size returns the size of the terminal; nil if out is not a terminal.
	size func() (width, height int)
	// colors enables colors for states.
	colors bool
	// drawn holds the last drawn lines; reported holds the last text printed for each line of the trees, nil initially.
	drawn    []string
	reported map[string]string
	// Away returns a message while the hub does not respond, nil if that is not tracked; trees are the last shown trees.
	Away func() string
	// Hint returns a sentence about why nothing may change, nil if that is not tracked. Its first word is what it is about.
	Hint  func() string
	trees []Node
}

// NewProgress returns a progress on out, drawn in place if out is a terminal.
func NewProgress(out io.Writer) *Progress {
	file, ok := Raw(out).(*os.File)
	if !ok || !printers.IsTerminal(file) || os.Getenv("TERM") == "dumb" {
		return &Progress{out: out}
	}
	return NewProgressOn(file, printers.AllowsColorOutput(file), func() (int, int) {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return 80, 24
	})
}

// NewProgressOn returns a progress for a terminal of that size.
func NewProgressOn(out io.Writer, colors bool, size func() (width, height int)) *Progress {
	return &Progress{out: out, colors: colors, size: size}
}

// Live reports whether the output is a terminal.
func (p *Progress) Live() bool { return p.size != nil }

// PrintLines prints a line for each change on a terminal, too: for more trees than fit on it.
func (p *Progress) PrintLines() { p.size = nil }

// Show shows the current state.
func (p *Progress) Show(trees ...Node) error {
	p.trees = trees
	return p.Refresh()
}

// Refresh shows the last state again, with the state of the hub connection.
func (p *Progress) Refresh() error {
	trees := slices.Concat(p.trees, p.hintLine(), p.hubLine())
	if !p.Live() {
		return printers.WriteEscaped(p.out, p.news(trees))
	}
	width, height := p.size()
	return p.draw(fitLines(trees, height-1), width)
}

// hintLine returns the line of the hint, if there is one.
func (p *Progress) hintLine() []Node {
	if p.Hint == nil {
		return nil
	}
	hint := p.Hint()
	subject, message, _ := strings.Cut(hint, " ")
	if hint == "" {
		return nil
	}
	return []Node{{Part: subject, Text: hint, Message: message}}
}

// hubLine returns a line if the hub does not respond, or responds again.
func (p *Progress) hubLine() []Node {
	const place = "the hub"
	text := ""
	if p.Away != nil {
		text = p.Away()
	}
	if text == "" && !p.Live() && p.reported[place] != "" {
		text = "is reachable again"
	}
	if text == "" {
		return nil
	}
	return []Node{{Part: place, Text: place + " " + text, Message: text}}
}

// draw draws the lines over the last ones, unless they are identical. The cursor ends below them.
func (p *Progress) draw(lines []string, width int) error {
	for i, line := range lines {
		line = text.Escape(line)
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width-1]) + "…"
		}
		lines[i] = line
	}
	if slices.Equal(lines, p.drawn) {
		return nil
	}
	var b strings.Builder
	if len(p.drawn) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", len(p.drawn))
	}
	painted := lines
	if p.colors {
		painted = paint(lines)
	}
	for _, line := range painted {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	p.drawn = lines
	_, err := io.WriteString(p.out, b.String())
	return err
}

// fitLines returns the lines of the trees, omitting the least informative ones until they fit the height.
func fitLines(trees []Node, height int) []string {
	for _, shortened := range []func(Node) Node{whole, Node.withoutFinished, Node.trunk} {
		if lines := drawLines(trees, shortened); len(lines) <= height {
			return lines
		}
	}
	trees = slices.Clone(trees)
	slices.SortStableFunc(trees, func(a, b Node) int { return completionRank(a) - completionRank(b) })
	lines := drawLines(trees, Node.trunk)
	shown := max(height-1, 1)
	return append(lines[:shown], fmt.Sprintf("… and %d more", len(lines)-shown))
}

func drawLines(trees []Node, shortened func(Node) Node) []string {
	if len(trees) == 0 {
		return nil
	}
	var b strings.Builder
	for _, tree := range trees {
		WriteTree(&b, shortened(tree))
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// completionRank sorts running nodes before completed ones.
func completionRank(n Node) int {
	if n.State == kudo.Complete {
		return 1
	}
	return 0
}

func whole(n Node) Node { return n }

// withoutFinished omits everything below lines that are complete or have not started.
func (n Node) withoutFinished() Node {
	below := n.Children
	n.Children = nil
	for _, child := range below {
		if child.State.IsRunning() || child.State == kudo.FatalError || child.State == "" {
			child = child.withoutFinished()
		} else {
			child = child.trunk()
		}
		n.Children = append(n.Children, child)
	}
	return n
}

// trunk omits everything below the node.
func (n Node) trunk() Node {
	n.Children = nil
	return n
}

// news returns the lines that have changed since the last call. Nodes that had ended before the first call are not reported.
func (p *Progress) news(trees []Node) string {
	if p.reported == nil {
		p.MarkReported(slices.DeleteFunc(slices.Clone(trees), func(n Node) bool { return !n.State.IsTerminal() }))
		for _, tree := range trees {
			p.markReportedBelow(tree.Part, tree)
		}
	}
	var news strings.Builder
	for _, tree := range trees {
		p.report(&news, "", tree)
	}
	return news.String()
}

// MarkReported marks the trees as already reported.
func (p *Progress) MarkReported(trees []Node) {
	p.reported = map[string]string{}
	for _, tree := range trees {
		p.report(&strings.Builder{}, "", tree)
	}
}

// markReportedBelow marks the completed plans of children as already reported, up to a plan that started after them.
func (p *Progress) markReportedBelow(above string, n Node) {
	for _, child := range n.Children {
		switch {
		case child.Part == "": // the line of an Instance, with its plans below
			p.markReportedBelow(above, child)
		case n.Part == "" && child.State == kudo.Complete:
			p.report(&strings.Builder{}, above, child)
		}
	}
}

// report reports a line of a tree and the lines below it. A completed node is reported after its children, because it ends with them; other
// nodes before.
func (p *Progress) report(b *strings.Builder, above string, n Node) {
	name := above
	if n.Part != "" {
		name = strings.TrimPrefix(above+": "+n.Part, ": ")
		if n.State.IsTerminal() {
			defer p.reportLine(b, name, n)
		} else {
			p.reportLine(b, name, n)
		}
	}
	for _, child := range n.Children {
		p.report(b, name, child)
	}
}

// reportLine writes the line if it has changed. Nodes that have not started are not reported.
func (p *Progress) reportLine(b *strings.Builder, name string, n Node) {
	said := string(n.State)
	switch {
	case n.Message == "" || n.hasMessage(n.Message):
	case n.State == "" || n.State == kudo.Complete && !strings.Contains(n.Text, "["+said+"]"): // "available"
		said = n.Message
	default:
		said += ": " + n.Message
	}
	if said == p.reported[name] || n.State == kudo.Pending || n.State == kudo.NeverRun {
		return
	}
	p.reported[name] = said
	fmt.Fprintf(b, "%s: %s\n", name, said)
}
