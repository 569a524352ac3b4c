package structure

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// order sorts files so that few references point upwards, from a file to an earlier one, and returns those references. There are none
// exactly if the references have no cycle.
func order(files []string, found references) (ordered []string, upward []reference) {
	for _, knot := range knots(files, found) {
		ordered = append(ordered, untie(knot, found)...)
	}
	return ordered, upwardIn(ordered, found)
}

// upwardIn returns the sorted references that point upwards in an order.
func upwardIn(ordered []string, found references) []reference {
	var upward []reference
	for r := range found {
		if slices.Index(ordered, r.to) < slices.Index(ordered, r.from) {
			upward = append(upward, r)
		}
	}
	slices.SortFunc(upward, func(a, b reference) int { return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to)) })
	return upward
}

// knots divides files into strongly connected components, upper ones first: between components all references point downwards (Tarjan's
// algorithm).
func knots(files []string, found references) [][]string {
	below := map[string][]string{}
	for _, r := range slices.SortedFunc(maps.Keys(found), func(a, b reference) int { return strings.Compare(b.to, a.to) }) {
		below[r.from] = append(below[r.from], r.to)
	}
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var groups [][]string
	var visit func(file string)
	visit = func(file string) {
		index[file] = len(index) + 1
		low[file] = index[file]
		stack, onStack[file] = append(stack, file), true
		for _, next := range below[file] {
			if index[next] == 0 {
				visit(next)
				low[file] = min(low[file], low[next])
			} else if onStack[next] {
				low[file] = min(low[file], index[next])
			}
		}
		if low[file] == index[file] {
			at := slices.Index(stack, file)
			group := slices.Sorted(slices.Values(stack[at:]))
			for _, member := range group {
				onStack[member] = false
			}
			stack, groups = stack[:at], append(groups, group)
		}
	}
	for _, file := range slices.Backward(slices.Sorted(slices.Values(files))) {
		if index[file] == 0 {
			visit(file)
		}
	}
	slices.Reverse(groups)
	return groups
}

// untie sorts the files of a component: greedily, starting with the file that refers to most others and is referred to by fewest, and then
// by moving single files as long as that reduces upward references.
func untie(knot []string, found references) []string {
	weight := func(file string, among []string) (balance int) {
		for _, other := range among {
			if _, refers := found[reference{file, other}]; refers {
				balance++
			}
			if _, referred := found[reference{other, file}]; referred {
				balance--
			}
		}
		return balance
	}
	var ordered []string
	for left := slices.Clone(knot); len(left) > 0; {
		first := slices.MaxFunc(left, func(a, b string) int { return cmp.Compare(weight(a, left), weight(b, left)) })
		ordered = append(ordered, first)
		left = slices.DeleteFunc(left, func(file string) bool { return file == first })
	}
	for improved := true; improved; {
		improved = false
		for _, file := range knot {
			if better := reorder(ordered, file, found); better != nil {
				ordered, improved = better, true
			}
		}
	}
	return ordered
}

// reorder returns the order with a file moved to the position with the fewest upward references; nil if it is already there.
func reorder(ordered []string, file string, found references) []string {
	at := slices.Index(ordered, file)
	rest := slices.Delete(slices.Clone(ordered), at, at+1)
	change, best, place := 0, 0, at
	turn := func(upper, lower string) (gain int) { // the change if upper, one of the two files, is placed above lower
		if _, refers := found[reference{upper, lower}]; refers {
			gain--
		}
		if _, referred := found[reference{lower, upper}]; referred {
			gain++
		}
		return gain
	}
	for i := at - 1; i >= 0; i-- {
		if change += turn(file, rest[i]); change < best {
			best, place = change, i
		}
	}
	change = 0
	for i := at; i < len(rest); i++ {
		if change += turn(rest[i], file); change < best {
			best, place = change, i+1
		}
	}
	if place == at {
		return nil
	}
	return slices.Insert(rest, place, file)
}
