package model

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// TestHistories plays random histories. Whatever happens, an Instance reaches the state that a new Instance with the same spec reaches.
func TestHistories(t *testing.T) {
	few(t, 25) // each takes about 0.1 s of CPU
	loaded := loadPackages(t)
	total := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		versions := variants(t, loaded)
		history := rapid.SliceOfN(steps(loaded), 10, 60).Draw(t, "history")
		w := newWorld(t, versions)
		w.play([]step{{do: doInstall, version: "1.0.0", set: features(t)}, {do: doWork, rounds: rapid.SampledFrom([]int{2, 30}).Draw(t, "rounds")}})
		w.play(history)
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
func (w *world) play(history []step) {
	for _, s := range history {
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
		w.take(step{do: doUninstall})
		w.settleDown()
	}
	if len(w.hub.of)+len(w.mirrors.of)+len(w.objects) > 0 {
		w.t.Fatalf("after the removal, there is still something left: %v\n%s", slices.Collect(maps.Keys(w.objects)), w.describe())
	}
}

// recover makes an unhealthy Instance healthy, as a user would.
func (w *world) recover() {
	if w.isHealthy() {
		return
	}
	before := w.hub.get(root)
	good := map[string]*string{}
	for name := range before.Spec.Parameters {
		good[name] = nil
	}
	delete(good, "REGION") // it is immutable
	if x := before.Status.Execution; x != nil {
		started, given := x.Parameters["REGION"]
		if good["REGION"] = nil; given {
			good["REGION"] = &started
		}
	}
	var steps []step
	if request := before.Spec.PlanExecution; request.PlanName != "" || request.Cancel {
		steps = append(steps, step{do: doRun}) // a request that cannot be fulfilled is removed
	}
	for _, name := range slices.Sorted(maps.Keys(good)) { // one after the other, because one edit cannot trigger two plans
		steps = append(steps, step{do: doUpdate, set: map[string]*string{name: good[name]}})
	}
	for _, s := range steps {
		w.t.Logf("%s", s)
		w.take(s)
		w.settleDown()
	}
	if w.isHealthy() {
		w.counted["recovered by good values"]++
		return
	}
	w.t.Logf("%s", step{do: doRun, plan: kudo.DeployPlan})
	w.take(step{do: doRun, plan: kudo.DeployPlan})
	w.settleDown()
	if !w.isHealthy() {
		w.t.Fatalf("the Instance does not recover:\n%s", w.describe())
	}
	w.counted["recovered by a manual plan"]++
}

// isHealthy reports whether the Instance is Ready and resolved, or does not exist.
func (w *world) isHealthy() bool {
	i := w.hub.get(root)
	return i == nil || meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionReady) &&
		meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionResolved)
}

// compare compares the state with that of a new Instance with the same spec.
func (w *world) compare(i *kudo.Instance, versions []*kudo.OperatorVersion) {
	fresh := newWorld(w.t, versions)
	set := map[string]*string{}
	for name, value := range i.Spec.Parameters {
		set[name] = &value
	}
	s := step{do: doInstall, version: strings.TrimPrefix(i.Spec.OperatorVersion.Name, "shop-"), set: set}
	if !fresh.edit(s) {
		w.t.Fatalf("the hub rejects a new Instance with the spec of the existing one: %s", s)
	}
	fresh.settleDown()
	if diff := cmp.Diff(fresh.snapshot(), w.snapshot()); diff != "" {
		w.t.Fatalf("the history leads to another state than a new Instance with the same spec (-new +history):\n%s\n%s", diff, w.describe())
	}
}

// snapshot returns the state of hub and managed cluster without uids, generations and the traces of executions, and without objects that
// only manually requested plans have applied.
func (w *world) snapshot() map[string]any {
	state := map[string]any{}
	manual := map[kudo.InventoryEntry]bool{}
	for _, name := range w.hub.names() {
		i, m := w.hub.get(name), w.mirrors.get(name)
		state["hub "+name] = map[string]any{"version": i.Spec.OperatorVersion.Name, "parameters": effective(w.versions[i.Spec.OperatorVersion.Name], i)}
		ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
		var inventory []string
		for _, entry := range m.Status.Inventory {
			if manual[plan.Identity(entry)] = entry.Manual; !entry.Manual {
				inventory = append(inventory, fmt.Sprintf("%s %s pending=%v", entry.Task, entry.String(), entry.Pending))
			}
		}
		slices.Sort(inventory)
		state["managed "+name] = map[string]any{
			"ready": fmt.Sprint(ready.Status, ready.Reason, ready.Message), "inventory": inventory, "owed": len(m.Status.Execution.Owed),
			"whole": m.Status.Whole.OperatorVersion.Name, "parameters": effective(w.referenced(m.Status.Execution.OperatorVersion), i),
		}
	}
	for entry, o := range w.objects {
		if !manual[entry] {
			state[entry.String()] = bare(o)
		}
	}
	return state
}

// effective returns the effective parameters of an Instance.
func effective(version *kudo.OperatorVersion, i *kudo.Instance) map[string]string {
	values := map[string]string{}
	for _, p := range version.Spec.Parameters {
		values[p.Name] = parameter.InForce(&p, i.Spec.Parameters)
	}
	return values
}

// bare returns the content of an object without the traces of executions.
func bare(o *unstructured.Unstructured) map[string]any {
	b := o.DeepCopy()
	b.SetUID("")
	b.SetGeneration(0)
	annotations := b.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return strings.HasPrefix(name, "kudo.dev/") })
	b.SetAnnotations(annotations)
	unstructured.RemoveNestedField(b.Object, "status", "observedGeneration")
	unstructured.RemoveNestedField(b.Object, "spec", "template", "metadata", "annotations", kudo.AnnotationExecution)
	return b.Object
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

// features draws which features a new Instance has.
func features(t *rapid.T) map[string]*string {
	set := map[string]*string{}
	for _, name := range []string{"CACHE", "PERSIST", "METRICS"} {
		if rapid.Bool().Draw(t, name) {
			set[name] = new("true")
		}
	}
	return set
}

// steps generates steps: changes by users, and passes of the programs with faults.
func steps(loaded []*kudo.OperatorVersion) *rapid.Generator[step] {
	var definitions []kudo.Parameter
	for _, version := range loaded {
		if version.Spec.Operator.Name == "shop" {
			definitions = version.Spec.Parameters
		}
	}
	for _, p := range slices.Clone(definitions) { // those of children, which pass through more programs, more often
		if slices.Contains([]string{"CACHE", "CACHE_SIZE", "PERSIST"}, p.Name) {
			definitions = append(slices.Clip(definitions), p, p)
		}
	}
	number := rapid.SampledFrom([]string{"1.0.0", "2.0.0"})
	faults := rapid.Custom(func(t *rapid.T) fault {
		return fault{
			kind: rapid.SampledFrom([]faultKind{"", stopBefore, stopAfter, refuse, reject}).Draw(t, "fault"),
			at:   rapid.IntRange(1, 12).Draw(t, "at"),
		}
	})
	return rapid.Custom(func(t *rapid.T) step {
		s := step{do: rapid.SampledFrom([]string{
			doWork, doWork, doWork, doWork, doPass, doPass, doPass, doUpdate, doUpdate, doUpdate, doUpdate, doUpgrade, doInstall, doInstall,
			doRun, doRun, doCancel, doUninstall, doReplace, doWebhook, doRestart,
		}).Draw(t, "do")}
		switch s.do {
		case doInstall:
			s.version, s.set = number.Draw(t, "version"), values(t, definitions, 3)
		case doUpdate:
			s.set = values(t, definitions, 2)
		case doUpgrade, doReplace:
			s.version = number.Draw(t, "version")
		case doRun:
			s.plan = rapid.SampledFrom([]string{"deploy", "backup", "tune", "exporter", "cleanup", "none"}).Draw(t, "plan")
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

// values draws values of parameters from their types, valid and invalid ones, and parameters to remove.
func values(t *rapid.T, definitions []kudo.Parameter, most int) map[string]*string {
	set := map[string]*string{}
	for range rapid.IntRange(1, most).Draw(t, "parameters") {
		p := rapid.SampledFrom(definitions).Draw(t, "parameter")
		choices := append([]string{""}, valid(p)...)
		if rapid.IntRange(0, 5).Draw(t, "invalid") == 5 {
			choices = invalid(p)
			if rapid.IntRange(0, 3).Draw(t, "undefined") == 3 {
				p.Name = "MISSPELT"
			}
		}
		value := rapid.SampledFrom(choices).Draw(t, "value")
		set[p.Name] = &value
		if rapid.IntRange(0, 4).Draw(t, "removed") == 4 {
			set[p.Name] = nil
		}
	}
	return set
}

// valid returns values of the parameter's type.
func valid(p kudo.Parameter) []string {
	switch {
	case len(p.Enum) > 0:
		return p.Enum
	case p.Name == "CACHE_SIZE":
		return []string{"2", "3", "13"}
	case p.Name == "REGION":
		return []string{"eu", "us"} // a bad value of an immutable parameter stays: only a new Instance recovers
	}
	switch p.Type {
	case kudo.IntegerType:
		return []string{"1", "2", "3"}
	case kudo.NumberType:
		return []string{"0.5", "1e3", ".25"}
	case kudo.BooleanType:
		return []string{"true", "false", "T", "0"}
	case kudo.ArrayType:
		return []string{"[a]", "[b, a]", "[c]", "[]"}
	case kudo.MapType:
		return []string{"{a: b}", "{a: [1, 2.50]}", "{}"}
	default:
		return []string{"one", "two", "a: b", "text\n---\nkind: Secret"} // the last two change the structure of an unquoted scalar
	}
}

// invalid returns values that are not of the parameter's type.
func invalid(p kudo.Parameter) []string {
	switch p.Type {
	case kudo.IntegerType, kudo.NumberType, kudo.BooleanType:
		return []string{"many", "1,5"}
	case kudo.ArrayType:
		return []string{"{a: b}", "[", "*a"}
	case kudo.MapType:
		return []string{"[a]", "{", "{a: 1, a: 2}"}
	default:
		if len(p.Enum) > 0 {
			return []string{"none of them"}
		}
		return []string{""}
	}
}
