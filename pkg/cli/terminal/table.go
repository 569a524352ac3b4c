package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Lines joins the texts, each terminated by a line break.
func Lines(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// Table returns rows of cells in columns below a header, which may be nil. A cell that would add a row or a column is quoted.
func Table(header []string, rows [][]string) string {
	all := make([]string, 0, len(rows)+1)
	if header != nil {
		rows = append([][]string{header}, rows...)
	}
	for _, row := range rows {
		all = append(all, strings.Join(quoteCells(row), "\t"))
	}
	return Align(Lines(all))
}

// quoteCells returns the row with cells quoted that would add a row or a column.
func quoteCells(row []string) []string {
	cells := slices.Clone(row)
	for i, cell := range cells {
		if strings.ContainsAny(cell, "\n\t\v\f") {
			cells[i] = strconv.Quote(cell)
		}
	}
	return cells
}

// GrowingTable returns rows of a table that are printed one after the other: a column is as wide as its widest cell so far.
type GrowingTable struct{ widths []int }

// Rows returns the rows, aligned with all earlier ones that are not narrower.
func (t *GrowingTable) Rows(rows ...[]string) string {
	var all []string
	for _, row := range rows {
		row = quoteCells(row)
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
		all = append(all, strings.Join(row, "\t"))
	}
	for i, line := range all {
		cells := strings.Split(line, "\t")
		for k := range cells {
			cells[k] += strings.Repeat(" ", t.widths[k]-utf8.RuneCountInString(cells[k]))
		}
		all[i] = strings.TrimRight(strings.Join(cells, "   "), " ")
	}
	return Lines(all)
}

// cellLimit is the length limit in bytes of a cell in a table that is not wide.
const cellLimit = 60

// Cell returns a text as a table cell: on one line, with a placeholder if empty, and truncated unless wide is set.
func Cell(value string, wide bool) string {
	if value == "" || text.JoinMessage(value) != value {
		value = strconv.Quote(value)
	}
	if wide {
		return value
	}
	return text.Truncate(value, cellLimit)
}

// Align aligns tab-separated cells into columns.
func Align(lines string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = w.Write([]byte(lines)) // writes to a strings.Builder do not fail
	_ = w.Flush()
	rows := strings.Split(b.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.Join(rows, "\n")
}

// WriteField writes a line with a name and a value, aligned with other fields.
func WriteField(b *strings.Builder, name, value string) {
	fmt.Fprintf(b, "%-18s%s\n", name+":", text.JoinMessage(value))
}

// StrategyText returns the suffix of a plan or phase that states its strategy.
func StrategyText(strategy kudo.Ordering) string {
	if strategy == "" {
		strategy = kudo.Serial
	}
	return fmt.Sprintf(" (%s strategy)", strategy)
}
