package graph

// Edge is a directed edge between two named nodes.
type Edge struct{ From, To string }

// Size holds the measures of a drawing: those of a node, and the gaps between columns and between nodes of a column.
type Size struct{ Width, Height, Across, Down int }

// Drawing is a graph with positions.
type Drawing struct {
	Width, Height int
	// Nodes are sorted by column, then from top to bottom.
	Nodes []Node
	Lines []Line
}

// Node is a node with the position of its upper left corner.
type Node struct {
	Name   string
	Column int
	X, Y   int
}

// Line is an edge as points from the node it leaves to the node it enters. Back is set if it leads to the left: it closes a cycle.
type Line struct {
	Edge
	Back   bool
	Points []Point
}

// Point is a position.
type Point struct{ X, Y int }

// vertex is a node, or a bend of an edge that spans several columns.
type vertex struct {
	name         string
	column       int
	before, next []int
	// y is the position in the column, in units of a node with its gap.
	y float64
}

// placement is a graph while it is placed.
type placement struct {
	vertices []vertex
	edges    []arrow
	columns  [][]int
}

// arrow is an edge between vertices, through its bends. It is reversed if it closes a cycle.
type arrow struct {
	from, to int
	reversed bool
	through  []int
}
