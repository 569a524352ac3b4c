package packages

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// VerifyOptions holds the arguments and flags of the command.
type VerifyOptions struct {
	*hubclient.Factory
	name string
	loader
	output *terminal.Output
	// trust says by whom the package must be signed.
	trust registries.TrustFlags
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
			"--key requires a signature of the package, oci://HOST/PATH, and of all of its OperatorVersions by one of the keys in FILE. With\n" +
			"--trusted-root, --certificate-identity and --certificate-oidc-issuer, a signature without a key by that identity counts, too.",
		Example: "  kubectl addon package verify ./kafka\n" +
			"  kubectl addon package verify ./streaming --repository https://repository.example.com -o json\n" +
			"  kubectl addon package verify oci://registry.example.com/packages/kafka:1.0.0 --key cosign.pub\n" +
			"  kubectl addon package verify oci://registry.example.com/packages/kafka:1.0.0 --trusted-root trusted_root.json " +
			"--certificate-oidc-issuer https://token.actions.githubusercontent.com " +
			"--certificate-identity https://github.com/example/packages/.github/workflows/release.yaml@refs/tags/v1.0.0",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if err := o.trust.Check(cmd); err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.loader.addFlag(cmd)
	o.trust.AddTo(cmd)
	return cmd
}

func runVerify(ctx context.Context, o *VerifyOptions) error {
	o.TryValues = true
	b, err := o.LoadBundle(ctx, o.name)
	if err != nil {
		return err
	}
	verdict := newVerdict(b, o.name)
	if o.trust.IsSet() {
		trust, err := o.trust.Read()
		if err == nil {
			verdict.SignedDigest, err = o.VerifySignature(ctx, b, o.name, trust)
		}
		if err != nil {
			return err
		}
	}
	invalid := b.CheckValid(o.name)
	text := b.ProblemsText() + b.FetchedText()
	if invalid == nil {
		text += fmt.Sprintf("package %s is valid: OperatorVersion %s%s\n", o.name, bundle.VersionName(b.Root().Pkg), childrenText(b))
	}
	if verdict.SignedDigest != "" {
		text += fmt.Sprintf("the signature is valid, for %s and the content of every OperatorVersion\n", verdict.SignedDigest)
	}
	if err := o.output.Print(o.Out, terminal.Shown{Text: text, Data: verdict}); err != nil {
		return err
	}
	return invalid
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
	Charts []bundle.FetchedChart `json:"charts,omitempty"`
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

// newVerdict returns the result for a package and its child packages.
func newVerdict(b *bundle.Bundle, name string) verdict {
	v := verdict{Package: name, Unverified: b.NotLookedFor(), Valid: b.CheckValid(name) == nil, Problems: []problem{}}
	if v.Valid {
		v.OperatorVersion, v.ChildVersions = bundle.VersionName(b.Root().Pkg), b.Brings()
	}
	for _, m := range b.RootFirst() {
		v.Charts = append(v.Charts, m.FetchedCharts()...)
		place := m.Name
		if m == b.Root() {
			place = ""
		}
		for _, f := range m.Problems {
			v.Problems = append(v.Problems, problem{
				Package: place, File: f.File, Line: f.Line, Column: f.Column, Severity: f.Severity, Message: f.Message,
			})
		}
	}
	return v
}

// verifiedBundle loads a package with its child packages and prints the problems to out. It returns an error if any of them has errors.
func verifiedBundle(ctx context.Context, l *loader, out io.Writer, name string) (*bundle.Bundle, error) {
	b, err := l.LoadBundle(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := printers.WriteEscaped(out, b.ProblemsText()+b.FetchedText()); err != nil {
		return nil, err
	}
	return b, b.CheckValid(name)
}

// childrenText lists the child OperatorVersions and the names that were not looked up; empty if there are none.
func childrenText(b *bundle.Bundle) string {
	text := ""
	if names := b.Brings(); len(names) > 0 {
		text = ", with dependencies " + strings.Join(names, ", ")
	}
	if names := b.NotLookedFor(); len(names) > 0 {
		text += "; not looked up: " + strings.Join(names, ", ")
	}
	return text
}
