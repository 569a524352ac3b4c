package graph

import (
	"cmp"
	"math"
	"slices"
)

// sweeps is the number of times that all columns are sorted; more hardly ever remove a crossing.
const sweeps = 12

// arrange sorts the vertices of each column by the mean position of their neighbours, alternately to the right and to the left. It keeps the
// order with the fewest crossings, and then moves vertices towards their neighbours as far as the order allows.
func (p *placement) arrange() {
	p.stack()
	best, fewest := p.order(), p.crossings()
	for sweep := 0; sweep < sweeps && fewest > 0; sweep++ {
		p.sweep(sweep%2 == 0)
		if count := p.crossings(); count < fewest {
			best, fewest = p.order(), count
		}
	}
	p.columns = best
	p.stack()
	for sweep := range sweeps {
		p.straighten(sweep%2 == 0)
	}
}

// order returns a copy of the order of all columns.
func (p *placement) order() [][]int {
	columns := make([][]int, len(p.columns))
	for i, column := range p.columns {
		columns[i] = slices.Clone(column)
	}
	return columns
}

// stack positions the vertices of each column one below the other, centered.
func (p *placement) stack() {
	maxLength := 0
	for _, column := range p.columns {
		maxLength = max(maxLength, len(column))
	}
	for _, column := range p.columns {
		for i, v := range column {
			p.vertices[v].y = float64(i) + float64(maxLength-len(column))/2
		}
	}
}

// walk visits the columns from left to right, or from right to left, with the neighbours of their vertices in the column visited before.
func (p *placement) walk(right bool, visit func(column []int, neighbours func(v int) []int)) {
	for i := range p.columns {
		if right {
			visit(p.columns[i], func(v int) []int { return p.vertices[v].before })
		} else {
			visit(p.columns[len(p.columns)-1-i], func(v int) []int { return p.vertices[v].next })
		}
	}
}

// mean returns the mean position of vertices, or own if there are none.
func (p *placement) mean(vertices []int, own float64) float64 {
	if len(vertices) == 0 {
		return own
	}
	sum := 0.0
	for _, v := range vertices {
		sum += p.vertices[v].y
	}
	return sum / float64(len(vertices))
}

// sweep sorts each column by the mean position of the neighbours in the column before it.
func (p *placement) sweep(right bool) {
	p.walk(right, func(column []int, neighbours func(int) []int) {
		wanted := make(map[int]float64, len(column))
		for _, v := range column {
			wanted[v] = p.mean(neighbours(v), p.vertices[v].y)
		}
		slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
		for i, v := range column {
			p.vertices[v].y = float64(i)
		}
	})
}

// straighten moves each vertex to the mean position of its neighbours in the column before it, at a distance of at least one from the
// others of its column. The column keeps its order.
func (p *placement) straighten(right bool) {
	p.walk(right, func(column []int, neighbours func(int) []int) {
		free := math.Inf(-1)
		shift := 0.0
		for _, v := range column {
			wanted := p.mean(neighbours(v), p.vertices[v].y)
			p.vertices[v].y = max(wanted, free)
			shift += p.vertices[v].y - wanted
			free = p.vertices[v].y + 1
		}
		if len(column) > 0 { // vertices were pushed down only: move the column up by the mean of that
			for _, v := range column {
				p.vertices[v].y -= shift / float64(len(column))
			}
		}
	})
}

// crossings returns the number of pairs of edges that cross between columns.
func (p *placement) crossings() int {
	position := make([]int, len(p.vertices))
	for _, column := range p.columns {
		for i, v := range column {
			position[v] = i
		}
	}
	count := 0
	for _, column := range p.columns {
		var ends [][2]int
		for _, v := range column {
			for _, next := range p.vertices[v].next {
				ends = append(ends, [2]int{position[v], position[next]})
			}
		}
		for i, a := range ends {
			for _, b := range ends[:i] {
				if (a[0]-b[0])*(a[1]-b[1]) < 0 {
					count++
				}
			}
		}
	}
	return count
}

// draw returns the placed nodes and edges in the given size, moved to the origin.
func (p *placement) draw(size Size) Drawing {
	var d Drawing
	top, bottom := math.Inf(1), 0.0
	for _, v := range p.vertices {
		top = min(top, v.y)
	}
	at := func(v int) Point {
		return Point{X: p.vertices[v].column * (size.Width + size.Across), Y: int(math.Round((p.vertices[v].y - top) * float64(size.Height+size.Down)))}
	}
	for _, column := range p.columns {
		for _, v := range column {
			bottom = max(bottom, p.vertices[v].y-top)
			if p.vertices[v].name != "" {
				d.Nodes = append(d.Nodes, Node{Name: p.vertices[v].name, Column: p.vertices[v].column, X: at(v).X, Y: at(v).Y})
			}
		}
	}
	for _, edge := range p.edges {
		d.Lines = append(d.Lines, p.line(edge, at, size))
	}
	if len(d.Nodes) > 0 {
		d.Width = len(p.columns)*(size.Width+size.Across) - size.Across
		d.Height = int(math.Round(bottom*float64(size.Height+size.Down))) + size.Height
	}
	return d
}

// line returns the line of an edge: from the right side of a node, through its bends, to the left side of another.
func (p *placement) line(edge arrow, at func(int) Point, size Size) Line {
	middle := size.Height / 2
	from, to := at(edge.from), at(edge.to)
	points := []Point{{from.X + size.Width, from.Y + middle}}
	for _, bend := range edge.through {
		points = append(points, Point{at(bend).X, at(bend).Y + middle}, Point{at(bend).X + size.Width, at(bend).Y + middle})
	}
	points = append(points, Point{to.X, to.Y + middle})
	line := Line{Edge: Edge{p.vertices[edge.from].name, p.vertices[edge.to].name}, Back: edge.reversed, Points: points}
	if edge.reversed {
		line.From, line.To = line.To, line.From
		slices.Reverse(line.Points)
	}
	return line
}
