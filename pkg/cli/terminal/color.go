package terminal

import (
	"regexp"
	"strings"
	"unicode/utf8"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// The colors of states.
const (
	green  = "\x1b[32m"
	cyan   = "\x1b[36m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// stateMark returns a state as trees show it.
func stateMark(status kudo.ExecutionStatus) string { return "[" + string(status) + "]" }

// painter adds colors to the states of trees.
var painter = strings.NewReplacer(
	stateMark(kudo.Complete), green+stateMark(kudo.Complete)+plain,
	stateMark(kudo.InProgress), cyan+stateMark(kudo.InProgress)+plain,
	stateMark(kudo.Error), yellow+stateMark(kudo.Error)+plain,
	stateMark(kudo.FatalError), red+stateMark(kudo.FatalError)+plain,
	stateMark(kudo.Pending), dim+stateMark(kudo.Pending)+plain,
	stateMark(kudo.NeverRun), dim+stateMark(kudo.NeverRun)+plain,
)

// cellColors are the colors of cells in a column with states, by how a cell begins. The first that applies counts.
var cellColors = []struct{ prefix, color string }{
	{"available,", yellow}, {"available", green}, {"not available", red}, {"not installed", red}, {"no such", red},
	{"unknown", yellow}, {"blocked", yellow}, {"degraded", yellow}, {"waiting", cyan}, {"removing", dim}, {"deleted", dim},
	{"drifted", yellow}, {"comparison failed", yellow},
	{string(kudo.Complete), green}, {string(kudo.InProgress), cyan}, {string(kudo.FatalError), red}, {string(kudo.Error), yellow},
	{string(kudo.Pending), dim}, {string(kudo.NeverRun), dim},
}

// markColors adds colors to the marks of a matrix.
var markColors = strings.NewReplacer("✓", green+"✓"+plain, "✗", red+"✗"+plain, "⊘", yellow+"⊘"+plain, "!", yellow+"!"+plain,
	"?", yellow+"?"+plain, "~", cyan+"~"+plain, "-", dim+"-"+plain, "·", dim+"·"+plain)

var (
	stateHeader  = regexp.MustCompile(`(?:^|   )(STATE|STATUS)(?:   |$)`)
	matrixHeader = regexp.MustCompile(`^(?:[A-Z]{1,2} +)+(CLUSTERS)$`)
)

// paint adds colors to the states in the lines of trees, of tables with a column STATE or STATUS, and of matrices.
func paint(lines []string) []string {
	painted := make([]string, len(lines))
	state, marks := -1, -1 // the columns of the current table
	for i, line := range lines {
		if line == "" || line == strings.ToUpper(line) { // a header
			state, marks = columnOf(stateHeader, line), columnOf(matrixHeader, line)
		}
		switch {
		case state >= 0:
			painted[i] = paintCell(line, state)
		case marks >= 0 && line != strings.ToUpper(line):
			runes := []rune(line)
			at := min(marks, len(runes))
			painted[i] = markColors.Replace(string(runes[:at])) + string(runes[at:])
		default:
			painted[i] = painter.Replace(line)
		}
	}
	return painted
}

// columnOf returns the column, in characters, where the title of the expression begins; -1 if the line does not have it.
func columnOf(title *regexp.Regexp, line string) int {
	found := title.FindStringSubmatchIndex(line)
	if found == nil {
		return -1
	}
	return utf8.RuneCountInString(line[:found[2]])
}

// paintCell adds a color to the cell that begins at a column.
func paintCell(line string, column int) string {
	runes := []rune(line)
	if column >= len(runes) {
		return line
	}
	cell, rest := string(runes[column:]), ""
	if end := strings.Index(cell, "   "); end >= 0 {
		cell, rest = cell[:end], cell[end:]
	}
	for _, c := range cellColors {
		if strings.HasPrefix(cell, c.prefix) {
			return string(runes[:column]) + c.color + cell + plain + rest
		}
	}
	return line
}
