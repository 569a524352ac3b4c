// Package environment starts an API server with Tandem's resource definitions for a suite of integration tests.
package environment

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
)

// startTimeout is the timeout for starting or stopping a program on a machine that runs many of them.
const startTimeout = 2 * time.Minute

// Environment is a running API server with its etcd.
type Environment struct {
	// Config is the administrator's client configuration.
	Config *rest.Config
	// WebhookAddress is the HOST:PORT at which the API server calls addon-manager's webhooks. It is not served until a suite runs a hub
	// with webhooks.
	WebhookAddress string
	// WebhookTimeout replaces the timeout of webhooks unless it is zero. On a machine that runs many programs, a response can take longer than
	// in a cluster, and the API server would admit objects without the webhooks.
	WebhookTimeout time.Duration

	server   *envtest.Environment
	watchdog *exec.Cmd
	ports    ports
	writes   flight
}

// Start starts a Bare environment with the resource definitions of manifests.FS. It returns when they are served.
func Start(change ...func(*envtest.Environment)) (*Environment, error) {
	e, err := Bare(change...)
	if err != nil {
		return nil, err
	}
	definitions, err := definitions(e.WebhookAddress)
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	// They are not installed during the start, because envtest would remove the conversion.
	if _, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: startTimeout}); err != nil {
		return nil, errors.Join(fmt.Errorf("installing the resource definitions: %w", err), e.Stop())
	}
	return e, nil
}

// Bare starts etcd and kube-apiserver from KUBEBUILDER_ASSETS, as modified by change. The caller stops the environment.
func Bare(change ...func(*envtest.Environment)) (*Environment, error) {
	quiet()
	reserved, err := reserve()
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: startTimeout}
	server.ControlPlane.Etcd = &envtest.Etcd{}
	server.CRDInstallOptions.MaxTime = startTimeout
	for _, c := range change {
		c(server)
	}
	reserved.give(&server.ControlPlane)
	config, err := startWithLessWork(server)
	if err != nil {
		reserved.release()
		return nil, fmt.Errorf("starting an API server (KUBEBUILDER_ASSETS names the folder of its programs): %w", err)
	}
	e := &Environment{Config: config, WebhookAddress: reserved.webhooks.Address(), server: server, ports: reserved, writes: newFlight()}
	config.QPS, config.Burst = 1000, 1000
	config.Wrap(e.writes.carry)
	if e.watchdog, err = watch(); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// startWithLessWork starts API servers that collect garbage half as often, which takes an eighth of their time, and that run on one processor each: they
// share the machine with each other and with what they serve, and idle threads that look for work cost more than a second processor gains. This program
// does not change: specs measure its memory.
func startWithLessWork(server *envtest.Environment) (config *rest.Config, err error) {
	for variable, value := range map[string]string{"GOGC": "200", "GOMAXPROCS": "1"} {
		if _, isSet := os.LookupEnv(variable); isSet {
			continue
		}
		if err := os.Setenv(variable, value); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.Unsetenv(variable)) }()
	}
	return server.Start()
}

// Mutating is the label of specs about mutating admission policies: `make test-versions` leaves them out on API servers older than Kubernetes 1.36.
const Mutating = "mutating-policies"

// Mutates reports whether the API server supports mutating admission policies, as Kubernetes 1.36 does.
func (e *Environment) Mutates() (bool, error) {
	discover, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		return false, fmt.Errorf("reading the kinds of the API server: %w", err)
	}
	return discovery.IsResourceEnabled(discover, admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"))
}

// ExecNeedsCreate reports whether the API server refuses to execute commands in pods without the verb create, as Kubernetes 1.35 does. Earlier ones allow it with
// the verb get alone, over WebSockets.
func (e *Environment) ExecNeedsCreate() (bool, error) {
	discover, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		return false, fmt.Errorf("reading the version of the API server: %w", err)
	}
	found, err := discover.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("reading the version of the API server: %w", err)
	}
	parsed, err := version.ParseGeneric(found.GitVersion)
	return err == nil && parsed.AtLeast(version.MajorMinor(1, 35)), err
}

// Apply applies all objects of a folder of manifests.FS, such as "hub", with the parameters of a managed cluster.
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
		e.ServeWebhooks(object)
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("administrator"))
		if meta.IsNoMatchError(err) && strings.HasPrefix(object.GetKind(), "MutatingAdmissionPolicy") {
			continue // before Kubernetes 1.36, as by deploy/before-1.36
		}
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// ServeWebhooks sets the address and the timeout of the webhooks of an object.
func (e *Environment) ServeWebhooks(object *unstructured.Unstructured) {
	manifests.WebhooksAt(object, "https://"+e.WebhookAddress)
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		if fields, ok := webhook.(map[string]any); ok && e.WebhookTimeout > 0 {
			fields["timeoutSeconds"] = int64(e.WebhookTimeout.Seconds())
		}
	}
}

// AddUser creates a user with a client certificate and the permissions granted by RBAC.
func (e *Environment) AddUser(name string, groups ...string) (*envtest.AuthenticatedUser, error) {
	user, err := e.server.AddUser(envtest.User{Name: name, Groups: groups}, e.Config)
	if err != nil {
		return nil, fmt.Errorf("making user %q: %w", name, err)
	}
	return user, nil
}

// Stop stops both processes.
func (e *Environment) Stop() error {
	defer e.ports.release()
	return errors.Join(e.server.Stop(), callOff(e.watchdog))
}

// definitions reads the embedded resource definitions and points their webhooks at address.
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

// ports are the ports of one API server. envtest's own choices are in the ephemeral range, and unreserved until the programs listen.
type ports struct{ etcd, server, webhooks *port.Reservation }

// reserve reserves three ports.
func reserve() (ports, error) {
	var p ports
	for _, use := range []**port.Reservation{&p.etcd, &p.server, &p.webhooks} {
		found, err := port.Find()
		if err != nil {
			p.release()
			return ports{}, err
		}
		*use = found
	}
	return p, nil
}

// give configures the programs to listen on the ports.
func (p ports) give(programs *envtest.ControlPlane) {
	programs.Etcd.URL = &url.URL{Scheme: "http", Host: p.etcd.Address()}
	programs.Etcd.Configure().Set("listen-peer-urls", "http://127.0.0.1:0") // there are no peers
	programs.GetAPIServer().SecureServing.ListenAddr = envtest.ListenAddr{Address: "127.0.0.1", Port: strconv.Itoa(p.server.Port)}
}

// release releases the reserved ports.
func (p ports) release() {
	for _, r := range []*port.Reservation{p.etcd, p.server, p.webhooks} {
		if r != nil {
			r.Release()
		}
	}
}
