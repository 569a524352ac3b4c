// Package oci pushes packages to OCI registries, and pulls, copies and signs them there, with the credentials of the user's docker, or with others. Only the
// command line and package-controller import it: hub and agent reach no registry. It touches no cluster.
package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	digest "github.com/opencontainers/go-digest"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
)

// DefaultTimeout limits an operation on a package.
const DefaultTimeout = 5 * time.Minute

// Options configure a client.
type Options struct {
	// PlainHTTP are the hosts of registries, with their ports, that use http although they are not on this machine.
	PlainHTTP []string
	// CAFile is a file with certificate authorities, in addition to those of the system; empty for none.
	CAFile string
	// Timeout limits an operation on a package; DefaultTimeout if zero.
	Timeout time.Duration
	// Transport sends requests, and Credentials are for registries. If they are set, the user's docker, and CAFile, are not read.
	Transport   http.RoundTripper
	Credentials *Credentials
}

// Client reads and writes packages in registries.
type Client struct {
	plainHTTP   []string
	timeout     time.Duration
	transport   http.RoundTripper
	credentials auth.CredentialFunc
}

// New returns a client with the credentials of the user's docker: of its config.json, which DOCKER_CONFIG selects, and of the helpers that it names.
func New(o Options) (*Client, error) {
	c := &Client{plainHTTP: o.PlainHTTP, timeout: o.Timeout, transport: o.Transport}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if o.Credentials != nil {
		c.credentials = o.Credentials.find
		return c, nil
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{DetectDefaultNativeStore: true})
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of docker: %w", err)
	}
	c.credentials = credentials.Credential(store)
	transport := NewTransport()
	if o.CAFile != "" {
		if transport.TLSClientConfig.RootCAs, err = ReadAuthorities(o.CAFile); err != nil {
			return nil, err
		}
	}
	c.transport = transport
	return c, nil
}

const (
	maxTagPages = 200
	maxTags     = 100_000
)

// open returns a repository in a registry.
func (c *Client) open(ref artifact.Reference) (*remote.Repository, error) {
	at, err := remote.NewRepository(ref.Host + "/" + ref.Repository)
	if err != nil {
		return nil, fmt.Errorf("the reference is invalid: %w", err)
	}
	at.Client = &auth.Client{
		Client: &http.Client{Transport: c.transport, CheckRedirect: checkRedirect}, Credential: c.credentials, Cache: auth.NewCache(),
	}
	at.PlainHTTP = slices.Contains(c.plainHTTP, ref.Host) || IsLoopback(ref.Host)
	at.TagListMaxPages, at.MaxMetadataBytes, at.SkipReferrersGC = maxTagPages, artifact.MaxManifestBytes, true
	return at, nil
}

// within runs an operation on a reference with the time limit, and explains its error.
func (c *Client) within(ctx context.Context, ref artifact.Reference, run func(context.Context, *remote.Repository) error) error {
	at, err := c.open(ref)
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err = run(limited, at)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("%s: %s did not complete the request in %s", ref, ref.Host, c.timeout)
	}
	var about *placeError
	if errors.As(err, &about) {
		return about
	}
	return fmt.Errorf("%s: %w", ref, explain(ref.Host, err))
}

// versionsOf returns the tags of a repository as versions.
func versionsOf(ctx context.Context, at *remote.Repository) ([]string, error) {
	var versions []string
	err := at.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, catalog.VersionOfTag(tag))
		}
		if len(versions) > maxTags {
			return fmt.Errorf("the registry lists more than %d tags: name one", maxTags)
		}
		return nil
	})
	return versions, err
}

// resolveTag returns the reference with a tag or a digest: without both, with the tag of the highest version.
func resolveTag(ctx context.Context, at *remote.Repository, ref artifact.Reference) (artifact.Reference, error) {
	if ref.Target() != "" {
		return ref, nil
	}
	versions, err := versionsOf(ctx, at)
	if err != nil {
		return ref, err
	}
	highest, err := catalog.Choose(ref.Repository, "", versions)
	if err != nil {
		return ref, errors.New("no tag is a version without a suffix for pre-releases: name a tag, as in oci://HOST/PATH:TAG")
	}
	ref.Tag = catalog.TagOf(highest)
	return ref, nil
}

// readManifest returns a manifest and its digest. It verifies that the registry sent what the digest, which the user or the registry names, identifies.
func readManifest(ctx context.Context, at *remote.Repository, ref artifact.Reference) (manifest []byte, found string, err error) {
	described, body, err := at.Manifests().FetchReference(ctx, ref.Target())
	if err != nil {
		return nil, "", err
	}
	defer body.Close()
	if described.Size > artifact.MaxManifestBytes {
		return nil, "", fmt.Errorf("its manifest has %d bytes, more than the limit of %d", described.Size, artifact.MaxManifestBytes)
	}
	if ref.Digest != "" {
		described.Digest = digest.Digest(ref.Digest)
	}
	data, err := orascontent.ReadAll(io.LimitReader(body, artifact.MaxManifestBytes), described)
	if err != nil {
		return nil, "", &contentError{what: "manifest", digest: described.Digest.String(), cause: err}
	}
	return data, described.Digest.String(), nil
}

// readBlob returns a blob, and verifies its digest and size.
func readBlob(ctx context.Context, at *remote.Repository, described artifact.Descriptor, what string) ([]byte, error) {
	of := imagespec.Descriptor{MediaType: described.MediaType, Digest: digest.Digest(described.Digest), Size: described.Size}
	body, err := at.Blobs().Fetch(ctx, of)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := orascontent.ReadAll(body, of)
	if err != nil {
		return nil, &contentError{what: what, digest: described.Digest, cause: err}
	}
	return data, nil
}

// write pushes an artifact with a tag; none if it is empty.
func write(ctx context.Context, at *remote.Repository, a artifact.Artifact, tag string) error {
	for _, blob := range a.Blobs {
		of := imagespec.Descriptor{MediaType: blob.MediaType, Digest: digest.Digest(blob.Digest), Size: blob.Size}
		exists, err := at.Blobs().Exists(ctx, of)
		if err == nil && !exists {
			err = at.Blobs().Push(ctx, of, bytes.NewReader(blob.Data))
		}
		if err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
			return err
		}
	}
	of := imagespec.Descriptor{MediaType: artifact.ManifestMediaType, Digest: digest.Digest(a.Digest), Size: int64(len(a.Manifest))}
	if tag == "" {
		return at.Manifests().Push(ctx, of, bytes.NewReader(a.Manifest))
	}
	return at.Manifests().PushReference(ctx, of, bytes.NewReader(a.Manifest), tag)
}
