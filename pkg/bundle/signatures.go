package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Signatures returns the signatures of all packages that were pulled. They are not verified: the hub verifies them, if it requires signatures.
func (l *Loader) Signatures(ctx context.Context) ([]signature.Signature, error) {
	var all []signature.Signature
	for _, name := range slices.Sorted(maps.Keys(l.Pulled)) {
		registry, err := l.Registry()
		if err != nil {
			return nil, err
		}
		found, err := registry.Signatures(ctx, l.Pulled[name])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// VerifySignature returns the digest of the package at a reference to a registry. It returns an error unless it and the content of each
// OperatorVersion in the bundle have a trusted signature.
func (l *Loader) VerifySignature(ctx context.Context, b *Bundle, name string, trust signature.Trust) (string, error) {
	pulled, found := l.Pulled[name]
	if !found {
		return "", fmt.Errorf("signatures are verified for packages in registries (oci://HOST/PATH): %s has none", text.Word(name))
	}
	registry, err := l.Registry()
	if err != nil {
		return "", err
	}
	signatures, err := registry.Signatures(ctx, pulled)
	if err != nil {
		return "", err
	}
	digests, err := b.ContentDigests()
	if err == nil {
		_, err = signature.VerifyArtifact(pulled.Digest, digests, signatures, trust)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", pulled, err)
	}
	return pulled.Digest, nil
}
