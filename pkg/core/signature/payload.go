package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// payloadType is the type of cosign's payloads (sigstore, SIGNATURE_SPEC.md: simple signing).
const payloadType = "cosign container image signature"

// VersionPrefix begins the keys in the optional part of a payload that hold the content digests of OperatorVersions; the name of the OperatorVersion
// follows it. Another way to compute the digests gets another prefix.
const VersionPrefix = "kudo.dev/operator-version/v1/"

// maxPayloadBytes limits a payload; a package with a hundred children needs less than a third.
const maxPayloadBytes = 64 << 10

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
	if len(encoded) > maxPayloadBytes {
		return nil, fmt.Errorf("the payload of the signature has %d bytes, more than the limit of %d: split the package", len(encoded), maxPayloadBytes)
	}
	return encoded, nil
}

// ParsePayload parses a text that was signed. It is trusted only after its signature was verified.
func ParsePayload(data []byte) (Statement, error) {
	if len(data) > maxPayloadBytes {
		return Statement{}, fmt.Errorf("the payload of the signature has more than %d bytes", maxPayloadBytes)
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

// maxName limits names in messages.
const maxName = 100

// errUnsigned is the error of a package without any signature.
var errUnsigned = errors.New("it has no signature")
