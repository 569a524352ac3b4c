package registries

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/signature/keyless"
)

// TrustFlags are the flags that say by whom a package must be signed.
type TrustFlags struct {
	keys     []string
	root     string
	identity keyless.Identity
}

// AddTo adds the flags to a command.
func (f *TrustFlags) AddTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.keys, "key", nil, "File with public keys, of which one must have signed the package. Can be repeated.")
	flags.StringVar(&f.root, "trusted-root", "", "File with the trust root of Sigstore, trusted_root.json, for packages that an identity has signed without a key.")
	flags.StringVar(&f.identity.Subject, "certificate-identity", "",
		"Identity that must have signed the package if none of the keys has: the URL of a workflow with its ref, or an email address.")
	flags.StringVar(&f.identity.SubjectRegExp, "certificate-identity-regexp", "", "Regular expression that matches the whole identity, instead of --certificate-identity.")
	flags.StringVar(&f.identity.Issuer, "certificate-oidc-issuer", "", "Issuer of the identity, such as https://token.actions.githubusercontent.com.")
	flags.StringVar(&f.identity.IssuerRegExp, "certificate-oidc-issuer-regexp", "", "Regular expression that matches the whole issuer, instead of --certificate-oidc-issuer.")
}

// IsSet reports whether a signature is required.
func (f *TrustFlags) IsSet() bool { return len(f.keys) > 0 || f.hasIdentity() || f.root != "" }

// hasIdentity reports whether a flag about an identity is set.
func (f *TrustFlags) hasIdentity() bool { return f.identity != keyless.Identity{} }

// Check returns an error if flags of a command are empty or missing. An empty one is an unset variable of a script: without the error, nothing would be
// required.
func (f *TrustFlags) Check(cmd *cobra.Command) error {
	for _, flag := range []struct {
		name    string
		isEmpty bool
	}{
		{"key", slices.Contains(f.keys, "")},
		{"trusted-root", f.root == ""},
		{"certificate-identity", f.identity.Subject == ""},
		{"certificate-identity-regexp", f.identity.SubjectRegExp == ""},
		{"certificate-oidc-issuer", f.identity.Issuer == ""},
		{"certificate-oidc-issuer-regexp", f.identity.IssuerRegExp == ""},
	} {
		if flag.isEmpty && cmd.Flags().Changed(flag.name) {
			return fmt.Errorf("--%s is empty: set its value, or remove the flag", flag.name)
		}
	}
	return f.checkComplete()
}

// checkComplete returns an error if flags are missing.
func (f *TrustFlags) checkComplete() error {
	subject, issuer := f.identity.Subject+f.identity.SubjectRegExp, f.identity.Issuer+f.identity.IssuerRegExp
	if (f.hasIdentity() || f.root != "") && (subject == "" || issuer == "" || f.root == "") {
		return errors.New("a signature without a key needs --trusted-root, --certificate-identity and --certificate-oidc-issuer (or --certificate-identity-regexp " +
			"and --certificate-oidc-issuer-regexp)")
	}
	return nil
}

// Read returns what the flags trust.
func (f *TrustFlags) Read() (signature.Trust, error) {
	trust := signature.Trust{}
	for _, name := range f.keys {
		data, err := ReadBounded(name, signature.MaxKeyBytes)
		if err != nil {
			return trust, fmt.Errorf("reading the public key: %w", err)
		}
		found, err := signature.ParseKeys(name, data)
		if err != nil {
			return trust, err
		}
		trust.Keys = append(trust.Keys, found...)
	}
	if !f.hasIdentity() {
		return trust, nil
	}
	data, err := ReadBounded(f.root, keyless.MaxRootBytes)
	if err != nil {
		return trust, fmt.Errorf("reading the trust root: %w", err)
	}
	root, err := keyless.ParseRoot(f.root, data)
	if err != nil {
		return trust, err
	}
	identities, err := keyless.New(root, []keyless.Identity{f.identity})
	if err != nil {
		return trust, fmt.Errorf("--certificate-identity and --certificate-oidc-issuer: %w", err)
	}
	trust.Identities = identities
	return trust, nil
}
