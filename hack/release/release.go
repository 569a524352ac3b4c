package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// semantic is a semantic version with a leading v, without build metadata: image tags have no plus sign.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z][0-9A-Za-z.-]*)?$`)

// release describes a release.
type release struct {
	version, revision string
	created           time.Time
	// repository is the prefix of the images' names, url the address at which releases are published.
	repository, url string
	// source is the folder of the module, output the folder of the release.
	source, output string
	plugin         program
	platforms      []platform // of the plugin
	images         string     // platforms of the images, separated by commas
	// controlPlane is a folder with the programs of control planes for this platform; empty if they are not published.
	controlPlane string
	artifactHub  string            // ID of the chart's repository; empty if there is none
	builder      string            // the URI of who builds, for the provenance
	key          *ecdsa.PrivateKey // signs the checksums; nil if nothing does
}

// step builds a part of a release: files by their names.
type step struct {
	name  string
	build func(context.Context, release) (map[string][]byte, error)
}

// build builds the steps, and writes all files with their checksums. The folder is replaced at the end, so that it never contains a part of a
// release, or files of another one.
func (r release) build(ctx context.Context, steps []step) (err error) {
	files := map[string][]byte{}
	for _, s := range steps {
		fmt.Fprintln(os.Stderr, "building", s.name)
		built, err := s.build(ctx, r)
		if err != nil {
			return fmt.Errorf("building %s: %w", s.name, err)
		}
		for name, content := range built {
			if files[name] != nil {
				return fmt.Errorf("building %s: two files have the name %s", s.name, name)
			}
			files[name] = content
		}
	}
	if files[provenanceFile], err = r.provenance(files); err != nil {
		return fmt.Errorf("describing the build: %w", err)
	}
	files[sumsFile] = sumsOf(files)
	if r.key != nil {
		if files[signatureFile], err = sign(r.key, files[sumsFile]); err != nil {
			return err
		}
	}
	return replaceFolder(r.output, files)
}

// replaceFolder replaces a folder by one with the files.
func replaceFolder(folder string, files map[string][]byte) (err error) {
	folder = filepath.Clean(folder)
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("creating the folder of the release: %w", err)
	}
	next, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+"-")
	if err != nil {
		return fmt.Errorf("creating the folder of the release: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(next)) }()
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(next, name), content, 0o644); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the previous release: %w", err)
	}
	return os.Rename(next, folder)
}

// chartVersion returns the version as charts have it, without the leading v.
func (r release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }
