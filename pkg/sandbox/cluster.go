package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/manifests"
)

// Cluster is one running cluster of a sandbox.
type Cluster struct {
	plan      clusterPlan
	authority *authority
	config    *rest.Config
	client    client.Client
	spawner   *spawner
	onChange  func()

	mu        sync.Mutex
	processes []*process

	// Functions that stop what this process itself runs for the cluster.
	stops   []func()
	serving sync.WaitGroup
}

// Name returns "hub", or the name of the managed cluster and of its namespace on the hub.
func (c *Cluster) Name() string { return c.plan.Name }

// Config returns the administrator's client configuration.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.plan.Home.kubeconfig(c.plan.Name) }

// AuditLog returns the path of the log of all writes, one JSON object a line, except the writes of the control plane itself.
func (c *Cluster) AuditLog() string { return c.plan.folder().path("audit.log") }

// State returns the state of the cluster and its programs.
func (c *Cluster) State() ClusterState {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := ClusterState{
		Name: c.plan.Name, Server: c.plan.server(), Kubeconfig: c.Kubeconfig(), AuditLog: c.AuditLog(),
	}
	for _, process := range c.processes {
		state.Processes = append(state.Processes, process.snapshot())
	}
	return state
}

// start starts the control plane and returns when it works and everything that does not depend on other clusters is applied. Stages are
// reported to progress.
func (c *Cluster) start(ctx context.Context, progress func(string)) error {
	ctx, stop := c.withCrashWatch(ctx)
	defer stop()
	for _, p := range c.plan.storage() {
		c.startProgram(p)
	}
	if err := c.waitForAPI(ctx); err != nil {
		return err
	}
	progress(c.plan.Name + ": kube-apiserver is ready")
	for _, p := range c.plan.control() {
		c.startProgram(p)
	}
	if err := c.furnish(ctx); err != nil {
		return fmt.Errorf("setting up %s: %w", c.plan.Name, err)
	}
	progress(c.plan.Name + ": the control plane is ready")
	return nil
}

// waitForAPI waits until the API server is ready, and creates its client.
func (c *Cluster) waitForAPI(ctx context.Context) error {
	err := waitUntil(ctx, func(ctx context.Context) error { return ready(ctx, c.config) })
	if err != nil {
		return fmt.Errorf("waiting for the kube-apiserver of %s: %w", c.plan.Name, err)
	}
	if c.client, err = client.New(c.config, client.Options{}); err != nil {
		return fmt.Errorf("connecting to %s: %w", c.plan.Name, err)
	}
	return nil
}

// ready checks an API server's readiness.
func ready(ctx context.Context, config *rest.Config) error {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return discoverer.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// furnish applies the cluster's objects and waits until its controllers work.
func (c *Cluster) furnish(ctx context.Context) error {
	if err := c.furnishOCM(ctx); err != nil {
		return err
	}
	definitions, err := c.plan.customResourceDefinitions()
	if err != nil {
		return err
	}
	c.callWebhooks(definitions)
	if err := applyDefinitions(ctx, c.client, definitions); err != nil {
		return err
	}
	for _, pattern := range c.plan.tandemManifests() {
		if err := c.applyManifests(ctx, manifests.FS, pattern, nil); err != nil {
			return err
		}
	}
	if !c.plan.isManaged() {
		return waitForController(ctx, c.client)
	}
	if err := c.applyManifests(ctx, clusterFiles, "cluster/managed.yaml", nil); err != nil {
		return err
	}
	for _, start := range []func() error{c.startVolumes, c.startKubelets} {
		if err := start(); err != nil {
			return err
		}
	}
	if err := waitForController(ctx, c.client); err != nil {
		return err
	}
	return waitForNodes(ctx, c.client)
}

func (c *Cluster) applyManifests(ctx context.Context, fsys fs.FS, pattern string, parameters any) error {
	objects, err := manifests.Objects(fsys, pattern, parameters)
	if err != nil {
		return err
	}
	c.callWebhooks(objects)
	return applyAll(ctx, c.client, objects)
}

// callWebhooks points webhook configurations at addon-manager's address: a hub has no pods, so a Service has no endpoints.
func (c *Cluster) callWebhooks(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		manifests.WebhooksAt(object, "https://"+c.plan.webhooks())
	}
}

// startVolumes runs the volume provisioner in this process.
func (c *Cluster) startVolumes() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.plan.identity("volumes"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the provisioner: %w", err)
	}
	config.QPS, config.Burst = requestsPerSecond, 2*requestsPerSecond
	return c.manage("volumes", func(logger logr.Logger) (manager.Manager, error) {
		return newVolumeProvisioner(config, logger)
	})
}

// startPods runs the pod runner in this process, if the cluster can have pods for it.
func (c *Cluster) startPods() error {
	if !c.plan.runsPods() {
		return nil
	}
	return c.manage("pods", c.newPodRunner)
}

// manage runs a manager in this process until the cluster stops, with its own log next to the programs' logs.
func (c *Cluster) manage(name string, newManager func(logr.Logger) (manager.Manager, error)) error {
	log, err := openLog(c.plan.folder().log(name))
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	mgr, err := newManager(logger)
	if err != nil {
		_ = log.Close()
		return err
	}
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logger))
	c.stops = append(c.stops, cancel)
	c.serving.Go(func() {
		defer log.Close()
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintf(log, "%s ended, and is not restarted: %v\n", name, err)
		}
	})
	return nil
}

// accept registers a managed cluster on this hub in place of OCM: it creates the ManagedCluster, the namespace and the permissions of its
// agent.
func (c *Cluster) accept(ctx context.Context, managed *Cluster, now time.Time) error {
	name := managed.plan.Name
	registration := managedCluster(name, managed.plan.server(), managed.authority.Certificate)
	if err := applyAll(ctx, c.client, []*unstructured.Unstructured{registration}); err != nil {
		return err
	}
	if err := applyStatusOnce(ctx, c.client, managedClusterStatus(name, now)); err != nil {
		return err
	}
	return c.admitAgent(ctx, name)
}

// admitAgent grants the agent of a managed cluster its permissions on this hub.
func (c *Cluster) admitAgent(ctx context.Context, cluster string) error {
	return c.applyManifests(ctx, manifests.FS, "cluster/*.yaml", manifests.ClusterParameters{Cluster: cluster})
}

// startTandem runs one of Tandem's programs and waits until it is ready.
func (c *Cluster) startTandem(ctx context.Context, p program) error {
	c.startProgram(p)
	return c.waitForTandem(ctx, p)
}

// receiveAgent enables Tandem's agent for this cluster as an OCM add-on, and waits until it is delivered and ready.
func (c *Cluster) receiveAgent(ctx context.Context, hub *Cluster) error {
	if err := applyAll(ctx, hub.client, []*unstructured.Unstructured{agentAddOn(c.plan.Name)}); err != nil {
		return err
	}
	return c.waitForTandem(ctx, c.plan.addonAgent())
}

// waitForTandem waits until Tandem's program on this cluster is ready.
func (c *Cluster) waitForTandem(ctx context.Context, p program) error {
	ctx, stop := c.withCrashWatch(ctx)
	defer stop()
	url := "http://" + loopback(c.plan.port("health")) + "/readyz"
	err := waitUntil(ctx, func(ctx context.Context) error { return probe(ctx, http.DefaultClient, url) })
	if err != nil {
		return fmt.Errorf("waiting for the %s of %s: %w", p.Name, c.plan.Name, err)
	}
	return nil
}

// startProgram starts a program of the cluster.
func (c *Cluster) startProgram(p program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, startProcess(p, c.plan.folder(), c.spawner, c.onChange))
}

// runs reports whether the program runs, or is starting, with the same arguments.
func (c *Cluster) runs(p program) bool {
	return slices.ContainsFunc(c.runningProcesses(), func(process *process) bool {
		return process.program.Name == p.Name && process.program.Pod == p.Pod && slices.Equal(process.program.Args, p.Args)
	})
}

// end stops the selected programs of the cluster permanently, and returns when they have exited.
func (c *Cluster) end(which func(program) bool) {
	ending := slices.DeleteFunc(c.runningProcesses(), func(p *process) bool { return !which(p.program) })
	if len(ending) == 0 {
		return
	}
	for _, process := range ending {
		process.stop()
	}
	c.mu.Lock()
	c.processes = slices.DeleteFunc(c.processes, func(p *process) bool { return slices.Contains(ending, p) })
	c.mu.Unlock()
	c.onChange()
}

// withCrashWatch returns a context that is cancelled when a program of the cluster has exited too often; the cause names it and includes
// the end of its log. The caller calls stop to end the watch.
func (c *Cluster) withCrashWatch(ctx context.Context) (watched context.Context, stop context.CancelFunc) {
	watched, cancel := context.WithCancelCause(ctx)
	go wait.UntilWithContext(watched, func(context.Context) {
		for _, process := range c.runningProcesses() {
			if process.program.Root != "" {
				continue // a pod's program, which may have to wait for others of its add-on
			}
			if err := process.crashError(); err != nil {
				cancel(err)
			}
		}
	}, pollInterval)
	return watched, func() { cancel(context.Canceled) }
}

func (c *Cluster) runningProcesses() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// stop stops the cluster's programs in reverse order of their start, and returns when all have exited.
func (c *Cluster) stop() {
	for _, stop := range c.stops {
		stop()
	}
	c.serving.Wait()
	for _, process := range slices.Backward(c.runningProcesses()) {
		process.stop()
	}
}
