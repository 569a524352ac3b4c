package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

//go:embed audit.yaml
var auditPolicy []byte

const (
	// inFlight is the number of concurrent requests of the benchmark itself.
	inFlight = 10
	// chartName is the name of the package and of its chart.
	chartName = "web"
	// namespace is the install namespace of the Instances, and helmNamespace that of the releases.
	namespace, helmNamespace = "bench", "bench-helm"
	// packages is the namespace of the packages on the hub.
	packages = "addon-packages"
)

// bench is one run.
type bench struct {
	settings
	*stage.Stage
	say func(format string, arguments ...any)
	// helmConfig is the kubeconfig of Helm.
	helmConfig string
}

// Measure compares times, then memory. It stops everything that it started, also after an error.
func (s *settings) Measure(ctx context.Context, progress io.Writer) (program.Report, error) {
	b := &bench{settings: *s, say: program.Progress(progress)}
	measured, err := b.describe()
	if err != nil {
		return nil, err
	}
	if s.instances > 0 {
		err = b.within(ctx, func() (err error) {
			measured.Rounds, err = b.rounds(ctx)
			return err
		})
	}
	for _, kind := range []packageKind{templates, charts} {
		if err == nil && s.packages > 0 {
			err = b.within(ctx, func() error {
				m, err := b.memoryOf(ctx, kind)
				measured.Memory = append(measured.Memory, m)
				return err
			})
		}
	}
	measured.summarize()
	return measured, err
}

// within calls do with a new sandbox.
func (b *bench) within(ctx context.Context, do func() error) (err error) {
	b.Stage, err = stage.Start(ctx, sandbox.Options{
		Tandem: b.programs, AuditPolicy: auditPolicy, AgentFlags: b.limits.Flags(),
		Progress: func(line string) { b.say("%s", line) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	return do()
}

// rounds measures addon-agent and Helm in turn.
func (b *bench) rounds(ctx context.Context) ([]round, error) {
	if err := b.push(ctx, b.folder); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "tandem-bench-helm-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := b.admitHelm(ctx, folder); err != nil {
		return nil, err
	}
	names := make([]string, b.instances)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%03d", i)
	}
	var measured []round
	for range b.runs {
		r, err := b.round(ctx, names)
		if err != nil {
			return measured, err
		}
		b.say("addon-agent %.1fs and %d requests, Helm %.1fs and %d requests", r.Agent.Seconds, r.Agent.Requests, r.Helm.Seconds, r.Helm.Requests)
		measured = append(measured, r)
	}
	return measured, nil
}

// round deploys Instances, removes them, and installs releases.
func (b *bench) round(ctx context.Context, names []string) (r round, err error) {
	if r.Agent, err = b.deploy(ctx, names); err != nil {
		return r, err
	}
	if r.Removal, err = b.remove(ctx); err != nil {
		return r, err
	}
	r.Helm, err = b.install(ctx)
	return r, err
}

// push stores a package on the hub by the plugin.
func (b *bench) push(ctx context.Context, folder string) error {
	command := exec.CommandContext(ctx, filepath.Join(b.programs, "kubectl-addon"), "package", "push", folder, "--kubeconfig", b.Hub.Kubeconfig())
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("pushing package %s: %w: %s", folder, err, out)
	}
	return nil
}

// instance returns an Instance of a package on the managed cluster.
func instance(name, operatorVersion string) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Managed, Name: name},
		Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: operatorVersion}, InstallNamespace: namespace,
		},
	}
}

// create creates Instances and waits until the hub has resolved them.
func (b *bench) create(ctx context.Context, instances []*kudo.Instance) error {
	err := program.Each(ctx, inFlight, instances, func(ctx context.Context, i *kudo.Instance) error { return b.Hub.Create(ctx, i) })
	if err != nil {
		return fmt.Errorf("creating Instances: %w", err)
	}
	return program.Until(ctx, "the hub has resolved all Instances", func(ctx context.Context) (bool, error) {
		var list kudo.InstanceList
		err := b.Hub.List(ctx, &list)
		waiting := slices.ContainsFunc(list.Items, func(i kudo.Instance) bool {
			return !meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionResolved)
		})
		return len(list.Items) == len(instances) && !waiting, err
	})
}

// deploy lets addon-agent deploy Instances that the hub has resolved, all at the same time.
func (b *bench) deploy(ctx context.Context, names []string) (cost, error) {
	thaw, err := b.freeze()
	if err != nil {
		return cost{}, err
	}
	defer thaw()
	instances := make([]*kudo.Instance, len(names))
	for i, name := range names {
		instances[i] = instance(name, chartName+"-1.0.0")
	}
	if err := b.create(ctx, instances); err != nil {
		return cost{}, err
	}
	d := expect(names)
	return b.measure(d, func(*process.Usage) error {
		thaw()
		return program.Until(ctx, "all plans are recorded as complete", func(context.Context) (bool, error) {
			entries, err := b.Managed.Log.Next()
			return d.complete(), errors.Join(err, d.add(entries))
		})
	})
}

// measure returns the costs of do, which adds to the usage of programs that it starts; agent is the observed part of the audit log.
func (b *bench) measure(o *observation, do func(*process.Usage) error) (cost, error) {
	if _, err := b.Managed.Log.Next(); err != nil {
		return cost{}, err
	}
	pid, err := b.Managed.PID("addon-agent")
	if err != nil {
		return cost{}, err
	}
	var started process.Usage
	c := cost{}
	used, err := process.Measure([]int{pid}, func() (err error) {
		c.CPUSeconds, err = b.MeasureCPU(func() error { return do(&started) })
		return err
	})
	if err != nil {
		return cost{}, err
	}
	c.Seconds, c.Requests, c.RequestsByVerb = o.ended.Sub(o.began).Seconds(), o.total(), o.requests
	c.ClientCPUSeconds, c.ChildrenCPUSeconds, c.PeakMemoryMB = used[0].CPU.Seconds(), used[0].ChildrenCPU.Seconds(), used[0].PeakMB()
	if started.CPU > 0 {
		c.ClientCPUSeconds, c.ChildrenCPUSeconds, c.PeakMemoryMB = started.CPU.Seconds(), 0, started.PeakMB()
	}
	return c, nil
}

// remove deletes all Instances, and waits until they and their pods are gone.
func (b *bench) remove(ctx context.Context) (cost, error) {
	o := &observation{requests: map[string]int{}, user: agentUser}
	return b.measure(o, func(*process.Usage) error {
		if err := b.Hub.DeleteAllOf(ctx, &kudo.Instance{}, client.InNamespace(stage.Managed)); err != nil {
			return fmt.Errorf("deleting all Instances: %w", err)
		}
		err := program.Until(ctx, "all Instances are gone", func(ctx context.Context) (bool, error) {
			var list kudo.InstanceList
			err := b.Hub.List(ctx, &list, client.Limit(1)) // a list of all would keep the hub busy
			return len(list.Items) == 0, err
		})
		if err != nil {
			return err
		}
		entries, err := b.Managed.Log.Next()
		return errors.Join(err, o.add(entries), b.awaitNoPods(ctx, namespace))
	})
}

// awaitNoPods waits until no pod is left in a namespace.
func (b *bench) awaitNoPods(ctx context.Context, in string) error {
	return program.Until(ctx, "all pods are gone", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := b.Managed.List(ctx, &pods, client.InNamespace(in), client.Limit(1))
		return len(pods.Items) == 0, err
	})
}

// freeze stops addon-agent with SIGSTOP until thaw is called, which is idempotent.
func (b *bench) freeze() (thaw func(), err error) {
	pid, err := b.Managed.PID("addon-agent")
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stopping addon-agent: %w", err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil // there is no recovery from a failure
}
