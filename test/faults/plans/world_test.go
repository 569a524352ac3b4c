package plans

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
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
	name, folder string
	runs         int
	// hubServer is nil in a world with OCM.
	hubServer                *environment.Environment
	hubConfig, managedConfig *rest.Config // the administrator's
	hub, managed             client.WithWatch
	programs                 []*program
	// webhooks is the address of addon-manager's webhooks; empty if it serves none.
	webhooks string
	charts   *charts

	mutex sync.Mutex
	run   *run // the run in progress
}

// logs returns the folder of the programs' logs.
func logs() string {
	return cmp.Or(os.Getenv("FAULTS_LOGS"), filepath.Join(os.TempDir(), "tandem-faults"))
}

// newWorld starts everything. addon-manager serves its webhooks if webhooks is true.
func newWorld(t *testing.T, name string, webhooks bool) *world {
	t.Helper()
	w := emptyWorld(t, name)
	w.hubServer = startServer(t, environment.Restorable(w.folder))
	managed := startServer(t)
	w.connect(t, w.hubServer.Config, managed.Config)
	for _, folder := range []string{"hub", "cluster", "admission"} {
		if err := w.hubServer.Apply(t.Context(), folder, manifests.ClusterParameters{Cluster: cluster}); err != nil {
			t.Fatal(err)
		}
	}
	if err := managed.Apply(t.Context(), "agent", manifests.ClusterParameters{}); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Create(t.Context(), managedCluster()); err != nil {
		t.Fatal(err)
	}
	local, err := managed.AddUser(account+"addon-agent", accounts()...)
	if err != nil {
		t.Fatal(err)
	}
	if webhooks {
		w.webhooks = w.hubServer.WebhookAddress
	}
	w.startControllers(t)
	w.startPrograms(t, local.Config(), "--standalone")
	w.startFollowing(t)
	return w
}

// emptyWorld returns a world in which nothing runs.
func emptyWorld(t *testing.T, name string) *world {
	t.Helper()
	ctrl.SetLogger(ginkgo.GinkgoLogr)
	if err := os.MkdirAll(logs(), 0o755); err != nil {
		t.Fatal(err)
	}
	return &world{name: name, folder: t.TempDir()}
}

// connect connects the administrator with the API servers.
func (w *world) connect(t *testing.T, hubConfig, managedConfig *rest.Config) {
	t.Helper()
	w.hubConfig, w.managedConfig = hubConfig, managedConfig
	scheme, err := hub.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func(*runtime.Scheme) error{clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for config, c := range map[*rest.Config]*client.WithWatch{hubConfig: &w.hub, managedConfig: &w.managed} {
		if *c, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
			t.Fatal(err)
		}
	}
}

// managedCluster returns the registration of the cluster.
func managedCluster() client.Object {
	registration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	registration.SetAPIVersion("cluster.open-cluster-management.io/v1")
	registration.SetKind("ManagedCluster")
	registration.SetName(cluster)
	return registration
}

func startServer(t *testing.T, change ...func(*envtest.Environment)) *environment.Environment {
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
	return server
}

// account is the beginning of the names of Tandem's service accounts.
const account = "system:serviceaccount:tandem-system:"

// accounts returns the groups of Tandem's service accounts.
func accounts() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:tandem-system"}
}

// startPrograms starts addon-manager and addon-agent, each with its own identity and permissions, and connects the plugin, which is the
// administrator's. local is the identity of addon-agent on its own cluster, and more are its other flags. It returns when the webhooks answer.
func (w *world) startPrograms(t *testing.T, local *rest.Config, more ...string) {
	t.Helper()
	quiet := []string{"--health-probe-bind-address=0", "--leader-elect=false"}
	manager := append(quiet[:2:2], "--packages-namespace="+packages)
	if w.webhooks != "" {
		manager = append(manager, "--webhook-bind-address="+w.webhooks, "--webhook-hosts=127.0.0.1")
	}
	agent := append(quiet[:2:2], "--cluster-name="+cluster, "--report-interval=50ms", "--lease-period=24h", "--drift-interval=24h")
	w.programs = []*program{
		newProgram(t, w, "addon-manager", map[string]apiServer{
			"hub": {"kubeconfig", as(w.hubConfig, account+"addon-manager", accounts()...)},
		}, manager...),
		newProgram(t, w, "addon-agent", map[string]apiServer{
			"hub":     {"hub-kubeconfig", as(w.hubConfig, identity.User(cluster), identity.Groups(cluster)...)},
			"cluster": {"kubeconfig", local},
		}, append(agent, more...)...),
		newCommand(t, w, plugin, map[string]apiServer{"hub": {"kubeconfig", w.hubConfig}}),
	}
	if err := eventually(t.Context(), settleTimeout, w.reviews); err != nil {
		t.Fatal(err)
	}
}

// reviews returns an error unless addon-manager's webhooks reject an invalid write. The API server admits such a write while they do not
// respond.
func (w *world) reviews(ctx context.Context) error {
	if w.webhooks == "" {
		return nil
	}
	invalid := definitionOf("invalid")
	invalid.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: "{"}
	err := w.hub.Create(ctx, invalid, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), `"clustermanagementaddon.tandem-addons.github.io" denied`) {
		return fmt.Errorf("the webhooks reject no invalid write: %v", err)
	}
	return nil
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
		last = check(context.WithoutCancel(ctx)) // its error explains more than the end of ctx
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
			if err := w.strip(ctx, r, server, k); err != nil {
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
func (w *world) strip(ctx context.Context, r *run, server string, k kind) error {
	config, program := w.hubConfig, "addon-manager"
	if server == "cluster" {
		config, program = w.managedConfig, "addon-agent"
	}
	c, err := client.New(as(config, account+program, "system:masters"), client.Options{})
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
		if !r.scenario.owns(o, r.name) {
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
