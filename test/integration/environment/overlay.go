package environment

import (
	"fmt"
	"os"
	"path/filepath"
)

// Overlay writes a kustomization into a folder, and returns the folder. In the kustomization, %[1]s is the relative path of another folder.
func Overlay(folder, of, kustomization string) (string, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(of)
	if err != nil {
		return "", err
	}
	way, err := filepath.Rel(folder, absolute)
	if err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), fmt.Appendf(nil, kustomization, way), 0o600)
}
