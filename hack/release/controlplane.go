package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// buildControlPlane packs the programs of control planes for this platform, which hack/controlplane has installed, with which others do not need to
// build them. The name of their folder depends on their versions and the platform.
func buildControlPlane(_ context.Context, r release) (map[string][]byte, error) {
	if r.controlPlane == "" {
		return nil, nil
	}
	listed, err := os.ReadDir(r.controlPlane)
	if err != nil {
		return nil, fmt.Errorf("reading the programs of control planes: %w", err)
	}
	var entries []entry
	for _, file := range listed {
		if strings.HasPrefix(file.Name(), ".") || file.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.controlPlane, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the programs of control planes: %w", err)
		}
		entries = append(entries, entry{name: file.Name(), mode: 0o755, content: content})
	}
	packed, err := gzipped(entries, r.created)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(r.controlPlane) + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	return map[string][]byte{name: packed, name + ".sha256": []byte(sumOf(packed) + "\n")}, nil
}
