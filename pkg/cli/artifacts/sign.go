package artifacts

import (
	"context"
	"errors"
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
	"github.com/tandem-addons/tandem/pkg/core/signature/keyless"
	"github.com/tandem-addons/tandem/pkg/text"
)

// SignOptions holds the arguments and flags of the command.
type SignOptions struct {
	*hubclient.Factory
	place artifact.Reference
	key   string
	// printPayload prints what an identity signs, payload and bundle are files with what it has signed.
	printPayload    bool
	payload, bundle string
	reader          packages.Reader
}

// NewCmdSign returns the command. If runF is set, it replaces runSign.
func NewCmdSign(f *hubclient.Factory, runF func(context.Context, *SignOptions) error) *cobra.Command {
	o := &SignOptions{Factory: f}
	if runF == nil {
		runF = runSign
	}
	cmd := &cobra.Command{
		Use:   "sign SOURCE (--key FILE | --print-payload | --payload FILE --bundle FILE)",
		Short: "Sign a package in an OCI registry",
		Long: "Sign the package at SOURCE, oci://HOST/PATH@DIGEST, with the private key in FILE, in cosign's format. 'package push' and 'package pull' print\n" +
			"the digest: what a tag names is decided by the registry. The signature also covers the content of every OperatorVersion in the package, with\n" +
			"the packages and charts that it refers to, and what is signed is printed. Other signatures stay.\n\n" +
			"The password of an encrypted key is read from the environment variable " + registries.PasswordVariable + ".\n\n" +
			"A CI job signs without a key, by its identity: --print-payload prints the text to sign, for a file payload.json,\n" +
			"'cosign sign-blob --yes payload.json --bundle payload.sigstore.json' signs it, and --payload with --bundle stores both beside the package.\n" +
			"Whether the identity is trusted, 'package verify' and the hub decide.",
		Example: "  kubectl addon package sign oci://registry.example.com/packages/kafka@sha256:… --key cosign.key\n" +
			"  kubectl addon package sign oci://registry.example.com/packages/kafka@sha256:… --print-payload\n" +
			"  kubectl addon package sign oci://registry.example.com/packages/kafka@sha256:… --payload payload.json --bundle payload.sigstore.json",
		Args: terminal.Exactly("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.place, err = artifact.Parse(args[0]); err == nil {
				err = o.check()
			}
			if err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.key, "key", "", "File with the private key: cosign's, or an ECDSA key on P-256.")
	cmd.Flags().BoolVar(&o.printPayload, "print-payload", false, "Print the text that an identity signs without a key, and sign nothing.")
	cmd.Flags().StringVar(&o.payload, "payload", "", "File with the text that --print-payload has printed, which an identity has signed.")
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "File with Sigstore's bundle about --payload, which 'cosign sign-blob --bundle' has written.")
	o.reader.AddFlags(cmd)
	return cmd
}

// check returns an error if the arguments or flags are invalid.
func (o *SignOptions) check() error {
	modes := 0
	for _, isSet := range []bool{o.key != "", o.printPayload, o.payload != "" || o.bundle != ""} {
		if isSet {
			modes++
		}
	}
	switch {
	case o.place.Digest == "":
		return fmt.Errorf("SOURCE needs a digest, %s@sha256:…, which 'package push' prints: what a tag names is decided by the registry", o.place)
	case modes == 0:
		return errors.New("--key is missing: create a pair of keys with 'cosign generate-key-pair', or sign without a key, with --print-payload")
	case modes > 1:
		return errors.New("--key, --print-payload, and --payload with --bundle exclude each other")
	case (o.payload == "") != (o.bundle == ""):
		return errors.New("--payload and --bundle belong together: 'cosign sign-blob --yes payload.json --bundle payload.sigstore.json' writes the bundle")
	}
	return nil
}

func runSign(ctx context.Context, o *SignOptions) error {
	loaded, err := o.reader.Read(ctx, o.ErrOut, o.place.String())
	if err != nil {
		return err
	}
	ref := o.reader.Pulled(o.place.String())
	if ref.Place() != o.place.Place() {
		return fmt.Errorf("%s was read from the mirror %s that %s names: sign the package there, or unset the variable", o.place, ref.Place(), registry.MirrorsVariable)
	}
	statement := signature.Statement{Place: ref.Host + "/" + ref.Repository, Digest: ref.Digest}
	if statement.Versions, err = loaded.Digests(); err != nil {
		return err
	}
	if o.printPayload {
		payload, err := statement.Payload()
		if err == nil {
			_, err = o.Out.Write(payload) // the signature covers each byte: there is no line break at the end
		}
		return err
	}
	signed, err := o.sign(statement)
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

// sign returns the signature of a statement: with the key, or the one in the bundle.
func (o *SignOptions) sign(statement signature.Statement) (signature.Signature, error) {
	if o.bundle == "" {
		key, err := registries.ReadPrivateKey(o.key)
		if err != nil {
			return signature.Signature{}, err
		}
		return key.Sign(statement)
	}
	payload, err := registries.ReadBounded(o.payload, signature.MaxPayloadBytes)
	if err != nil {
		return signature.Signature{}, fmt.Errorf("reading the payload: %w", err)
	}
	data, err := registries.ReadBounded(o.bundle, signature.MaxBundleBytes)
	if err != nil {
		return signature.Signature{}, fmt.Errorf("reading the bundle: %w", err)
	}
	signed, err := signature.ParsePayload(payload)
	if err == nil {
		err = signed.CheckArtifact(statement.Digest, statement.Versions)
	}
	if err != nil {
		return signature.Signature{}, fmt.Errorf("%s is not what --print-payload prints for %s: %w", text.Quote(o.payload), o.place, err)
	}
	s, err := keyless.NewSignature(payload, data)
	if err != nil {
		return signature.Signature{}, fmt.Errorf("%s: %w", text.Quote(o.bundle), err)
	}
	return s, nil
}
