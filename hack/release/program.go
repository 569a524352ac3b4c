package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

// platformsIn parses platforms such as linux/amd64, separated by commas.
func platformsIn(list string) ([]platform, error) {
	var platforms []platform
	for text := range strings.SplitSeq(list, ",") {
		system, processor, found := strings.Cut(text, "/")
		if !found || system == "" || processor == "" {
			return nil, fmt.Errorf("-platforms: %q is not of the form linux/amd64", text)
		}
		platforms = append(platforms, platform{os: system, arch: processor})
	}
	return platforms, nil
}

// executable returns the name of a program's file.
func (p platform) executable(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// extension returns the extension of archives for the platform.
func (p platform) extension() string {
	if p.os == "windows" {
		return ".zip"
	}
	return ".tar.gz"
}

// pack returns an archive of files for the platform.
func (p platform) pack(entries []entry, created time.Time) ([]byte, error) {
	if p.os == "windows" {
		return zipped(entries, created)
	}
	return gzipped(entries, created)
}

// program is a program of the module.
type program struct {
	name string
	path string // of its package in the module
}

// build compiles the program. It is static, and does not depend on the system, time and place of the build. hack/images builds in the same way.
func (p program) build(ctx context.Context, source, version string, on platform) (binary []byte, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, p.name)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+version, "-o", file, p.path)
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.os, "GOARCH="+on.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s for %s/%s: %w\n%s", p.name, on.os, on.arch, err, output)
	}
	return os.ReadFile(file)
}
