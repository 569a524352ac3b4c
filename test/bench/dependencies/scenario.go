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
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
)

// flip is a change that concerns every cluster.
type flip struct {
	// do and undo carry it out on the hub.
	do, undo func(context.Context) error
	// done and undone are what it means for every cluster; they return the verdicts that become due.
	done, undone func(*cluster) []verdict
}

// definitionFlip adds a Required dependency that is installed nowhere to the definition of an add-on.
func (b *bench) definitionFlip() flip {
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
	return flip{do: declare(after), undo: declare(before), done: mean(after), undone: mean(before)}
}

// sharedFlip makes an add-on that others need unavailable on every cluster.
func (b *bench) sharedFlip() flip {
	name := addOnName(0)
	return flip{
		do: func(ctx context.Context) error {
			return b.setAvailable(ctx, []string{name}, b.fleet.namespaces(), metav1.ConditionFalse)
		},
		done: func(c *cluster) []verdict {
			c.available[name] = false
			return c.settle(name)
		},
		undo:   func(context.Context) error { return nil }, // what heal does suffices
		undone: func(*cluster) []verdict { return nil },
	}
}

// flip carries a flip out and measures what addon-manager does; then, with everything put back, what a bare loop needs for the same.
func (b *bench) flip(ctx context.Context, f flip) (result, error) {
	o := expect(f.done(b.model), b.fleet.namespaces())
	used, err := b.metered(func() error {
		if err := f.do(ctx); err != nil {
			return err
		}
		return b.converge(ctx, o, poll)
	})
	if err != nil {
		return result{}, err
	}
	if err := b.verify(ctx); err != nil {
		return result{}, err
	}
	b.say("%d verdicts in %.2fs; putting everything back", len(o.due), o.seconds())
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
	r := newResult(o, used)
	r.compare(bare, stoodBy)
	return r, nil
}

// bare makes the same change again while addon-manager only stands by, and sends the patches that it sent. It returns how many
// seconds that took, by the same clock, and what standing by used meanwhile. It leaves addon-manager working.
func (b *bench) bare(ctx context.Context, f flip, o *observation) (float64, process.Usage, error) {
	if err := errors.Join(b.stopManager(), b.standBy(ctx)); err != nil {
		return 0, process.Usage{}, err
	}
	if err := b.settle(ctx, expect(nil, nil), quiet, poll); err != nil {
		return 0, process.Usage{}, err
	}
	again := expect(f.done(b.model), b.fleet.namespaces())
	used, err := b.metered(func() error {
		group, running := errgroup.WithContext(ctx)
		group.Go(func() error { return f.do(running) })
		group.Go(func() error { return bareLoop(running, b.hub.judge, b.limits, o.sent) })
		if err := group.Wait(); err != nil {
			return err
		}
		return b.converge(ctx, again, poll)
	})
	if err != nil {
		return 0, process.Usage{}, err
	}
	if err := b.verify(ctx); err != nil {
		return 0, process.Usage{}, fmt.Errorf("after the bare loop: %w", err)
	}
	if err := errors.Join(b.stopManager(), b.hub.hold(ctx, false)); err != nil {
		return 0, process.Usage{}, err
	}
	_, err = b.lead(ctx)
	return again.seconds(), used, err
}

// putBack undoes a flip, and waits until every cluster is as before.
func (b *bench) putBack(ctx context.Context, f flip) error {
	o := expect(f.undone(b.model), b.fleet.namespaces())
	if err := f.undo(ctx); err != nil {
		return err
	}
	if err := b.observe(ctx, o, poll); err != nil {
		return err
	}
	err := b.heal(ctx, b.model, b.fleet.namespaces(), func(o *observation) error { return b.observe(ctx, o, poll) })
	if err != nil {
		return err
	}
	if err := b.settle(ctx, expect(nil, nil), quiet, poll); err != nil {
		return err
	}
	return b.verify(ctx)
}

// heal reports every add-on available that can be, until all are: whenever a verdict is gone, those that it kept from it can be.
// observe waits for the verdicts that become due each time.
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

// clusterFlip makes one add-on of one cluster unavailable and then available again, many times while the rest of the fleet rests,
// and measures how soon the verdicts over those that depend on it are written.
func (b *bench) clusterFlip(ctx context.Context) (result, error) {
	whole := expect(nil, nil)
	var latencies []time.Duration
	var longest float64
	needed := 0
	observe := func(o *observation) error {
		if err := b.observe(ctx, o, pollOne); err != nil {
			return err
		}
		latencies, longest, needed = append(latencies, o.latencies()...), max(longest, o.seconds()), needed+len(o.due)
		whole.join(o)
		return b.settle(ctx, whole, pause, pollOne)
	}
	used, err := b.metered(func() error {
		chance := rand.New(rand.NewPCG(uint64(b.fleet.clusters), uint64(b.fleet.addOns)))
		for range b.flips {
			name, on := oneOf(chance, b.fleet.shared()), []string{oneOf(chance, b.fleet.namespaces())}
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
	r.Seconds, r.WritesNeeded = longest, needed
	r.spread(latencies)
	return r, b.verify(ctx)
}

// flipOne lets an add-on go and come back on one cluster.
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

// restart starts addon-manager anew and measures until every object had its turn.
func (b *bench) restart(ctx context.Context) (result, error) {
	if err := b.stopManager(); err != nil {
		return result{}, err
	}
	o := expect(nil, nil)
	if err := b.settle(ctx, o, quiet, poll); err != nil {
		return result{}, err
	}
	o = expect(nil, nil)
	took, err := b.lead(ctx)
	if err != nil {
		return result{}, err
	}
	if err := b.settle(ctx, o, quiet, poll); err != nil {
		return result{}, err
	}
	used, err := b.manager.usage()
	if err != nil {
		return result{}, err
	}
	r := newResult(o, used)
	r.Seconds = took.Seconds()
	return r, b.verify(ctx)
}

// atRest watches for a while that nothing happens.
func (b *bench) atRest(ctx context.Context) (result, error) {
	o := expect(nil, nil)
	used, err := b.metered(func() error {
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

// metered is what addon-manager uses while something is done.
func (b *bench) metered(do func() error) (process.Usage, error) {
	used, err := process.Metered([]int{b.manager.command.Process.Pid}, do)
	if err != nil {
		return process.Usage{}, err
	}
	return used[0], nil
}

// declare sets what an add-on depends on, as its author does.
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

// setAvailable sets Available of add-ons on clusters, as the klusterlets there do.
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

// pageSize is how many objects are read at a time.
const pageSize = 500

// verify reads the whole fleet and compares every verdict, and availability, with what is to be seen.
func (b *bench) verify(ctx context.Context) error {
	for page := (&addonv1alpha1.ManagedClusterAddOnList{}); ; {
		err := b.hub.admin.List(ctx, page, client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return fmt.Errorf("reading the fleet: %w", err)
		}
		for i := range page.Items {
			if err := b.model.check(&page.Items[i]); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// check says how an add-on differs from what is to be seen of it.
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
