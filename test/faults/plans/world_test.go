package plans

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/identity"
	"github.com/tandem-addons/tandem/test/faults/proxy"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const (
	cluster  = "cluster1"
	packages = "addon-packages"
	plugin   = "kubectl-addon"
)

// world is a hub, a managed cluster, and the programs between them.
type world struct {
	name, folder             string
	runs                     int
	hubServer, managedServer *environment.Environment
	hub, managed             client.WithWatch
	programs                 []*program

	mutex sync.Mutex
	run   *run // the run in progress
}

// logs returns the folder of the programs' logs.
func logs() string {
	return cmp.Or(os.Getenv("FAULTS_LOGS"), filepath.Join(os.TempDir(), "tandem-faults"))
}

// newWorld starts everything.
func newWorld(t *testing.T, name string) *world {
	t.Helper()
	ctrl.SetLogger(ginkgo.GinkgoLogr)
	w := &world{name: name, folder: t.TempDir()}
	if err := os.MkdirAll(logs(), 0o755); err != nil {
		t.Fatal(err)
	}
	w.hubServer, w.hub = startServer(t, environment.Restorable(w.folder))
	w.managedServer, w.managed = startServer(t)
	for _, folder := range []string{"hub", "cluster", "admission"} {
		if err := w.hubServer.Apply(t.Context(), folder, manifests.ClusterParameters{Cluster: cluster}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.managedServer.Apply(t.Context(), "agent", manifests.ClusterParameters{}); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Create(t.Context(), managedCluster()); err != nil {
		t.Fatal(err)
	}
	w.startControllers(t)
	w.startPrograms(t)
	return w
}

// managedCluster returns the registration of the cluster.
func managedCluster() client.Object {
	registration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	registration.SetAPIVersion("cluster.open-cluster-management.io/v1")
	registration.SetKind("ManagedCluster")
	registration.SetName(cluster)
	return registration
}

func startServer(t *testing.T, change ...func(*envtest.Environment)) (*environment.Environment, client.WithWatch) {
	t.Helper()
	server, err := environment.Start(change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme, err := hub.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return server, c
}

// startPrograms starts addon-manager and addon-agent, each with its own identity and permissions, and connects the plugin, which is the
// administrator's.
func (w *world) startPrograms(t *testing.T) {
	t.Helper()
	const inSystem = "system:serviceaccounts:tandem-system"
	local, err := w.managedServer.AddUser("system:serviceaccount:tandem-system:addon-agent", "system:serviceaccounts", inSystem)
	if err != nil {
		t.Fatal(err)
	}
	quiet := []string{"--health-probe-bind-address=0", "--leader-elect=false"}
	w.programs = []*program{
		newProgram(t, w, "addon-manager", map[string]apiServer{
			"hub": {"kubeconfig", as(w.hubServer.Config, "system:serviceaccount:tandem-system:addon-manager", "system:serviceaccounts", inSystem)},
		}, append(quiet, "--packages-namespace="+packages)...),
		newProgram(t, w, "addon-agent", map[string]apiServer{
			"hub":     {"hub-kubeconfig", as(w.hubServer.Config, identity.User(cluster), identity.Groups(cluster)...)},
			"cluster": {"kubeconfig", local.Config()},
		}, append(quiet, "--cluster-name="+cluster, "--standalone", "--report-interval=50ms", "--lease-period=24h")...),
		newCommand(t, w, plugin, map[string]apiServer{"hub": {"kubeconfig", w.hubServer.Config}}),
	}
}

// as returns config for another identity.
func as(config *rest.Config, user string, groups ...string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// decide is called by the proxies for every write: it returns the fault of the plan in progress.
func (w *world) decide(by *program, server string, written *proxy.Write) proxy.Fault {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	r := w.run
	if r == nil || written.Periodic() {
		return proxy.Fault{}
	}
	place := Place{Scenario: r.scenario.name, Action: r.action, Link: by.name + "@" + server, Write: Describe(written, r.name)}
	r.places = append(r.places, place)
	return r.fault.at(place, by, server)
}

// note writes to the programs' logs what the test does.
func (w *world) note(format string, args ...any) {
	for _, p := range w.programs {
		fmt.Fprintf(p.log, "=== "+format+"\n", args...)
	}
}

// eventually retries for a while until check returns nil, and returns its last error otherwise.
func eventually(ctx context.Context, while time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, while, true, func(ctx context.Context) (bool, error) {
		last = check(context.WithoutCancel(ctx)) // its error tells more than the end of ctx
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(last, err)
	}
	return nil
}

// keepLogs copies the programs' logs for a plan that failed, and returns the folder.
func (w *world) keepLogs(name string) (string, error) {
	folder := filepath.Join(logs(), name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for _, p := range w.programs {
		content, err := os.ReadFile(p.log.Name())
		if err != nil {
			return "", err
		}
		begin := max(bytes.LastIndex(content, []byte("=== run ")), 0)
		if err := os.WriteFile(filepath.Join(folder, p.name+".log"), content[begin:], 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// clear removes everything that a plan that failed has left, and starts the programs again.
func (w *world) clear(ctx context.Context, r *run) error {
	w.mutex.Lock()
	w.run = nil
	w.mutex.Unlock()
	for _, p := range w.programs {
		p.stop()
		for _, link := range p.links {
			link.Mend()
			link.Thaw(false)
			link.Journal()
		}
	}
	for server, kinds := range map[string][]kind{"hub": r.scenario.onHub, "cluster": r.scenario.onCluster} {
		for _, k := range kinds {
			if err := w.strip(ctx, server, k, r.name); err != nil {
				return err
			}
		}
	}
	if r.scenario.reset != nil {
		if err := r.scenario.reset(ctx, w); err != nil {
			return err
		}
	}
	for _, p := range w.programs {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// strip deletes the run's objects of a kind without waiting for their finalizers, as the program that may write all of them.
func (w *world) strip(ctx context.Context, server string, k kind, name string) error {
	config, program := w.hubServer.Config, "addon-manager"
	if server == "cluster" {
		config, program = w.managedServer.Config, "addon-agent"
	}
	c, err := client.New(as(config, "system:serviceaccount:tandem-system:"+program, "system:masters"), client.Options{})
	if err != nil {
		return err
	}
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	if err := c.List(ctx, objects); err != nil {
		return nil // its definition has been removed
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		if !ofRun(o, name) {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return err
		}
		if k.Kind == "CustomResourceDefinition" {
			continue // its finalizer deletes its objects
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(c.Patch(ctx, o, patch)); err != nil {
			return err
		}
	}
	return nil
}
