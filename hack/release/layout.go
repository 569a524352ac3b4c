package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// checkImages compares all blobs of the images with their digests.
func checkImages(_ context.Context, p published) error {
	var problems []error
	for _, pod := range pods {
		name := pod + "_" + p.version + "_oci.tar"
		if archive, exists := p.files[name]; !exists {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		} else if err := checkLayout(archive); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

// checkLayout checks an OCI layout in an archive.
func checkLayout(archive []byte) (err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("creating a folder for the image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := extract(archive, folder); err != nil {
		return err
	}
	path, err := layout.FromPath(folder)
	if err != nil {
		return err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return err
	}
	return validate.Index(index)
}

// extract writes the files of a layout in a tar archive into a folder, and compares its blobs with their digests.
func extract(archive []byte, folder string) error {
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking it: %w", err)
		}
		if !filepath.IsLocal(header.Name) || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("it contains %q, which is no file in its folder", header.Name)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return fmt.Errorf("unpacking it: %w", err)
		}
		if digest, isBlob := strings.CutPrefix(header.Name, "blobs/sha256/"); isBlob && digest != sumOf(content) {
			return fmt.Errorf("blob sha256:%s has another content", digest)
		}
		name := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o600)); err != nil {
			return err
		}
	}
}
