package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// startTimeout is the timeout for the start of a sandbox; programs that keep exiting are given up much earlier.
const startTimeout = 3 * time.Minute

// Options configures a sandbox.
type Options struct {
	// Home is the folder of the sandbox; it is created if it does not exist.
	Home string
	// Clusters is the number of managed clusters: cluster1, cluster2, …
	Clusters int
	// Assets is the folder of the control plane programs. If empty, it is found by TANDEM_ASSETS, KUBEBUILDER_ASSETS or in the cache that
	// hack/controlplane fills.
	Assets string
	// Tandem is the folder of addon-manager and addon-agent. If empty, they do not run.
	Tandem string
	// OCM is the folder of OCM's programs and manifests (FindOCM), which register the clusters, deliver ManifestWorks, decide Placements
	// and install add-ons. If empty, the sandbox registers the clusters itself.
	OCM string
	// DeliverAgents lets addon-manager deliver its agents as an OCM add-on, instead of starting them beside the clusters: their manifests
	// arrive in ManifestWorks, and they get their identity from OCM's registration. It requires OCM and Tandem.
	DeliverAgents bool
	// Images is a folder with a subfolder for each image, named like the last part of the image's name, with the programs that its
	// containers run. Deployments of these images run as processes, on the hub too. Each container has a root folder of its own, which
	// requires Linux or root, and all share this machine's ports.
	Images string
	// AgentFlags are additional flags of addon-agent.
	AgentFlags []string
	// AllowedNamespaces are the reserved namespaces of managed clusters in which packages may be installed, and to which they may apply
	// objects, separated by commas; empty for none.
	AllowedNamespaces string
	// AuditPolicy, if set, is the audit policy of the API servers instead of cluster/audit.yaml.
	AuditPolicy []byte
	// Progress, if set, is called with one line for each stage.
	Progress func(line string)
	// DownCommand is the command line that stops this sandbox and deletes its data, for messages of errors.
	DownCommand string
}

// clusterNames returns the names of the managed clusters.
func (o Options) clusterNames() []string {
	names := make([]string, o.Clusters)
	for i := range names {
		names[i] = fmt.Sprintf("cluster%d", i+1)
	}
	return names
}

// complete validates the options and makes their paths absolute, except for the assets, which a running sandbox does not need.
func (o Options) complete() (Options, error) {
	if o.Clusters < 0 || o.Clusters > 50 {
		return o, fmt.Errorf("invalid number of managed clusters %d: must be from 0 to 50", o.Clusters)
	}
	var err error
	if o.Home, err = filepath.Abs(o.Home); err != nil {
		return o, fmt.Errorf("finding the sandbox's home: %w", err)
	}
	if o.OCM, err = checkOCM(o.OCM); err != nil {
		return o, err
	}
	if o.Images, err = checkImages(o.Images); err != nil {
		return o, err
	}
	if o.DeliverAgents && (o.OCM == "" || o.Tandem == "") {
		return o, errors.New("delivering agents requires both OCM and Tandem")
	}
	o.Tandem, err = checkTandem(o.Tandem)
	return o, err
}

// checkTandem returns the absolute path of a folder of Tandem's programs, or an empty string if none is given.
func checkTandem(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	if missing := missingPrograms(folder, []string{"addon-manager", agentProgram}); len(missing) > 0 {
		return "", fmt.Errorf("the folder %q does not contain %s; run `make build` to build them, or set --without-tandem",
			folder, strings.Join(missing, " and "))
	}
	return filepath.Abs(folder)
}

// Sandbox is a hub and its managed clusters, run by this process.
type Sandbox struct {
	home     home
	options  Options
	release  func()
	spawner  *spawner
	clusters []*Cluster

	releasePorts func() // nil before ports are reserved

	mu    sync.Mutex
	state State
}

// Start starts a sandbox and returns when all of it is ready; ctx limits the start, not the lifetime of the sandbox. Data that Stop left in
// the home is reused. After an error nothing runs; the error of a program that does not start includes the end of its log.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	if options.Assets, err = findAssets(options.Assets, os.Getenv); err != nil {
		return nil, err
	}
	s := &Sandbox{home: home(options.Home), options: options}
	if err := s.home.prepare(); err != nil {
		return nil, err
	}
	previous, err := previousState(s.home, options)
	if err != nil {
		return nil, err
	}
	if s.release, err = s.home.lock(); err != nil {
		return nil, fmt.Errorf("starting a sandbox in %s: %w", options.Home, err)
	}
	s.spawner = newSpawner()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the sandbox did not become ready in time"))
	defer cancel()
	if err := s.start(ctx, previous.Ports); err != nil {
		s.end(Failed, err)
		return nil, err
	}
	s.change(func(state *State) { state.Phase = Ready })
	return s, nil
}

// Stop stops all programs in order of dependencies. The data is kept; Remove deletes it.
func (s *Sandbox) Stop() {
	s.change(func(state *State) { state.Phase = Stopping })
	s.end(Stopped, nil)
}

// Remove deletes everything that a stopped sandbox has left in the home.
func Remove(path string) error {
	h := home(path)
	running, err := h.isRunning()
	if err != nil {
		return err
	}
	if running {
		return fmt.Errorf("removing the sandbox in %s: %w", path, errRunning)
	}
	return h.remove()
}

// Hub returns the hub.
func (s *Sandbox) Hub() *Cluster { return s.clusters[0] }

// Cluster returns the cluster of that name, or nil.
func (s *Sandbox) Cluster(name string) *Cluster {
	for _, cluster := range s.clusters {
		if cluster.Name() == name {
			return cluster
		}
	}
	return nil
}

// State returns the state of the sandbox and all of its programs.
func (s *Sandbox) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot()
}

// snapshot returns the state. The caller holds the lock.
func (s *Sandbox) snapshot() State {
	state := s.state
	state.Progress = slices.Clone(state.Progress)
	state.Ports = maps.Clone(state.Ports)
	state.Clusters = nil
	for _, cluster := range s.clusters {
		state.Clusters = append(state.Clusters, cluster.State())
	}
	return state
}

func (s *Sandbox) start(ctx context.Context, formerPorts map[string]int) error {
	if err := s.prepare(formerPorts); err != nil {
		return err
	}
	s.progress("starting the control planes of the hub and " + ManagedClusters(s.options.Clusters))
	err := each(s.clusters, func(c *Cluster) error {
		if err := c.start(ctx, s.progress); err != nil || c.plan.isManaged() {
			return err
		}
		return s.startHub(ctx)
	})
	if err != nil {
		return err
	}
	if err := s.register(ctx); err != nil {
		return err
	}
	if err := each(s.clusters, (*Cluster).startPods); err != nil {
		return err
	}
	if s.options.Tandem == "" {
		s.progress(s.Hub().plan.withoutTandemText())
		return nil
	}
	return s.startTandem(ctx)
}

// startHub starts the programs of the hub other than its control plane. They start before the managed clusters: the hub's garbage collector
// reads add-ons in v1beta1, which requires the conversion by OCM or addon-manager, and retries with increasing delays until then.
func (s *Sandbox) startHub(ctx context.Context) error {
	if s.options.OCM != "" {
		if err := s.Hub().startOCM(ctx); err != nil {
			return err
		}
		s.progress("hub: OCM is ready")
	}
	if s.options.Tandem == "" {
		return nil
	}
	return s.Hub().startTandem(ctx, s.Hub().plan.addonManager())
}

// register registers the managed clusters with the hub.
func (s *Sandbox) register(ctx context.Context) error {
	return each(s.clusters[1:], func(c *Cluster) error {
		if s.options.OCM == "" {
			if err := s.Hub().accept(ctx, c, time.Now()); err != nil {
				return fmt.Errorf("registering %s on the hub: %w", c.Name(), err)
			}
			return nil
		}
		if err := c.join(ctx, s.Hub()); err != nil {
			return err
		}
		s.progress(c.Name() + ": registered by OCM")
		if s.options.DeliverAgents {
			return nil
		}
		return s.Hub().admitAgent(ctx, c.Name())
	})
}

// previousState returns the state of a previous sandbox in the home. It returns an error if that had more clusters, because they are
// registered with the hub, or if only one of the two runs OCM, because their resource definitions differ.
func previousState(h home, options Options) (State, error) {
	previous, err := readState(h)
	if err != nil {
		return State{}, err
	}
	had := len(previous.Clusters) - 1
	if had > options.Clusters {
		return State{}, fmt.Errorf("the data in %s is for %s, more than %d: "+
			"start as many, or delete the data (`%s`)", string(h), ManagedClusters(had), options.Clusters, options.DownCommand)
	}
	if had >= 0 && previous.ocmText() != options.ocmText() {
		return State{}, fmt.Errorf("the data in %s is from a sandbox that %s: start the same, or delete the data (`%s`)",
			string(h), previous.ocmText(), options.DownCommand)
	}
	return previous, nil
}

// prepare reserves ports, the previous ones if they are free, and writes the files of all clusters.
func (s *Sandbox) prepare(formerPorts map[string]int) error {
	ports, releasePorts, err := allocatePorts(portKeys(s.options), formerPorts)
	if err != nil {
		return err
	}
	s.releasePorts = releasePorts
	s.mu.Lock()
	s.state = State{
		PID: os.Getpid(), Phase: Starting, Assets: s.options.Assets, Tandem: s.options.Tandem, OCM: s.options.OCM,
		Images: s.options.Images, DeliverAgents: s.options.DeliverAgents, Ports: ports,
	}
	s.mu.Unlock()
	for _, name := range append([]string{hubName}, s.options.clusterNames()...) {
		plan := clusterPlan{
			Name: name, Home: s.home, Assets: s.options.Assets, Tandem: s.options.Tandem, OCM: s.options.OCM, Ports: ports,
			Images: s.options.Images, DeliverAgents: s.options.DeliverAgents, AgentFlags: s.options.AgentFlags, AuditPolicy: s.options.AuditPolicy,
			AllowedNamespaces: s.options.AllowedNamespaces,
		}
		cluster, err := newCluster(plan, s.spawner, s.publish, time.Now())
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.clusters = append(s.clusters, cluster)
		s.mu.Unlock()
	}
	for _, managed := range s.clusters[1:] {
		for name, id := range managed.plan.hubIdentities() {
			if err := s.Hub().issueKubeconfig(managed.plan.identity(name), id, time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sandbox) startTandem(ctx context.Context) error {
	err := each(s.clusters[1:], func(c *Cluster) error {
		if s.options.DeliverAgents {
			return c.receiveAgent(ctx, s.Hub())
		}
		return c.startTandem(ctx, c.plan.addonAgent())
	})
	if err == nil {
		s.progress("addon-manager and the agents are ready")
	}
	return err
}

// end stops Tandem and the control planes of the managed clusters, then the hub.
func (s *Sandbox) end(phase Phase, cause error) {
	if len(s.clusters) > 0 {
		_ = each(s.clusters[1:], func(c *Cluster) error { c.stop(); return nil })
		s.Hub().stop()
	}
	s.spawner.close()
	if s.releasePorts != nil {
		s.releasePorts()
	}
	s.change(func(state *State) {
		state.Phase = phase
		if cause != nil {
			state.Error = cause.Error()
		}
	})
	s.release()
}

func (s *Sandbox) progress(line string) {
	s.change(func(state *State) { state.Progress = append(state.Progress, line) })
	if s.options.Progress != nil {
		s.options.Progress(line)
	}
}

func (s *Sandbox) change(mutate func(*State)) {
	s.mu.Lock()
	mutate(&s.state)
	s.mu.Unlock()
	s.publish()
}

// publish writes the state file. The file only informs other processes, so a failure is visible there but does not end the sandbox.
func (s *Sandbox) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := writeState(s.home, s.snapshot()); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
}

// each calls do for all clusters concurrently, and joins the errors.
func each(clusters []*Cluster, do func(*Cluster) error) error {
	failures := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, cluster := range clusters {
		group.Go(func() { failures[i] = do(cluster) })
	}
	group.Wait()
	return errors.Join(failures...)
}
