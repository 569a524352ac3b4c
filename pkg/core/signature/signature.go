package signature

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of what anyone may write: they bound the work of a verification.
const (
	// MaxSignatures is the number of signatures of an OperatorVersion; keys rotate, so there may be several.
	MaxSignatures = 10
	// maxAnnotationBytes limits the annotation; all annotations of an object have at most 256 KiB.
	maxAnnotationBytes = 128 << 10
)

// Encode returns signatures as the value of the annotation kudo.AnnotationSignatures. It returns a *LimitError if they are too many or too large.
func Encode(signatures []Signature) (string, error) {
	if len(signatures) > MaxSignatures {
		return "", &LimitError{Count: len(signatures), Limit: MaxSignatures}
	}
	encoded, err := json.Marshal(signatures)
	if err != nil {
		return "", fmt.Errorf("encoding signatures: %w", err)
	}
	if len(encoded) > maxAnnotationBytes {
		return "", &LimitError{Count: len(encoded), Limit: maxAnnotationBytes, InBytes: true}
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

// Add returns signatures with further ones, each once. None is dropped for another, because who added it is not known: too many are an error. Only the
// rest of a signature without its bundle, which an earlier program leaves when it writes the annotation, is replaced with the whole one.
func Add(signatures []Signature, further ...Signature) ([]Signature, error) {
	all := slices.Clone(signatures)
	for _, s := range further {
		all = slices.DeleteFunc(all, func(other Signature) bool { return s.completes(other) })
		if !slices.ContainsFunc(all, func(other Signature) bool { return s.equal(other) || other.completes(s) }) {
			all = append(all, s)
		}
	}
	if len(all) > MaxSignatures {
		return nil, &LimitError{Count: len(all), Limit: MaxSignatures}
	}
	return all, nil
}

// LimitError is the error of too many signatures, or of signatures that have too many bytes.
type LimitError struct {
	Count, Limit int
	InBytes      bool
}

func (e *LimitError) Error() string {
	if e.InBytes {
		return fmt.Sprintf("signatures of %d bytes are more than the limit of %d bytes", e.Count, e.Limit)
	}
	return fmt.Sprintf("%d signatures are more than the limit of %d", e.Count, e.Limit)
}

func (s Signature) equal(other Signature) bool {
	return s.signsLike(other) && bytes.Equal(s.Bundle, other.Bundle)
}

// completes reports whether a signature is another one with a bundle, which that lacks. What a key has signed counts with any bundle.
func (s Signature) completes(other Signature) bool {
	return s.signsLike(other) && len(s.Bundle) > 0 && len(other.Bundle) == 0
}

// signsLike reports whether two signatures are the same, without their bundles.
func (s Signature) signsLike(other Signature) bool {
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

// By returns the signatures that are trusted.
func By(signatures []Signature, trust Trust) []Signature {
	return slices.DeleteFunc(slices.Clone(signatures), func(s Signature) bool { return trust.check(s) != nil })
}

// VerifyArtifact returns the statement of a trusted signature about the artifact with that digest, which also covers the OperatorVersions
// with those content digests, by name. Otherwise the error says why there is none.
func VerifyArtifact(digest string, versions map[string]string, signatures []Signature, trust Trust) (Statement, error) {
	return verify(signatures, trust, func(s Statement) error { return s.CheckArtifact(digest, versions) })
}

// VerifyVersion returns an error that says why an OperatorVersion has no trusted signature, or nil if it has one. The annotation may be
// written by anyone who may write the OperatorVersion: only a signature that covers the name and the content counts.
func VerifyVersion(version *kudo.OperatorVersion, trust Trust) error {
	signatures, err := Parse(version.Annotations[kudo.AnnotationSignatures])
	if err != nil {
		return err
	}
	found := ""
	_, err = verify(signatures, trust, func(s Statement) error {
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

// verify returns the statement of the first trusted signature that is accepted.
func verify(signatures []Signature, trust Trust, accept func(Statement) error) (Statement, error) {
	if len(signatures) == 0 {
		return Statement{}, errUnsigned
	}
	var mismatch, keyless error
	for _, s := range signatures {
		if err := trust.check(s); err != nil {
			if len(s.Bundle) > 0 {
				keyless = cmp.Or(keyless, err)
			}
			continue
		}
		statement, err := ParsePayload(s.Payload)
		if err == nil {
			err = accept(statement)
		}
		if err == nil {
			return statement, nil
		}
		mismatch = fmt.Errorf("its signature does not match: %w", err)
	}
	return Statement{}, cmp.Or(mismatch, trust.refusal(keyless))
}

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
