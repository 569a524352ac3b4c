package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// pods are the programs that have an image.
var pods = []string{"addon-manager", "addon-agent", "package-controller"}

// buildImages builds the images as archives with hack/images, and an SBOM of the program in each of their variants.
func buildImages(ctx context.Context, r release) (files map[string][]byte, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for images: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	source, err := filepath.Abs(r.source)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", "-C", filepath.Join(source, "hack", "images"), "run", ".", "-source="+source, "-out="+folder,
		"-repository="+r.repository, "-platforms="+r.images, "-version="+r.version, "-revision="+r.revision, "-created="+strconv.FormatInt(r.created.Unix(), 10))
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("running hack/images: %w", err)
	}
	files = map[string][]byte{}
	for _, pod := range pods {
		archive := filepath.Join(folder, pod+".tar")
		if files[pod+"_"+r.version+"_oci.tar"], err = os.ReadFile(archive); err != nil {
			return nil, err
		}
		boms, err := imageBOMs(archive, pod, r)
		if err != nil {
			return nil, fmt.Errorf("reading the image of %s: %w", pod, err)
		}
		for name, bom := range boms {
			files[name] = bom
		}
	}
	return files, nil
}

// imageBOMs returns an SBOM for each variant of an image in an archive.
func imageBOMs(archive, pod string, r release) (map[string][]byte, error) {
	platforms, err := platformsIn(r.images)
	if err != nil {
		return nil, err
	}
	boms := map[string][]byte{}
	for _, p := range platforms {
		reference := r.repository + "/" + pod + ":" + r.version
		if len(platforms) > 1 {
			reference += "-" + p.arch
		}
		binary, err := programIn(archive, reference, pod)
		if err != nil {
			return nil, err
		}
		bom, err := bomOf(binary, pod, p, r)
		if err != nil {
			return nil, err
		}
		boms[fmt.Sprintf("%s_%s_%s_%s%s", pod, r.version, p.os, p.arch, bomExtension)] = bom
	}
	return boms, nil
}

// programIn returns a file in the root of an image.
func programIn(archive, reference, program string) ([]byte, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return nil, err
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		return nil, err
	}
	content := mutate.Extract(image)
	defer content.Close()
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("image %s has no file %s", reference, program)
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimPrefix(header.Name, "/") == program {
			return io.ReadAll(files)
		}
	}
}
