// Package kustomize builds the kustomizations of deploy/ for the programs that generate files from them. It does not connect to a cluster.
package kustomize

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Overlay is what a user writes into a kustomization around those of deploy/.
type Overlay struct {
	// Resources and Components are folders with kustomizations.
	Resources, Components []string
	// Images are the images that replace those of the Deployments.
	Images []types.Image
}

// Build returns the YAML documents of all objects, as `kubectl kustomize` prints them.
func Build(o Overlay) ([]byte, error) {
	folder, err := os.MkdirTemp("", "kustomize-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the kustomization: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := o.write(folder); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %v: %w", o.Resources, err)
	}
	return built.AsYaml()
}

// write writes the kustomization into a folder. Kustomize accepts no absolute paths.
func (o Overlay) write(folder string) error {
	// The folder for temporary files is a link on some systems, and kustomize follows it.
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return fmt.Errorf("finding the folder of the kustomization: %w", err)
	}
	k := types.Kustomization{Images: o.Images}
	if k.Resources, err = relativeTo(root, o.Resources); err != nil {
		return err
	}
	if k.Components, err = relativeTo(root, o.Components); err != nil {
		return err
	}
	content, err := yaml.Marshal(k)
	if err != nil {
		return fmt.Errorf("writing the kustomization: %w", err)
	}
	return os.WriteFile(filepath.Join(root, "kustomization.yaml"), content, 0o600)
}

// relativeTo returns the paths of folders relative to the root.
func relativeTo(root string, folders []string) ([]string, error) {
	var paths []string
	for _, folder := range folders {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		path, err := filepath.Rel(root, absolute)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
