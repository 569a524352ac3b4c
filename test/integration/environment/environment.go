// Package environment starts, for a suite of integration tests, an API server that has Tandem's resource definitions.
package environment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
)

// Environment is a running API server with its etcd.
type Environment struct {
	// Config reaches it as an administrator.
	Config *rest.Config
	// WebhookAddress is the HOST:PORT where the API server looks for addon-manager's webhooks. Nothing is there until a suite runs a
	// hub that serves them.
	WebhookAddress string

	server   *envtest.Environment
	watchdog *exec.Cmd
}

// Start starts a Bare one with the resource definitions of manifests.FS. It returns when they are served.
func Start(change ...func(*envtest.Environment)) (*Environment, error) {
	e, err := Bare(change...)
	if err != nil {
		return nil, err
	}
	definitions, err := definitions(e.WebhookAddress)
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	// Not as a part of its start: that takes the conversion out of them.
	if _, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{CRDs: definitions}); err != nil {
		return nil, errors.Join(fmt.Errorf("installing the resource definitions: %w", err), e.Stop())
	}
	return e, nil
}

// Bare starts etcd and kube-apiserver, which KUBEBUILDER_ASSETS holds. The caller stops what it has started. How they run may be changed.
func Bare(change ...func(*envtest.Environment)) (*Environment, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{}
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
	return &Environment{Config: config, WebhookAddress: address, server: server, watchdog: watchdog}, nil
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
		manifests.WebhooksAt(object, "https://"+e.WebhookAddress)
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

// definitions reads the resource definitions as they are embedded; what they call is at address.
func definitions(address string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	objects, err := manifests.Objects(manifests.FS, "crds/*.yaml", nil)
	if err != nil {
		return nil, err
	}
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(objects))
	for _, object := range objects {
		manifests.WebhooksAt(object, "https://"+address)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, definition, true); err != nil {
			return nil, fmt.Errorf("parsing the definition of %s: %w", object.GetName(), err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

// freeAddress finds a loopback port that nobody serves on. It is below those that operating systems give to outgoing connections: an
// API server that calls while nobody is there could be given the very port that it calls, and would talk to itself.
func freeAddress() (string, error) {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		if listener, err := net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("finding a free port: a hundred were taken")
}
