package packages

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/text"
)

// VerifyOptions holds the arguments and flags of the command.
type VerifyOptions struct {
	*hubclient.Factory
	name string
	loader
	output *terminal.Output
	// keys are files with public keys of which one must have signed the package.
	keys []string
}

// NewCmdVerify returns the command. If runF is set, it replaces runVerify.
func NewCmdVerify(f *hubclient.Factory, runF func(context.Context, *VerifyOptions) error) *cobra.Command {
	o := &VerifyOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runVerify
	}
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Verify a package and report all problems",
		Long: "Verify the package in DIR (operator.yaml, params.yaml, templates/), in a tarball or at a URL, and its dependencies. Each\n" +
			"problem is printed on a line: FILE:LINE:COLUMN: error|warning: MESSAGE. The exit code is 1 if there are errors.\n\n" +
			"Hostile values are tried for every parameter, such as line breaks and quotes. A warning names templates and charts\n" +
			"that reject one, and how to accept every value.\n\n" +
			"No cluster is needed, and a network only for packages at URLs or in registries, and for charts in repositories and registries. Packages given only by name are looked up in --repository;\n" +
			"without it they are not verified, and a warning reports that.\n\n" +
			"--key requires a signature of the package, oci://HOST/PATH, and of all of its OperatorVersions by one of the keys in FILE.",
		Example: "  kubectl addon package verify ./kafka\n" +
			"  kubectl addon package verify ./streaming --repository https://repository.example.com -o json\n" +
			"  kubectl addon package verify oci://registry.example.com/packages/kafka:1.0.0 --key cosign.pub",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.loader.addFlag(cmd)
	cmd.Flags().StringArrayVar(&o.keys, "key", nil, "File with public keys, of which one must have signed the package. Can be repeated.")
	return cmd
}

func runVerify(ctx context.Context, o *VerifyOptions) error {
	o.loader.tryValues = true
	b, err := o.loader.loadBundle(ctx, o.name)
	if err != nil {
		return err
	}
	verdict := b.verdict(o.name)
	if len(o.keys) > 0 {
		if verdict.SignedDigest, err = o.loader.verifySignature(ctx, b, o.name, o.keys); err != nil {
			return err
		}
	}
	invalid := b.checkValid(o.name)
	text := b.problemsText() + b.fetchedText()
	if invalid == nil {
		text += fmt.Sprintf("package %s is valid: OperatorVersion %s%s\n", o.name, versionName(b.root().pkg), b.childrenText())
	}
	if verdict.SignedDigest != "" {
		text += fmt.Sprintf("the signature is valid, for %s and the content of every OperatorVersion\n", verdict.SignedDigest)
	}
	if err := o.output.Print(o.Out, terminal.Shown{Text: text, Data: verdict}); err != nil {
		return err
	}
	return invalid
}

// contentDigests returns the digests of the OperatorVersions in a bundle, which its signature covers. Versions on the hub have signatures of their own.
func (b *bundle) contentDigests() (map[string]string, error) {
	if names := b.notLookedFor(); len(names) > 0 {
		return nil, fmt.Errorf("child packages %s were not looked up, so the signature cannot cover their versions: set --repository",
			text.List(names, 3))
	}
	digests := map[string]string{}
	for _, m := range b.distinct() {
		_, version := m.objects("")
		digests[version.Name] = signature.ContentDigest(version)
	}
	return digests, nil
}

// verifySignature returns the digest of the package at a reference to a registry. It returns an error unless one of the public keys in files has signed it
// and the content of each OperatorVersion in the bundle.
func (l *loader) verifySignature(ctx context.Context, b *bundle, name string, files []string) (string, error) {
	keys, err := registries.ReadKeys(files)
	if err != nil {
		return "", err
	}
	pulled := l.pulled[name]
	if pulled == nil {
		return "", fmt.Errorf("--key is for packages in registries (oci://HOST/PATH): %s has no signature", text.Word(name))
	}
	registry, err := l.registries.Client()
	if err != nil {
		return "", err
	}
	found, err := registry.Signatures(ctx, pulled.Reference)
	if err != nil {
		return "", err
	}
	digests, err := b.contentDigests()
	if err == nil {
		_, err = signature.VerifyArtifact(pulled.Reference.Digest, digests, found, keys)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", pulled.Reference, err)
	}
	return pulled.Reference.Digest, nil
}

// verdict is the result of a verification for programs.
type verdict struct {
	Package         string `json:"package"`
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// ChildVersions lists the child OperatorVersions.
	ChildVersions []string `json:"childVersions,omitempty"`
	// Unverified lists child packages given only by name, which were not verified.
	Unverified []string `json:"unverified,omitempty"`
	// Charts lists the charts that were fetched.
	Charts []fetchedChart `json:"charts,omitempty"`
	// SignedDigest is the digest of the package, if a signature was required.
	SignedDigest string    `json:"signedDigest,omitempty"`
	Valid        bool      `json:"valid"`
	Problems     []problem `json:"problems"`
}

type problem struct {
	// Package is the child package that the problem is about; empty for the requested package.
	Package  string        `json:"package,omitempty"`
	File     string        `json:"file"`
	Line     int           `json:"line,omitempty"`
	Column   int           `json:"column,omitempty"`
	Severity pack.Severity `json:"severity"`
	Message  string        `json:"message"`
}

// verdict returns the result for a package and its child packages.
func (b *bundle) verdict(name string) verdict {
	v := verdict{Package: name, Unverified: b.notLookedFor(), Valid: b.checkValid(name) == nil, Problems: []problem{}}
	if v.Valid {
		v.OperatorVersion, v.ChildVersions = versionName(b.root().pkg), b.brings()
	}
	for _, m := range b.rootFirst() {
		v.Charts = append(v.Charts, m.fetchedCharts()...)
		place := m.name
		if m == b.root() {
			place = ""
		}
		for _, f := range m.problems {
			v.Problems = append(v.Problems, problem{
				Package: place, File: f.File, Line: f.Line, Column: f.Column, Severity: f.Severity, Message: f.Message,
			})
		}
	}
	return v
}

// verifiedBundle loads a package with its child packages and prints the problems to out. It returns an error if any of them has errors.
func verifiedBundle(ctx context.Context, l *loader, out io.Writer, name string) (*bundle, error) {
	b, err := l.loadBundle(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := printers.WriteEscaped(out, b.problemsText()+b.fetchedText()); err != nil {
		return nil, err
	}
	return b, b.checkValid(name)
}

// problemsText returns a line for each problem, with file names relative to the working directory.
func (b *bundle) problemsText() string {
	var text strings.Builder
	for _, m := range b.rootFirst() {
		for _, f := range m.problems {
			f.File = m.file(f.File)
			text.WriteString(f.String() + "\n")
		}
	}
	return text.String()
}

// fetchedText lists the charts that were fetched for a bundle.
func (b *bundle) fetchedText() string {
	var lines strings.Builder
	for _, m := range b.rootFirst() {
		for _, c := range m.fetchedCharts() {
			lines.WriteString(sourceText(c))
		}
	}
	return lines.String()
}

// rootFirst returns the members in the order of the output.
func (b *bundle) rootFirst() []*member {
	last := len(b.members) - 1
	return append([]*member{b.members[last]}, b.members[:last]...)
}

// brings returns the sorted names of the child OperatorVersions.
func (b *bundle) brings() []string {
	names := map[string]bool{}
	for _, m := range b.members {
		for _, child := range m.children {
			names[child.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// notLookedFor returns the sorted names of packages that were not looked up.
func (b *bundle) notLookedFor() []string {
	var names []string
	for _, m := range b.members {
		names = append(names, m.unsought...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// childrenText lists the child OperatorVersions and the names that were not looked up; empty if there are none.
func (b *bundle) childrenText() string {
	text := ""
	if names := b.brings(); len(names) > 0 {
		text = ", with dependencies " + strings.Join(names, ", ")
	}
	if names := b.notLookedFor(); len(names) > 0 {
		text += "; not looked up: " + strings.Join(names, ", ")
	}
	return text
}

// checkValid returns an error if the package or one of its child packages has errors.
func (b *bundle) checkValid(name string) error {
	var problems, all int
	for _, m := range b.members {
		problems += len(pack.Errors(m.problems))
		all += len(m.problems)
	}
	if problems == 0 {
		return nil
	}
	found := text.Plural(problems, "error")
	if warnings := all - problems; warnings > 0 {
		found += ", " + text.Plural(warnings, "warning")
	}
	return fmt.Errorf("package %s is not valid: %s", name, found)
}
