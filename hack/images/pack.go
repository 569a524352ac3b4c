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

// nobody is whom the programs run as: a number, by which Kubernetes sees that it is not root.
const nobody = "65532:65532"

// stamp says which build an image is of.
type stamp struct {
	version, revision string
	created           time.Time
}

// labels are those that OCI names, for people and tools that look at an image.
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

// pack makes the image of a program for one platform. Its first layer, the certificates, is the same in all images of all versions.
func pack(p program, binary []byte, platform v1.Platform, s stamp) (v1.Image, error) {
	certificates, err := layerOf(
		// Where crypto/x509 looks first. A pod trusts its own API server by its service account; a hub may have a public certificate.
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
		Config:  v1.Config{User: nobody, Entrypoint: []string{"/" + p.name}, WorkingDir: "/", Labels: s.labels(p)},
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

// authorities are the certificates of the public authorities that Mozilla trusts, as PEM. The ones that it trusts up to a date only
// are on their way out, and left away: PEM cannot say so.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes everything
		}
	}
	return text.Bytes()
}

// file is one in an archive; a name that ends in a slash is a folder's.
type file struct {
	name    string
	mode    int64
	content []byte
}

// layerOf is a layer with files that belong to root.
func layerOf(files ...file) (v1.Layer, error) {
	content, err := archive(files)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// archive is a tar archive of files. They have no date, so that the same files make the same archive.
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
