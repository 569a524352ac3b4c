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
)

// The ways to print that are the plugin's own; all others are kubectl's.
const (
	// formatTable is for people, and what is printed unless -o says otherwise.
	formatTable = "table"
	// formatWide is formatTable, with nothing left out.
	FormatWide = "wide"
	// formatName is what kubectl takes: a line KIND.GROUP/NAME for each object.
	FormatName = "name"
)

// Shown is what a command shows.
type Shown struct {
	// text for people: a table, a tree, a paragraph.
	Text string
	// data for programs, with field names that stay as they are.
	Data any
	// names of objects, by objectName.
	Names []string
}

// Output is how a command prints what it shows: the value of its flag -o.
type Output struct {
	Format string
	// own are the formats of the plugin's own that the command has.
	own []string
	// printer for programs; nil where the format is one of own.
	printer printers.ResourcePrinter
}

// NewOutput is the flag of a command that prints a text, data, and what else is named: formatWide, formatName.
func NewOutput(more ...string) *Output {
	return &Output{Format: formatTable, own: append([]string{formatTable}, more...)}
}

func (o *Output) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "how to print: "+strings.Join(o.formats(), ", "))
	choices := append(slices.Clone(o.own), "json", "yaml")
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)))
}

// formats are those that a user is told of.
func (o *Output) formats() []string {
	return append(slices.Clone(o.own), "json", "yaml", "jsonpath=TEMPLATE", "go-template=TEMPLATE")
}

func (o *Output) String() string { return o.Format }

// Type is what help calls the flag's value.
func (o *Output) Type() string { return "FORMAT" }

// Set takes the flag's value.
func (o *Output) Set(format string) error {
	o.Format, o.printer = format, nil
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

// IsText says whether people are to read what is printed.
func (o *Output) IsText() bool { return o.Format == formatTable || o.Format == FormatWide }

// Print prints what a command shows in the format that was asked for.
func (o *Output) Print(out io.Writer, s Shown) error {
	switch {
	case o.IsText():
		return printers.WriteEscaped(out, s.Text)
	case o.Format == FormatName:
		return printers.WriteEscaped(out, Lines(s.Names))
	default:
		return printData(o.printer, out, s.Data)
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
