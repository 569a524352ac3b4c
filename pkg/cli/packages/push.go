package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PushOptions holds the arguments and flags of the command.
type PushOptions struct {
	*hubclient.Factory
	name string
	// to is where the package is pushed; nil for the hub.
	to *artifact.Reference
	// overwrite moves a tag that names something else.
	overwrite bool
	// signKey is a file with the private key that signs the package, trust says by whom it must be signed.
	signKey string
	trust   registries.TrustFlags
	loader
}

// NewCmdPush returns the command. If runF is set, it replaces runPush.
func NewCmdPush(f *hubclient.Factory, runF func(context.Context, *PushOptions) error) *cobra.Command {
	o := &PushOptions{Factory: f}
	if runF == nil {
		runF = runPush
	}
	cmd := &cobra.Command{
		Use:   "push DIR [oci://HOST/PATH[:TAG]]",
		Short: "Store a package and its dependencies on the hub, or in an OCI registry",
		Long: "Verify the package in DIR, in a tarball, at a URL or in an OCI registry (oci://HOST/PATH, with :TAG or @DIGEST), and store it on the\n" +
			"hub as Operator and OperatorVersion, in the namespace " + kudo.DefaultPackagesNamespace + " or the one given with -n.\n\n" +
			"With a second argument, the package is pushed to that place in an OCI registry instead. The tag defaults to its operatorVersion,\n" +
			"followed by _ and its appVersion. The same package always has the same digest. Credentials are those of docker.\n\n" +
			"--sign-key signs the package as cosign does; the signatures of a package in a registry are stored on the hub with it. --key\n" +
			"requires a signature by one of the keys in FILE that covers all of its OperatorVersions, for packages in registries. With\n" +
			"--trusted-root, --certificate-identity and --certificate-oidc-issuer, a signature without a key by that identity counts, too.\n\n" +
			"The packages that its KudoOperator tasks refer to are stored first. A task refers to a package by the path of a folder or\n" +
			"tarball, relative to the package, by URL, or by name. Names are looked up in --repository, or without it on the hub.\n\n" +
			"Nothing is stored unless all packages are valid. An OperatorVersion is immutable: a changed package needs a new\n" +
			"operatorVersion.",
		Example: "  kubectl addon package push ./kafka\n" +
			"  kubectl addon package push https://repository.example.com/kafka-1.0.0.tgz -n cluster1\n" +
			"  kubectl addon package push ./kafka oci://registry.example.com/packages/kafka --sign-key cosign.key\n" +
			"  kubectl addon package push oci://registry.example.com/packages/kafka:1.0.0 --key cosign.pub",
		Args: terminal.Between("DIR", "OCI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if len(args) == 2 {
				to, err := artifact.Parse(args[1])
				if err != nil {
					return terminal.Usagef(cmd, "%v", err)
				}
				o.to = &to
			}
			if err := o.check(cmd); err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "Move the tag in the registry if it names another artifact.")
	cmd.Flags().StringVar(&o.signKey, "sign-key", "",
		"File with the private key that signs the package: cosign's, with its password in the environment variable "+registries.PasswordVariable+", or an ECDSA key on P-256.")
	o.trust.AddTo(cmd)
	o.addFlag(cmd)
	return cmd
}

// check returns an error for flags that do not fit the places.
func (o *PushOptions) check(cmd *cobra.Command) error {
	switch {
	case o.to != nil && o.trust.IsSet():
		return errors.New("--key and --trusted-root are for a package that is stored on the hub: to sign one in a registry, set --sign-key")
	case o.signKey == "" && cmd.Flags().Changed("sign-key"):
		return errors.New("--sign-key is empty: set its value, or remove the flag")
	case o.to == nil && o.overwrite:
		return errors.New("--overwrite is for tags in registries: an OperatorVersion is immutable")
	case o.to != nil && artifact.IsReference(o.name):
		return errors.New("both places are in registries: use 'kubectl addon package copy', which keeps the digest and the signatures")
	}
	return o.trust.Check(cmd)
}

func runPush(ctx context.Context, o *PushOptions) error {
	if o.to != nil {
		return o.publish(ctx)
	}
	namespace := cmp.Or(*o.Flags.Namespace, kudo.DefaultPackagesNamespace)
	o.Versions = hubclient.VersionsOnce(ctx, o.Factory, namespace)
	b, err := verifiedBundle(ctx, &o.loader, o.ErrOut, o.name)
	if err != nil {
		return err
	}
	signatures, err := o.signaturesFor(ctx, b)
	if err != nil {
		return err
	}
	c, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(newHub(c, namespace, o.Out).Push(ctx, b, signatures), namespace)
}

// signaturesFor returns the signatures of a package that is stored on the hub: those in registries, and one with the private key. If the flags require a
// signature, it returns only those that they trust.
func (o *PushOptions) signaturesFor(ctx context.Context, b *bundle.Bundle) (bundle.Signatures, error) {
	found, err := o.Signatures(ctx)
	if err != nil {
		return bundle.Signatures{}, err
	}
	if o.trust.IsSet() {
		trust, err := o.trust.Read()
		if err == nil {
			_, err = o.VerifySignature(ctx, b, o.name, trust)
		}
		if err != nil {
			return bundle.Signatures{}, err
		}
		found = signature.By(found, trust)
	}
	if o.signKey != "" {
		root := b.Root()
		_, version := root.Objects("")
		signed, err := signBundle(b, o.signKey, signature.Statement{Digest: signature.ContentDigest(version)})
		if err != nil {
			return bundle.Signatures{}, err
		}
		found = append(found, signed)
	}
	return bundle.Signatures{Found: found, Required: o.trust.IsSet() || o.signKey != ""}, nil
}

// publish pushes a package to a registry.
func (o *PushOptions) publish(ctx context.Context) error {
	b, files, done, err := o.LoadPortable(ctx, o.name)
	if err != nil {
		return err
	}
	defer done()
	if err := printers.WriteEscaped(o.ErrOut, b.ProblemsText()+b.FetchedText()); err != nil {
		return err
	}
	if err := b.CheckValid(o.name); err != nil {
		return err
	}
	tarball, _, err := b.Tarball(files)
	if err != nil {
		return err
	}
	p, to := b.Root().Pkg, *o.to
	made, err := artifact.New(tarball, p)
	if err != nil {
		return err
	}
	if to.Digest != "" && to.Digest != made.Digest {
		return fmt.Errorf("%s: the package has digest %s", to, made.Digest)
	}
	if to.Tag == "" {
		to.Tag = artifact.TagOf(p.Version.AppVersion, p.Version.Version)
	}
	return o.upload(ctx, b, to, made)
}

// upload pushes an artifact, and signs it.
func (o *PushOptions) upload(ctx context.Context, b *bundle.Bundle, to artifact.Reference, made artifact.Artifact) error {
	statement := signature.Statement{Place: to.Host + "/" + to.Repository, Digest: made.Digest}
	var signed signature.Signature
	var err error
	if o.signKey != "" { // before anything is pushed, so that no unsigned package remains
		if signed, err = signBundle(b, o.signKey, statement); err != nil {
			return err
		}
	}
	registry, err := o.Registry()
	if err != nil {
		return err
	}
	to.Digest = ""
	pushed, err := registry.Push(ctx, to, made, o.overwrite)
	if err != nil {
		return err
	}
	to.Digest = made.Digest
	did := "unchanged"
	if pushed {
		did = "pushed"
	}
	if _, err := fmt.Fprintf(o.Out, "%s %s\n", to, did); err != nil || o.signKey == "" {
		return err
	}
	if err := registry.Sign(ctx, to, signed); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s signed\n", to)
	return err
}

// signBundle signs a statement with the content of the OperatorVersions in a bundle.
func signBundle(b *bundle.Bundle, keyFile string, statement signature.Statement) (signature.Signature, error) {
	key, err := registries.ReadPrivateKey(keyFile)
	if err == nil {
		statement.Versions, err = b.ContentDigests()
	}
	if err != nil {
		return signature.Signature{}, err
	}
	return key.Sign(statement)
}

// newHub returns the hub on which packages are stored, with a line for each object as kubectl prints it.
func newHub(c client.Client, namespace string, out io.Writer) *bundle.Hub {
	return &bundle.Hub{Client: c, Namespace: namespace, FieldManager: hubclient.FieldManager, Report: func(kind, name, did string) error {
		_, err := fmt.Fprintf(out, "%s %s\n", text.ObjectName(kudo.GroupVersion.Group, kind, name), did)
		return err
	}}
}
