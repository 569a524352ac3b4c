package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

//go:embed audit.yaml
var auditPolicy []byte

// inFlight is the number of concurrent requests of the benchmark itself.
const inFlight = 10

// bench is one run.
type bench struct {
	settings
	*stage.Stage
	managed dynamic.Interface
	bare    *bareClient
	say     func(format string, arguments ...any)
}

// Measure starts a sandbox and measures each row in it. It stops everything that it started, also after an error.
func (s *settings) Measure(ctx context.Context, progress io.Writer) (measured program.Report, err error) {
	b := &bench{settings: *s, say: program.Progress(progress)}
	b.Stage, err = stage.Start(ctx, sandbox.Options{
		Tandem: s.programs, AuditPolicy: auditPolicy,
		AgentFlags: s.limits.Flags(),
		Progress:   func(line string) { b.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.connect(ctx); err != nil {
		return nil, err
	}
	return b.rows(ctx)
}

// connect creates the clients, and pushes the package.
func (b *bench) connect(ctx context.Context) error {
	config := b.Managed.Config()
	var err error
	if b.managed, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	if b.bare, err = newBareClient(ctx, b.Managed, config, b.limits); err != nil {
		return err
	}
	if err := b.Hub.Create(ctx, operator()); err != nil {
		return fmt.Errorf("pushing the package: %w", err)
	}
	return nil
}

func (b *bench) rows(ctx context.Context) (program.Report, error) {
	measured, err := b.describe()
	if err != nil {
		return nil, err
	}
	for _, count := range b.instances {
		if b.rest > 0 {
			measured.Rest, err = b.atRest(ctx, count)
			return measured, err
		}
		var runs []run
		for range b.runs {
			r, err := b.run(ctx, count)
			if err != nil {
				return nil, fmt.Errorf("%d instances: %w", count, err)
			}
			b.say("%d instances: %.2fs, the bare client %.2fs, %.1f requests a step", count, r.Seconds, r.BareClientSeconds, r.RequestsPerStep)
			runs = append(runs, r)
		}
		measured.Rows = append(measured.Rows, newRow(runs))
	}
	return measured, nil
}

// run deploys Instances, applies the same objects by the bare client while addon-agent is stopped, and removes everything.
func (b *bench) run(ctx context.Context, count int) (run, error) {
	instances := make([]string, count)
	for i := range instances {
		instances[i] = fmt.Sprintf("bench-%03d", i)
	}
	deployed, err := b.deploy(ctx, instances)
	if err != nil {
		return run{}, err
	}
	bare, err := b.again(ctx, deployed.deployment)
	if err != nil {
		return run{}, err
	}
	if err := b.caughtUp(ctx); err != nil {
		return run{}, err
	}
	removed, err := b.remove(ctx)
	if err != nil {
		return run{}, err
	}
	return newRun(count, deployed, bare, removed), nil
}

// deploy lets addon-agent deploy Instances that the hub has resolved, all at the same time.
func (b *bench) deploy(ctx context.Context, instances []string) (deployed, error) {
	thaw, err := b.freeze()
	if err != nil {
		return deployed{}, err
	}
	defer thaw()
	if err := program.Each(ctx, inFlight, instances, func(ctx context.Context, name string) error { return b.Hub.Create(ctx, instance(name)) }); err != nil {
		return deployed{}, fmt.Errorf("making Instances: %w", err)
	}
	if err := b.awaitResolved(ctx, len(instances)); err != nil {
		return deployed{}, err
	}
	if err := b.forget(); err != nil {
		return deployed{}, err
	}
	pid, err := b.Managed.PID("addon-agent")
	if err != nil {
		return deployed{}, err
	}
	d := deployed{deployment: expect(instances)}
	used, err := process.Measure([]int{pid}, func() (err error) {
		d.cpu, err = b.MeasureCPU(func() error {
			thaw()
			return program.Until(ctx, "all plans are recorded as complete", func(context.Context) (bool, error) {
				entries, err := b.Managed.Log.Next()
				return d.complete(), errors.Join(err, d.add(entries))
			})
		})
		return err
	})
	if err != nil {
		return deployed{}, err
	}
	d.usage = used[0]
	toHub, err := b.Hub.Log.Next()
	d.toHub = len(toHub)
	return d, err
}

// forget skips the requests of the time before.
func (b *bench) forget() error {
	_, managed := b.Managed.Log.Next()
	_, hub := b.Hub.Log.Next()
	return errors.Join(managed, hub)
}

// again removes the deployed objects, and applies them by the bare client while addon-agent is stopped.
func (b *bench) again(ctx context.Context, d *deployment) (replay, error) {
	thaw, err := b.freeze()
	if err != nil {
		return replay{}, err
	}
	defer thaw()
	if err := program.Each(ctx, inFlight, d.objects(), b.delete); err != nil {
		return replay{}, err
	}
	r := replay{missing: len(d.objects())}
	if r.cpu, err = b.MeasureCPU(func() error { return b.bare.deploy(ctx, deploy, d.applied) }); err != nil {
		return replay{}, err
	}
	err = program.Until(ctx, "all requests of the bare client are logged", func(context.Context) (bool, error) {
		entries, err := b.Managed.Log.Next()
		r.add(entries)
		return r.missing == 0, err
	})
	return r, err
}

// delete deletes an object and its dependents, and returns when all are gone.
func (b *bench) delete(ctx context.Context, o object) error {
	objects := b.managed.Resource(o.resource).Namespace(o.Namespace)
	foreground := metav1.DeletePropagationForeground
	if err := objects.Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		return fmt.Errorf("deleting %s %s: %w", o.resource.Resource, o.NamespacedName, err)
	}
	return program.Until(ctx, o.String()+" is gone", func(ctx context.Context) (bool, error) {
		_, err := objects.Get(ctx, o.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// awaitResolved waits until the hub has resolved that many Instances.
func (b *bench) awaitResolved(ctx context.Context, count int) error {
	return program.Until(ctx, "the hub has resolved all Instances", func(ctx context.Context) (bool, error) {
		var list kudo.InstanceList
		err := b.Hub.List(ctx, &list)
		waiting := slices.ContainsFunc(list.Items, func(i kudo.Instance) bool {
			return !meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionResolved)
		})
		return len(list.Items) == count && !waiting, err
	})
}

// caughtUp waits until addon-agent has observed what happened while it was suspended: in some second it uses less than a twentieth of a core.
func (b *bench) caughtUp(ctx context.Context) error {
	pid, err := b.Managed.PID("addon-agent")
	if err != nil {
		return err
	}
	var began time.Time
	var before process.Usage
	return program.Until(ctx, "addon-agent has caught up", func(context.Context) (bool, error) {
		if time.Since(began) < time.Second {
			return false, nil
		}
		now, err := process.UsageOf(pid)
		idle := !began.IsZero() && now.CPU-before.CPU < time.Since(began)/20
		began, before = time.Now(), now
		return idle, err
	})
}

// remove deletes all Instances, and waits until addon-agent has removed them.
func (b *bench) remove(ctx context.Context) (removal, error) {
	if err := b.forget(); err != nil {
		return removal{}, err
	}
	var removed removal
	var err error
	removed.CPUSeconds, err = b.MeasureCPU(func() error {
		began := time.Now()
		if err := b.Hub.DeleteAllOf(ctx, &kudo.Instance{}, client.InNamespace(stage.Managed)); err != nil {
			return fmt.Errorf("deleting all Instances: %w", err)
		}
		defer func() { removed.Seconds = time.Since(began).Seconds() }()
		return program.Until(ctx, "all Instances are gone", func(ctx context.Context) (bool, error) {
			var list kudo.InstanceList
			err := b.Hub.List(ctx, &list, client.Limit(1)) // a list of all would keep the hub busy
			return len(list.Items) == 0, err
		})
	})
	if err != nil {
		return removal{}, err
	}
	toManaged, managed := b.Managed.Log.Next()
	toHub, hub := b.Hub.Log.Next()
	removed.Requests, removed.HubRequests = len(toManaged), len(toHub)
	return removed, errors.Join(managed, hub)
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
