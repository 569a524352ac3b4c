package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

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

// Table returns rows of cells in columns below a header. A cell that would add a row or a column is quoted.
func Table(header []string, rows [][]string) string {
	all := make([]string, 0, len(rows)+1)
	for _, row := range append([][]string{header}, rows...) {
		cells := slices.Clone(row)
		for i, cell := range cells {
			if strings.ContainsAny(cell, "\n\t\v\f") {
				cells[i] = strconv.Quote(cell)
			}
		}
		all = append(all, strings.Join(cells, "\t"))
	}
	return Align(Lines(all))
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
