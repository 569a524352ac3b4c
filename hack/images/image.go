package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image is a container image for several platforms.
type image struct {
	name     reference.NamedTagged
	index    v1.ImageIndex
	variants []variant
}

// variant is an image for one platform.
type variant struct {
	platform v1.Platform
	image    v1.Image
}

func newImage(name reference.NamedTagged, annotations map[string]string) *image {
	return &image{name: name, index: mutate.Annotations(empty.Index, annotations).(v1.ImageIndex)}
}

func (i *image) add(platform v1.Platform, of v1.Image) {
	i.variants = append(i.variants, variant{platform, of})
	i.index = mutate.AppendManifests(i.index, mutate.IndexAddendum{Add: of, Descriptor: v1.Descriptor{Platform: &platform}})
}

// save writes the image to a file in two formats that share their blobs: an OCI layout, read by containerd (ctr, kind, Docker's containerd
// image store), podman and skopeo; and Docker's own format, for Docker's older image store.
func (i *image) save(file string) error {
	folder, err := os.MkdirTemp("", "images-")
	if err != nil {
		return fmt.Errorf("creating a folder for its layout: %w", err)
	}
	defer os.RemoveAll(folder)
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("writing its layout: %w", err)
	}
	// containerd and kind use the first name, podman and skopeo the second.
	names := map[string]string{"io.containerd.image.name": i.name.String(), "org.opencontainers.image.ref.name": i.name.String()}
	if err := written.AppendIndex(i.index, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("writing its layout: %w", err)
	}
	docker, err := i.dockerManifest()
	if err != nil {
		return err
	}
	if err := written.WriteFile("manifest.json", docker, 0o644); err != nil {
		return fmt.Errorf("writing its manifest: %w", err)
	}
	files, err := filesIn(os.DirFS(folder))
	if err != nil {
		return fmt.Errorf("reading its layout: %w", err)
	}
	content, err := archive(files)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// dockerManifest lists the variants for Docker's older image store. That store has one platform per name, so with several platforms each
// variant gets its own name.
func (i *image) dockerManifest() ([]byte, error) {
	var manifest tarball.Manifest
	for _, v := range i.variants {
		described, err := v.image.Manifest()
		if err != nil {
			return nil, err
		}
		entry := tarball.Descriptor{Config: blob(described.Config.Digest), RepoTags: []string{i.name.String()}}
		if len(i.variants) > 1 {
			entry.RepoTags = []string{i.name.String() + "-" + v.platform.Architecture}
		}
		for _, layer := range described.Layers {
			entry.Layers = append(entry.Layers, blob(layer.Digest))
		}
		manifest = append(manifest, entry)
	}
	return json.Marshal(manifest)
}

// blob returns the path of a blob in an OCI layout.
func blob(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// filesIn returns the files of a folder, sorted by name.
func filesIn(folder fs.FS) ([]file, error) {
	var files []file
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		files = append(files, file{name: name, mode: 0o644, content: content})
		return err
	})
	return files, err
}

// push pushes the image to the registry in its name.
func (i *image) push(ctx context.Context) error {
	registry, err := name.NewRegistry(reference.Domain(i.name))
	if err != nil {
		return fmt.Errorf("pushing it: %w", err)
	}
	tag := registry.Repo(reference.Path(i.name)).Tag(i.name.Tag())
	if err := remote.WriteIndex(tag, i.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing it: %w", err)
	}
	return nil
}

// describe writes table rows: the image, and the download and unpacked sizes of each platform.
func (i *image) describe(table io.Writer) error {
	digest, err := i.index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(table, "%s\tall\t\t\t%s\n", i.name, digest)
	for _, v := range i.variants {
		digest, err := v.image.Digest()
		if err != nil {
			return err
		}
		download, unpacked, err := sizes(v.image)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "\t%s\t%.1f MB\t%.1f MB\t%s\n", v.platform, float64(download)/1e6, float64(unpacked)/1e6, digest)
	}
	return nil
}

// sizes returns the total size of all layers, compressed and uncompressed.
func sizes(of v1.Image) (download, unpacked int64, err error) {
	layers, err := of.Layers()
	if err != nil {
		return 0, 0, err
	}
	for _, layer := range layers {
		compressed, err := layer.Size()
		if err != nil {
			return 0, 0, err
		}
		content, err := layer.Uncompressed()
		if err != nil {
			return 0, 0, err
		}
		size, err := io.Copy(io.Discard, content)
		if err != nil {
			return 0, 0, err
		}
		download, unpacked = download+compressed, unpacked+size
	}
	return download, unpacked, nil
}
