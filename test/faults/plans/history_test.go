package plans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/test/faults/history"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// TestHistories plays random histories of desired states on the real programs, without webhooks: invalid values are stored. After each, the hub
// and the cluster equal those after the installation of a new Instance with the last desired state.
func TestHistories(t *testing.T) {
	end := end(t)
	versions, err := history.Load()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "histories", false)
	if err := w.push(t.Context(), versions...); err != nil {
		t.Fatal(err)
	}
	definitions, played := history.Definitions(versions), 0
	rapid.Check(t, func(r *rapid.T) {
		first, events := history.DrawFirst(r), rapid.SliceOfN(event(definitions), 2, 12).Draw(r, "history")
		other := map[string]*string{
			"REPLICAS": new("2"), "CACHE": new("true"), "CACHE_SIZE": new(rapid.SampledFrom([]string{"2", "3"}).Draw(r, "size")),
			"PERSIST": new(rapid.SampledFrom([]string{"true", "false"}).Draw(r, "persist")),
		}
		if !end.IsZero() && time.Now().After(end) {
			return
		}
		began := time.Now()
		past := w.newPast(versions)
		if err := past.play(t.Context(), first, events, other); err != nil {
			folder, logs := w.keepLogs(past.name)
			t.Logf("%s failed: %v\n%s\nlogs: %s, %v", past.name, err, strings.Join(past.commands, "\n"), folder, logs)
			if err := past.discard(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			r.Fatalf("%v\n%s", err, strings.Join(past.commands, "\n"))
		}
		played++
		t.Logf("%s: a history of %d commands and restarts in %.1fs", past.name, len(past.commands), time.Since(began).Seconds())
	})
	t.Logf("%d histories", played)
}

// happening is a change by a user, or the restart of a program. Only if it is awaited do the programs become idle before the next one.
type happening struct {
	history.Change
	restarted int // the index of the program
	awaited   bool
}

const restart = "restart"

// event generates what happens.
func event(definitions []kudo.Parameter) *rapid.Generator[happening] {
	return rapid.Custom(func(t *rapid.T) happening {
		do := rapid.SampledFrom([]string{
			history.Update, history.Update, history.Update, history.Update, history.Update, history.Upgrade, history.Upgrade, history.Run,
			history.Cancel, history.Install, history.Uninstall, restart,
		}).Draw(t, "do")
		return happening{
			Change: history.Draw(t, do, definitions), restarted: rapid.IntRange(0, 1).Draw(t, "program"), awaited: rapid.Bool().Draw(t, "awaited"),
		}
	})
}

// past is an Instance and its history.
type past struct {
	*run
	versions map[string]*kudo.OperatorVersion
	// commands are what a user does to repeat the history.
	commands []string
	// others are new Instances to compare with, and spec is what such an Instance is created with.
	others []*past
	spec   kudo.InstanceSpec
}

// ofShop are the kinds that the package applies.
var ofShop = []kind{
	{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
}

// newPast returns an Instance that does not exist yet.
func (w *world) newPast(versions []*kudo.OperatorVersion) *past {
	mirrored := []kind{kudo.GroupVersion.WithKind("Instance"), kudo.GroupVersion.WithKind("OperatorVersion")}
	s := scenario{name: "history", onHub: mirrored[:1], onCluster: append(mirrored, ofShop...)}
	p := &past{run: &run{world: w, scenario: s, name: w.runName()}, versions: map[string]*kudo.OperatorVersion{}}
	p.clean = p.run // a short time without requests is enough to be idle
	for _, version := range versions {
		p.versions[version.Name] = version
	}
	w.note("run %s", p.name)
	return p
}

// play plays a history to its end, and recovers the Instance. The outcome must equal that of a new Instance, also after a change to other
// values and back. A restart must cause no write, and everything must be removable.
func (p *past) play(ctx context.Context, first history.Change, events []happening, other map[string]*string) error {
	if err := p.change(ctx, first, true); err != nil {
		return err
	}
	for _, e := range events {
		if err := p.happen(ctx, e); err != nil {
			return err
		}
	}
	i, err := p.recover(ctx)
	if err != nil {
		return err
	}
	if i != nil {
		if err := p.finish(ctx, i, other); err != nil {
			return err
		}
	}
	for _, removed := range append(p.others, p) {
		if err := removed.uninstall(ctx); err != nil {
			return err
		}
	}
	return nil
}

// happen executes a change, or restarts a program.
func (p *past) happen(ctx context.Context, e happening) error {
	if e.Do != restart {
		return p.change(ctx, e.Change, e.awaited)
	}
	program := p.programs[e.restarted]
	p.record("# " + program.name + " restarts")
	program.stop()
	return program.start()
}

// record adds a line to the commands and to the programs' logs.
func (p *past) record(line string) {
	p.commands = append(p.commands, line)
	p.note("%s", line)
}

// change executes a change that is possible, unless the hub refuses it, and waits for its effect if it is awaited.
func (p *past) change(ctx context.Context, c history.Change, awaited bool) error {
	i, err := p.read(ctx)
	if err != nil {
		return err
	}
	after, possible := i, i != nil
	if c.Do != history.Uninstall {
		after, possible = c.Edit(i)
	}
	if !possible {
		return nil
	}
	switch p.record(c.String()); c.Do {
	case history.Install:
		after.Name, after.Spec.InstallNamespace = p.name, p.name
		err = p.hub.Create(ctx, after)
	case history.Uninstall:
		err = client.IgnoreNotFound(p.hub.Delete(ctx, i))
	default:
		err = environment.Edit(ctx, p.hub, p.instance(""), func(i *kudo.Instance) {
			if after, possible := c.Edit(i); possible {
				i.Spec = after.Spec
			}
		})
	}
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		p.record("# refused: " + err.Error())
		return nil
	case err != nil || !awaited:
		return err
	}
	p.record("# the programs become idle")
	return p.settle(ctx)
}

// read returns the Instance on the hub; nil if there is none.
func (p *past) read(ctx context.Context) (*kudo.Instance, error) {
	i := &kudo.Instance{}
	err := p.hub.Get(ctx, client.ObjectKeyFromObject(p.instance("")), i)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return i, err
}

// settle waits until the programs have nothing to do.
func (p *past) settle(ctx context.Context) error {
	return eventually(ctx, settleTimeout, func(ctx context.Context) error {
		return p.rest(ctx, action{settled: func(ctx context.Context, _ *run) error { return p.expectDecided(ctx) }})
	})
}

// expectDecided returns an error unless the programs have seen the desired state, and no plan runs.
func (p *past) expectDecided(ctx context.Context) error {
	onHub, mirrors, err := p.instances(ctx)
	if err != nil {
		return err
	}
	for name, i := range onHub {
		resolved := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved)
		if i.DeletionTimestamp != nil || resolved == nil || resolved.ObservedGeneration != i.Generation {
			return fmt.Errorf("the hub has not resolved Instance %s: %+v", name, i.Status)
		}
		if x := i.Status.Execution; x != nil && i.Status.PlanStatus[x.Plan].Status.IsRunning() {
			return fmt.Errorf("a plan of Instance %s runs: %+v", name, i.Status.PlanStatus[x.Plan])
		}
	}
	for name := range mirrors {
		if onHub[name] == nil {
			return fmt.Errorf("the mirror of Instance %s remains", name)
		}
	}
	return nil
}

// instances returns the Instance and its descendants by name, on the hub and on the cluster.
func (p *past) instances(ctx context.Context) (onHub, mirrors map[string]*kudo.Instance, err error) {
	found := map[string]map[string]*kudo.Instance{}
	for server, namespace := range map[string]string{"hub": cluster, "cluster": p.name} {
		list := &kudo.InstanceList{}
		if err := p.clients()[server].List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, nil, err
		}
		found[server] = map[string]*kudo.Instance{}
		for i := range list.Items {
			if name := list.Items[i].Name; name == p.name || strings.HasPrefix(name, p.name+".") {
				found[server][name] = &list.Items[i]
			}
		}
	}
	return found["hub"], found["cluster"], nil
}

// recover makes an unhealthy Instance healthy, as a user would, and returns it; nil if there is none.
func (p *past) recover(ctx context.Context) (*kudo.Instance, error) {
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	i, err := p.read(ctx)
	if err != nil || history.Healthy(i) {
		return i, err
	}
	for _, c := range append(history.Recovery(i), history.Change{Do: history.Run, Plan: kudo.DeployPlan}) {
		if err := p.change(ctx, c, true); err != nil {
			return nil, err
		}
		if i, err = p.read(ctx); err != nil || history.Healthy(i) {
			return i, err
		}
	}
	return nil, fmt.Errorf("the Instance does not recover: %+v", i.Status)
}

// finish compares the outcome with that of a new Instance: first as it is, then after a change to other values, after the correction of a
// value that fails in a child, and after the return to the first values. Then it restarts the programs.
func (p *past) finish(ctx context.Context, i *kudo.Instance, other map[string]*string) error {
	first, err := p.compareWithNew(ctx, i)
	if err != nil {
		return err
	}
	if err := p.change(ctx, history.Change{Do: history.Update, Set: other}, true); err != nil {
		return err
	}
	if i, err = p.read(ctx); err != nil {
		return err
	}
	second, err := p.compareWithNew(ctx, i)
	if err != nil {
		return err
	}
	if err := p.change(ctx, history.Change{Do: history.Update, Set: map[string]*string{"CACHE_SIZE": new("13")}}, true); err != nil {
		return err
	}
	if bad, err := p.read(ctx); err != nil || history.Healthy(bad) {
		return errors.Join(errors.New("a value that fails in a child does not fail"), err)
	}
	for _, step := range []struct {
		set  map[string]*string
		same *past
	}{{map[string]*string{"CACHE_SIZE": other["CACHE_SIZE"]}, second}, {first.values(other), first}} {
		if err := p.change(ctx, history.Change{Do: history.Update, Set: step.set}, true); err != nil {
			return err
		}
		if err := p.compareWith(ctx, step.same); err != nil {
			return fmt.Errorf("a change that is reverted leads to another outcome than %s: %w", step.same.commands[0], err)
		}
	}
	return p.restartAll(ctx)
}

// compareWithNew returns a new Instance with the spec of this one, whose outcome is the same.
func (p *past) compareWithNew(ctx context.Context, i *kudo.Instance) (*past, error) {
	fresh := p.newPast(slices.Collect(maps.Values(p.versions)))
	fresh.spec = i.Spec
	p.others = append(p.others, fresh)
	if err := fresh.change(ctx, history.Again(i), true); err != nil {
		return nil, fmt.Errorf("a new Instance: %w", err)
	}
	if err := p.compareWith(ctx, fresh); err != nil {
		return nil, fmt.Errorf("the history leads to another outcome than %s: %w", fresh.commands[0], err)
	}
	return fresh, nil
}

// values returns the values that parameters have in the Instance's spec; nil for those without one.
func (p *past) values(of map[string]*string) map[string]*string {
	set := map[string]*string{}
	for name := range of {
		set[name] = nil
		if value, given := p.spec.Parameters[name]; given {
			set[name] = &value
		}
	}
	return set
}

// restartAll restarts the programs, which must not write.
func (p *past) restartAll(ctx context.Context) error {
	for _, program := range p.programs {
		program.stop()
	}
	p.collect()
	p.writes = nil
	for _, program := range p.programs {
		if err := program.start(); err != nil {
			return err
		}
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	p.collect()
	for _, written := range p.writes {
		if !written.Periodic() {
			return fmt.Errorf("the programs write after a restart at rest: %s", written)
		}
	}
	return nil
}

// compareWith returns an error unless the outcome equals that of another Instance after a while.
func (p *past) compareWith(ctx context.Context, fresh *past) error {
	return eventually(ctx, convergence, func(ctx context.Context) error {
		want, err := fresh.outcome(ctx)
		if err != nil {
			return err
		}
		got, err := p.outcome(ctx)
		if err != nil {
			return err
		}
		if difference := cmp.Diff(want, got); difference != "" {
			return fmt.Errorf("(- new, + history)\n%s", difference)
		}
		foreign, err := invariants.Violations(ctx, p.hub)
		if err == nil && len(foreign) > 0 {
			err = errors.New(strings.Join(foreign, "\n"))
		}
		return err
	})
}

// outcome returns the resulting state of the Instance and its descendants, and their objects.
func (p *past) outcome(ctx context.Context) (map[string]string, error) {
	onHub, mirrors, err := p.instances(ctx)
	if err != nil {
		return nil, err
	}
	outcome, manual := map[string]string{}, map[kudo.InventoryEntry]bool{}
	for name, i := range onHub {
		mirror := mirrors[name]
		if !history.Healthy(i) || mirror == nil || mirror.Status.Execution == nil || mirror.Status.Whole == nil {
			return nil, fmt.Errorf("Instance %s is not deployed: %+v", name, i.Status)
		}
		maps.Copy(manual, history.Manual(mirror))
		desired, started := p.versions[i.Spec.OperatorVersion.Name], p.versions[mirror.Status.Execution.OperatorVersion.Name]
		outcome[Normal(name, p.name)] = Normal(fmt.Sprint(history.Outcome(i, mirror, desired, started)), p.name)
	}
	for _, k := range ofShop {
		if err := p.addObjects(ctx, outcome, k, manual); err != nil {
			return nil, err
		}
	}
	return outcome, nil
}

// addObjects adds the objects of a kind on the cluster, except for those that only manually requested plans have applied.
func (p *past) addObjects(ctx context.Context, outcome map[string]string, k kind, manual map[kudo.InventoryEntry]bool) error {
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	if err := p.managed.List(ctx, objects); err != nil {
		return err
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		entry := kudo.InventoryEntry{Group: k.Group, Kind: k.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		if !ofRun(o, p.name) || manual[plan.Identity(entry)] {
			continue
		}
		text, err := content(history.Bare(o))
		if err != nil {
			return err
		}
		outcome[Normal(entry.String(), p.name)] = Normal(text, p.name)
	}
	return nil
}

// uninstall removes the Instance, after which nothing is left of it.
func (p *past) uninstall(ctx context.Context) error {
	if err := p.change(ctx, history.Change{Do: history.Uninstall}, true); err != nil {
		return err
	}
	return eventually(ctx, convergence, func(ctx context.Context) error {
		left, err := p.state(ctx)
		maps.DeleteFunc(left, func(key, _ string) bool { return strings.HasPrefix(key, "metrics of ") })
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("after the removal of %s, objects remain: %v", p.name, slices.Sorted(maps.Keys(left)))
		}
		return err
	})
}

// discard removes everything without a removal.
func (p *past) discard(ctx context.Context) error {
	for _, failed := range append(p.others, p) {
		if err := p.clear(ctx, failed.run); err != nil {
			return err
		}
	}
	return nil
}
