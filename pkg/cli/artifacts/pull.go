package artifacts

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
)

// PullOptions holds the arguments and flags of the command.
type PullOptions struct {
	*hubclient.Factory
	from       artifact.Reference
	file       string
	trust      registries.TrustFlags
	registries registries.Flags
}

// NewCmdPull returns the command. If runF is set, it replaces runPull.
func NewCmdPull(f *hubclient.Factory, runF func(context.Context, *PullOptions) error) *cobra.Command {
	o := &PullOptions{Factory: f}
	if runF == nil {
		runF = runPull
	}
	cmd := &cobra.Command{
		Use:   "pull SOURCE",
		Short: "Download a package from an OCI registry",
		Long: "Download the package at SOURCE, oci://HOST/PATH with :TAG or @DIGEST, as a tarball. Without both, it is the highest version. The digest of\n" +
			"what the registry sends is verified.\n\n" +
			"--key requires a signature of the package by one of the keys in FILE. With --trusted-root, --certificate-identity and\n" +
			"--certificate-oidc-issuer, a signature without a key by that identity counts, too.",
		Example: "  kubectl addon package pull oci://registry.example.com/packages/kafka:1.0.0\n" +
			"  kubectl addon package pull oci://registry.example.com/packages/kafka --key cosign.pub -o kafka.tgz",
		Args: terminal.Exactly("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.from, err = artifact.Parse(args[0]); err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			if err := o.trust.Check(cmd); err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "File to write. Defaults to NAME-TAG.tgz in the working directory, or NAME.tgz without a tag.")
	o.trust.AddTo(cmd)
	o.registries.AddTo(cmd)
	return cmd
}

func runPull(ctx context.Context, o *PullOptions) error {
	client, err := o.registries.Client()
	if err != nil {
		return err
	}
	pulled, err := pullSigned(ctx, client, o.from, &o.trust)
	if err != nil {
		return err
	}
	file := cmp.Or(o.file, fileOf(pulled.Reference))
	if err := packages.ReplaceFile(file, pulled.Tarball); err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, fmt.Sprintf("%s created from %s\n", file, pulled.Reference))
}

// fileOf returns the default name of the file. The parts of a reference contain no slashes or backslashes.
func fileOf(ref artifact.Reference) string {
	_, name := cutLast(ref.Repository)
	return strings.Trim(name+"-"+ref.Tag, "-") + ".tgz"
}
