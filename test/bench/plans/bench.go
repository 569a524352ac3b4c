package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	_ "embed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
)

//go:embed audit.yaml
var auditPolicy []byte

const (
	// cluster is the sandbox's managed cluster.
	cluster = "cluster1"
	// poll is how often what is waited for is looked at. No measured time depends on it.
	poll = 100 * time.Millisecond
	// patience is how long to wait for anything.
	patience = 10 * time.Minute
	// inFlight is how many requests of the bench itself are under way at a time.
	inFlight = 10
)

// bench is one run.
type bench struct {
	settings
	box *sandbox.Sandbox
	// hub and managed are an administrator's clients.
	hub     client.Client
	managed dynamic.Interface
	bare    *bareClient
	log     *audit.Log
	say     func(format string, arguments ...any)
}

// measure starts a sandbox and measures each row in it. Whatever happens, nothing that it started is left.
func measure(ctx context.Context, s settings, progress io.Writer) (measured *report, err error) {
	began := time.Now()
	b := &bench{settings: s, say: func(format string, arguments ...any) {
		fmt.Fprintf(progress, "bench: %5.0fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, arguments...))
	}}
	folder, err := os.MkdirTemp("", "tandem-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b.box, err = sandbox.Start(ctx, sandbox.Options{
		Home: filepath.Join(folder, "home"), Clusters: 1, Tandem: s.programs, AuditPolicy: auditPolicy,
		// What is measured is the managed cluster: the hub is not to slow it down.
		AgentFlags: []string{
			"--hub-api-qps=1000", "--hub-api-burst=1000",
			fmt.Sprintf("--kube-api-qps=%v", s.limits.QPS), fmt.Sprintf("--kube-api-burst=%d", s.limits.Burst),
		},
		Progress: func(line string) { b.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	defer b.box.Stop()
	if err := b.connect(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.log.Close()) }()
	return b.rows(ctx)
}

// connect makes the clients, and pushes the package.
func (b *bench) connect(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kudo.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("registering API types: %w", err)
	}
	var err error
	if b.hub, err = client.New(b.box.Hub().Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	config := b.box.Cluster(cluster).Config()
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	if b.managed, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	if b.bare, err = newBareClient(ctx, admin, config, b.limits); err != nil {
		return err
	}
	if err := b.hub.Create(ctx, operator()); err != nil {
		return fmt.Errorf("pushing the package: %w", err)
	}
	b.log, err = audit.Open(b.box.Cluster(cluster).AuditLog())
	return err
}

func (b *bench) rows(ctx context.Context) (*report, error) {
	measured, err := b.describe()
	if err != nil {
		return nil, err
	}
	for _, count := range b.instances {
		var runs []row
		for range b.runs {
			r, err := b.row(ctx, count)
			if err != nil {
				return nil, fmt.Errorf("%d instances: %w", count, err)
			}
			b.say("%d instances: %.2fs, the bare client %.2fs, %.1f requests a step", count, r.Seconds, r.BareClientSeconds, r.RequestsPerStep)
			runs = append(runs, r)
		}
		slices.SortFunc(runs, func(a, b row) int { return cmp.Compare(a.Ratio, b.Ratio) })
		measured.Rows = append(measured.Rows, runs[len(runs)/2])
	}
	return measured, nil
}

// row deploys Instances, then applies the same by the bare client while addon-agent stands still, and removes everything.
func (b *bench) row(ctx context.Context, count int) (row, error) {
	instances := make([]string, count)
	for i := range instances {
		instances[i] = fmt.Sprintf("bench-%03d", i)
	}
	d, used, err := b.deploy(ctx, instances)
	if err != nil {
		return row{}, err
	}
	bare, err := b.again(ctx, d)
	if err != nil {
		return row{}, err
	}
	if err := b.remove(ctx); err != nil {
		return row{}, err
	}
	entries, err := b.log.Next()
	if err != nil {
		return row{}, err
	}
	r := newRow(count, d, used, bare)
	for i := range entries {
		if entries[i].UserAgent == bareAgent {
			r.BareClientRequests++
		}
	}
	return r, nil
}

// deploy lets addon-agent deploy Instances that the hub has resolved, all at once.
func (b *bench) deploy(ctx context.Context, instances []string) (*deployment, process.Usage, error) {
	thaw, err := b.freeze()
	if err != nil {
		return nil, process.Usage{}, err
	}
	defer thaw()
	if err := program.Each(ctx, inFlight, instances, func(ctx context.Context, name string) error { return b.hub.Create(ctx, instance(name)) }); err != nil {
		return nil, process.Usage{}, fmt.Errorf("making Instances: %w", err)
	}
	if err := b.resolved(ctx, len(instances)); err != nil {
		return nil, process.Usage{}, err
	}
	if _, err := b.log.Next(); err != nil {
		return nil, process.Usage{}, err
	}
	if err := process.ClearPeak(b.agent()); err != nil {
		return nil, process.Usage{}, err
	}
	d := expect(instances)
	thaw()
	err = until(ctx, "all plans are recorded as complete", func(context.Context) (bool, error) {
		entries, err := b.log.Next()
		return d.complete(), errors.Join(err, d.add(entries))
	})
	if err != nil {
		return nil, process.Usage{}, err
	}
	used, err := process.UsageOf(b.agent())
	return d, used, err
}

// again removes what was deployed, and applies it by the bare client; addon-agent stands still meanwhile. It returns how long that took.
func (b *bench) again(ctx context.Context, d *deployment) (time.Duration, error) {
	thaw, err := b.freeze()
	if err != nil {
		return 0, err
	}
	defer thaw()
	if err := program.Each(ctx, inFlight, d.objects(), b.delete); err != nil {
		return 0, err
	}
	began := time.Now()
	err = b.bare.deploy(ctx, deploy, d.applied)
	return time.Since(began), err
}

// delete removes an object and what belongs to it, and returns when all is gone.
func (b *bench) delete(ctx context.Context, o object) error {
	objects := b.managed.Resource(o.resource).Namespace(o.Namespace)
	foreground := metav1.DeletePropagationForeground
	if err := objects.Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		return fmt.Errorf("deleting %s %s: %w", o.resource.Resource, o.NamespacedName, err)
	}
	return until(ctx, o.String()+" is gone", func(ctx context.Context) (bool, error) {
		_, err := objects.Get(ctx, o.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// resolved waits until the hub has resolved that many Instances.
func (b *bench) resolved(ctx context.Context, count int) error {
	return until(ctx, "the hub has resolved all Instances", func(ctx context.Context) (bool, error) {
		var list kudo.InstanceList
		err := b.hub.List(ctx, &list)
		waiting := slices.ContainsFunc(list.Items, func(i kudo.Instance) bool {
			return !meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionResolved)
		})
		return len(list.Items) == count && !waiting, err
	})
}

// remove deletes all Instances, and waits until addon-agent has removed them.
func (b *bench) remove(ctx context.Context) error {
	if err := b.hub.DeleteAllOf(ctx, &kudo.Instance{}, client.InNamespace(cluster)); err != nil {
		return fmt.Errorf("deleting all Instances: %w", err)
	}
	return until(ctx, "all Instances are gone", func(ctx context.Context) (bool, error) {
		var list kudo.InstanceList
		err := b.hub.List(ctx, &list)
		return len(list.Items) == 0, err
	})
}

// agent is the process of addon-agent; 0 while it does not run.
func (b *bench) agent() int {
	for _, p := range b.box.Cluster(cluster).State().Processes {
		if p.Name == "addon-agent" {
			return p.PID
		}
	}
	return 0
}

// freeze makes addon-agent stand still until thaw is called, which may be done twice.
func (b *bench) freeze() (thaw func(), err error) {
	pid := b.agent()
	if pid == 0 {
		return nil, errors.New("addon-agent has ended")
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stopping addon-agent: %w", err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil // where that fails there is nothing to go on
}

// until waits for a condition, which done describes.
func until(ctx context.Context, done string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, poll, patience, true, condition); err != nil {
		return fmt.Errorf("waiting until %s: %w", done, err)
	}
	return nil
}
