// Package story tells, on a sandbox, what Tandem is for, act by act, and checks on the API servers that every act really
// happened. It does I/O.
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

// patience is how long an act may take until everything that it promises holds.
const patience = 2 * time.Minute

// Options say where the story is told.
type Options struct {
	// Hub and Clusters are kubeconfig files; the clusters' by name, cluster1 and cluster2 among them.
	Hub      string
	Clusters map[string]string

	// Plugin is the kubectl-addon program, and Packages the folder that holds the packages zookeeper and kafka.
	Plugin, Packages string

	// Check adds an epilogue to the story: who wrote what, and that nothing is written at rest.
	Check bool

	// AuditLogs are the audit logs of the API servers, by cluster; needed for Check.
	AuditLogs map[string]string

	// Out is where the story is told.
	Out io.Writer
}

// Stand says where the clusters of a sandbox are.
func (o *Options) Stand(state sandbox.State) {
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

// Validate is an error if the plugin or a package is not where the options say. It touches no cluster.
func (o *Options) Validate() error {
	info, err := os.Stat(o.Plugin)
	if err != nil {
		return fmt.Errorf("finding the kubectl plugin (`make build` builds it): %w", err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("the kubectl plugin %s is not a program; `make build` builds it", o.Plugin)
	}
	for _, name := range packages() {
		if _, err := os.Stat(filepath.Join(o.Packages, name, "operator.yaml")); err != nil {
			return fmt.Errorf("finding package %s in folder %q (examples/packages of the repository has it): %w", name, o.Packages, err)
		}
	}
	return nil
}

// addOns are those that the story is about.
func addOns() []string { return []string{"zookeeper", "kafka"} }

// packages are theirs, and the one that brings both along.
func packages() []string { return append(addOns(), "streaming") }

// ActError says which act failed, and what was seen instead of what it promised.
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
	// do may be called again when it failed.
	do func(context.Context, *stage) error
	// promises hold, all at once, when the act is over.
	promises []promise
}

// promise is something that can be seen on the API servers. A nil error says that it holds; any other says what is seen
// instead.
type promise struct {
	says string
	kept func(context.Context, *stage) error
}

// stage is where the story is told.
type stage struct {
	Options
	hub      client.Client
	clusters map[string]client.Client
	progress progress

	// printed are the lines about commands that were shown already: an act may be begun more than once.
	printed map[string]bool

	// Before an act that changes something, what was executed last, and the pods that ran.
	executed map[string]types.UID
	pods     map[string]types.UID
}

// Tell tells the story from its beginning. An *ActError says which act failed.
func Tell(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	s, err := newStage(o)
	if err != nil {
		return err
	}
	if err := s.await(ctx, "looking at the stage", []promise{{"the hub can be read", tellOfClearing}}); err != nil {
		return err
	}
	if err := s.await(ctx, "clearing the stage", []promise{{"nothing is left of an earlier telling", clear}}); err != nil {
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

// play carries an act out and waits until its promises hold.
func (s *stage) play(ctx context.Context, a act) error {
	begun := promise{"it can be begun", a.do}
	if err := s.await(ctx, a.title, []promise{begun}); err != nil {
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

// await waits until promises hold, telling of progress meanwhile.
func (s *stage) await(ctx context.Context, title string, promises []promise) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const interval = 100 * time.Millisecond
	for {
		broken := s.firstBroken(ctx, title, promises)
		if err := s.progress.tell(ctx, s.hub); err != nil {
			return &ActError{Act: title, Promise: "phases follow one another", Err: err}
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

// firstBroken is the first promise that does not hold, nil if all do.
func (s *stage) firstBroken(ctx context.Context, title string, promises []promise) error {
	for _, p := range promises {
		if err := p.kept(ctx, s); err != nil {
			return &ActError{Act: title, Promise: p.says, Err: err}
		}
	}
	return nil
}
