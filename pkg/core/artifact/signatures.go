package artifact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// The types of cosign's artifact with the signatures of another one (sigstore, SIGNATURE_SPEC.md).
const (
	// PayloadMediaType is the media type of its layers: each is a payload.
	PayloadMediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// imageConfigMediaType is the media type of its configuration.
	imageConfigMediaType = "application/vnd.oci.image.config.v1+json"
	// signatureAnnotation is the annotation of a layer with the signature of the payload, in base64.
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// MaxPayloadBytes limits a layer of signatures.
const MaxPayloadBytes = 64 << 10

// SignatureTag returns the tag of the signatures of an artifact: sha256-HEX.sig.
func SignatureTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

// NewSignatures returns the artifact of signatures.
func NewSignatures(signatures []signature.Signature) (Artifact, error) {
	var layers []Blob
	var digests []string
	for _, s := range signatures {
		layer := newBlob(PayloadMediaType, s.Payload)
		layer.Annotations = map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(s.Signature)}
		layers, digests = append(layers, layer), append(digests, layer.Digest)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "", "os": "", "created": "0001-01-01T00:00:00Z", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
	if err != nil {
		return Artifact{}, fmt.Errorf("encoding the configuration of signatures: %w", err)
	}
	return assemble(Manifest{}, newBlob(imageConfigMediaType, config), layers...)
}

// SignatureLayer is a layer of an artifact of signatures: the description of the payload, and its signature.
type SignatureLayer struct {
	Descriptor
	Signature []byte
}

// ParseSignatures returns the signatures that a manifest lists. Other layers are ignored, and so are the signatures beyond the first
// signature.MaxSignatures.
func ParseSignatures(manifest []byte) ([]SignatureLayer, error) {
	var parsed Manifest
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		return nil, fmt.Errorf("the manifest of the signatures is invalid: %w", err)
	}
	var layers []SignatureLayer
	for _, layer := range parsed.Layers {
		signed, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if layer.MediaType != PayloadMediaType || err != nil || len(signed) == 0 || len(layers) == signature.MaxSignatures {
			continue
		}
		if !IsDigest(layer.Digest) || layer.Size < 0 || layer.Size > MaxPayloadBytes {
			return nil, errors.New("the manifest of the signatures lists a payload without a valid digest and size")
		}
		layers = append(layers, SignatureLayer{layer, signed})
	}
	return layers, nil
}
