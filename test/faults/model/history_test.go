package model

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/faults/history"
)

// TestHistories plays random histories. Whatever happens, an Instance reaches the state that a new Instance with the same spec reaches.
func TestHistories(t *testing.T) {
	few(t, 25) // each takes about 0.1 s of CPU
	loaded := loadPackages(t)
	total := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		versions := variants(t, loaded)
		drawn := rapid.SliceOfN(steps(loaded), 10, 60).Draw(t, "history")
		w := newWorld(t, versions)
		w.play([]step{changeStep(history.DrawFirst(t)), workStep(rapid.SampledFrom([]int{2, 30}).Draw(t, "rounds"))})
		w.play(drawn)
		w.finish(versions)
		for event, times := range w.counted {
			total[event] += times
		}
	})
	for _, event := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%-40s %d", event, total[event])
	}
}

// isLong reports whether -rapid.checks or RAPID_CHECKS sets another number of checks than the default.
func isLong() bool {
	number := flag.Lookup("rapid.checks")
	return number.Value.String() != number.DefValue || os.Getenv("RAPID_CHECKS") != ""
}

// few limits the number of checks of a test that is not long.
func few(t *testing.T, checks int) {
	number := flag.Lookup("rapid.checks")
	if isLong() {
		return
	}
	set := func(value string) {
		if err := flag.Set("rapid.checks", value); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(checks))
	t.Cleanup(func() { set(number.DefValue) })
}

// play takes the steps of a history.
func (w *world) play(steps []step) {
	for _, s := range steps {
		w.t.Logf("%s", s)
		w.take(s)
	}
}

// finish ends a history: without faults everything is settled, then a bad desired state is followed by a good one, and a plan that failed or
// was cancelled is requested. The state that is reached equals that of a new Instance with the same spec, and everything can be removed.
func (w *world) finish(versions []*kudo.OperatorVersion) {
	w.webhookDown = false
	w.settleDown()
	w.recover()
	if i := w.hub.get(root); i != nil {
		w.compare(i, versions)
		w.take(changeStep(history.Change{Do: history.Uninstall}))
		w.settleDown()
	}
	maps.DeleteFunc(w.objects, func(entry kudo.InventoryEntry, _ *unstructured.Unstructured) bool { return isRetained(entry) })
	if len(w.hub.of)+len(w.mirrors.of)+len(w.objects) > 0 {
		w.t.Fatalf("after the removal, there is still something left: %v\n%s", slices.Collect(maps.Keys(w.objects)), w.describe())
	}
}

// recover makes an unhealthy Instance healthy, as a user would.
func (w *world) recover() {
	if w.isHealthy() {
		return
	}
	for _, c := range history.Recovery(w.hub.get(root)) {
		w.t.Logf("%s", c)
		w.edit(c)
		w.settleDown()
	}
	if w.isHealthy() {
		w.counted["recovered by good values"]++
		return
	}
	rerun := history.Change{Do: history.Run, Plan: kudo.DeployPlan}
	w.t.Logf("%s", rerun)
	w.edit(rerun)
	w.settleDown()
	if !w.isHealthy() {
		w.t.Fatalf("the Instance does not recover:\n%s", w.describe())
	}
	w.counted["recovered by a manual plan"]++
}

func (w *world) isHealthy() bool { return history.Healthy(w.hub.get(root)) }

// compare compares the state with that of a new Instance with the same spec.
func (w *world) compare(i *kudo.Instance, versions []*kudo.OperatorVersion) {
	fresh := newWorld(w.t, versions)
	if again := history.Again(i); !fresh.edit(again) {
		w.t.Fatalf("the hub rejects a new Instance with the spec of the existing one: %s", again)
	}
	fresh.settleDown()
	if diff := cmp.Diff(fresh.snapshot(), w.snapshot()); diff != "" {
		w.t.Fatalf("the history leads to another state than a new Instance with the same spec (-new +history):\n%s\n%s", diff, w.describe())
	}
}

// snapshot returns the outcome of all Instances, and the objects on the managed cluster.
func (w *world) snapshot() map[string]any {
	state := map[string]any{}
	manual := map[kudo.InventoryEntry]bool{}
	for _, name := range w.hub.names() {
		i, m := w.hub.get(name), w.mirrors.get(name)
		maps.Copy(manual, history.Manual(m))
		state[name] = history.Outcome(i, m, w.versions[i.Spec.OperatorVersion.Name], w.versionOf(m.Status.Execution.OperatorVersion))
	}
	for entry, o := range w.objects {
		if !manual[entry] && !isRetained(entry) {
			state[entry.String()] = history.Bare(o).Object
		}
	}
	return state
}

// variants draws versions of the packages: with or without optional plans, serial or parallel.
func variants(t *rapid.T, loaded []*kudo.OperatorVersion) []*kudo.OperatorVersion {
	strategy := rapid.SampledFrom([]kudo.Ordering{kudo.Serial, kudo.Parallel})
	var versions []*kudo.OperatorVersion
	for _, version := range loaded {
		v := version.DeepCopy()
		for _, name := range []string{kudo.UpdatePlan, kudo.UpgradePlan, kudo.CleanupPlan} {
			if _, exists := v.Spec.Plans[name]; exists && rapid.Bool().Draw(t, v.Name+" without "+name) {
				delete(v.Spec.Plans, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v.Spec.Plans)) {
			p := v.Spec.Plans[name]
			if len(p.Phases) > 1 && rapid.Bool().Draw(t, v.Name+" "+name+" parallel") {
				p.Strategy = kudo.Parallel
			}
			p.Phases[0].Strategy = strategy.Draw(t, v.Name+" "+name+" strategy")
			v.Spec.Plans[name] = p
		}
		versions = append(versions, v)
	}
	return versions
}

// steps generates steps: changes by users, and passes of the programs with faults.
func steps(loaded []*kudo.OperatorVersion) *rapid.Generator[step] {
	definitions := history.Definitions(loaded)
	faults := rapid.Custom(func(t *rapid.T) fault {
		return fault{
			kind: rapid.SampledFrom([]faultKind{"", stopBefore, stopAfter, refuse, reject}).Draw(t, "fault"),
			at:   rapid.IntRange(1, 12).Draw(t, "at"),
		}
	})
	return rapid.Custom(func(t *rapid.T) step {
		do := rapid.SampledFrom([]string{
			doWork, doWork, doWork, doWork, doPass, doPass, doPass, history.Update, history.Update, history.Update, history.Update, history.Upgrade,
			history.Install, history.Install, history.Run, history.Run, history.Cancel, history.Uninstall, doReplace, doWebhook, doRestart,
		}).Draw(t, "do")
		s := changeStep(history.Draw(t, do, definitions))
		switch do {
		case doReplace:
			s.Version = history.DrawVersion(t)
		case doWork:
			s.rounds, s.fault, s.ago = rapid.IntRange(1, 12).Draw(t, "rounds"), faults.Draw(t, "fault"), rapid.IntRange(0, 3).Draw(t, "ago")
		case doRestart:
			s.rounds = rapid.IntRange(0, len(programs)-1).Draw(t, "program")
		case doPass:
			s.controller = rapid.SampledFrom([]controller{resolver, parenting, mirrorer, executor, reporter}).Draw(t, "controller")
			s.instance = rapid.SampledFrom([]string{root, root, root + ".cache", root + ".cache.disk"}).Draw(t, "instance")
			s.fault, s.ago = faults.Draw(t, "fault"), rapid.IntRange(0, 30).Draw(t, "ago")
		}
		return s
	})
}
