// Package graph places the nodes of a directed graph in columns, so that edges lead from left to right and cross each other rarely. It is
// pure and touches no cluster.
package graph

import (
	"cmp"
	"slices"
)

// Of places the nodes of a graph. Edges of unknown nodes, edges of a node to itself, and repeated edges are omitted. The result depends on
// the set of nodes and edges only, not on their order.
func Of(nodes []string, edges []Edge, size Size) Drawing {
	p := newPlacement(nodes, edges)
	p.reverseCycles()
	p.assignColumns()
	p.bend()
	p.arrange()
	return p.draw(size)
}

func newPlacement(nodes []string, edges []Edge) *placement {
	p := &placement{}
	index := map[string]int{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(nodes))) {
		index[name] = len(p.vertices)
		p.vertices = append(p.vertices, vertex{name: name})
	}
	sorted := slices.SortedFunc(slices.Values(edges), func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for _, edge := range slices.Compact(sorted) {
		from, known := index[edge.From]
		to, alsoKnown := index[edge.To]
		if known && alsoKnown && from != to {
			p.edges = append(p.edges, arrow{from: from, to: to})
		}
	}
	return p
}

// reverseCycles reverses the edges that lead back to a node on the current path of a depth-first search.
func (p *placement) reverseCycles() {
	const unseen, open, closed = 0, 1, 2
	state := make([]int, len(p.vertices))
	leaving := make([][]int, len(p.vertices))
	for i, edge := range p.edges {
		leaving[edge.from] = append(leaving[edge.from], i)
	}
	var visit func(v int)
	visit = func(v int) {
		state[v] = open
		for _, i := range leaving[v] {
			edge := &p.edges[i]
			switch state[edge.to] {
			case open:
				edge.from, edge.to, edge.reversed = edge.to, edge.from, true
			case unseen:
				visit(edge.to)
			}
		}
		state[v] = closed
	}
	for v := range p.vertices {
		if state[v] == unseen {
			visit(v)
		}
	}
}

// assignColumns puts each node one column to the right of the last node that leads to it.
func (p *placement) assignColumns() {
	for range p.vertices { // the longest path has fewer edges than there are nodes
		moved := false
		for _, edge := range p.edges {
			if minColumn := p.vertices[edge.from].column + 1; p.vertices[edge.to].column < minColumn {
				p.vertices[edge.to].column, moved = minColumn, true
			}
		}
		if !moved {
			return
		}
	}
}

// bend adds a vertex in each column that an edge crosses, connects neighbours, and lists the columns.
func (p *placement) bend() {
	for i := range p.edges {
		edge := &p.edges[i]
		last := edge.from
		for column := p.vertices[edge.from].column + 1; column < p.vertices[edge.to].column; column++ {
			p.vertices = append(p.vertices, vertex{column: column})
			bend := len(p.vertices) - 1
			edge.through = append(edge.through, bend)
			p.connect(last, bend)
			last = bend
		}
		p.connect(last, edge.to)
	}
	for v := range p.vertices {
		for len(p.columns) <= p.vertices[v].column {
			p.columns = append(p.columns, nil)
		}
		p.columns[p.vertices[v].column] = append(p.columns[p.vertices[v].column], v)
	}
}

func (p *placement) connect(from, to int) {
	p.vertices[from].next = append(p.vertices[from].next, to)
	p.vertices[to].before = append(p.vertices[to].before, from)
}
