package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// unprivileged is the user and group of the programs. It is numeric so that Kubernetes can verify that it is not root.
const unprivileged = "65532:65532"

// stamp identifies the build of an image.
type stamp struct {
	version, revision string
	created           time.Time
}

// labels returns the image's OCI annotations.
func (s stamp) labels(p program) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       p.name,
		"org.opencontainers.image.description": p.description,
		"org.opencontainers.image.source":      "https://github.com/tandem-addons/tandem",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     s.version,
		"org.opencontainers.image.revision":    s.revision,
		"org.opencontainers.image.created":     s.created.Format(time.RFC3339),
	}
}

// pack builds the image of a program for one platform. The first layer, the certificates, is identical in all images and versions.
func pack(p program, binary []byte, platform v1.Platform, s stamp) (v1.Image, error) {
	certificates, err := layerOf(
		// The path that crypto/x509 reads first. A pod trusts its own API server through its service account; a hub may have a public
		// certificate.
		file{name: "etc/", mode: 0o755}, file{name: "etc/ssl/", mode: 0o755}, file{name: "etc/ssl/certs/", mode: 0o755},
		file{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
	)
	if err != nil {
		return nil, err
	}
	executable, err := layerOf(file{name: p.name, mode: 0o755, content: binary})
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Created: v1.Time{Time: s.created},
		RootFS:  v1.RootFS{Type: "layers"},
		Config:  v1.Config{User: unprivileged, Entrypoint: []string{"/" + p.name}, WorkingDir: "/", Labels: s.labels(p)},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring it: %w", err)
	}
	history := func(comment string) v1.History {
		return v1.History{Created: v1.Time{Time: s.created}, CreatedBy: "hack/images", Comment: comment}
	}
	return mutate.Append(image,
		mutate.Addendum{Layer: certificates, History: history("certificates of public authorities")},
		mutate.Addendum{Layer: executable, History: history(p.name + " " + s.version)})
}

// authorities returns the certificates of the public authorities that Mozilla trusts, as PEM. Authorities trusted only up to a date are
// omitted, because PEM cannot express the date.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writes to a Buffer do not fail
		}
	}
	return text.Bytes()
}

// file is a file in an archive; a name that ends in a slash is a folder.
type file struct {
	name    string
	mode    int64
	content []byte
}

// layerOf returns a layer of files owned by root.
func layerOf(files ...file) (v1.Layer, error) {
	content, err := archive(files)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// archive returns a tar archive of files. The entries have no modification time, so that the same files produce the same archive.
func archive(files []file) ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("ending an archive: %w", err)
	}
	return content.Bytes(), nil
}
