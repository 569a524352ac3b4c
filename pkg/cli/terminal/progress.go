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
)

// Progress shows how things go on, each by a tree: on a terminal the trees are drawn over the ones before, elsewhere there is a line
// for each change.
type Progress struct {
	out io.Writer
	// size is that of the terminal; nil where out is none.
	size func() (width, height int)
	// colors says that states have colours.
	colors bool
	// drawn are the lines of the last picture; told is what was said last of each line of the trees, nil at first.
	drawn []string
	told  map[string]string
	// away says that the hub does not answer, nil where nobody knows; trees are those that were shown last.
	Away  func() string
	trees []Node
}

func NewProgress(out io.Writer) *Progress {
	file, ok := out.(*os.File)
	if !ok || !printers.IsTerminal(out) || os.Getenv("TERM") == "dumb" {
		return &Progress{out: out}
	}
	return NewProgressOn(out, printers.AllowsColorOutput(out), func() (int, int) {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return 80, 24
	})
}

// NewProgressOn is a progress on a terminal of that size.
func NewProgressOn(out io.Writer, colors bool, size func() (width, height int)) *Progress {
	return &Progress{out: out, colors: colors, size: size}
}

// Live says whether there is a terminal to draw on.
func (p *Progress) Live() bool { return p.size != nil }

// Show shows how things stand now.
func (p *Progress) Show(trees ...Node) error {
	p.trees = trees
	return p.Again()
}

// Again shows what was shown last, and whether the hub is away.
func (p *Progress) Again() error {
	trees := append(slices.Clone(p.trees), p.hubLine()...)
	if !p.Live() {
		return printers.WriteEscaped(p.out, p.news(trees))
	}
	width, height := p.size()
	return p.draw(fitting(trees, height-1), width)
}

// hubLine says that the hub does not answer, or that it does again after it did not.
func (p *Progress) hubLine() []Node {
	const place = "the hub"
	text := ""
	if p.Away != nil {
		text = p.Away()
	}
	if text == "" && !p.Live() && p.told[place] != "" {
		text = "answers again"
	}
	if text == "" {
		return nil
	}
	return []Node{{Part: place, Text: place + " " + text, Message: text}}
}

// draw draws the lines over those of the last picture, unless it has the same. The cursor ends below them.
func (p *Progress) draw(lines []string, width int) error {
	for i, line := range lines {
		line = printers.EscapeTerminal(line)
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
	for _, line := range lines {
		b.WriteString(p.painted(line) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	p.drawn = lines
	_, err := io.WriteString(p.out, b.String())
	return err
}

// painter gives states their colours.
var painter = strings.NewReplacer(
	stateMark(kudo.Complete), "\x1b[32m"+stateMark(kudo.Complete)+"\x1b[0m",
	stateMark(kudo.InProgress), "\x1b[36m"+stateMark(kudo.InProgress)+"\x1b[0m",
	stateMark(kudo.Error), "\x1b[33m"+stateMark(kudo.Error)+"\x1b[0m",
	stateMark(kudo.FatalError), "\x1b[31m"+stateMark(kudo.FatalError)+"\x1b[0m",
	stateMark(kudo.Pending), "\x1b[2m"+stateMark(kudo.Pending)+"\x1b[0m",
	stateMark(kudo.NeverRun), "\x1b[2m"+stateMark(kudo.NeverRun)+"\x1b[0m",
)

// stateMark is a state as trees show it.
func stateMark(status kudo.ExecutionStatus) string { return "[" + string(status) + "]" }

func (p *Progress) painted(line string) string {
	if !p.colors {
		return line
	}
	return painter.Replace(line)
}

// fitting are the lines of the trees, of which those that tell the least are left out until no more are left than fit.
func fitting(trees []Node, height int) []string {
	for _, shortened := range []func(Node) Node{whole, Node.unfinished, Node.trunk} {
		if lines := drawn(trees, shortened); len(lines) <= height {
			return lines
		}
	}
	trees = slices.Clone(trees)
	slices.SortStableFunc(trees, func(a, b Node) int { return finished(a) - finished(b) })
	lines := drawn(trees, Node.trunk)
	shown := max(height-1, 1)
	return append(lines[:shown], fmt.Sprintf("… and %d more", len(lines)-shown))
}

func drawn(trees []Node, shortened func(Node) Node) []string {
	if len(trees) == 0 {
		return nil
	}
	var b strings.Builder
	for _, tree := range trees {
		WriteTree(&b, shortened(tree))
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// finished orders what goes on before what has ended well.
func finished(n Node) int {
	if n.State == kudo.Complete {
		return 1
	}
	return 0
}

func whole(n Node) Node { return n }

// unfinished leaves out what is below lines that are complete, or have not begun.
func (n Node) unfinished() Node {
	below := n.Children
	n.Children = nil
	for _, child := range below {
		if child.State.Running() || child.State == kudo.FatalError || child.State == "" {
			child = child.unfinished()
		} else {
			child = child.trunk()
		}
		n.Children = append(n.Children, child)
	}
	return n
}

// trunk leaves out all that is below.
func (n Node) trunk() Node {
	n.Children = nil
	return n
}

// news are the lines about what has changed in the trees since they were told of last. What had ended before that is no news.
func (p *Progress) news(trees []Node) string {
	if p.told == nil {
		p.Known(slices.DeleteFunc(slices.Clone(trees), func(n Node) bool { return !n.State.Terminal() }))
		for _, tree := range trees {
			p.knownBelow(tree.Part, tree)
		}
	}
	var news strings.Builder
	for _, tree := range trees {
		p.tell(&news, "", tree)
	}
	return news.String()
}

// Known says that people know how things stand.
func (p *Progress) Known(trees []Node) {
	p.told = map[string]string{}
	for _, tree := range trees {
		p.tell(&strings.Builder{}, "", tree)
	}
}

// knownBelow says that people know which plans of children are complete: a plan that has begun after them says what becomes of them.
func (p *Progress) knownBelow(above string, n Node) {
	for _, child := range n.Children {
		switch {
		case child.Part == "": // the line of an Instance, which plans are below
			p.knownBelow(above, child)
		case n.Part == "" && child.State == kudo.Complete:
			p.tell(&strings.Builder{}, above, child)
		}
	}
}

// tell tells of a line of a tree and of those below: of what has ended after them, for it ends with them, and of anything else before.
func (p *Progress) tell(b *strings.Builder, above string, n Node) {
	name := above
	if n.Part != "" {
		name = strings.TrimPrefix(above+": "+n.Part, ": ")
		if n.State.Terminal() {
			defer p.tellOf(b, name, n)
		} else {
			p.tellOf(b, name, n)
		}
	}
	for _, child := range n.Children {
		p.tell(b, name, child)
	}
}

// tellOf writes the line if it is news. What has yet to begin is none.
func (p *Progress) tellOf(b *strings.Builder, name string, n Node) {
	said := string(n.State)
	switch {
	case n.Message == "" || n.says(n.Message):
	case n.State == "" || n.State == kudo.Complete:
		said = n.Message
	default:
		said += ": " + n.Message
	}
	if said == p.told[name] || n.State == kudo.Pending || n.State == kudo.NeverRun {
		return
	}
	p.told[name] = said
	fmt.Fprintf(b, "%s: %s\n", name, said)
}
