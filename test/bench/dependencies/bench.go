package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tandem-addons/tandem/test/bench/program"
)

const (
	// poll is the interval of reading the audit log and addon-manager's metrics while the whole fleet changes, pollOne while one cluster
	// does. All measured times are the API server's; shorter intervals only let the benchmark continue sooner.
	poll    = 100 * time.Millisecond
	pollOne = 2 * time.Millisecond
	// quiet is how long addon-manager must write nothing to count as settled.
	quiet = 2 * time.Second
	// pause is how long it must write nothing between changes of single clusters.
	pause = 50 * time.Millisecond
	// idleShare is the fraction of a core, 1/idleShare, that addon-manager may use at rest, when it renews its lease.
	idleShare = 20
	// stallTimeout is the timeout for waits without progress.
	stallTimeout = 2 * time.Minute
)

// bench is one run.
type bench struct {
	settings
	hub *hub
	// manager is nil while addon-manager is not running.
	manager *manager
	folder  string
	// model is the expected state of every cluster.
	model *cluster
	say   func(format string, arguments ...any)
}

// Measure creates the fleet and runs all scenarios, or measures the plugin's commands, the dashboard or first installations. It stops everything that it started, also after an error.
func (s *settings) Measure(ctx context.Context, progress io.Writer) (measured program.Report, err error) {
	err = onHub(ctx, *s, progress, func(b *bench) error {
		if s.plugin != "" {
			measured, err = b.commands(ctx)
			return err
		}
		if s.viewers > 0 {
			measured, err = b.dashboard(ctx)
			return err
		}
		if s.first {
			measured, err = b.installs(ctx)
			return err
		}
		if err := b.prepare(ctx); err != nil {
			return err
		}
		measured, err = b.measure(ctx)
		return err
	})
	return measured, err
}

// onHub starts an API server, calls do, and stops the API server.
func onHub(ctx context.Context, s settings, progress io.Writer, do func(*bench) error) (err error) {
	b := &bench{settings: s, model: s.fleet.cluster(), say: program.Progress(progress)}
	if b.folder, err = os.MkdirTemp("", "tandem-bench-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	b.say("starting an API server in %s", b.folder)
	if b.hub, err = startHub(ctx, b.folder, b.auditPolicy()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.hub.stop()) }()
	defer func() { err = errors.Join(err, b.stopManager()) }()
	return do(b)
}

// populate creates the fleet.
func (b *bench) populate(ctx context.Context) error {
	b.say("making %d clusters with %d add-ons each", b.fleet.clusters, b.fleet.addOns)
	step := max(1, b.fleet.clusters/10)
	return seed(ctx, b.hub.admin, b.hub.store, b.fleet, func(made int) {
		if made%step == 0 {
			b.say("made %d of %d clusters", made, b.fleet.clusters)
		}
	})
}

// prepare creates the fleet and lets addon-manager evaluate it for the first time.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.populate(ctx); err != nil {
		return err
	}
	if err := b.hub.admit(ctx); err != nil {
		return err
	}
	o := expect(b.model.settle(), b.fleet.namespaces())
	b.say("addon-manager judges the fleet for the first time: %d verdicts", len(o.due))
	if _, err := b.lead(ctx); err != nil {
		return err
	}
	if err := b.waitUntilIdle(ctx); err != nil {
		return err
	}
	if err := b.still(ctx, o, quiet, poll, func(a activity) bool { return a.writes }); err != nil { // the scenarios wait for its events
		return err
	}
	return b.verify(ctx, nil, nil)
}

// measure runs the chosen scenarios in the order in which they are given; each starts and ends with the fleet at rest. After an error, the
// report has those before it.
func (b *bench) measure(ctx context.Context) (program.Report, error) {
	measured := &report{Clusters: b.fleet.clusters, AddOns: b.fleet.addOns, Limits: b.limits}
	if err := b.describe(measured); err != nil {
		return nil, err
	}
	scenarios := b.scenarios()
	for _, name := range b.selectedScenarios() {
		b.say("%s: %s", name, scenarios[name].does)
		found, err := scenarios[name].run(ctx)
		if err == nil {
			measured.add(name, &found)
			err = b.weigh(measured)
		}
		if err != nil {
			return measured, fmt.Errorf("%s: %w", name, err)
		}
	}
	return measured, b.profile(ctx)
}

// scenario is a change of the fleet, and the measurement of it.
type scenario struct {
	does string
	run  func(context.Context) (result, error)
}

// scenarios returns all scenarios by name.
func (b *bench) scenarios() map[string]scenario {
	return map[string]scenario{
		"fleetFlip": {"every cluster's " + b.fleet.leaf() + " gets a Required dependency that is nowhere",
			func(ctx context.Context) (result, error) { return b.flip(ctx, b.definitionFlips()) }},
		"sharedDependencyFlip": {addOnName(0) + ", which others require, becomes unavailable on every cluster, a share of them at a time",
			func(ctx context.Context) (result, error) { return b.flip(ctx, b.sharedFlips()) }},
		"clusterFlip":     {"add-ons of single clusters become unavailable and available again", b.clusterFlip},
		"busyClusterFlip": {"add-ons of single clusters become unavailable during a fleetFlip", b.busyClusterFlip},
		"restart":         {"addon-manager starts on a fleet that has settled", b.restart},
		"rest":            {"nothing happens", b.atRest},
	}
}

// profile saves a profile of addon-manager's heap, if a file is given.
func (b *bench) profile(ctx context.Context) error {
	if b.heap == "" {
		return nil
	}
	text, err := b.manager.profile(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.heap, text, 0o644); err != nil {
		return fmt.Errorf("saving a profile: %w", err)
	}
	return nil
}

// until waits for a condition of addon-manager's work. It returns an error after a long time without progress, or if addon-manager has
// exited.
func (b *bench) until(ctx context.Context, interval time.Duration, condition func() (done, nearer bool, err error)) error {
	last := time.Now()
	return wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		if b.manager != nil {
			if err := b.manager.exitError(); err != nil {
				return false, err
			}
		}
		done, nearer, err := condition()
		if nearer {
			last = time.Now()
		}
		if err == nil && !done && time.Since(last) > stallTimeout {
			err = fmt.Errorf("nothing has happened for %s", stallTimeout)
		}
		return done, err
	})
}

// observe reads the audit log until all due verdicts are written.
func (b *bench) observe(ctx context.Context, o *observation, interval time.Duration) error {
	err := b.until(ctx, interval, func() (bool, bool, error) {
		entries, err := b.hub.log.Next()
		done := o.add(entries)
		return o.complete(), done.writes || done.events, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d verdicts are missing: %w", len(o.missing), len(o.due), err)
	}
	return nil
}

// settle reads the audit log until addon-manager has written nothing for that long, including events.
func (b *bench) settle(ctx context.Context, o *observation, still, interval time.Duration) error {
	return b.still(ctx, o, still, interval, func(a activity) bool { return a.writes || a.events })
}

// still reads the audit log until addon-manager has done nothing that counts for that long.
func (b *bench) still(ctx context.Context, o *observation, still, interval time.Duration, counts func(activity) bool) error {
	last := time.Now()
	return b.until(ctx, interval, func() (bool, bool, error) {
		entries, err := b.hub.log.Next()
		if counts(o.add(entries)) {
			last = time.Now()
		}
		return time.Since(last) >= still, true, err
	})
}

// converge waits until all due verdicts are written and addon-manager writes nothing more, except for events.
func (b *bench) converge(ctx context.Context, o *observation, interval time.Duration) error {
	if err := b.observe(ctx, o, interval); err != nil {
		return err
	}
	return b.still(ctx, o, quiet, interval, func(a activity) bool { return a.writes })
}

// lead starts addon-manager. It returns once every initial object was reconciled, with the time since the start of the process.
func (b *bench) lead(ctx context.Context) (time.Duration, error) {
	if err := b.start(); err != nil {
		return 0, err
	}
	var last work
	var since time.Time
	err := b.until(ctx, poll, func() (bool, bool, error) {
		now, err := b.manager.progress(ctx)
		if err != nil { // it does not serve metrics yet
			return false, false, nil
		}
		// A queue may be empty temporarily while the cache is still filling.
		if !now.idle(b.fleet.size()) || now != last {
			nearer := now != last
			last, since = now, time.Now()
			return false, nearer, nil
		}
		return time.Since(since) >= quiet, true, nil
	})
	if err != nil {
		return 0, fmt.Errorf("waiting for addon-manager to lead: %w", err)
	}
	return since.Sub(b.manager.started), nil
}

// standBy starts addon-manager while another holder has its lease: it serves the webhooks, which the API server requires for every write of
// an add-on, and does nothing else.
func (b *bench) standBy(ctx context.Context) error {
	if err := b.hub.hold(ctx, true); err != nil {
		return err
	}
	if err := b.start(); err != nil {
		return err
	}
	err := b.until(ctx, poll, func() (bool, bool, error) {
		return b.hub.webhooksAnswer(ctx), false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for addon-manager to serve webhooks: %w", err)
	}
	return b.waitUntilIdle(ctx)
}

// waitUntilIdle waits until addon-manager is idle: its cache is filled, and the API server sends it no requests.
func (b *bench) waitUntilIdle(ctx context.Context) error {
	before, err := b.manager.usage()
	if err != nil {
		return err
	}
	err = b.until(ctx, quiet, func() (bool, bool, error) {
		now, err := b.manager.usage()
		still := now.CPU-before.CPU <= quiet/idleShare
		before = now
		return still && err == nil, true, err
	})
	if err != nil {
		return fmt.Errorf("waiting for addon-manager to rest: %w", err)
	}
	return nil
}

func (b *bench) start() (err error) {
	b.manager, err = startManager(b.program, filepath.Join(b.folder, "addon-manager.log"), append(b.limits.Flags(),
		"--kubeconfig="+b.hub.kubeconfig,
		"--leader-elect", "--leader-election-namespace="+leaseNamespace,
		"--webhook-bind-address="+b.hub.server.WebhookAddress, "--webhook-hosts=127.0.0.1",
		fmt.Sprintf("--concurrency=%d", b.limits.Concurrency),
	)...)
	return err
}

func (b *bench) stopManager() error {
	if b.manager == nil {
		return nil
	}
	stopped := b.manager
	b.manager = nil
	return stopped.stop()
}

// oneOf returns a pseudo-random item, the same in every run.
func oneOf[T any](chance *rand.Rand, items []T) T { return items[chance.IntN(len(items))] }
