package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/spread"
)

// flip is a change that affects many clusters.
type flip struct {
	namespaces []string
	// do and undo apply and revert it on the hub.
	do, undo func(context.Context) error
	// done and undone apply it to the model of an affected cluster; they return the verdicts that become due.
	done, undone func(*cluster) []verdict
}

// definitionFlips add a required dependency that is not installed anywhere to the definition of an add-on, again and again: it affects every
// cluster each time.
func (b *bench) definitionFlips() []flip {
	name, before := b.fleet.leaf(), b.model.needs[b.fleet.leaf()]
	after := append(slices.Clone(before), need(absent, addonv1alpha1.DependencyTypeRequired))
	declare := func(needs []addonv1alpha1.AddonDependency) func(context.Context) error {
		return func(ctx context.Context) error { return b.declare(ctx, name, needs) }
	}
	mean := func(needs []addonv1alpha1.AddonDependency) func(*cluster) []verdict {
		return func(c *cluster) []verdict {
			c.needs[name] = needs
			return c.settle()
		}
	}
	return slices.Repeat([]flip{{
		namespaces: b.fleet.namespaces(), do: declare(after), undo: declare(before), done: mean(after), undone: mean(before),
	}}, b.pairs)
}

// sharedFlips make an add-on with dependents unavailable, each on its share of the clusters.
func (b *bench) sharedFlips() []flip {
	name := addOnName(0)
	var flips []flip
	for _, namespaces := range shares(b.fleet.namespaces(), b.pairs) {
		flips = append(flips, flip{
			namespaces: namespaces,
			do: func(ctx context.Context) error {
				return b.setAvailable(ctx, []string{name}, namespaces, metav1.ConditionFalse)
			},
			done: func(c *cluster) []verdict {
				c.available[name] = false
				return c.settle(name)
			},
			undo:   func(context.Context) error { return nil }, // heal does everything
			undone: func(*cluster) []verdict { return nil },
		})
	}
	return flips
}

// shares divides items into that many shares of about the same size, or into fewer, if there are fewer items.
func shares[T any](items []T, count int) [][]T {
	count = min(count, len(items))
	var found [][]T
	for i := range count {
		found = append(found, items[i*len(items)/count:(i+1)*len(items)/count])
	}
	return found
}

// flip measures addon-manager and the bare loop in turn: for each flip first the one, and then, with everything reverted, the other, which
// sends the same writes. Events are sent for up to a minute after a flip; the restart before the bare loop drops them.
func (b *bench) flip(ctx context.Context, flips []flip) (result, error) {
	whole := newFlips()
	for i, f := range flips {
		o, used, err := b.judge(ctx, f)
		if err != nil {
			return result{}, err
		}
		b.say("pair %d of %d: %d verdicts in %.2fs; putting everything back", i+1, len(flips), len(o.due), o.seconds())
		if err := b.putBack(ctx, f); err != nil {
			return result{}, err
		}
		bare, stoodBy, err := b.bare(ctx, f, o)
		if err != nil {
			return result{}, err
		}
		b.say("the bare loop needed %.2fs; putting everything back", bare)
		if err := b.putBack(ctx, f); err != nil {
			return result{}, err
		}
		whole.add(o, used, bare, stoodBy)
	}
	return whole.result(), nil
}

// judge applies a flip and lets addon-manager judge it, after the events of earlier changes are sent.
func (b *bench) judge(ctx context.Context, f flip) (*observation, usage, error) {
	if err := b.settle(ctx, expect(nil, nil), quiet, poll); err != nil {
		return nil, usage{}, err
	}
	model := b.model.clone()
	o := expect(f.done(model), f.namespaces)
	used, err := b.measureUsage(func() error {
		if err := f.do(ctx); err != nil {
			return err
		}
		return b.converge(ctx, o, poll)
	})
	if err != nil {
		return nil, usage{}, err
	}
	return o, used, b.verify(ctx, f.namespaces, model)
}

// bare applies the same change again while addon-manager remains on standby, and sends the patches that it sent. It returns the duration in
// seconds by the same clock, and the resource usage of standing by. Afterwards addon-manager is active again.
func (b *bench) bare(ctx context.Context, f flip, o *observation) (float64, usage, error) {
	if err := errors.Join(b.stopManager(), b.standBy(ctx)); err != nil {
		return 0, usage{}, err
	}
	if err := b.settle(ctx, expect(nil, nil), quiet, poll); err != nil {
		return 0, usage{}, err
	}
	loop, err := newBareLoop(ctx, b.hub.judge, b.limits)
	if err != nil {
		return 0, usage{}, err
	}
	model := b.model.clone()
	again := expect(f.done(model), f.namespaces)
	used, err := b.measureUsage(func() error {
		group, running := errgroup.WithContext(ctx)
		group.Go(func() error { return f.do(running) })
		group.Go(func() error { return loop.run(running, o.sent) })
		if err := group.Wait(); err != nil {
			return err
		}
		return b.converge(ctx, again, poll)
	})
	if err != nil {
		return 0, usage{}, err
	}
	if err := b.verify(ctx, f.namespaces, model); err != nil {
		return 0, usage{}, fmt.Errorf("after the bare loop: %w", err)
	}
	if err := errors.Join(b.stopManager(), b.hub.hold(ctx, false)); err != nil {
		return 0, usage{}, err
	}
	_, err = b.lead(ctx)
	return again.seconds(), used, err
}

// putBack reverts a flip, and waits until every cluster is in its previous state.
func (b *bench) putBack(ctx context.Context, f flip) error {
	model := b.model.clone()
	f.done(model)
	o := expect(f.undone(model), f.namespaces)
	if err := f.undo(ctx); err != nil {
		return err
	}
	if err := b.observe(ctx, o, poll); err != nil {
		return err
	}
	err := b.heal(ctx, model, f.namespaces, func(o *observation) error { return b.observe(ctx, o, poll) })
	if err != nil {
		return err
	}
	if err := b.converge(ctx, expect(nil, nil), poll); err != nil {
		return err
	}
	return b.verify(ctx, nil, nil)
}

// heal reports add-ons as available until all are: whenever a verdict is removed, the add-ons that it kept unavailable can become
// available. observe waits for the verdicts that become due each time.
func (b *bench) heal(ctx context.Context, model *cluster, namespaces []string, observe func(*observation) error) error {
	for names := model.restorable(); len(names) > 0; names = model.restorable() {
		for _, name := range names {
			model.available[name] = true
		}
		o := expect(model.settle(names...), namespaces)
		if err := b.setAvailable(ctx, names, namespaces, metav1.ConditionTrue); err != nil {
			return err
		}
		if err := observe(o); err != nil {
			return err
		}
	}
	return nil
}

// clusterFlip makes one add-on of one cluster unavailable and available again, many times while the rest of the fleet is idle, and measures
// the latency of the verdicts on its dependents.
func (b *bench) clusterFlip(ctx context.Context) (result, error) {
	if err := b.settle(ctx, expect(nil, nil), quiet, poll); err != nil { // the events of earlier changes
		return result{}, err
	}
	whole := expect(nil, nil)
	var found latencies
	var maxSeconds float64
	needed := 0
	observe := func(o *observation) error {
		if err := b.observe(ctx, o, pollOne); err != nil {
			return err
		}
		found.join(o.latencies())
		maxSeconds, needed = max(maxSeconds, o.seconds()), needed+len(o.due)
		whole.join(o)
		return b.settle(ctx, whole, pause, pollOne)
	}
	used, err := b.measureUsage(func() error {
		chance := rand.New(rand.NewPCG(uint64(b.fleet.clusters), uint64(b.fleet.addOns)))
		for range b.flips {
			name, on := oneOf(chance, b.fleet.dependencyNames()), []string{oneOf(chance, b.fleet.namespaces())}
			if err := b.flipOne(ctx, name, on, observe); err != nil {
				return fmt.Errorf("%s on %s: %w", name, on[0], err)
			}
		}
		return b.settle(ctx, whole, quiet, poll)
	})
	if err != nil {
		return result{}, err
	}
	r := newResult(whole, used)
	r.Seconds, r.WritesNeeded = maxSeconds, needed
	r.spread(found)
	return r, b.verify(ctx, nil, nil)
}

// flipOne makes an add-on unavailable and available again on one cluster.
func (b *bench) flipOne(ctx context.Context, name string, on []string, observe func(*observation) error) error {
	model := b.model.clone()
	model.available[name] = false
	o := expect(model.settle(name), on)
	if err := b.setAvailable(ctx, []string{name}, on, metav1.ConditionFalse); err != nil {
		return err
	}
	if err := observe(o); err != nil {
		return err
	}
	return b.heal(ctx, model, on, observe)
}

// busyClusterFlip makes an add-on unavailable on one cluster after the other while addon-manager writes a verdict on every cluster, and
// measures the latency of the verdicts on the dependents of that add-on.
func (b *bench) busyClusterFlip(ctx context.Context) (result, error) {
	if err := b.settle(ctx, expect(nil, nil), quiet, poll); err != nil { // the events of earlier changes
		return result{}, err
	}
	f, flipped := b.definitionFlips()[0], b.model.clone()
	o := expect(f.done(flipped), f.namespaces)
	name := b.fleet.apart()
	single := flipped.clone()
	single.available[name] = false
	verdicts := single.settle(name)
	var singles []types.NamespacedName
	var on []string
	used, err := b.measureUsage(func() error {
		if err := f.do(ctx); err != nil {
			return err
		}
		for _, namespace := range f.namespaces {
			if len(o.missing) == 0 {
				break
			}
			on = append(on, namespace)
			objects := o.expect(verdicts, namespace)
			singles = append(singles, objects...)
			if err := b.setAvailable(ctx, []string{name}, []string{namespace}, metav1.ConditionFalse); err != nil {
				return err
			}
			if err := b.awaitVerdicts(ctx, o, objects); err != nil {
				return err
			}
		}
		return b.converge(ctx, o, poll)
	})
	if err != nil {
		return result{}, err
	}
	r := newResult(o, used)
	r.spread(o.latenciesOf(slices.Values(singles)))
	r.FleetWrite = ptr.To(spread.Of(o.latenciesOf(o.except(singles)).write))
	b.say("%d flips of single clusters during %.2fs; putting everything back", len(on), o.seconds())
	err = b.heal(ctx, single, on, func(o *observation) error { return b.observe(ctx, o, poll) })
	return r, errors.Join(err, b.putBack(ctx, f))
}

// awaitVerdicts reads the audit log until the verdicts on some objects are written.
func (b *bench) awaitVerdicts(ctx context.Context, o *observation, objects []types.NamespacedName) error {
	return b.until(ctx, pollOne, func() (bool, bool, error) {
		entries, err := b.hub.log.Next()
		done := o.add(entries)
		return !slices.ContainsFunc(objects, func(object types.NamespacedName) bool { return o.missing[object] }), done.writes, err
	})
}

// restart restarts addon-manager and measures the time until every object was reconciled.
func (b *bench) restart(ctx context.Context) (result, error) {
	if err := b.stopManager(); err != nil {
		return result{}, err
	}
	o := expect(nil, nil)
	if err := b.settle(ctx, o, quiet, poll); err != nil {
		return result{}, err
	}
	o = expect(nil, nil)
	var took time.Duration
	others, err := b.measureOthers(func() (err error) {
		if took, err = b.lead(ctx); err != nil {
			return err
		}
		return b.settle(ctx, o, quiet, poll)
	})
	if err != nil {
		return result{}, err
	}
	own, err := b.manager.usage()
	if err != nil {
		return result{}, err
	}
	r := newResult(o, usage{Usage: own}.with(others))
	r.Seconds = took.Seconds()
	return r, b.verify(ctx, nil, nil)
}

// atRest checks for a while that nothing is written.
func (b *bench) atRest(ctx context.Context) (result, error) {
	o := expect(nil, nil)
	used, err := b.measureUsage(func() error {
		end := time.Now().Add(b.rest)
		return b.until(ctx, poll, func() (bool, bool, error) {
			entries, err := b.hub.log.Next()
			o.add(entries)
			return time.Now().After(end), true, err
		})
	})
	r := newResult(o, used)
	r.Seconds = b.rest.Seconds()
	return r, err
}

// declare sets the dependencies of an add-on as its author does.
func (b *bench) declare(ctx context.Context, name string, needs []addonv1alpha1.AddonDependency) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"dependencies": needs}})
	if err != nil {
		return fmt.Errorf("declaring dependencies of %q: %w", name, err)
	}
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := b.hub.others.Patch(ctx, definition, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("declaring dependencies of %q: %w", name, err)
	}
	return nil
}

// setAvailable sets condition Available of add-ons as the clusters' klusterlets do.
func (b *bench) setAvailable(ctx context.Context, names, namespaces []string, available metav1.ConditionStatus) error {
	return program.Each(ctx, inFlight, namespaces, func(ctx context.Context, namespace string) error {
		for _, name := range names {
			if err := setAvailable(ctx, b.hub.others, namespace, name, available); err != nil {
				return err
			}
		}
		return nil
	})
}

// pageSize is the number of objects read at a time.
const pageSize = 500

// verify reads the whole fleet and compares every verdict and availability with the model: with another one on some clusters.
func (b *bench) verify(ctx context.Context, others []string, other *cluster) error {
	for page := (&addonv1alpha1.ManagedClusterAddOnList{}); ; {
		err := b.hub.admin.List(ctx, page, client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return fmt.Errorf("reading the fleet: %w", err)
		}
		for i := range page.Items {
			model := b.model
			if _, differs := slices.BinarySearch(others, page.Items[i].Namespace); differs {
				model = other
			}
			if err := model.check(&page.Items[i]); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// check returns an error if an add-on differs from the model.
func (c *cluster) check(addOn *addonv1alpha1.ManagedClusterAddOn) error {
	degraded := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	available := meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	var wrong error
	if want := c.degraded[addOn.Name]; !same(degraded, want) {
		wrong = fmt.Errorf("condition Degraded is %v, want %v", degraded, want)
	}
	if want := c.available[addOn.Name]; available != want {
		wrong = errors.Join(wrong, fmt.Errorf("condition Available is %t, want %t", available, want))
	}
	if wrong != nil {
		return fmt.Errorf("ManagedClusterAddOn %s/%s: %w", addOn.Namespace, addOn.Name, wrong)
	}
	return nil
}
