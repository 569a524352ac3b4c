package artifacts

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// SignOptions holds the arguments and flags of the command.
type SignOptions struct {
	*hubclient.Factory
	place  artifact.Reference
	key    string
	reader packages.Reader
}

// NewCmdSign returns the command. If runF is set, it replaces runSign.
func NewCmdSign(f *hubclient.Factory, runF func(context.Context, *SignOptions) error) *cobra.Command {
	o := &SignOptions{Factory: f}
	if runF == nil {
		runF = runSign
	}
	cmd := &cobra.Command{
		Use:   "sign SOURCE --key FILE",
		Short: "Sign a package in an OCI registry",
		Long: "Sign the package at SOURCE, oci://HOST/PATH@DIGEST, with the private key in FILE, in cosign's format. 'package push' and 'package pull' print\n" +
			"the digest: what a tag names is decided by the registry. The signature also covers the content of every OperatorVersion in the package, with\n" +
			"the packages and charts that it refers to, and what is signed is printed. Other signatures stay.\n\n" +
			"The password of an encrypted key is read from the environment variable " + registries.PasswordVariable + ".",
		Example: "  kubectl addon package sign oci://registry.example.com/packages/kafka@sha256:… --key cosign.key",
		Args:    terminal.Exactly("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.place, err = artifact.Parse(args[0]); err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			if o.place.Digest == "" {
				return terminal.Usagef(cmd, "SOURCE needs a digest, %s@sha256:…, which 'package push' prints: what a tag names is decided by the registry", o.place)
			}
			if o.key == "" {
				return terminal.Usagef(cmd, "--key is missing: create a pair of keys with 'cosign generate-key-pair'")
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.key, "key", "", "File with the private key: cosign's, or an ECDSA key on P-256.")
	o.reader.AddFlags(cmd)
	return cmd
}

func runSign(ctx context.Context, o *SignOptions) error {
	loaded, err := o.reader.Read(ctx, o.ErrOut, o.place.String())
	if err != nil {
		return err
	}
	ref := o.reader.Pulled(o.place.String()).Reference
	if ref.Place() != o.place.Place() {
		return fmt.Errorf("%s was read from the mirror %s that %s names: sign the package there, or unset the variable", o.place, ref.Place(), registry.MirrorsVariable)
	}
	signed, err := loaded.Sign(o.key, signature.Statement{Place: ref.Host + "/" + ref.Repository, Digest: ref.Digest})
	if err != nil {
		return err
	}
	contents, err := loaded.Contents()
	if err != nil {
		return err
	}
	client, err := o.reader.Client()
	if err != nil {
		return err
	}
	if err := client.Sign(ctx, ref, signed); err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, ref.String()+" signed:\n  "+strings.Join(contents, "\n  ")+"\n")
}
