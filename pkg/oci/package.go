package oci

import (
	"context"
	"errors"
	"io"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// Pulled is a package that was pulled.
type Pulled struct {
	// Reference has the tag, if one was asked for or chosen, and the digest of the manifest.
	Reference artifact.Reference
	// Tarball is the package.
	Tarball []byte
}

// Versions returns the tags at a place in a registry, as versions: those that are none, too.
func (c *Client) Versions(ctx context.Context, ref artifact.Reference) (versions []string, err error) {
	err = c.within(ctx, ref, func(ctx context.Context, at *remote.Repository) error {
		versions, err = versionsOf(ctx, at)
		return err
	})
	return versions, err
}

// Resolve returns the reference of a tag or a digest with the digest of its manifest, which the registry says: nothing is verified.
func (c *Client) Resolve(ctx context.Context, ref artifact.Reference) (artifact.Reference, error) {
	err := c.within(ctx, ref, func(ctx context.Context, at *remote.Repository) error {
		found, err := at.Resolve(ctx, ref.Target())
		if err == nil {
			ref.Digest = found.Digest.String()
		}
		return err
	})
	return ref, err
}

// Pull returns a package: that of the digest, of the tag, or of the highest version.
func (c *Client) Pull(ctx context.Context, ref artifact.Reference) (*Pulled, error) {
	var pulled *Pulled
	err := c.within(ctx, ref, func(ctx context.Context, at *remote.Repository) error {
		resolved, err := resolveTag(ctx, at, ref)
		if err != nil {
			return err
		}
		manifest, found, err := readManifest(ctx, at, resolved)
		if err != nil {
			return err
		}
		layer, err := artifact.ParsePackage(manifest)
		if err != nil {
			return err
		}
		if ref.Target() == "" { // the registry says which versions it has
			if err := artifact.CheckTag(manifest, resolved.Tag); err != nil {
				return err
			}
		}
		tarball, err := readBlob(ctx, at, layer, "tarball")
		if err != nil {
			return err
		}
		resolved.Digest = found
		pulled = &Pulled{Reference: resolved, Tarball: tarball}
		return nil
	})
	return pulled, err
}

// Push pushes a package with the tag of the reference. Unless overwrite is set, a tag that names something else is an error. It reports whether anything
// was pushed.
func (c *Client) Push(ctx context.Context, ref artifact.Reference, a artifact.Artifact, overwrite bool) (pushed bool, err error) {
	err = c.within(ctx, ref, func(ctx context.Context, at *remote.Repository) error {
		exists, err := hasTag(ctx, at, ref, a.Digest, overwrite)
		if err != nil || exists {
			return err
		}
		pushed = true
		return write(ctx, at, a, ref.Tag)
	})
	return pushed, err
}

// hasTag reports whether the tag of the reference names that digest.
func hasTag(ctx context.Context, at *remote.Repository, ref artifact.Reference, wanted string, overwrite bool) (bool, error) {
	found, err := at.Resolve(ctx, ref.Tag)
	switch {
	case isNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	case found.Digest.String() == wanted:
		return true, nil
	case overwrite:
		return false, nil
	}
	return false, &TagConflictError{Tag: ref.Tag, Found: found.Digest.String(), Wanted: wanted}
}

// Signatures returns the signatures of the artifact with the digest of the reference, which are not verified; none if it has none.
func (c *Client) Signatures(ctx context.Context, ref artifact.Reference) ([]signature.Signature, error) {
	layers, err := c.signatureLayers(ctx, ref)
	var found []signature.Signature
	for _, layer := range layers {
		found = append(found, artifact.SignatureOf(layer))
	}
	return found, err
}

// signatureLayers returns the layers with the signatures of the artifact with the digest of the reference.
func (c *Client) signatureLayers(ctx context.Context, ref artifact.Reference) ([]artifact.Blob, error) {
	var layers []artifact.Blob
	ref.Tag, ref.Digest = artifact.SignatureTag(ref.Digest), ""
	err := c.within(ctx, ref, func(ctx context.Context, at *remote.Repository) error {
		manifest, _, err := readManifest(ctx, at, ref)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		listed, err := artifact.ParseSignatures(manifest)
		if err != nil {
			return err
		}
		for _, layer := range listed {
			payload, err := readBlob(ctx, at, layer, "payload of a signature")
			if err != nil {
				return err
			}
			layers = append(layers, artifact.Blob{Descriptor: layer, Data: payload})
		}
		return nil
	})
	return layers, err
}

// Sign adds a signature to those of the artifact with the digest of the reference.
func (c *Client) Sign(ctx context.Context, ref artifact.Reference, s signature.Signature) error {
	return c.addSignature(ctx, ref, artifact.NewSignature(s))
}

// signAttempts is the number of attempts to add a signature while others do the same: registries have no optimistic locking.
const signAttempts = 5

// addSignature adds a layer to the signatures of the artifact with the digest of the reference.
func (c *Client) addSignature(ctx context.Context, ref artifact.Reference, layer artifact.Blob) error {
	ref.Tag, ref.Digest = artifact.SignatureTag(ref.Digest), ""
	return c.within(ctx, ref, func(ctx context.Context, at *remote.Repository) error {
		for range signAttempts {
			signed, err := withSignature(ctx, at, ref, layer)
			if err != nil || signed == nil {
				return err
			}
			if err := write(ctx, at, *signed, ref.Tag); err != nil {
				return err
			}
			now, err := at.Resolve(ctx, ref.Tag)
			if err != nil || now.Digest.String() == signed.Digest {
				return err
			}
		}
		return errors.New("other programs add signatures at the same time: try again")
	})
}

// withSignature returns an artifact with the signatures at a tag and one more; nil if that is among them.
func withSignature(ctx context.Context, at *remote.Repository, tag artifact.Reference, layer artifact.Blob) (*artifact.Artifact, error) {
	manifest, _, err := readManifest(ctx, at, tag)
	if isNotFound(err) {
		made, err := artifact.NewSignatures(layer)
		return &made, err
	}
	if err != nil {
		return nil, err
	}
	listed, err := artifact.ParseSignatures(manifest)
	if err != nil || artifact.HasSignature(listed, layer) {
		return nil, err
	}
	described, err := artifact.ParseConfig(manifest)
	if err != nil {
		return nil, err
	}
	config, err := readBlob(ctx, at, described, "configuration of signatures")
	if err != nil {
		return nil, err
	}
	made, err := artifact.AddSignature(manifest, config, layer)
	return &made, err
}

// verifying is a repository whose contents are verified while they are read, so that no copy is made of something else.
type verifying struct{ *remote.Repository }

// Fetch returns a content that ends with an error if it is not what its description says.
func (v verifying) Fetch(ctx context.Context, described imagespec.Descriptor) (io.ReadCloser, error) {
	body, err := v.Repository.Fetch(ctx, described)
	if err != nil {
		return nil, err
	}
	return &verifiedBody{Closer: body, content: orascontent.NewVerifyReader(body, described), described: described}, nil
}

// verifiedBody verifies a content at its end.
type verifiedBody struct {
	io.Closer
	content   *orascontent.VerifyReader
	described imagespec.Descriptor
}

func (b *verifiedBody) Read(into []byte) (int, error) {
	n, err := b.content.Read(into)
	if errors.Is(err, io.EOF) {
		if wrong := b.content.Verify(); wrong != nil {
			return n, &contentError{what: "content", digest: b.described.Digest.String(), cause: wrong}
		}
	}
	return n, err
}

// Copy copies an artifact or an image, for all of its platforms, with all that it consists of. Its digest stays the same. It returns the source with that digest.
// Unless overwrite is set, a tag of the target that names something else is an error.
func (c *Client) Copy(ctx context.Context, from, to artifact.Reference, overwrite bool) (artifact.Reference, error) {
	copied := from
	err := c.within(ctx, from, func(ctx context.Context, source *remote.Repository) error {
		var err error
		if copied, err = resolveTag(ctx, source, from); err != nil {
			return err
		}
		root, err := source.Resolve(ctx, copied.Target())
		if err != nil {
			return err
		}
		copied.Digest = root.Digest.String()
		if to.Tag == "" {
			to.Tag = copied.Tag
		}
		return c.copyGraph(ctx, source, to, root, overwrite)
	})
	return copied, err
}

// target is a repository to which something is copied. Its errors name it.
type target struct {
	*remote.Repository
	at artifact.Reference
}

func (t target) Exists(ctx context.Context, described imagespec.Descriptor) (bool, error) {
	exists, err := t.Repository.Exists(ctx, described)
	return exists, errorAt(t.at, err)
}

func (t target) Push(ctx context.Context, described imagespec.Descriptor, content io.Reader) error {
	return errorAt(t.at, t.Repository.Push(ctx, described, content))
}

// copyGraph copies a manifest with all that it refers to.
func (c *Client) copyGraph(ctx context.Context, source *remote.Repository, to artifact.Reference, root imagespec.Descriptor, overwrite bool) error {
	at, err := c.open(to)
	if err != nil {
		return errorAt(to, err)
	}
	if to.Tag != "" {
		if _, err := hasTag(ctx, at, to, root.Digest.String(), overwrite); err != nil {
			return errorAt(to, err)
		}
	}
	options := oras.CopyGraphOptions{Concurrency: copyConcurrency, MaxMetadataBytes: artifact.MaxManifestBytes}
	if err := oras.CopyGraph(ctx, verifying{source}, target{at, to}, root, options); err != nil || to.Tag == "" {
		return err
	}
	return errorAt(to, at.Tag(ctx, root, to.Tag))
}

// copyConcurrency is the number of contents that are copied at a time.
const copyConcurrency = 3

// CopySigned copies an artifact with its signatures. If the target has signatures of it already, those of the source are added.
func (c *Client) CopySigned(ctx context.Context, from, to artifact.Reference, overwrite bool) (copied artifact.Reference, signatures int, err error) {
	if copied, err = c.Copy(ctx, from, to, overwrite); err != nil {
		return copied, 0, err
	}
	found, err := c.signatureLayers(ctx, copied)
	if err != nil || len(found) == 0 {
		return copied, 0, err
	}
	to.Tag, to.Digest = "", copied.Digest
	for _, layer := range found {
		if err := c.addSignature(ctx, to, layer); err != nil {
			return copied, 0, err
		}
	}
	return copied, len(found), nil
}
