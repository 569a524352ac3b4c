package artifact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/content"
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
	// bundleAnnotation is the annotation of a layer with Sigstore's bundle about the payload, if it was signed without a key. It is Tandem's own: cosign's
	// dev.sigstore.cosign/bundle holds another format, of the log alone.
	bundleAnnotation = "dev.kudo.sigstore-bundle"
)

// MaxSignatures is the number of signatures of an artifact that are read: other programs store theirs in the same place.
const MaxSignatures = 50

// MaxPayloadBytes limits a layer of signatures.
const MaxPayloadBytes = 64 << 10

// SignatureTag returns the tag of the signatures of an artifact: sha256-HEX.sig.
func SignatureTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

// NewSignature returns the layer of a signature.
func NewSignature(s signature.Signature) Blob {
	layer := newBlob(PayloadMediaType, s.Payload)
	layer.Annotations = map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(s.Signature)}
	if len(s.Bundle) > 0 {
		layer.Annotations[bundleAnnotation] = string(s.Bundle)
	}
	return layer
}

// NewSignatures returns the artifact of a first signature.
func NewSignatures(layer Blob) (Artifact, error) {
	config, err := json.Marshal(map[string]any{
		"architecture": "", "os": "", "created": "0001-01-01T00:00:00Z", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return Artifact{}, fmt.Errorf("encoding the configuration of signatures: %w", err)
	}
	return assemble(Manifest{}, newBlob(imageConfigMediaType, config), layer)
}

// AddSignature returns an artifact of signatures with one more. Its blobs are only those that the artifact with the manifest and the configuration does not
// have. What other programs wrote there stays as it is. It returns a *signature.LimitError if there are too many.
func AddSignature(manifest, config []byte, layer Blob) (Artifact, error) {
	layers, err := ParseSignatures(manifest)
	if err != nil {
		return Artifact{}, err
	}
	if len(layers) >= MaxSignatures {
		return Artifact{}, &signature.LimitError{Count: len(layers) + 1, Limit: MaxSignatures}
	}
	whole, err := decodeObject(manifest)
	if err != nil {
		return Artifact{}, fmt.Errorf("the manifest of the signatures is invalid: %w", err)
	}
	blobs := []Blob{layer}
	if described, extended, err := withDiffID(config, layer.Digest); err == nil && extended {
		blobs = append(blobs, described)
		set(whole, map[string]any{"digest": described.Digest, "size": described.Size}, "config")
	}
	listed, _ := whole["layers"].([]any)
	whole["layers"] = append(listed, layer.Descriptor)
	encoded, err := json.Marshal(whole)
	if err != nil {
		return Artifact{}, fmt.Errorf("encoding the manifest of signatures: %w", err)
	}
	if len(encoded) > MaxManifestBytes {
		return Artifact{}, fmt.Errorf("the manifest of the signatures has %d bytes, more than the limit of %d", len(encoded), MaxManifestBytes)
	}
	return Artifact{Manifest: encoded, Digest: content.DigestOf(encoded), Blobs: blobs}, nil
}

// withDiffID returns the configuration of an image with a further layer. It reports whether it lists layers.
func withDiffID(config []byte, digest string) (Blob, bool, error) {
	whole, err := decodeObject(config)
	if err != nil {
		return Blob{}, false, err
	}
	rootfs, _ := whole["rootfs"].(map[string]any)
	listed, is := rootfs["diff_ids"].([]any)
	if !is {
		return Blob{}, false, nil
	}
	rootfs["diff_ids"] = append(listed, digest)
	encoded, err := json.Marshal(whole)
	return newBlob(imageConfigMediaType, encoded), err == nil, err
}

// decodeObject decodes JSON with its numbers as they are.
func decodeObject(data []byte) (map[string]any, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(&object)
	return object, err
}

// set sets values in the object at a field.
func set(object, values map[string]any, field string) {
	if inner, is := object[field].(map[string]any); is {
		maps.Copy(inner, values)
	}
}

// SignatureOf returns the signature in a layer.
func SignatureOf(layer Blob) signature.Signature {
	signed, _ := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation]) // ParseSignatures has decoded it
	return signature.Signature{Payload: layer.Data, Signature: signed, Bundle: []byte(layer.Annotations[bundleAnnotation])}
}

// HasSignature reports whether a layer is among those of signatures.
func HasSignature(layers []Descriptor, layer Blob) bool {
	return slices.ContainsFunc(layers, func(d Descriptor) bool {
		return d.Digest == layer.Digest && d.Annotations[signatureAnnotation] == layer.Annotations[signatureAnnotation] &&
			d.Annotations[bundleAnnotation] == layer.Annotations[bundleAnnotation]
	})
}

// ParseSignatures returns the layers with signatures that a manifest lists. Other layers are ignored, and so are the signatures beyond the first
// MaxSignatures.
func ParseSignatures(manifest []byte) ([]Descriptor, error) {
	var parsed Manifest
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		return nil, fmt.Errorf("the manifest of the signatures is invalid: %w", err)
	}
	var layers []Descriptor
	for _, layer := range parsed.Layers {
		signed, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if layer.MediaType != PayloadMediaType || err != nil || len(signed) == 0 || len(layers) == MaxSignatures {
			continue
		}
		isBounded := layer.Size >= 0 && layer.Size <= MaxPayloadBytes && len(layer.Annotations[bundleAnnotation]) <= signature.MaxBundleBytes
		if !IsDigest(layer.Digest) || !isBounded { // another one may still be valid
			continue
		}
		layers = append(layers, layer)
	}
	return layers, nil
}
