package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/text"
	"github.com/tandem-addons/tandem/pkg/ui/graph"
)

// dependencyGraph is a drawing of dependencies: each add-on is left of those that it depends on.
type dependencyGraph struct {
	Label         string
	Width, Height int
	Boxes         []box
	Lines         []line
	// Elsewhere is set if it has dependencies that do not apply to the cluster.
	Elsewhere bool
}

// box is an add-on in a graph.
type box struct {
	X, Y        int
	Name, Short string
	State       fleet.State
	// Note is shown below the name; Current is set for the add-on that the page is about.
	Note    string
	Path    string
	Current bool
	// Needs lists its dependencies, for readers who do not see the drawing.
	Needs []string
}

// line is a dependency in a graph.
type line struct {
	Path                      string
	Optional, Elsewhere, Back bool
	Labels                    []label
}

// label is a text at a line.
type label struct {
	X, Y int
	Text string
}

// node is an add-on to draw.
type node struct {
	state   fleet.State
	note    string
	path    string
	current bool
}

// need is a dependency to draw.
type need struct {
	graph.Edge
	optional, elsewhere bool
	// labels are shown at the line, and text is for readers who do not see the drawing.
	labels []string
	text   string
}

// boxSize are the measures of a graph in pixels; maxNameLength is the number of characters that fit into a box.
var boxSize = graph.Size{Width: 204, Height: 44, Across: 56, Down: 14}

const maxNameLength = 20

// The gap between columns with labels, the length of a label, and its height in pixels.
const (
	labelledAcross = 190
	maxLabelLength = 22
	labelHeight    = 12
)

// edgeNames returns the names of the nodes that depend on another one, or on which one depends.
func edgeNames(nodes map[string]node, needs []need) []string {
	names := map[string]bool{}
	for _, n := range needs {
		_, from := nodes[n.From]
		_, to := nodes[n.To]
		if from && to {
			names[n.From], names[n.To] = true, true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// graphOf draws dependencies with their add-ons.
func graphOf(title string, nodes map[string]node, needs []need) dependencyGraph {
	names := edgeNames(nodes, needs)
	if len(names) == 0 {
		return dependencyGraph{}
	}
	known, below, size := map[graph.Edge]need{}, map[string][]string{}, boxSize
	edges := make([]graph.Edge, len(needs))
	for i, n := range needs {
		edges[i] = n.Edge
		below[n.From] = append(below[n.From], n.text)
		if len(n.labels) > 0 {
			size.Across = labelledAcross
		}
		if before, twice := known[n.Edge]; twice { // such as an alternative of one dependency that is another one
			n.optional, n.elsewhere = n.optional && before.optional, n.elsewhere && before.elsewhere
			n.labels = append(slices.Clip(before.labels), n.labels...)
		}
		known[n.Edge] = n
	}
	drawing := graph.Of(names, edges, size)
	g := dependencyGraph{Label: title, Width: drawing.Width, Height: drawing.Height}
	for _, placed := range drawing.Nodes {
		n := nodes[placed.Name]
		g.Boxes = append(g.Boxes, box{
			X: placed.X, Y: placed.Y, Name: placed.Name, Short: text.Head(placed.Name, maxNameLength), State: n.state, Note: n.note, Path: n.path,
			Current: n.current, Needs: below[placed.Name],
		})
	}
	for _, placed := range drawing.Lines {
		n := known[placed.Edge]
		g.Elsewhere = g.Elsewhere || n.elsewhere
		g.Lines = append(g.Lines, line{
			Path: curve(placed.Points), Optional: n.optional, Elsewhere: n.elsewhere, Back: placed.Back, Labels: labelsOf(n.labels, placed.Points),
		})
	}
	return g
}

// labelsOf places texts one below the other, at the last part of a line, where it is 66% of its way across and, as a curve, 78% of its way down: lines
// that begin together are apart there.
func labelsOf(texts []string, points []graph.Point) []label {
	from, to := points[len(points)-2], points[len(points)-1]
	x, y := from.X+(to.X-from.X)*66/100, from.Y+(to.Y-from.Y)*78/100-(len(texts)-1)*labelHeight/2-labelHeight/3
	labels := make([]label, 0, len(texts))
	for i, of := range texts {
		labels = append(labels, label{X: x, Y: y + i*labelHeight, Text: text.Head(of, maxLabelLength)})
	}
	return labels
}

// curve returns a smooth path through points, as SVG.
func curve(points []graph.Point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", points[0].X, points[0].Y)
	for i, to := range points[1:] {
		from := points[i]
		middle := (from.X + to.X) / 2
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", middle, from.Y, middle, to.Y, to.X, to.Y)
	}
	return b.String()
}

// OuterWidth is the width with a margin for outlines.
func (g dependencyGraph) OuterWidth() int { return g.Width + 4 }

// OuterHeight is the height with a margin for outlines.
func (g dependencyGraph) OuterHeight() int { return g.Height + 4 }

// Width is the width of a box.
func (b box) Width() int { return boxSize.Width }

// Height is the height of a box.
func (b box) Height() int { return boxSize.Height }

// MarkX and the other coordinates place the texts of a box.
func (b box) MarkX() int { return b.X + 16 }

// MarkY is the baseline of the mark.
func (b box) MarkY() int { return b.Y + 27 }

// TextX is the left side of the texts.
func (b box) TextX() int { return b.X + 31 }

// NameY is the baseline of the name.
func (b box) NameY() int { return b.Y + 19 }

// NoteY is the baseline of the note.
func (b box) NoteY() int { return b.Y + 35 }

// ShortNote is the note as far as it fits.
func (b box) ShortNote() string { return text.Head(b.Note, maxNameLength+3) }

// NeedsText lists its dependencies. Their texts contain commas.
func (b box) NeedsText() string {
	if slices.ContainsFunc(b.Needs, func(text string) bool { return strings.ContainsAny(text, ",;:") }) {
		return strings.Join(b.Needs, " | ")
	}
	return strings.Join(b.Needs, ", ")
}
