// Package keyless verifies signatures that were made without a key: by an OIDC identity, with a certificate that Fulcio has issued for it. Sigstore's bundle
// and trust root prove them. It touches no cluster and no network.
package keyless

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// Trust verifies signatures by identities. It is safe for concurrent use.
type Trust struct {
	verifier   *verify.Verifier
	identities []identity
}

var _ signature.Identities = &Trust{}

// New returns what verifies signatures by one of the identities, with the certificates and logs of a trust root.
func New(root *Root, identities []Identity) (*Trust, error) {
	if len(identities) == 0 || len(identities) > maxIdentities {
		return nil, fmt.Errorf("%d identities are trusted, which must be 1 to %d", len(identities), maxIdentities)
	}
	t := &Trust{}
	for at, i := range identities {
		compiled, err := i.compile()
		if err != nil {
			return nil, fmt.Errorf("identity %d: %w", at+1, err)
		}
		t.identities = append(t.identities, compiled)
	}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	if len(root.trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	var err error
	if t.verifier, err = verify.NewVerifier(root.trusted, options...); err != nil {
		return nil, fmt.Errorf("preparing the verification of identities: %w", err)
	}
	return t, nil
}

// Verify returns an error unless one of the identities has signed the payload, according to a bundle. What the bundle needs: the signature of the payload, a
// certificate of the trust root for the identity, that a log of certificates has recorded if the root has one, an entry of a transparency log about this
// signature, and a time from a log or from a timestamp authority at which the certificate was valid. The present time does not matter.
func (t *Trust) Verify(payload, data []byte) error {
	signer, err := t.signer(payload, data)
	if err != nil {
		return err
	}
	for _, i := range t.identities {
		if i.matches(signer) {
			return nil
		}
	}
	return fmt.Errorf("the signer is %s of issuer %s, which is not trusted", quote(signer.Subject), quote(signer.Issuer))
}

// Names returns the identities for messages.
func (t *Trust) Names() []string {
	var names []string
	for _, i := range t.identities {
		names = append(names, i.String())
	}
	return names
}

// signer returns the identity that has signed a payload.
func (t *Trust) signer(payload, data []byte) (signer Identity, err error) {
	defer refusePanic(&err)
	b, err := parse(payload, data)
	if err != nil {
		return Identity{}, err
	}
	policy := verify.NewPolicy(verify.WithArtifact(bytes.NewReader(payload)), verify.WithoutIdentitiesUnsafe()) // Verify compares the identity
	result, err := t.verifier.Verify(b, policy)
	if err != nil {
		return Identity{}, fmt.Errorf("the bundle is invalid for the trust root: %s", cause(err))
	}
	if result.Signature == nil || result.Signature.Certificate == nil {
		return Identity{}, errors.New("the bundle has no certificate")
	}
	certificate := result.Signature.Certificate
	return Identity{Issuer: certificate.Issuer, Subject: certificate.SubjectAlternativeName}, nil
}
