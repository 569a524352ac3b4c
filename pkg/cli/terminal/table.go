package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Lines ends each text with a line break.
func Lines(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// Table is rows of cells in columns below a header.
func Table(header []string, rows [][]string) string {
	all := make([]string, 0, len(rows)+1)
	for _, row := range append([][]string{header}, rows...) {
		all = append(all, strings.Join(row, "\t"))
	}
	return Aligned(Lines(all))
}

// cellLimit bounds what stands in a cell of a table that is not wide, in bytes.
const cellLimit = 60

// Cell is a text as a table has it: on one line, to be seen where it is empty, and cut where it is long unless all is to be shown.
func Cell(value string, wide bool) string {
	if value == "" || OneLine(value) != value {
		value = strconv.Quote(value)
	}
	if wide {
		return value
	}
	return text.Truncate(value, cellLimit)
}

// Aligned puts cells that tabs part into columns.
func Aligned(lines string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = w.Write([]byte(lines)) // a strings.Builder takes everything
	_ = w.Flush()
	rows := strings.Split(b.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.Join(rows, "\n")
}

func WriteField(b *strings.Builder, name, value string) { fmt.Fprintf(b, "%-18s%s\n", name+":", value) }
