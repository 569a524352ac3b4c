package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/history"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// cluster holds the effects of tasks. It survives agent restarts.
type cluster struct {
	random *rand.Rand
	// left is the number of observations that a task of an execution still needs to complete after it ran.
	left map[string]int
	// carriedOut counts how often each task ran.
	carriedOut map[string]int
	// failures is the number of remaining failures, and mortal whether some of them are fatal. After that, everything succeeds.
	failures int
	mortal   bool
}

// look runs a task unless it is recorded as in progress, and returns its outcome.
func (c *cluster) look(key string, recorded kudo.ExecutionStatus) plan.Outcome {
	if recorded != kudo.InProgress {
		c.carriedOut[key]++
		if c.carriedOut[key] == 1 {
			c.left[key] = c.random.IntN(3)
		}
	}
	if c.failures > 0 && c.random.IntN(4) == 0 {
		c.failures--
		if c.mortal && c.random.IntN(4) == 0 {
			return plan.Outcome{Status: kudo.FatalError, Message: "broken"}
		}
		return plan.Outcome{Status: kudo.Error, Message: "refused"}
	}
	if c.left[key] > 0 {
		c.left[key]--
		return plan.Outcome{Status: kudo.InProgress, Message: "waits"}
	}
	return plan.Outcome{Status: kudo.Complete}
}

// life simulates one Instance: a spec that changes, and the passes of an agent that may be killed at any point.
type life struct {
	t    *testing.T
	seed uint64
	*cluster
	versions []*kudo.OperatorVersionSpec
	state    plan.State           // the desired state
	status   kudo.InstanceStatus  // as last committed
	uids     int                  // number of generated uids
	done     map[types.UID]string // executions that have ended, and their outcome
	removed  bool
}

func newLife(t *testing.T, seed uint64, failures int, mortal bool) *life {
	random := rand.New(rand.NewPCG(seed, 4))
	l := &life{t: t, seed: seed, done: map[types.UID]string{}, cluster: &cluster{
		random: random, left: map[string]int{}, carriedOut: map[string]int{}, failures: failures, mortal: mortal,
	}}
	optional := []string{"update", "upgrade", "cleanup"}
	for i := range 2 {
		version := versionOf("deploy", "backup")
		version.AppVersion = []string{"3.8.0", "3.9.0"}[i]
		version.Dependencies = []kudo.DependencyConstraint{{Name: "zookeeper", Version: []string{"<3.8", ">=3.8"}[i]}}
		for _, name := range optional[:random.IntN(len(optional)+1)] {
			version.Plans[name] = kudo.Plan{}
		}
		for _, name := range slices.Sorted(maps.Keys(version.Plans)) {
			version.Plans[name] = randomPlan(random)
		}
		l.versions = append(l.versions, version)
	}
	l.state = plan.State{Version: l.versions[0], Reference: one, Generation: 1, Parameters: map[string]string{}}
	return l
}

// edit changes the spec like a user.
func (l *life) edit() {
	l.state.Generation++
	parameters := maps.Clone(l.state.Parameters)
	switch l.random.IntN(7) {
	case 0:
		at := l.random.IntN(2)
		l.state.Version, l.state.Reference = l.versions[at], []corev1.ObjectReference{one, two}[at]
	case 1:
		l.state.Request = kudo.PlanExecution{PlanName: []string{"deploy", "backup"}[l.random.IntN(2)], UID: l.uid()}
	case 2:
		if l.status.Execution != nil {
			l.state.Request = kudo.PlanExecution{UID: l.status.Execution.UID, Cancel: true}
		}
	case 3:
		delete(parameters, l.parameter())
	case 4:
		l.state.Registries = mirror([]string{"", "a", "b"}[l.random.IntN(3)])
	default:
		for range 1 + l.random.IntN(2) {
			parameters[l.parameter()] = fmt.Sprint(l.random.IntN(3))
		}
	}
	l.state.Parameters = parameters
}

func (l *life) parameter() string {
	definitions := l.state.Version.Parameters
	return definitions[l.random.IntN(len(definitions))].Name
}

func (l *life) uid() types.UID {
	l.uids++
	return types.UID(fmt.Sprint("u", l.uids))
}

// observedState returns the desired state with the committed status, as an agent reads both.
func (l *life) observedState() plan.State {
	s := l.state
	if l.status.Execution == nil {
		return s
	}
	reached := plan.ReachedState(l.status, l.runningVersion())
	s.Last, s.LastStatus, s.LastVersion = reached.Last, reached.LastStatus, reached.LastVersion
	s.Whole, s.Handled = reached.Whole, reached.Handled
	return s
}

// runningVersion returns the last started version.
func (l *life) runningVersion() *kudo.OperatorVersionSpec {
	if l.status.Execution.OperatorVersion == two {
		return l.versions[1]
	}
	return l.versions[0]
}

// pass runs one pass of an agent. A killed agent does not commit. It reports whether anything was done.
func (l *life) pass(killed bool) bool {
	w := l.observedState()
	choice, err := plan.Choose(w)
	var missing *plan.MissingPlanError
	if err != nil && !errors.As(err, &missing) {
		l.t.Fatalf("seed %d: %v", l.seed, err)
	}
	next := l.status
	switch {
	case choice.Remove:
		l.removed = l.removed || !killed
		return false
	case choice.Cancel:
		next = *l.status.DeepCopy()
		next.PlanStatus[w.Last.Plan] = plan.Cancel(next.PlanStatus[w.Last.Plan], noon)
	case choice.Start != nil:
		next = plan.Start(l.status, choice, l.uid(), noon)
	case w.LastStatus.IsRunning():
		next = observationOf(w.LastVersion).Advance(l.status, l.carryOut(w))
	default:
		return false
	}
	if !killed {
		l.check(l.status, next)
		l.status = next
	}
	return true
}

// carryOut runs some of the next tasks.
func (l *life) carryOut(w plan.State) map[plan.Task]plan.Outcome {
	spec, status := w.LastVersion.Plans[w.Last.Plan], l.status.PlanStatus[w.Last.Plan]
	if how, ended := l.done[status.UID]; ended {
		l.t.Fatalf("seed %d: execution %s goes on after it ended: %s", l.seed, status.UID, how)
	}
	tasks := plan.Next(spec, status)
	if len(tasks) == 0 {
		l.t.Fatalf("seed %d: plan %q is %s, and there is nothing to do", l.seed, w.Last.Plan, status.Status)
	}
	checkTurns(l.t, spec, status, tasks)
	outcomes := map[plan.Task]plan.Outcome{}
	for i, task := range tasks {
		if i > 0 && l.random.IntN(3) == 0 {
			continue // it failed recently, or the agent was killed before it
		}
		outcomes[task] = l.look(fmt.Sprint(w.Last.UID, task), status.Phases[task.Phase].Steps[task.Step].Tasks[task.Task].Status)
	}
	return outcomes
}

// check asserts the properties of every commit.
func (l *life) check(before, after kudo.InstanceStatus) {
	for name, status := range after.PlanStatus {
		if status.Status.IsRunning() && (name != after.Execution.Plan || status.UID != after.Execution.UID) {
			l.t.Fatalf("seed %d: plan %q is %s, but what runs is %q", l.seed, name, status.Status, after.Execution.Plan)
		}
		if left := unfinishedParts(status); len(left) > 0 {
			l.t.Fatalf("seed %d: plan %q has ended, and not: %v", l.seed, name, left)
		}
		if status.Status.IsTerminal() {
			l.done[status.UID] = string(status.Status) + " " + status.Message
		}
	}
	l.checkOwed(before, after)
	l.checkHistory(after)
	last := after.PlanStatus[after.Execution.Plan]
	switch {
	case before.Execution != nil && before.Execution.UID == after.Execution.UID:
		checkKept(l.t, before.PlanStatus[last.Name], last)
	case before.Execution != nil && l.done[after.Execution.UID] != "" && last.Status.IsRunning():
		l.t.Fatalf("seed %d: uid %s is given twice", l.seed, after.Execution.UID)
	}
}

// checkHistory asserts that each execution appears at most once, and the last one does.
func (l *life) checkHistory(after kudo.InstanceStatus) {
	count := map[types.UID]int{}
	for _, e := range after.History {
		count[e.UID]++
	}
	if count[after.Execution.UID] != 1 || len(count) != len(after.History) || len(after.History) > history.MaxEntries {
		l.t.Fatalf("seed %d: execution %s is %d times in a history of %d entries", l.seed, after.Execution.UID, count[after.Execution.UID], len(after.History))
	}
}

// checkOwed asserts that no plan is forgotten that still has to complete.
func (l *life) checkOwed(before, after kudo.InstanceStatus) {
	last, owed := after.PlanStatus[after.Execution.Plan], after.Execution.Owed
	whole := slices.ContainsFunc(owed, func(o kudo.OwedPlan) bool { return o.Whole })
	switch {
	case len(owed) == 0 && after.Whole == nil && last.Name != "cleanup":
		l.t.Fatalf("seed %d: nothing is owed while plan %q is %s, and no version is whole", l.seed, last.Name, last.Status)
	case len(owed) == 0 && after.Whole != nil && after.Whole.OperatorVersion != after.Execution.OperatorVersion:
		l.t.Fatalf("seed %d: nothing is owed, and %s is not whole", l.seed, after.Execution.OperatorVersion.Name)
	case before.Execution == nil || before.Execution.OperatorVersion != after.Execution.OperatorVersion || whole:
		return
	case len(owed) < len(before.Execution.Owed) && last.Status != kudo.Complete:
		l.t.Fatalf("seed %d: plans %v are owed, and %v once plan %q is %s", l.seed, before.Execution.Owed, owed, last.Name, last.Status)
	}
}

// settle runs passes until nothing is left to do.
func (l *life) settle() {
	for pass := 0; l.pass(false); pass++ {
		if pass > 3000 {
			l.t.Fatalf("seed %d: it does not settle: %+v", l.seed, l.status.Execution)
		}
	}
}

// checkRecorded checks what the last execution of a life at rest has recorded, besides its parameters.
func checkRecorded(t *testing.T, seed uint64, w plan.State) {
	t.Helper()
	if want := dependency.VersionOf(w.Version); want == "" || w.Last.DependencyVersion != want {
		t.Fatalf("seed %d: it rests with version %q for dependents, and the OperatorVersion has %q", seed, w.Last.DependencyVersion, want)
	}
	if !slices.Equal(w.Last.Dependencies, w.Version.Dependencies) {
		t.Fatalf("seed %d: it rests with constraints %v, and the OperatorVersion has %v", seed, w.Last.Dependencies, w.Version.Dependencies)
	}
	if w.Whole != nil && w.Whole.OperatorVersion == w.Reference && !slices.Equal(w.Whole.Dependencies, w.Version.Dependencies) {
		t.Fatalf("seed %d: it is whole with constraints %v, and the OperatorVersion has %v", seed, w.Whole.Dependencies, w.Version.Dependencies)
	}
	if !slices.Equal(w.Last.ImageRegistries, w.Registries) {
		t.Fatalf("seed %d: it rests with registries %v, and the spec says %v", seed, w.Last.ImageRegistries, w.Registries)
	}
}

func TestWhateverHappensAnInstanceSettlesWhereItsSpecSays(t *testing.T) {
	for seed := range uint64(2000) {
		l := newLife(t, seed, 20, true)
		for range l.random.IntN(60) {
			if l.random.IntN(8) == 0 {
				l.edit()
			}
			l.pass(l.random.IntN(5) == 0)
		}
		l.settle()

		w := l.observedState()
		choice, err := plan.Choose(w)
		if choice != (plan.Choice{}) {
			t.Fatalf("seed %d: it has settled, and yet there is something to do: %+v", seed, choice)
		}
		for _, owed := range w.Last.Owed {
			blocked := w.Last.Owed[0].Whole && w.Last.Owed[0].Outcome != ""
			if owed.Outcome == "" && !blocked {
				t.Fatalf("seed %d: plan %q is owed and does not start", seed, owed.Plan)
			}
		}
		if err == nil && w.Request.PlanName != "" && !slices.Contains(w.Handled, w.Request.UID) {
			t.Fatalf("seed %d: request %+v was not handled", seed, w.Request)
		}
		if w.Last.OperatorVersion != w.Reference || !w.LastStatus.IsTerminal() {
			t.Fatalf("seed %d: it rests with %s, %s, and the spec says %s", seed, w.Last.OperatorVersion.Name, w.LastStatus, w.Reference.Name)
		}
		for _, p := range w.Version.Parameters {
			if before, after := inForce(p, w.Last.Parameters), inForce(p, w.Parameters); before != after {
				t.Fatalf("seed %d: parameter %s rests at %q, and the spec says %q", seed, p.Name, before, after)
			}
		}
		checkRecorded(t, seed, w)

		l.state.Removing, l.failures = true, l.random.IntN(5)
		l.settle()
		if !l.removed {
			t.Fatalf("seed %d: it is not removed, but rests with plan %q: %s", seed, l.status.Execution.Plan, l.observedState().LastStatus)
		}
		if _, exists := l.runningVersion().Plans["cleanup"]; exists && l.status.PlanStatus["cleanup"].Status != kudo.Complete {
			t.Fatalf("seed %d: it is removed, and its cleanup is %s", seed, l.status.PlanStatus["cleanup"].Status)
		}
	}
}

func inForce(p kudo.Parameter, given map[string]string) string {
	if value, set := given[p.Name]; set {
		return value
	}
	return ptr.Deref(p.Default, "")
}

// An execution without interruptions runs each task once. One that is interrupted anywhere, with occasional failures, ends in the same
// state.
func TestAnExecutionThatIsCutAnywhereEndsInTheSameState(t *testing.T) {
	play := func(seed uint64, failures int, killed func(*life) bool) (map[string]kudo.PlanStatus, *life) {
		l := newLife(t, seed, failures, false)
		for pass := 0; l.status.Execution == nil || l.observedState().LastStatus.IsRunning(); pass++ {
			if pass > 3000 {
				t.Fatalf("seed %d: it does not end", seed)
			}
			l.pass(killed(l))
		}
		for name, status := range l.status.PlanStatus {
			status.UID = "" // uid of the first committed start
			l.status.PlanStatus[name] = status
		}
		return l.status.PlanStatus, l
	}
	again := 0
	for seed := range uint64(1000) {
		whole, uncut := play(seed, 0, func(*life) bool { return false })
		resumed, cut := play(seed, 5, func(l *life) bool { return l.random.IntN(2) == 0 })
		if !reflect.DeepEqual(whole, resumed) {
			t.Fatalf("seed %d: without and with cuts (-/+):\n%s", seed, cmp.Diff(whole, resumed))
		}
		for key, times := range uncut.carriedOut {
			if times != 1 {
				t.Fatalf("seed %d: task %s was carried out %d times", seed, key, times)
			}
		}
		for _, times := range cut.carriedOut {
			again += times - 1
		}
	}
	if again == 0 {
		t.Fatal("no cut ever fell between acting and recording")
	}
}
