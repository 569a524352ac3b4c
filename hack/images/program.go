package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// program is one of Tandem's programs.
type program struct {
	name        string // of the program, and of its image
	path        string // of its package in the module
	description string
}

// build compiles the program for a platform and returns the executable. It is static and reproducible: it does not depend on the system it
// runs on, or on the time and place of the build.
func (p program) build(ctx context.Context, source string, platform v1.Platform, version string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "images-")
	if err != nil {
		return nil, fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, p.name)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X main.version="+version, "-o", file, p.path)
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building it for %s: %w\n%s", platform, err, output)
	}
	return os.ReadFile(file)
}
