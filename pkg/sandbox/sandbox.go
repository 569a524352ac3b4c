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

// startTimeout is how long a sandbox may take to start; programs that keep ending are given up much earlier.
const startTimeout = 3 * time.Minute

// Options say what to run, and where.
type Options struct {
	// Home is the folder that holds everything; it is made if it does not exist.
	Home string
	// Clusters is the number of managed clusters: cluster1, cluster2, …
	Clusters int
	// Assets is the folder with the control plane's programs. If empty, they are found by TANDEM_ASSETS, KUBEBUILDER_ASSETS or in
	// the cache that hack/controlplane fills.
	Assets string
	// Tandem is the folder with addon-manager and addon-agent, which are run then; without it the clusters stay bare.
	Tandem string
	// OCM is the folder with OCM's programs and manifests (FindOCM), which are run then: they register the clusters, deliver
	// ManifestWorks, decide Placements and install add-ons. Without it the sandbox registers the clusters in their place.
	OCM string
	// DeliverAgents lets addon-manager deliver its agents as an add-on of OCM's, instead of starting them beside the clusters: their
	// manifests arrive in ManifestWorks, and they get their identity by OCM's registration. It needs OCM and Tandem.
	DeliverAgents bool
	// Images is a folder with one for each image, named like the last part of the image's name, in which lie the programs that its
	// containers run. Deployments of these images run as processes then, on the hub too. Each container has a root folder of its own,
	// which takes Linux or root, and all share this machine's ports.
	Images string
	// AgentFlags are given to addon-agent beside those that it needs.
	AgentFlags []string
	// AuditPolicy, if set, says what the API servers log, in the place of cluster/audit.yaml.
	AuditPolicy []byte
	// Progress, if set, is told one line for each stage.
	Progress func(line string)
	// DownCommand is the command line that stops this sandbox and deletes its data, for the advice in errors.
	DownCommand string
}

// clusterNames are the names of the managed clusters.
func (o Options) clusterNames() []string {
	names := make([]string, o.Clusters)
	for i := range names {
		names[i] = fmt.Sprintf("cluster%d", i+1)
	}
	return names
}

// complete checks the options and makes their paths absolute, except for the assets: a sandbox that runs needs none.
func (o Options) complete() (Options, error) {
	if o.Clusters < 0 || o.Clusters > 50 {
		return o, fmt.Errorf("a sandbox has 0 to 50 managed clusters, not %d", o.Clusters)
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
		return o, errors.New("agents are delivered where both OCM and Tandem run")
	}
	o.Tandem, err = checkTandem(o.Tandem)
	return o, err
}

// checkTandem is the absolute path of a folder with Tandem's programs, empty if none is named.
func checkTandem(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	if missing := missingPrograms(folder, []string{"addon-manager", agentProgram}); len(missing) > 0 {
		return "", fmt.Errorf("the folder %q lacks %s; `make build` builds them, --without-tandem does without",
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

	releasePorts func() // nil before there are any

	mu    sync.Mutex
	state State
}

// Start runs a sandbox and returns when all of it is ready; ctx bounds the start, not the life of the sandbox. Data that
// Stop left in the home is used again. On an error nothing runs; a program that does not start is named with the end of
// its log.
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
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the sandbox did not get ready in time"))
	defer cancel()
	if err := s.start(ctx, previous.Ports); err != nil {
		s.end(Failed, err)
		return nil, err
	}
	s.change(func(state *State) { state.Phase = Ready })
	return s, nil
}

// Stop ends all programs, the ones that depend on others first. The data stays; Remove deletes it.
func (s *Sandbox) Stop() {
	s.change(func(state *State) { state.Phase = Stopping })
	s.end(Stopped, nil)
}

// Remove deletes everything that a sandbox that does not run has left in the home.
func Remove(path string) error {
	h := home(path)
	running, err := h.running()
	if err != nil {
		return err
	}
	if running {
		return fmt.Errorf("removing the sandbox in %s: %w", path, errRunning)
	}
	return h.remove()
}

// Hub is the hub.
func (s *Sandbox) Hub() *Cluster { return s.clusters[0] }

// Cluster is the cluster of that name, nil if there is none.
func (s *Sandbox) Cluster(name string) *Cluster {
	for _, cluster := range s.clusters {
		if cluster.Name() == name {
			return cluster
		}
	}
	return nil
}

// State tells about the sandbox and all of its programs.
func (s *Sandbox) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot()
}

// snapshot is State for a caller that holds the lock.
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
		if err := c.start(ctx, s.progress); err != nil || c.plan.managed() {
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
		s.progress(s.Hub().plan.withoutTandem())
		return nil
	}
	return s.startTandem(ctx)
}

// startHub runs what works on the hub beside its control plane. That is at once, and not after the managed clusters: the hub's garbage
// collector reads add-ons in v1beta1, which OCM or addon-manager convert, and tries again ever more slowly while nobody does.
func (s *Sandbox) startHub(ctx context.Context) error {
	if s.options.OCM != "" {
		if err := s.Hub().startOCM(ctx); err != nil {
			return err
		}
		s.progress("hub: OCM works")
	}
	if s.options.Tandem == "" {
		return nil
	}
	return s.Hub().startTandem(ctx, s.Hub().plan.addonManager())
}

// register makes the managed clusters known to the hub.
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
		s.progress(c.Name() + ": OCM has registered it")
		if s.options.DeliverAgents {
			return nil
		}
		return s.Hub().admitAgent(ctx, c.Name())
	})
}

// previousState is what a former sandbox left in the home. One with more clusters is refused: the hub knows them. So is one that
// differs in whether OCM runs: the resource definitions on its hub are others.
func previousState(h home, options Options) (State, error) {
	previous, err := readState(h)
	if err != nil {
		return State{}, err
	}
	had := len(previous.Clusters) - 1
	if had > options.Clusters {
		return State{}, fmt.Errorf("the data in %s is of %s, more than %d: "+
			"ask for as many, or remove it (`%s`)", string(h), ManagedClusters(had), options.Clusters, options.DownCommand)
	}
	if had >= 0 && previous.runsOCM() != options.runsOCM() {
		return State{}, fmt.Errorf("the data in %s is of a sandbox that %s: ask for the same, or remove it (`%s`)",
			string(h), previous.runsOCM(), options.DownCommand)
	}
	return previous, nil
}

// prepare reserves ports, former ones if they are free, and writes the files of all clusters.
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

// end stops what runs: Tandem and the control planes of the managed clusters, then the hub.
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

// publish writes the state file. It is there for onlookers: a failure shows in their view, and must not end the sandbox.
func (s *Sandbox) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := writeState(s.home, s.snapshot()); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
}

// each calls do for all clusters side by side, and joins the errors.
func each(clusters []*Cluster, do func(*Cluster) error) error {
	failures := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, cluster := range clusters {
		group.Go(func() { failures[i] = do(cluster) })
	}
	group.Wait()
	return errors.Join(failures...)
}
