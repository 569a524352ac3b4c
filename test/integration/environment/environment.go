// Package environment starts, for a suite of integration tests, an API server that has Tandem's resource definitions.
package environment

import (
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/manifests"
)

// Environment is a running API server with its etcd.
type Environment struct {
	// Config reaches it as an administrator.
	Config *rest.Config

	server *envtest.Environment
}

// Start starts etcd and kube-apiserver, which KUBEBUILDER_ASSETS holds, with the resource definitions of manifests.FS. It returns
// when they are served. The caller stops what it has started.
func Start() (*Environment, error) {
	definitions, err := definitions()
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{CRDs: definitions}
	config, err := server.Start()
	if err != nil {
		return nil, fmt.Errorf("starting an API server (KUBEBUILDER_ASSETS names the folder of its programs): %w", err)
	}
	config.QPS, config.Burst = 1000, 1000
	return &Environment{Config: config, server: server}, nil
}

// Stop ends both processes.
func (e *Environment) Stop() error { return e.server.Stop() }

// definitions reads the resource definitions as they are embedded.
func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(manifests.FS, "crds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing resource definitions: %w", err)
	}
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, file := range files {
		text, err := fs.ReadFile(manifests.FS, file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}
