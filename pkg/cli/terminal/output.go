package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/text"
)

// The plugin's own output formats; all others are kubectl's.
const (
	// formatTable is the default format, for people.
	formatTable = "table"
	// FormatWide is formatTable with nothing omitted.
	FormatWide = "wide"
	// FormatName prints a line KIND.GROUP/NAME for each object, which kubectl accepts as arguments.
	FormatName = "name"
)

// Shown is the output of a command.
type Shown struct {
	// Text is the output for people: a table, a tree, a paragraph.
	Text string
	// Data is the output for programs, with stable field names.
	Data any
	// Names are the names of objects, as ObjectName returns them.
	Names []string
	// Items are the items of Data, for FormatColumns.
	Items []any
}

// Output is the value of a command's flag -o.
type Output struct {
	Format string
	// NoHeaders is set to print tables without headers.
	NoHeaders bool
	// own lists the plugin's own formats that the command supports.
	own []string
	// takesColumns is set if the command supports FormatColumns; columns are those that were requested.
	takesColumns bool
	columns      []column
	// printer prints for programs; nil if the format is one of own, or FormatColumns.
	printer printers.ResourcePrinter
}

// NewOutput returns the flag of a command that prints text, data, and the additional formats: FormatWide, FormatName, FormatColumns.
func NewOutput(more ...string) *Output {
	o := &Output{Format: formatTable, own: []string{formatTable}}
	for _, format := range more {
		if format == FormatColumns {
			o.takesColumns = true
		} else {
			o.own = append(o.own, format)
		}
	}
	return o
}

// AddFlag adds -o to a command, with completion.
func (o *Output) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "Output format, one of: "+strings.Join(o.formats(), ", ")+".")
	choices := append(slices.Clone(o.own), "json", "yaml")
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)))
}

// AddNoHeaders adds --no-headers to a command that prints tables.
func (o *Output) AddNoHeaders(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Print tables without headers.")
}

// formats returns the formats listed in help texts.
func (o *Output) formats() []string {
	formats := append(slices.Clone(o.own), "json", "yaml", "jsonpath=TEMPLATE", "go-template=TEMPLATE")
	if o.takesColumns {
		formats = append(formats, FormatColumns+"=COLUMNS")
	}
	return formats
}

func (o *Output) String() string { return o.Format }

// Type returns the placeholder of the flag's value in help texts.
func (o *Output) Type() string { return "FORMAT" }

// Set sets the flag's value.
func (o *Output) Set(format string) error {
	o.Format, o.printer, o.columns = format, nil, nil
	if slices.Contains(o.own, format) {
		return nil
	}
	if spec, isColumns := strings.CutPrefix(format, FormatColumns+"="); isColumns && o.takesColumns {
		var err error
		o.columns, err = parseColumns(spec)
		return err
	}
	flags := genericclioptions.NewPrintFlags("").WithDefaultOutput(format)
	flags.NamePrintFlags = nil
	printer, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("must be one of %s", strings.Join(o.formats(), ", "))
	}
	o.printer = printer
	return err
}

// IsText reports whether the output is for people.
func (o *Output) IsText() bool { return o.Format == formatTable || o.Format == FormatWide }

// Print prints the output of a command in the requested format.
func (o *Output) Print(out io.Writer, s Shown) error {
	switch {
	case o.IsText():
		return printText(out, s.Text)
	case o.Format == FormatName:
		return printers.WriteEscaped(out, Lines(s.Names))
	case o.columns != nil:
		table, err := columnsText(o.columns, s.Items, !o.NoHeaders)
		if err != nil {
			return err
		}
		return printers.WriteEscaped(out, table)
	default:
		if out = Raw(out); printers.IsTerminal(out) {
			out = Guard(out)
		}
		return printData(o.printer, out, s.Data)
	}
}

// printText prints text for people; on a terminal, unless NO_COLOR is set, with colors for states.
func printText(out io.Writer, shown string) error {
	raw := Raw(out)
	if !printers.AllowsColorOutput(raw) {
		return printers.WriteEscaped(out, shown)
	}
	_, err := io.WriteString(raw, strings.Join(paint(strings.Split(text.Escape(shown), "\n")), "\n"))
	return err
}

// printData prints data that is not an API object with one of kubectl's printers.
func printData(printer printers.ResourcePrinter, out io.Writer, data any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false) // prints text as it was written
	if err := encoder.Encode(data); err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	content := text.EscapeJSON(bytes.TrimSuffix(raw.Bytes(), []byte("\n")))
	return printer.PrintObj(&runtime.Unknown{Raw: content, ContentType: runtime.ContentTypeJSON}, out)
}
