package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/spread"
	"github.com/tandem-addons/tandem/test/bench/stage"
	"github.com/tandem-addons/tandem/test/census"
)

//go:embed audit.yaml
var auditPolicy []byte

const (
	// quiet is how long Tandem's programs must write nothing to count as settled.
	quiet = 3 * time.Second
	// inFlight is the number of concurrent requests of the benchmark itself.
	inFlight = 10
)

// bench is one run.
type bench struct {
	settings
	*stage.Stage
	// known holds the executions of previous scenarios.
	known map[execution]bool
	say   func(format string, arguments ...any)
}

// Measure starts a sandbox and runs all scenarios in it. It stops everything that it started, also after an error.
func (s *settings) Measure(ctx context.Context, progress io.Writer) (measured program.Report, err error) {
	b := &bench{settings: *s, known: map[execution]bool{}, say: program.Progress(progress)}
	b.Stage, err = stage.Start(ctx, sandbox.Options{
		Tandem: s.programs, AuditPolicy: auditPolicy, AgentFlags: s.limits.Flags(),
		Progress: func(line string) { b.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for _, version := range []*kudo.OperatorVersion{child(), s.fleet.parent()} {
		if err := b.Hub.Create(ctx, version); err != nil {
			return nil, fmt.Errorf("pushing package %q: %w", version.Name, err)
		}
	}
	return b.scenarios(ctx)
}

// scenarios runs the scenarios in an order in which each starts with the fleet at rest.
func (b *bench) scenarios(ctx context.Context) (program.Report, error) {
	measured := &report{}
	if err := errors.Join(b.describe(measured), b.settle(ctx, expect(nil, nil))); err != nil {
		return nil, err
	}
	for _, scenario := range []struct {
		name string
		run  func(context.Context, *report) error
	}{
		{fmt.Sprintf("deploy: %d parents create %d children each", b.fleet.parents, b.fleet.children), b.deploy},
		{"rest: nothing happens", b.atRest},
		{"update: every parent changes one of its children", b.update},
		{"uninstall: all parents go", b.uninstall},
	} {
		b.say("%s", scenario.name)
		if err := scenario.run(ctx, measured); err != nil {
			return nil, fmt.Errorf("%s: %w", scenario.name, err)
		}
	}
	return measured, nil
}

// deploy creates all parents.
func (b *bench) deploy(ctx context.Context, r *report) error {
	o := expect(b.fleet.names(), b.known)
	s, err := b.change(ctx, o, b.fleet.all(), func() error {
		return program.Each(ctx, inFlight, b.fleet.instances(), func(ctx context.Context, parent *kudo.Instance) error {
			return b.Hub.Create(ctx, parent)
		})
	})
	if err != nil {
		return err
	}
	latencies := between(o.asked, o.created)
	r.Deploy = deployment{
		scenario: s, Children: len(latencies), StepToChild: spread.Of(latencies),
		StepToReport: spread.Of(between(o.asked, o.reported)), ReportToChild: spread.Of(between(o.reported, o.created)),
	}
	b.say("%d children in %.1fs, 99 of 100 within %.0fms", r.Deploy.Children, s.Seconds, r.Deploy.StepToChild.P99)
	return nil
}

// atRest checks for a while that nothing is written.
func (b *bench) atRest(ctx context.Context, r *report) error {
	o, end := expect(nil, b.known), time.Now().Add(b.rest)
	err := program.Until(ctx, "the time is over", func(context.Context) (bool, error) {
		_, err := b.readLogs(o)
		return time.Now().After(end), err
	})
	r.Rest = rest{Seconds: b.rest.Seconds(), Writes: o.manager.all + o.agent.all, wrong: slices.Concat(o.manager.some, o.agent.some)}
	return err
}

// update changes the parameter of all parents that is passed to their first child.
func (b *bench) update(ctx context.Context, r *report) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"parameters":{%q:"b"}}}`, parameterOf(0)))
	var concerned []string
	for _, parent := range b.fleet.names() {
		concerned = append(concerned, b.fleet.family(parent)[:2]...)
	}
	o := expect(b.fleet.names(), b.known)
	s, err := b.change(ctx, o, concerned, func() error {
		return program.Each(ctx, inFlight, b.fleet.instances(), func(ctx context.Context, parent *kudo.Instance) error {
			return b.Hub.Patch(ctx, parent, patch)
		})
	})
	if err != nil {
		return err
	}
	r.Update = update{scenario: s, ChildrenReached: b.fleet.parents}
	for name := range o.ran() {
		if isChild(name) {
			r.Update.ChildrenRun++
		}
	}
	return nil
}

// uninstall deletes all parents, and with them their children.
func (b *bench) uninstall(ctx context.Context, r *report) error {
	o := expect(nil, b.known)
	s, err := b.change(ctx, o, nil, func() error {
		err := program.Each(ctx, inFlight, b.fleet.instances(), func(ctx context.Context, parent *kudo.Instance) error {
			return b.Hub.Delete(ctx, parent)
		})
		if err != nil {
			return err
		}
		return program.Until(ctx, "all Instances are gone", func(ctx context.Context) (bool, error) {
			left, err := b.instances(ctx, client.Limit(1)) // a list of all would keep the hub busy
			return len(left) == 0, err
		})
	})
	if err != nil {
		return err
	}
	r.Uninstall = uninstall{scenario: s}
	if r.Uninstall.Left, err = b.instances(ctx); err != nil {
		return err
	}
	here, err := census.OfTandem(ctx, b.Managed.Config())
	r.Uninstall.Left = append(r.Uninstall.Left, here...)
	return err
}

// change applies a change of the fleet, and observes its effects until everything has settled. Each Instance of ran must run one plan, and
// no other Instance any.
func (b *bench) change(ctx context.Context, o *observation, ran []string, do func() error) (scenario, error) {
	manager, err := b.Hub.PID("addon-manager")
	if err != nil {
		return scenario{}, err
	}
	agent, err := b.Managed.PID("addon-agent")
	if err != nil {
		return scenario{}, err
	}
	used, err := process.Measure([]int{manager, agent}, func() error {
		if err := do(); err != nil {
			return err
		}
		return b.settle(ctx, o)
	})
	if err != nil {
		return scenario{}, err
	}
	maps.Copy(b.known, o.executions)
	return newScenario(o, ran, used[0], used[1]), nil
}

// settle reads the logs until nothing is missing and nothing has been written for a while, including events, which addon-manager writes at
// a limited rate.
func (b *bench) settle(ctx context.Context, o *observation) error {
	last := time.Now()
	return program.Until(ctx, "everything has settled", func(context.Context) (bool, error) {
		active, err := b.readLogs(o)
		if active || !o.complete() {
			last = time.Now()
		}
		if err == nil && len(o.broken) > 0 {
			err = errors.New(o.broken[0])
		}
		return time.Since(last) >= quiet, err
	})
}

// readLogs processes the new entries of both clusters' logs. It reports whether some are writes of Tandem's programs.
func (b *bench) readLogs(o *observation) (active bool, err error) {
	for _, log := range []*audit.Log{b.Hub.Log, b.Managed.Log} {
		entries, err := log.Next()
		if err != nil {
			return active, err
		}
		some, err := o.add(entries)
		if active = active || some; err != nil {
			return active, err
		}
	}
	return active, nil
}

// instances returns the names of the Instances on the hub.
func (b *bench) instances(ctx context.Context, options ...client.ListOption) ([]string, error) {
	var list kudo.InstanceList
	if err := b.Hub.List(ctx, &list, append(options, client.InNamespace(stage.Managed))...); err != nil {
		return nil, fmt.Errorf("listing Instances: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, "Instance "+list.Items[i].Name+" on the hub")
	}
	return names, nil
}
