package signature

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Trust is by whom a package must be signed: with one of the keys, or by one of the identities.
type Trust struct {
	Keys []Key
	// Identities are those that may sign without a key; nil if there are none.
	Identities Identities
}

// Identities verify signatures that were made without a key. Package keyless implements them.
type Identities interface {
	// Verify returns an error unless one of the identities has signed the payload, according to Sigstore's bundle.
	Verify(payload, bundle []byte) error
	// Names returns the identities for messages.
	Names() []string
}

// ErrKeyless is the error of a signature that was made without a key, where only keys are trusted.
var ErrKeyless = errors.New("no identity is trusted")

// errUntrusted is the error of a signature with another key.
var errUntrusted = errors.New("it was made with another key")

// IsEmpty reports whether nothing is trusted.
func (t Trust) IsEmpty() bool { return len(t.Keys) == 0 && t.Identities == nil }

// check returns an error unless a signature is trusted.
func (t Trust) check(s Signature) error {
	switch {
	case s.matches(t.Keys):
		return nil
	case len(s.Bundle) == 0:
		return errUntrusted
	case t.Identities == nil:
		return ErrKeyless
	}
	return t.Identities.Verify(s.Payload, s.Bundle)
}

// refusal returns the error of a package without a trusted signature, keyless is why the first one without a key does not count.
func (t Trust) refusal(keyless error) error {
	signers := "with one of the keys" + idsOf(t.Keys)
	if t.Identities != nil {
		identities := "by one of the identities: " + text.List(t.Identities.Names(), maxListed)
		if len(t.Keys) > 0 {
			identities = signers + ", or " + identities
		}
		signers = identities
	}
	if keyless == nil {
		return errors.New("none of its signatures was made " + signers)
	}
	return fmt.Errorf("none of its signatures was made %s; a signature without a key does not count: %w", signers, keyless)
}

// maxSignatureBytes limits a signature with a key.
const maxSignatureBytes = 256

// matches reports whether one of the keys has made the signature.
func (s Signature) matches(keys []Key) bool {
	if len(s.Signature) > maxSignatureBytes || len(s.Payload) > MaxPayloadBytes {
		return false
	}
	hash := sha256.Sum256(s.Payload)
	return slices.ContainsFunc(keys, func(k Key) bool { return ecdsa.VerifyASN1(k.public, hash[:], s.Signature) })
}

// maxListed is the number of names in a message.
const maxListed = 3

// idsOf returns the identities of keys for a message.
func idsOf(keys []Key) string {
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.ID())
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return ", because there are none"
	}
	return ": " + text.List(slices.Compact(ids), maxListed)
}
