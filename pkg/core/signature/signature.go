package signature

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of what anyone may write: they bound the work of a verification.
const (
	// MaxSignatures is the number of signatures of an OperatorVersion; keys rotate, so there may be several.
	MaxSignatures = 10
	// maxAnnotationBytes limits the annotation; all annotations of an object have at most 256 KiB.
	maxAnnotationBytes = 128 << 10
	maxSignatureBytes  = 256
)

// matches reports whether one of the keys has made the signature.
func (s Signature) matches(keys []Key) bool {
	if len(s.Signature) > maxSignatureBytes || len(s.Payload) > maxPayloadBytes {
		return false
	}
	hash := sha256.Sum256(s.Payload)
	return slices.ContainsFunc(keys, func(k Key) bool { return ecdsa.VerifyASN1(k.public, hash[:], s.Signature) })
}

// Encode returns signatures as the value of the annotation kudo.AnnotationSignatures.
func Encode(signatures []Signature) (string, error) {
	if len(signatures) > MaxSignatures {
		return "", fmt.Errorf("the package has %d signatures, more than the limit of %d", len(signatures), MaxSignatures)
	}
	encoded, err := json.Marshal(signatures)
	if err != nil {
		return "", fmt.Errorf("encoding signatures: %w", err)
	}
	if len(encoded) > maxAnnotationBytes {
		return "", fmt.Errorf("the signatures have %d bytes, more than the limit of %d of an annotation", len(encoded), maxAnnotationBytes)
	}
	return string(encoded), nil
}

// Parse parses the value of the annotation.
func Parse(annotation string) ([]Signature, error) {
	if annotation == "" {
		return nil, nil
	}
	if len(annotation) > maxAnnotationBytes {
		return nil, fmt.Errorf("annotation %s has more than %d bytes", kudo.AnnotationSignatures, maxAnnotationBytes)
	}
	var signatures []Signature
	if err := json.Unmarshal([]byte(annotation), &signatures); err != nil {
		return nil, fmt.Errorf("annotation %s is not a list of signatures", kudo.AnnotationSignatures)
	}
	if len(signatures) > MaxSignatures {
		return nil, fmt.Errorf("annotation %s has more than %d signatures", kudo.AnnotationSignatures, MaxSignatures)
	}
	return signatures, nil
}

// Add returns signatures with further ones, each once. None is dropped for another, because who added it is not known: too many are an error.
func Add(signatures []Signature, further ...Signature) ([]Signature, error) {
	all := slices.Clone(signatures)
	for _, s := range further {
		if !slices.ContainsFunc(all, func(other Signature) bool { return s.equal(other) }) {
			all = append(all, s)
		}
	}
	if len(all) > MaxSignatures {
		return nil, &LimitError{Count: len(all), Limit: MaxSignatures}
	}
	return all, nil
}

// LimitError is the error of too many signatures.
type LimitError struct{ Count, Limit int }

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d signatures are more than the limit of %d", e.Count, e.Limit)
}

func (s Signature) equal(other Signature) bool {
	return bytes.Equal(s.Payload, other.Payload) && bytes.Equal(s.Signature, other.Signature)
}

// IsNamed reports whether one of the signatures names an OperatorVersion. They are not verified.
func IsNamed(signatures []Signature, version string) bool {
	return slices.ContainsFunc(signatures, func(s Signature) bool {
		statement, err := ParsePayload(s.Payload)
		_, names := statement.Versions[version]
		return err == nil && names
	})
}

// About returns the signatures that are about an OperatorVersion and its content. They are not verified.
func About(signatures []Signature, version *kudo.OperatorVersion) []Signature {
	digest := ContentDigest(version)
	return slices.DeleteFunc(slices.Clone(signatures), func(s Signature) bool {
		statement, err := ParsePayload(s.Payload)
		return err != nil || digest == "" || statement.Versions[version.Name] != digest
	})
}

// By returns the signatures that were made with one of the keys.
func By(signatures []Signature, keys []Key) []Signature {
	return slices.DeleteFunc(slices.Clone(signatures), func(s Signature) bool { return !s.matches(keys) })
}

// VerifyArtifact returns the statement of a signature by one of the keys about the artifact with that digest, which also covers the OperatorVersions
// with those content digests, by name. Otherwise the error says why there is none.
func VerifyArtifact(digest string, versions map[string]string, signatures []Signature, keys []Key) (Statement, error) {
	return verify(signatures, keys, func(s Statement) error {
		if s.Digest != digest {
			return fmt.Errorf("it is about another artifact, %s", shorten(s.Digest))
		}
		for _, name := range slices.Sorted(maps.Keys(versions)) {
			switch signed, is := s.Versions[name]; {
			case !is:
				return fmt.Errorf("it does not cover OperatorVersion %s: sign with 'kubectl addon package sign', which does", text.Quote(name))
			case signed != versions[name] || signed == "":
				return fmt.Errorf("it covers content %s of OperatorVersion %s, which has %s: the package, or what it refers to, was altered", shorten(signed),
					text.Quote(name), shorten(versions[name]))
			}
		}
		return nil
	})
}

// VerifyVersion returns an error that says why an OperatorVersion has no signature by one of the keys, or nil if it has one. The annotation may be
// written by anyone who may write the OperatorVersion: only a signature that covers the name and the content counts.
func VerifyVersion(version *kudo.OperatorVersion, keys []Key) error {
	signatures, err := Parse(version.Annotations[kudo.AnnotationSignatures])
	if err != nil {
		return err
	}
	found := ""
	_, err = verify(signatures, keys, func(s Statement) error {
		if found == "" {
			found = ContentDigest(version)
		}
		switch signed, is := s.Versions[version.Name]; {
		case !is:
			return fmt.Errorf("it is about other OperatorVersions (%s)", text.List(namesOf(s), maxListed))
		case signed != found || found == "":
			return fmt.Errorf("it is about content %s, but the OperatorVersion has %s: it was altered, or pushed by a release of Tandem that stores it "+
				"differently", shorten(signed), shorten(found))
		}
		return nil
	})
	return err
}

// verify returns the statement of the first signature by one of the keys that is accepted.
func verify(signatures []Signature, keys []Key, accept func(Statement) error) (Statement, error) {
	if len(signatures) == 0 {
		return Statement{}, errUnsigned
	}
	reason := errors.New("none of its signatures was made with one of the keys" + idsOf(keys))
	for _, s := range signatures {
		if !s.matches(keys) {
			continue
		}
		statement, err := ParsePayload(s.Payload)
		if err == nil {
			err = accept(statement)
		}
		if err == nil {
			return statement, nil
		}
		reason = fmt.Errorf("its signature does not match: %w", err)
	}
	return Statement{}, reason
}

// maxListed is the number of names in a message.
const maxListed = 3

// namesOf returns the names of the OperatorVersions of a statement, sorted.
func namesOf(s Statement) []string {
	var names []string
	for name := range s.Versions {
		names = append(names, text.Quote(text.Truncate(name, maxName)))
	}
	slices.Sort(names)
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

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

// shorten returns the beginning of a digest, which may be any text.
func shorten(digest string) string {
	const shown = len("sha256:") + 12
	return strings.Trim(text.Quote(text.Truncate(digest, shown)), `"`)
}
