package packages

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/pack"
)

func NewCmdVerify(streams genericiooptions.IOStreams) *cobra.Command {
	l, o := &loader{}, terminal.NewOutput()
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Say everything that is wrong with a package",
		Long: "Verify reads the package in DIR (operator.yaml, params.yaml, templates/), or in a tarball or at its URL, and all that it\n" +
			"brings along, and prints what it finds, a line each: FILE:LINE:COLUMN: error|warning: MESSAGE.\n" +
			"It exits with 1 if there are errors. It needs no cluster, and a network only where packages are at URLs. Packages that are\n" +
			"only a name are looked for in --repository; without it nothing is said about them, and a warning says so.",
		Example: "  kubectl addon package verify ./kafka\n" +
			"  kubectl addon package verify ./streaming --repository https://repository.example.com -o json",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := l.loadBundle(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			invalid := b.validity(args[0])
			text := b.findingsText()
			if invalid == nil {
				text += fmt.Sprintf("package %s is valid: OperatorVersion %s%s\n", args[0], versionName(b.root().pkg), b.along())
			}
			if err := o.Print(streams.Out, terminal.Shown{Text: text, Data: b.verdict(args[0])}); err != nil {
				return err
			}
			return invalid
		},
	}
	o.AddFlag(cmd)
	l.addFlag(cmd)
	return cmd
}

// verdict is what verification has to say, for programs.
type verdict struct {
	Package         string `json:"package"`
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Brings are the OperatorVersions that it brings along.
	Brings []string `json:"brings,omitempty"`
	// NotLookedFor are the packages that are only a name, which it brings along as well, and which the verdict is not about.
	NotLookedFor []string  `json:"notLookedFor,omitempty"`
	Valid        bool      `json:"valid"`
	Findings     []finding `json:"findings"`
}

type finding struct {
	// Package that is brought along and that the finding is about; empty: the one that was asked for.
	Package  string        `json:"package,omitempty"`
	File     string        `json:"file"`
	Line     int           `json:"line,omitempty"`
	Column   int           `json:"column,omitempty"`
	Severity pack.Severity `json:"severity"`
	Message  string        `json:"message"`
}

// verdict over a package of that name with all that it brings along.
func (b *bundle) verdict(name string) verdict {
	v := verdict{Package: name, NotLookedFor: b.notLookedFor(), Valid: b.validity(name) == nil, Findings: []finding{}}
	if v.Valid {
		v.OperatorVersion, v.Brings = versionName(b.root().pkg), b.brings()
	}
	for _, m := range b.rootFirst() {
		place := m.name
		if m == b.root() {
			place = ""
		}
		for _, f := range m.findings {
			v.Findings = append(v.Findings, finding{
				Package: place, File: f.File, Line: f.Line, Column: f.Column, Severity: f.Severity, Message: f.Message,
			})
		}
	}
	return v
}

// verifiedBundle loads a package with all that it brings along, and prints the findings to out. Errors in any of it are an error.
func verifiedBundle(ctx context.Context, l *loader, out io.Writer, name string) (*bundle, error) {
	b, err := l.loadBundle(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := printers.WriteEscaped(out, b.findingsText()); err != nil {
		return nil, err
	}
	return b, b.validity(name)
}

// findingsText is a line for each finding, with files as seen from the working directory.
func (b *bundle) findingsText() string {
	var text strings.Builder
	for _, m := range b.rootFirst() {
		for _, f := range m.findings {
			f.File = m.file(f.File)
			text.WriteString(f.String() + "\n")
		}
	}
	return text.String()
}

// rootFirst are the members in the order in which people read about them.
func (b *bundle) rootFirst() []*member {
	last := len(b.members) - 1
	return append([]*member{b.members[last]}, b.members[:last]...)
}

// brings are the names of the OperatorVersions that come along, sorted.
func (b *bundle) brings() []string {
	names := map[string]bool{}
	for _, m := range b.members {
		for _, child := range m.children {
			names[child.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// notLookedFor are the names of packages that were looked for nowhere, sorted.
func (b *bundle) notLookedFor() []string {
	var names []string
	for _, m := range b.members {
		names = append(names, m.unsought...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// along says what comes along, and what of it was not looked for; nothing where nothing does.
func (b *bundle) along() string {
	text := ""
	if names := b.brings(); len(names) > 0 {
		text = ", which brings along " + strings.Join(names, ", ")
	}
	if names := b.notLookedFor(); len(names) > 0 {
		text += "; not looked for: " + strings.Join(names, ", ")
	}
	return text
}

// validity is the error that a package with errors is, its own or those of what it brings along.
func (b *bundle) validity(name string) error {
	var faults, all int
	for _, m := range b.members {
		faults += len(pack.Errors(m.findings))
		all += len(m.findings)
	}
	if faults == 0 {
		return nil
	}
	found := terminal.Counted(faults, "error")
	if warnings := all - faults; warnings > 0 {
		found += ", " + terminal.Counted(warnings, "warning")
	}
	return fmt.Errorf("package %s is not valid: %s", name, found)
}
