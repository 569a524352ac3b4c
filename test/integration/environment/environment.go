// Package environment starts, for a suite of integration tests, an API server that has Tandem's resource definitions.
package environment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/manifests"
)

// Environment is a running API server with its etcd.
type Environment struct {
	// Config reaches it as an administrator.
	Config *rest.Config

	server   *envtest.Environment
	watchdog *exec.Cmd
}

// Start starts etcd and kube-apiserver, which KUBEBUILDER_ASSETS holds, with the resource definitions of manifests.FS. It returns
// when they are served. The caller stops what it has started. How they run may be changed.
func Start(change ...func(*envtest.Environment)) (*Environment, error) {
	definitions, err := definitions()
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{CRDs: definitions}
	for _, c := range change {
		c(server)
	}
	config, err := server.Start()
	if err != nil {
		return nil, fmt.Errorf("starting an API server (KUBEBUILDER_ASSETS names the folder of its programs): %w", err)
	}
	config.QPS, config.Burst = 1000, 1000
	watchdog, err := watch()
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &Environment{Config: config, server: server, watchdog: watchdog}, nil
}

// Apply puts all objects of a folder of manifests.FS, such as "hub", onto the API server, as for that managed cluster.
func (e *Environment) Apply(ctx context.Context, folder string, cluster manifests.ClusterParameters) error {
	c, err := client.New(e.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("applying manifests: %w", err)
	}
	objects, err := manifests.Objects(manifests.FS, folder+"/*.yaml", cluster)
	if err != nil {
		return err
	}
	for _, object := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("administrator"))
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// AddUser makes somebody who reaches the API server with a client certificate, and has the rights that RBAC gives.
func (e *Environment) AddUser(name string, groups ...string) (*envtest.AuthenticatedUser, error) {
	user, err := e.server.AddUser(envtest.User{Name: name, Groups: groups}, e.Config)
	if err != nil {
		return nil, fmt.Errorf("making user %q: %w", name, err)
	}
	return user, nil
}

// Stop ends both processes.
func (e *Environment) Stop() error { return errors.Join(e.server.Stop(), callOff(e.watchdog)) }

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
