package keyless

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"

	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/text"
)

// NewSignature returns a signature without a key: a payload with the bundle that 'cosign sign-blob' has written about it. It returns an error if the bundle
// is not about the payload. Whether its identity is trusted is not verified.
func NewSignature(payload, data []byte) (s signature.Signature, err error) {
	defer refusePanic(&err)
	b, err := parse(payload, data)
	if err != nil {
		return signature.Signature{}, err
	}
	content, err := b.VerificationContent()
	if err != nil {
		return signature.Signature{}, fmt.Errorf("the bundle has no certificate: %s", cause(err))
	}
	certificate := content.Certificate()
	if certificate == nil {
		return signature.Signature{}, errors.New("the bundle has no certificate: sign with an identity, 'cosign sign-blob' without --key")
	}
	signed := b.GetMessageSignature().GetSignature()
	if certificate.CheckSignature(x509.ECDSAWithSHA256, payload, signed) != nil {
		return signature.Signature{}, errors.New("the signature in the bundle is not about the payload, or not made with an ECDSA key on P-256, as cosign's are")
	}
	return signature.Signature{Payload: payload, Signature: signed, Bundle: data}, nil
}

// maxEntries is the number of entries of logs in a bundle.
const maxEntries = 4

// parse parses a bundle about a payload. It accepts only signatures of the payload itself: an attestation about it states something else.
func parse(payload, data []byte) (*bundle.Bundle, error) {
	if len(data) > signature.MaxBundleBytes {
		return nil, fmt.Errorf("the bundle has more than %d bytes", signature.MaxBundleBytes)
	}
	if len(payload) > signature.MaxPayloadBytes {
		return nil, fmt.Errorf("the payload has more than %d bytes", signature.MaxPayloadBytes)
	}
	b := &bundle.Bundle{}
	if err := b.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("it is no bundle of Sigstore: %s", cause(err))
	}
	signed := b.GetMessageSignature()
	if signed == nil {
		return nil, errors.New("the bundle contains no signature of a file, as 'cosign sign-blob' writes it, but an attestation")
	}
	if digest := sha256.Sum256(payload); !bytes.Equal(signed.GetMessageDigest().GetDigest(), digest[:]) {
		return nil, errors.New("the bundle is about another payload")
	}
	entries := b.GetVerificationMaterial().GetTlogEntries()
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("the bundle has more than %d entries of logs", maxEntries)
	}
	for _, entry := range entries {
		if entry.GetKindVersion().GetKind() != "hashedrekord" {
			return nil, errors.New("the bundle has an entry of a log that is about no signature of a file")
		}
	}
	return b, nil
}

// maxCause limits what a library says about an invalid bundle or trust root, which may quote it.
const maxCause = 300

// cause returns the error of a library for messages.
func cause(err error) string { return text.Escape(text.Truncate(text.OneLine(err.Error()), maxCause)) }

// refusePanic sets an error if the library panics: a bundle is written by anyone.
func refusePanic(err *error) {
	if recover() != nil {
		*err = errors.New("it is no bundle of Sigstore: it cannot be parsed")
	}
}

// maxShown limits texts of bundles in messages.
const maxShown = 200

// quote returns a text of a bundle for messages.
func quote(value string) string { return strconv.QuoteToASCII(text.Truncate(value, maxShown)) } // text.Quote shortens URLs of workflows
