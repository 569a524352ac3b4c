package main

import (
	"crypto/ecdsa"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// published is a release as users download it.
type published struct {
	folder, version string
	files           map[string][]byte
	plugin          krewPlugin
	key             *ecdsa.PublicKey // with which its signature is verified; nil if none is
	before          *published       // from which users upgrade; nil if there is none
}

// krewPlugin is what krew reads of the plugin's manifest.
type krewPlugin struct {
	Spec struct {
		Version   string
		Platforms []struct {
			Selector struct{ MatchLabels map[string]string }
			URI      string
			Sum      string `json:"sha256"`
			Bin      string
		}
	}
}

// readRelease reads all files of a release. Its version is the plugin's.
func readRelease(folder string) (published, error) {
	p := published{folder: folder, files: map[string][]byte{}}
	listed, err := os.ReadDir(folder)
	if err != nil {
		return p, fmt.Errorf("reading the release: %w", err)
	}
	for _, file := range listed {
		if p.files[file.Name()], err = os.ReadFile(filepath.Join(folder, file.Name())); err != nil {
			return p, fmt.Errorf("reading the release: %w", err)
		}
	}
	if err := yaml.Unmarshal(p.files[krewFile], &p.plugin); err != nil {
		return p, fmt.Errorf("reading %s: %w", krewFile, err)
	}
	if p.version = p.plugin.Spec.Version; !semantic.MatchString(p.version) {
		return p, fmt.Errorf("%s has version %q, which is not a semantic version such as v0.1.0", krewFile, p.version)
	}
	return p, nil
}
