package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// payloadType is the type of cosign's payloads (sigstore, SIGNATURE_SPEC.md: simple signing).
const payloadType = "cosign container image signature"

// VersionPrefix begins the keys in the optional part of a payload that hold the content digests of OperatorVersions; the name of the OperatorVersion
// follows it. Another way to compute the digests gets another prefix.
const VersionPrefix = "kudo.dev/operator-version/v1/"

// MaxPayloadBytes limits a payload; a package with a hundred children needs less than a third. MaxBundleBytes limits a bundle; cosign's have 3 to 8 KiB.
const (
	MaxPayloadBytes = 64 << 10
	MaxBundleBytes  = 32 << 10
)

// Statement is what a signature states.
type Statement struct {
	// Place is where the artifact was signed, HOST/PATH; empty if the package was signed outside of registries. It is not checked, so that artifacts can
	// be copied.
	Place string
	// Digest is the digest of the artifact's manifest, or of the OperatorVersion if the package was signed outside of registries.
	Digest string
	// Versions are the content digests of the OperatorVersions in the package, by name.
	Versions map[string]string
}

// Signature is a signed payload.
type Signature struct {
	Payload []byte `json:"payload"`
	// Signature is the signature of the payload: ECDSA over its SHA-256, in ASN.1.
	Signature []byte `json:"signature"`
	// Bundle is Sigstore's bundle that proves who has signed the payload without a key; empty if it was signed with one. Programs of before it
	// neither read nor keep it.
	Bundle []byte `json:"bundle,omitempty"`
}

// payload is a statement as cosign writes it.
type payload struct {
	Critical critical       `json:"critical"`
	Optional map[string]any `json:"optional"`
}

type critical struct {
	Identity identity `json:"identity"`
	Image    image    `json:"image"`
	Type     string   `json:"type"`
}

type identity struct {
	Reference string `json:"docker-reference"`
}

type image struct {
	Digest string `json:"docker-manifest-digest"`
}

// Payload returns the text that is signed.
func (s Statement) Payload() ([]byte, error) {
	p := payload{Critical: critical{Identity: identity{s.Place}, Image: image{s.Digest}, Type: payloadType}, Optional: map[string]any{}}
	for name, digest := range s.Versions {
		p.Optional[VersionPrefix+name] = digest
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding the payload of a signature: %w", err)
	}
	if len(encoded) > MaxPayloadBytes {
		return nil, fmt.Errorf("the payload of the signature has %d bytes, more than the limit of %d: split the package", len(encoded), MaxPayloadBytes)
	}
	return encoded, nil
}

// ParsePayload parses a text that was signed. It is trusted only after its signature was verified.
func ParsePayload(data []byte) (Statement, error) {
	if len(data) > MaxPayloadBytes {
		return Statement{}, fmt.Errorf("the payload of the signature has more than %d bytes", MaxPayloadBytes)
	}
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return Statement{}, fmt.Errorf("the payload of the signature is not JSON: %w", err)
	}
	if p.Critical.Type != payloadType {
		return Statement{}, fmt.Errorf("the payload of the signature has type %s, not cosign's", text.Quote(text.Truncate(p.Critical.Type, maxName)))
	}
	s := Statement{Place: p.Critical.Identity.Reference, Digest: p.Critical.Image.Digest, Versions: map[string]string{}}
	for key, value := range p.Optional {
		digest, isText := value.(string)
		if name, is := strings.CutPrefix(key, VersionPrefix); is && isText {
			s.Versions[name] = digest
		}
	}
	return s, nil
}

// CheckArtifact returns an error unless a statement is about the artifact with that digest, and the OperatorVersions with those content digests, by name.
func (s Statement) CheckArtifact(digest string, versions map[string]string) error {
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
}

// maxName limits names in messages.
const maxName = 100

// errUnsigned is the error of a package without any signature.
var errUnsigned = errors.New("it has no signature")

// shorten returns the beginning of a digest, which may be any text.
func shorten(digest string) string {
	const shown = len("sha256:") + 12
	return strings.Trim(text.Quote(text.Truncate(digest, shown)), `"`)
}
