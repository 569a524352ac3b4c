// Package story demonstrates Tandem on a sandbox, act by act, and checks the result of every act on the API servers. It does I/O.
package story

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
)

// actTimeout is the timeout for the promises of an act.
const actTimeout = 2 * time.Minute

// Options configures the story.
type Options struct {
	// Hub and Clusters are kubeconfig files; Clusters is keyed by name and includes cluster1 and cluster2.
	Hub      string
	Clusters map[string]string

	// Plugin is the path of kubectl-addon, and Packages the folder with the packages zookeeper and kafka.
	Plugin, Packages string

	// Check adds an epilogue that checks who wrote what, and that nothing is written at rest.
	Check bool

	// AuditLogs are the audit logs of the API servers, by cluster; required for Check.
	AuditLogs map[string]string

	// Out is the output of the story.
	Out io.Writer
}

// UseSandbox sets the kubeconfigs and audit logs from a sandbox.
func (o *Options) UseSandbox(state sandbox.State) {
	o.Clusters, o.AuditLogs = map[string]string{}, map[string]string{}
	for i, cluster := range state.Clusters {
		o.AuditLogs[cluster.Name] = cluster.AuditLog
		if i == 0 {
			o.Hub = cluster.Kubeconfig
			continue
		}
		o.Clusters[cluster.Name] = cluster.Kubeconfig
	}
}

// Validate returns an error if the plugin or a package does not exist. It does not connect to a cluster.
func (o *Options) Validate() error {
	info, err := os.Stat(o.Plugin)
	if err != nil {
		return fmt.Errorf("finding the kubectl plugin (run `make build` to build it): %w", err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("the kubectl plugin %s is not an executable file; run `make build` to build it", o.Plugin)
	}
	for _, name := range packages() {
		if _, err := os.Stat(filepath.Join(o.Packages, name, "operator.yaml")); err != nil {
			return fmt.Errorf("finding package %s in folder %q (the repository contains it in examples/packages): %w", name, o.Packages, err)
		}
	}
	return nil
}

// addOns returns the add-ons of the story.
func addOns() []string { return []string{"zookeeper", "kafka"} }

// packages returns the packages of the add-ons, and the one that has both as child operators.
func packages() []string { return append(addOns(), "streaming") }

// ActError names the failed act and the observed state.
type ActError struct {
	Act     string
	Promise string
	Err     error
}

func (e *ActError) Error() string {
	return fmt.Sprintf("act %q failed: expected that %s, but %v", e.Act, e.Promise, e.Err)
}

func (e *ActError) Unwrap() error { return e.Err }

// act is one part of the story.
type act struct {
	title string
	// do may be called again after a failure.
	do func(context.Context, *stage) error
	// promises all hold when the act is over.
	promises []promise
}

// promise is a check on the API servers. It returns nil if it holds, else an error that describes the observed state.
type promise struct {
	says string
	kept func(context.Context, *stage) error
}

// stage holds the connections and the state of the story.
type stage struct {
	Options
	hub      client.Client
	clusters map[string]client.Client
	progress progress

	// printed holds the lines that were already printed, because an act may start more than once.
	printed map[string]bool

	// The last executions and the running pods, recorded before an act that changes something.
	executed map[string]types.UID
	pods     map[string]types.UID
}

// Run runs the story from its beginning. It returns an *ActError if an act fails.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	s, err := newStage(o)
	if err != nil {
		return err
	}
	if err := s.await(ctx, "checking the clusters", []promise{{"the hub can be read", printClearing}}); err != nil {
		return err
	}
	if err := s.await(ctx, "cleaning up", []promise{{"nothing remains of an earlier run", clear}}); err != nil {
		return err
	}
	acts := story()
	if o.Check {
		acts = append(acts, epilogue())
	}
	for i, a := range acts {
		fmt.Fprintf(o.Out, "\n%d. %s\n", i+1, a.title)
		if err := s.play(ctx, a); err != nil {
			return err
		}
		if err := s.await(ctx, a.title, []promise{{"the hub can be read", table}}); err != nil {
			return err
		}
	}
	return nil
}

func newStage(o Options) (*stage, error) {
	s := &stage{Options: o, clusters: map[string]client.Client{}, printed: map[string]bool{}, progress: progress{out: o.Out}}
	var err error
	if s.hub, err = connect(o.Hub, warnings{o.Out}); err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	for name, kubeconfig := range o.Clusters {
		if s.clusters[name], err = connect(kubeconfig, warnings{o.Out}); err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", name, err)
		}
	}
	return s, nil
}

func connect(kubeconfig string, warn warnings) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1alpha1.AddToScheme, kudo.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = warn
	return client.New(config, client.Options{Scheme: scheme})
}

// play executes an act and waits until its promises hold.
func (s *stage) play(ctx context.Context, a act) error {
	started := promise{"it can start", a.do}
	if err := s.await(ctx, a.title, []promise{started}); err != nil {
		return err
	}
	if err := s.await(ctx, a.title, a.promises); err != nil {
		return err
	}
	for _, p := range a.promises {
		fmt.Fprintf(s.Out, "   ✓ %s\n", p.says)
	}
	return nil
}

// await waits until promises hold, and prints progress meanwhile.
func (s *stage) await(ctx context.Context, title string, promises []promise) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	const interval = 100 * time.Millisecond
	for {
		broken := s.firstBroken(ctx, title, promises)
		if err := s.progress.report(ctx, s.hub); err != nil {
			return &ActError{Act: title, Promise: "phases run in order", Err: err}
		}
		if broken == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return broken
		case <-time.After(interval):
		}
	}
}

// firstBroken returns the error of the first promise that does not hold, or nil if all do.
func (s *stage) firstBroken(ctx context.Context, title string, promises []promise) error {
	for _, p := range promises {
		if err := p.kept(ctx, s); err != nil {
			return &ActError{Act: title, Promise: p.says, Err: err}
		}
	}
	return nil
}
