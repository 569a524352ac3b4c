package artifacts

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
)

// CopyOptions holds the arguments and flags of the command.
type CopyOptions struct {
	*hubclient.Factory
	from, to   artifact.Reference
	overwrite  bool
	trust      registries.TrustFlags
	registries registries.Flags
}

// NewCmdCopy returns the command. If runF is set, it replaces runCopy.
func NewCmdCopy(f *hubclient.Factory, runF func(context.Context, *CopyOptions) error) *cobra.Command {
	o := &CopyOptions{Factory: f}
	if runF == nil {
		runF = runCopy
	}
	cmd := &cobra.Command{
		Use:   "copy SOURCE TARGET",
		Short: "Copy a package from one OCI registry to another",
		Long: "Copy the package at SOURCE, oci://HOST/PATH with :TAG or @DIGEST, to TARGET, with its signatures. The digest stays the same. Without a\n" +
			"tag in TARGET, that of the source is used; without a tag and a digest in SOURCE, the highest version is copied.\n\n" +
			"--key requires a signature of the package by one of the keys in FILE. With --trusted-root, --certificate-identity and\n" +
			"--certificate-oidc-issuer, a signature without a key by that identity counts, too. All signatures are copied.\n\n" +
			"Its charts and images are not copied: use 'kubectl addon package mirror' for networks without access to them.",
		Example: "  kubectl addon package copy oci://staging.example.com/packages/kafka:1.0.0 oci://registry.example.com/packages/kafka",
		Args:    terminal.Exactly("SOURCE", "TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.from, o.to, err = parseTwo(cmd, args); err != nil {
				return err
			}
			if o.to.Digest != "" {
				return terminal.Usagef(cmd, "TARGET must not have a digest: that of the source is kept")
			}
			if err := o.trust.Check(cmd); err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "Move the tag in the target if it names another artifact.")
	o.trust.AddTo(cmd)
	o.registries.AddTo(cmd)
	return cmd
}

func runCopy(ctx context.Context, o *CopyOptions) error {
	client, err := o.registries.Client()
	if err != nil {
		return err
	}
	pulled, err := pullSigned(ctx, client, o.from, &o.trust) // a package, and no image: its manifest and its tarball are verified
	if err != nil {
		return err
	}
	copied, signatures, err := client.CopySigned(ctx, pulled.Reference, o.to, o.overwrite)
	if err != nil {
		return err
	}
	if o.to.Tag == "" {
		o.to.Tag = copied.Tag
	}
	o.to.Digest = copied.Digest
	return printers.WriteEscaped(o.Out, o.to.String()+" "+copiedText(signatures)+"\n")
}
