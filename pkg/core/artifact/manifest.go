package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The types of a package's artifact.
const (
	// Type is the artifact type of a package.
	Type = "application/vnd.tandem.package.v1"
	// ContentMediaType is the media type of its only layer: the tarball that `kubectl addon package pack` writes.
	ContentMediaType = "application/vnd.tandem.package.content.v1.tar+gzip"
	// ManifestMediaType is the media type of its manifest.
	ManifestMediaType = "application/vnd.oci.image.manifest.v1+json"
	// EmptyMediaType is the media type of its configuration, EmptyConfig.
	EmptyMediaType = "application/vnd.oci.empty.v1+json"
	// EmptyConfig is the configuration of an artifact without one.
	EmptyConfig = "{}"
)

// MaxManifestBytes limits a manifest, MaxContentBytes the tarball of a package.
const (
	MaxManifestBytes = 1 << 20
	MaxContentBytes  = pack.MaxArchive
)

// AnnotationOperatorVersion is the annotation of a manifest with the name of the package's OperatorVersion.
const AnnotationOperatorVersion = "dev.kudo.operator-version"

// versionAnnotation is the annotation of a manifest with the version of the package (image-spec, annotations.md).
const versionAnnotation = "org.opencontainers.image.version"

// Descriptor describes a blob or a manifest.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Manifest is the manifest of an artifact.
type Manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        Descriptor        `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Artifact is a manifest with its blobs, ready to be pushed.
type Artifact struct {
	// Manifest is the text of the manifest, and Digest its digest.
	Manifest []byte
	Digest   string
	// Blobs are the contents that the manifest lists, the configuration first.
	Blobs []Blob
}

// Blob is a content with its description.
type Blob struct {
	Descriptor
	Data []byte
}

// newBlob returns a blob of a media type.
func newBlob(mediaType string, data []byte) Blob {
	return Blob{Descriptor{MediaType: mediaType, Digest: content.DigestOf(data), Size: int64(len(data))}, data}
}

// New returns the artifact of a package from its tarball. The same package always results in the same artifact: nothing in it depends on the time, the
// place or the user.
func New(tarball []byte, p *pack.Package) (Artifact, error) {
	config, layer := newBlob(EmptyMediaType, []byte(EmptyConfig)), newBlob(ContentMediaType, tarball)
	return assemble(Manifest{ArtifactType: Type, Annotations: annotationsOf(p)}, config, layer)
}

// assemble returns the artifact of a manifest that lists a configuration and layers.
func assemble(manifest Manifest, config Blob, layers ...Blob) (Artifact, error) {
	manifest.SchemaVersion, manifest.MediaType, manifest.Config = 2, ManifestMediaType, config.Descriptor
	for _, layer := range layers {
		manifest.Layers = append(manifest.Layers, layer.Descriptor)
	}
	encoded, err := json.Marshal(manifest)
	if err != nil {
		return Artifact{}, fmt.Errorf("encoding the manifest: %w", err)
	}
	if len(encoded) > MaxManifestBytes {
		return Artifact{}, fmt.Errorf("the manifest has %d bytes, more than the limit of %d", len(encoded), MaxManifestBytes)
	}
	return Artifact{Manifest: encoded, Digest: content.DigestOf(encoded), Blobs: append([]Blob{config}, layers...)}, nil
}

// annotationsOf returns the annotations of a package's manifest (image-spec, annotations.md). It has no time of creation, with which the same package
// would have another digest each time.
func annotationsOf(p *pack.Package) map[string]string {
	var authors []string
	for _, m := range p.Operator.Maintainers {
		authors = append(authors, maintainerText(m))
	}
	annotations := map[string]string{
		"org.opencontainers.image.title":       p.Name,
		versionAnnotation:                      p.Version.Version,
		"org.opencontainers.image.description": p.Operator.Description,
		"org.opencontainers.image.url":         p.Operator.URL,
		"org.opencontainers.image.authors":     strings.Join(authors, ", "),
		AnnotationOperatorVersion:              pack.VersionName(p.Name, p.Version.AppVersion, p.Version.Version),
	}
	for name, value := range annotations {
		if value == "" {
			delete(annotations, name)
		}
	}
	return annotations
}

func maintainerText(m kudo.Maintainer) string {
	if m.Email == "" {
		return m.Name
	}
	return strings.TrimSpace(m.Name + " <" + m.Email + ">")
}

// TagOf returns the tag of a package's version: its operatorVersion, with the appVersion as build metadata, and _ for + as in tags of Helm charts.
func TagOf(appVersion, version string) string {
	tag := version
	if appVersion != "" {
		tag += "+" + appVersion
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, tag)
}

// CheckTag returns an error if the manifest of a package says that it is another version than a tag for which TagOf was used.
func CheckTag(manifest []byte, tag string) error {
	var parsed Manifest
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		return fmt.Errorf("its manifest is invalid: %w", err)
	}
	version := parsed.Annotations[versionAnnotation]
	if of := TagOf("", version); tag == of || strings.HasPrefix(tag, of+"_") {
		return nil
	}
	return fmt.Errorf("tag %s is the highest version in the registry, but names version %s of the package: name the tag that you want", tag,
		text.Quote(text.Truncate(version, maxReferenceBytes)))
}

// ParseConfig returns the configuration that a manifest lists.
func ParseConfig(manifest []byte) (Descriptor, error) {
	var parsed Manifest
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		return Descriptor{}, fmt.Errorf("its manifest is invalid: %w", err)
	}
	if !IsDigest(parsed.Config.Digest) || parsed.Config.Size < 0 || parsed.Config.Size > MaxManifestBytes {
		return Descriptor{}, errors.New("its manifest lists a configuration without a valid digest and size")
	}
	return parsed.Config, nil
}

// errNoPackage is the error of a manifest that is valid but not of a package.
var errNoPackage = errors.New("the registry has something else at this place, not a package that 'kubectl addon package push' pushed")

// ParsePackage returns the layer with the tarball that the manifest of a package lists.
func ParsePackage(manifest []byte) (Descriptor, error) {
	var parsed Manifest
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		return Descriptor{}, fmt.Errorf("its manifest is invalid: %w", err)
	}
	if parsed.ArtifactType != Type {
		found := parsed.ArtifactType
		if found == "" {
			found = parsed.Config.MediaType
		}
		return Descriptor{}, fmt.Errorf("%w: its type is %s", errNoPackage, text.Quote(text.Truncate(found, maxReferenceBytes)))
	}
	if len(parsed.Layers) != 1 || parsed.Layers[0].MediaType != ContentMediaType {
		return Descriptor{}, fmt.Errorf("its manifest must list one layer of type %s: a later release of Tandem may have pushed it", ContentMediaType)
	}
	layer := parsed.Layers[0]
	switch {
	case !IsDigest(layer.Digest):
		return layer, errors.New("its manifest lists a layer without a valid digest")
	case layer.Size < 0 || layer.Size > MaxContentBytes:
		return layer, fmt.Errorf("its tarball has %d bytes, more than the limit of %d", layer.Size, MaxContentBytes)
	}
	return layer, nil
}
