package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/stage"
	"github.com/tandem-addons/tandem/test/census"
)

// The scenarios that the report refers to.
const (
	connectScenario = "connect"
	enableScenario  = "enable"
	restScenario    = "rest"
	outageScenario  = "outage"
	removalScenario = "removal"
	rolloutScenario = "rollout"
)

// watchesEach is the number of resources that each agent watches on the hub: add-ons and Instances.
const watchesEach = 2

// named is a change with its name.
type named struct {
	name string
	change
}

// all lists the scenarios in an order in which each starts with the fleet at rest.
func (b *bench) all() []named {
	upgrade := []named{{"wave1", b.wave(1)}, {"wave2", b.wave(2)}, {"wave3", b.wave(3)}}
	if b.ocm != "" {
		upgrade = []named{{rolloutScenario, b.rollout()}}
	}
	return slices.Concat([]named{
		{connectScenario, change{b.connect, b.areConnected}},
		{enableScenario, change{b.enable, b.areEnabled}},
		{restScenario, change{b.atRest, always}},
		{"parameter", b.parameter()},
	}, upgrade, []named{
		{outageScenario, b.outage()},
		{removalScenario, change{b.disable, b.areGone}},
	})
}

// scenarios runs the scenarios, without those that are skipped. After an error, the report has those before it.
func (b *bench) scenarios(ctx context.Context) (program.Report, error) {
	measured := &report{}
	if err := b.describe(measured); err != nil {
		return nil, err
	}
	for _, next := range b.all() {
		if b.skips(next.name) {
			continue
		}
		s, err := b.measure(ctx, next.name, next.change)
		if err != nil {
			return measured, fmt.Errorf("%s: %w", next.name, err)
		}
		measured.Scenarios = append(measured.Scenarios, s)
	}
	if b.skips(removalScenario) {
		return measured, nil
	}
	left, err := census.OfTandem(ctx, b.Managed.Config())
	measured.Left = left
	return measured, err
}

// always is complete at once.
func always(context.Context, *observation) (bool, error) { return true, nil }

// connect starts all agents.
func (b *bench) connect(ctx context.Context, _ *observation) (err error) {
	b.agents, err = startAgents(ctx, b.Hub.Cluster, b.Managed.Cluster, b.clusters, &b.wire)
	if err == nil && b.ocm != "" {
		b.agents.group.Go(func() error { return b.applyWorks(ctx, b.agents.failed) })
	}
	return err
}

// areConnected reports whether every agent has its watches and has renewed its lease.
func (b *bench) areConnected(_ context.Context, o *observation) (bool, error) {
	return len(o.renewed) == len(b.clusters) && len(o.connectTimes(watchesEach)) == len(b.clusters), nil
}

// enable enables all add-ons on all clusters. With OCM, the Placement manages the last one then: OCM would enable it in a namespace that is
// the same on all clusters.
func (b *bench) enable(ctx context.Context, _ *observation) error {
	err := program.Each(ctx, inFlight, b.clusters, func(ctx context.Context, cluster string) error {
		for _, name := range b.chain() {
			if err := b.admin.Create(ctx, addOn(cluster, name)); err != nil {
				return fmt.Errorf("enabling %q on %s: %w", name, cluster, err)
			}
		}
		return nil
	})
	if err != nil || b.ocm == "" {
		return err
	}
	return b.place(ctx, firstVersion)
}

// areEnabled reports whether all add-ons are available on all clusters, and OCM has completed the rollout of the first version.
func (b *bench) areEnabled(ctx context.Context, o *observation) (bool, error) {
	if b.ocm == "" {
		return b.areAvailable(ctx, o)
	}
	return b.isRolledOut(ctx, firstVersion)
}

// areAvailable reports whether all add-ons are available on all clusters.
func (b *bench) areAvailable(ctx context.Context, _ *observation) (bool, error) {
	available := 0
	err := b.countAddOns(ctx, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		if meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable) {
			available++
		}
	})
	return available == b.addons*len(b.clusters), err
}

// atRest changes nothing for a while.
func (b *bench) atRest(ctx context.Context, _ *observation) error { return pause(ctx, b.rest) }

// parameter changes the parameter of the first add-on of the chain to its other value, on all clusters with one write.
func (b *bench) parameter() change {
	return change{
		do: func(ctx context.Context, _ *observation) error {
			b.value = map[string]string{firstValue: secondValue, secondValue: firstValue}[b.value]
			patch, err := json.Marshal(map[string]any{"spec": sharedSettings(b.value).Spec})
			if err != nil {
				return fmt.Errorf("encoding the settings: %w", err)
			}
			return b.admin.Patch(ctx, sharedSettings(b.value), client.RawPatch(types.MergePatchType, patch))
		},
		done: func(ctx context.Context, o *observation) (bool, error) {
			return b.haveReached(ctx, o, b.clusters, func(i *kudo.Instance) bool { return i.Name == b.chain()[0] && i.Spec.Parameters[parameter] == b.value })
		},
	}
}

// wave moves the last add-on of the chain to the second version on the clusters of a wave, as an owner of the clusters does by hand.
func (b *bench) wave(number int) change {
	clusters := waves(b.clusters)[number-1]
	return change{
		do: func(ctx context.Context, _ *observation) error {
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"configs": []upstream.AddOnConfig{*versionConfig(secondVersion)}}})
			if err != nil {
				return fmt.Errorf("encoding the configuration: %w", err)
			}
			return program.Each(ctx, inFlight, clusters, func(ctx context.Context, cluster string) error {
				return b.admin.Patch(ctx, addOn(cluster, b.last()), client.RawPatch(types.MergePatchType, patch))
			})
		},
		done: func(ctx context.Context, o *observation) (bool, error) {
			version := operatorVersion(secondVersion).Name
			return b.haveReached(ctx, o, clusters, func(i *kudo.Instance) bool { return i.Spec.OperatorVersion.Name == version })
		},
	}
}

// haveReached reports whether as many Instances as clusters are as wanted and have completed their plans for that, and all add-ons are
// available.
func (b *bench) haveReached(ctx context.Context, o *observation, clusters []string, wanted func(*kudo.Instance) bool) (bool, error) {
	in := map[string]bool{}
	for _, cluster := range clusters {
		in[cluster] = true
	}
	count := 0
	err := b.count(ctx, func(i *kudo.Instance) {
		if in[i.Namespace] && wanted(i) && isReady(i) {
			count++
		}
	})
	if err != nil || count < len(clusters) {
		return false, err
	}
	return b.areAvailable(ctx, o)
}

// isReady reports whether an Instance is ready for its current generation.
func isReady(i *kudo.Instance) bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Status == "True" && ready.ObservedGeneration == i.Generation
}

// outage stops the hub's API server for a while, and changes the parameter as soon as it serves again. The observation begins when it
// is started. It is complete when the change has reached all clusters, every agent is connected, and the hub has as many watches as before:
// Kubernetes' own controllers reconnect too.
func (b *bench) outage() change {
	change, before, back := b.parameter(), 0, false
	set, isSet, looked := change.do, change.done, time.Time{}
	change.do = func(ctx context.Context, o *observation) (err error) {
		if before, err = b.watches(ctx); err != nil {
			return err
		}
		if err := b.restart(ctx, o); err != nil {
			return err
		}
		return set(ctx, o)
	}
	change.done = func(ctx context.Context, o *observation) (bool, error) {
		if complete, err := isSet(ctx, o); err != nil || !complete {
			return false, err
		}
		connected, err := b.areConnected(ctx, o)
		if err != nil || back || !connected || time.Since(looked) < time.Second { // the metrics are large
			return back, err
		}
		looked = time.Now()
		open, err := b.watches(ctx)
		back = open >= before
		return back, err
	}
	return change
}

// restart stops the hub's API server, and starts it after the outage.
func (b *bench) restart(ctx context.Context, o *observation) error {
	if err := b.StopProgram(ctx, stage.Hub, "kube-apiserver"); err != nil {
		return err
	}
	if err := pause(ctx, b.down); err != nil {
		return err
	}
	if _, err := b.Hub.Log.Next(); err != nil { // of the time before
		return err
	}
	o.began = time.Now()
	if err := b.StartProgram(ctx, stage.Hub, "kube-apiserver"); err != nil {
		return err
	}
	err := program.Until(ctx, "the hub's API server is ready", func(ctx context.Context) (bool, error) {
		return b.raw.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	o.ready = time.Since(o.began)
	return err
}

// disable disables all add-ons on all clusters.
func (b *bench) disable(ctx context.Context, _ *observation) error {
	if b.ocm != "" {
		if err := b.release(ctx); err != nil {
			return err
		}
	}
	return program.Each(ctx, inFlight, b.clusters, func(ctx context.Context, cluster string) error {
		for _, name := range b.chain() {
			if err := b.admin.Delete(ctx, addOn(cluster, name)); err != nil {
				return fmt.Errorf("disabling %q on %s: %w", name, cluster, err)
			}
		}
		return nil
	})
}

// areGone reports whether the hub has no add-on and no Instance.
func (b *bench) areGone(ctx context.Context, _ *observation) (bool, error) {
	left := 0
	if err := b.count(ctx, func(*kudo.Instance) { left++ }); err != nil {
		return false, err
	}
	err := b.countAddOns(ctx, func(*addonv1alpha1.ManagedClusterAddOn) { left++ })
	return left == 0, err
}

// pause waits for a time.
func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}
