package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var size = Size{Width: 100, Height: 20, Across: 50, Down: 10}

func TestOf(t *testing.T) {
	for sentence, test := range map[string]struct {
		nodes []string
		edges []Edge
		want  []Node
	}{
		"nothing": {},
		"a chain is a row": {
			nodes: []string{"c", "a", "b"}, edges: []Edge{{"a", "b"}, {"b", "c"}},
			want: []Node{{"a", 0, 0, 0}, {"b", 1, 150, 0}, {"c", 2, 300, 0}},
		},
		"a node is centered before the two that it leads to": {
			nodes: []string{"a", "b", "c"}, edges: []Edge{{"a", "b"}, {"a", "c"}},
			want: []Node{{"a", 0, 0, 15}, {"b", 1, 150, 0}, {"c", 1, 150, 30}},
		},
		"edges do not cross if they need not": {
			nodes: []string{"a", "b", "x", "y"}, edges: []Edge{{"a", "y"}, {"b", "x"}},
			want: []Node{{"a", 0, 0, 0}, {"b", 0, 0, 30}, {"y", 1, 150, 0}, {"x", 1, 150, 30}},
		},
		"a cycle, an edge to itself, a repeated edge and one of an unknown node": {
			nodes: []string{"a", "b"}, edges: []Edge{{"a", "b"}, {"b", "a"}, {"a", "a"}, {"a", "b"}, {"a", "z"}},
			want: []Node{{"a", 0, 0, 0}, {"b", 1, 150, 0}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Of(test.nodes, test.edges, size).Nodes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinesLeadAroundNodes(t *testing.T) {
	d := Of([]string{"a", "b", "c"}, []Edge{{"a", "b"}, {"b", "c"}, {"a", "c"}}, size)
	i := slices.IndexFunc(d.Lines, func(l Line) bool { return l.Edge == Edge{"a", "c"} })
	b := d.Nodes[slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == "b" })]
	if points := d.Lines[i].Points; len(points) != 4 || points[1].Y > b.Y && points[1].Y < b.Y+size.Height {
		t.Errorf("the line from a to c leads through b at %v: %v", b, points)
	}
}

// TestAnyGraph checks random graphs of 60 nodes: nodes do not overlap, edges lead to the right except where they close a cycle, and the
// order of the input does not matter.
func TestAnyGraph(t *testing.T) {
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var nodes []string
		for i := range 60 {
			nodes = append(nodes, fmt.Sprintf("n%02d", i))
		}
		var edges []Edge
		for range dice.IntN(120) {
			edges = append(edges, Edge{nodes[dice.IntN(60)], nodes[dice.IntN(60)]})
		}
		d := Of(nodes, edges, size)
		checkDrawing(t, d, nodes)
		dice.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
		slices.Reverse(nodes)
		if diff := cmp.Diff(d, Of(nodes, edges, size)); diff != "" {
			t.Fatalf("seed %d: another order of the input changes the drawing: %s", seed, diff)
		}
	}
}

func checkDrawing(t *testing.T, d Drawing, nodes []string) {
	t.Helper()
	if len(d.Nodes) != len(nodes) {
		t.Fatalf("%d of %d nodes are drawn", len(d.Nodes), len(nodes))
	}
	for i, a := range d.Nodes {
		if a.X < 0 || a.Y < 0 || a.X+size.Width > d.Width || a.Y+size.Height > d.Height {
			t.Errorf("%v is outside of %d × %d", a, d.Width, d.Height)
		}
		for _, b := range d.Nodes[:i] {
			if a.Column == b.Column && max(a.Y-b.Y, b.Y-a.Y) < size.Height {
				t.Errorf("%v overlaps %v", a, b)
			}
		}
	}
	for _, line := range d.Lines {
		first, last := line.Points[0], line.Points[len(line.Points)-1]
		if (first.X < last.X) == line.Back {
			t.Errorf("%v leads from %v to %v", line.Edge, first, last)
		}
	}
}
