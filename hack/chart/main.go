// Command chart generates the templates of Tandem's Helm chart from the kustomizations of deploy/, so that both install the same objects. It does
// not connect to a cluster.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/hack/kustomize"
	"github.com/tandem-addons/tandem/manifests"
)

func main() {
	deploy := flag.String("deploy", "deploy", "Folder of the kustomizations.")
	output := flag.String("output", "", "Folder to write the templates to. Other generated templates in it are deleted.")
	flag.Parse()
	if err := run(*deploy, *output); err != nil {
		log.Fatal(err)
	}
}

func run(deploy, output string) error {
	built := map[string][]*unstructured.Unstructured{}
	for _, folder := range folders {
		objects, err := objectsOf(kustomize.Overlay{Resources: []string{filepath.Join(deploy, folder)}})
		if err != nil {
			return err
		}
		built[folder] = objects
	}
	templates, err := templatesOf(built)
	if err != nil {
		return err
	}
	return write(output, templates)
}

// objectsOf returns the objects of a kustomization.
func objectsOf(o kustomize.Overlay) ([]*unstructured.Unstructured, error) {
	content, err := kustomize.Build(o)
	if err != nil {
		return nil, err
	}
	return manifests.Objects(fstest.MapFS{"all.yaml": {Data: content}}, "all.yaml", nil)
}

// write writes templates to the folder, by their file names, and removes the other YAML files in it: all of them are generated.
func write(folder string, templates map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating the folder for templates: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for name, text := range templates {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
