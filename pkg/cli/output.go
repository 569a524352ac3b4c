package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/text"
)

// The ways to print that are the plugin's own; all others are kubectl's.
const (
	// formatTable is for people, and what is printed unless -o says otherwise.
	formatTable = "table"
	// formatWide is formatTable, with nothing left out.
	formatWide = "wide"
	// formatName is what kubectl takes: a line KIND.GROUP/NAME for each object.
	formatName = "name"
)

// shown is what a command shows.
type shown struct {
	// text for people: a table, a tree, a paragraph.
	text string
	// data for programs, with field names that stay as they are.
	data any
	// names of objects, by objectName.
	names []string
}

// output is how a command prints what it shows: the value of its flag -o.
type output struct {
	format string
	// own are the formats of the plugin's own that the command has.
	own []string
	// printer for programs; nil where the format is one of own.
	printer printers.ResourcePrinter
}

// newOutput is the flag of a command that prints a text, data, and what else is named: formatWide, formatName.
func newOutput(more ...string) *output {
	return &output{format: formatTable, own: append([]string{formatTable}, more...)}
}

func (o *output) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "how to print: "+strings.Join(o.formats(), ", "))
	choices := append(slices.Clone(o.own), "json", "yaml")
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)))
}

// formats are those that a user is told of.
func (o *output) formats() []string {
	return append(slices.Clone(o.own), "json", "yaml", "jsonpath=TEMPLATE", "go-template=TEMPLATE")
}

func (o *output) String() string { return o.format }

// Type is what help calls the flag's value.
func (o *output) Type() string { return "FORMAT" }

// Set takes the flag's value.
func (o *output) Set(format string) error {
	o.format, o.printer = format, nil
	if slices.Contains(o.own, format) {
		return nil
	}
	flags := genericclioptions.NewPrintFlags("").WithDefaultOutput(format)
	flags.NamePrintFlags = nil
	printer, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("want one of %s", strings.Join(o.formats(), ", "))
	}
	o.printer = printer
	return err
}

// isText says whether people are to read what is printed.
func (o *output) isText() bool { return o.format == formatTable || o.format == formatWide }

// print prints what a command shows in the format that was asked for.
func (o *output) print(out io.Writer, s shown) error {
	switch {
	case o.isText():
		return printers.WriteEscaped(out, s.text)
	case o.format == formatName:
		return printers.WriteEscaped(out, lines(s.names))
	default:
		return printData(o.printer, out, s.data)
	}
}

// printData lets one of kubectl's printers print what is no object of an API.
func printData(printer printers.ResourcePrinter, out io.Writer, data any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false) // programs and people see what was written
	if err := encoder.Encode(data); err != nil {
		return fmt.Errorf("encoding what is shown: %w", err)
	}
	content := bytes.TrimSuffix(raw.Bytes(), []byte("\n"))
	return printer.PrintObj(&runtime.Unknown{Raw: content, ContentType: runtime.ContentTypeJSON}, out)
}

// objectName is what kubectl calls an object.
func objectName(group, kind, name string) string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(kind), group, name)
}

// lines ends each text with a line break.
func lines(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// table is rows of cells in columns below a header.
func table(header []string, rows [][]string) string {
	all := make([]string, 0, len(rows)+1)
	for _, row := range append([][]string{header}, rows...) {
		all = append(all, strings.Join(row, "\t"))
	}
	return aligned(lines(all))
}

// cellLimit bounds what stands in a cell of a table that is not wide, in bytes.
const cellLimit = 60

// cell is a text as a table has it: on one line, to be seen where it is empty, and cut where it is long unless all is to be shown.
func cell(value string, wide bool) string {
	if value == "" || oneLine(value) != value {
		value = strconv.Quote(value)
	}
	if wide {
		return value
	}
	return text.Truncate(value, cellLimit)
}

// aligned puts cells that tabs part into columns.
func aligned(lines string) string {
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
