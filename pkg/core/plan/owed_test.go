package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// versionWithExporter returns a version whose plan exporter has a task that no other plan has.
func versionWithExporter(version string) *kudo.OperatorVersionSpec {
	v := &kudo.OperatorVersionSpec{
		Version: version,
		Parameters: []kudo.Parameter{
			{Name: "SIZE"},
			{Name: "EXPORTER", Trigger: "exporter"},
			{Name: "TUNING", Trigger: "tune"},
			{Name: "NOTE", Trigger: "noop"},
			{Name: "QUIET", Trigger: "tune", ForcePodRestart: new(kudo.Flag(false))},
			{Name: "WIPE", Trigger: "cleanup"},
		},
		Plans: map[string]kudo.Plan{},
	}
	for name, tasks := range map[string][]string{
		"deploy": {"app", "tuning"}, "update": {"app", "tuning"}, "exporter": {"exporter"}, "tune": {"tuning"}, "noop": {"nothing"},
		"backup": {"dump"}, "cleanup": {"clean"},
	} {
		v.Plans[name] = planOf(tasks...)
	}
	return v
}

// planOf returns a plan with one step.
func planOf(tasks ...string) kudo.Plan {
	return kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: tasks}}}}}
}

// owing plays the executions of an Instance.
type owing struct {
	t        *testing.T
	versions map[corev1.ObjectReference]*kudo.OperatorVersionSpec
	spec     plan.State
	status   kudo.InstanceStatus
	uids     int
	log      []string
}

func newOwing(t *testing.T) *owing {
	o := &owing{t: t, versions: map[corev1.ObjectReference]*kudo.OperatorVersionSpec{one: versionWithExporter("1.0.0"), two: versionWithExporter("2.0.0")}}
	o.spec = plan.State{Reference: one, Generation: 1, Parameters: map[string]string{}}
	return o
}

// setParameters edits parameters, as NAME=VALUE.
func (o *owing) setParameters(values ...string) {
	o.spec.Generation++
	o.spec.Parameters = maps.Clone(o.spec.Parameters)
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		o.spec.Parameters[name] = value
	}
}

func (o *owing) upgrade(values ...string) {
	o.setParameters(values...)
	o.spec.Reference = two
}

// addUpgrade gives the second version plan upgrade with a task that no other whole plan has.
func (o *owing) addUpgrade() {
	o.versions[two].Plans["upgrade"] = o.versions[two].Plans["backup"]
}

// nameUpdate gives both versions a parameter with trigger update.
func (o *owing) nameUpdate() {
	for _, version := range o.versions {
		version.Parameters = append(version.Parameters, kudo.Parameter{Name: "UPDATED", Trigger: "update"})
	}
}

func (o *owing) request(name string, uid types.UID) {
	o.spec.Generation++
	o.spec.Request = kudo.PlanExecution{PlanName: name, UID: uid}
}

func (o *owing) cancel() {
	o.spec.Generation++
	o.spec.Request = kudo.PlanExecution{UID: o.status.Execution.UID, Cancel: true}
}

func (o *owing) state() plan.State {
	s := o.spec
	s.Version = o.versions[s.Reference]
	if o.status.Execution != nil {
		reached := plan.ReachedState(o.status, o.versions[o.status.Execution.OperatorVersion])
		s.Last, s.LastStatus, s.LastVersion, s.Whole, s.Handled = reached.Last, reached.LastStatus, reached.LastVersion, reached.Whole, reached.Handled
	}
	return s
}

// start starts whatever is next, and reports whether there was anything.
func (o *owing) start() bool {
	choice, err := plan.Choose(o.state())
	if err != nil {
		o.t.Fatal(err)
	}
	switch {
	case choice.Adopt:
		o.status = plan.Adopt(o.status, o.spec.Reference)
		o.log = append(o.log, "adopt")
	case choice.Cancel:
		o.status = plan.CancelExecution(o.versions[o.status.Execution.OperatorVersion], o.status, noon)
		o.log = append(o.log, "cancel")
	case choice.Start != nil:
		o.uids++
		o.status = plan.Start(o.status, choice, types.UID(fmt.Sprint("u", o.uids)), noon)
		entry := choice.Start.Plan
		if choice.Restart {
			entry += " restarts"
		}
		o.log = append(o.log, entry)
	default:
		return false
	}
	return true
}

// end ends the running plan with a status.
func (o *owing) end(status kudo.ExecutionStatus) {
	o.status = observationOf(o.versions[o.status.Execution.OperatorVersion]).Advance(o.status, o.outcomes(status))
}

func (o *owing) outcomes(status kudo.ExecutionStatus) map[plan.Task]plan.Outcome {
	outcomes := map[plan.Task]plan.Outcome{}
	s := o.state()
	for _, at := range plan.Next(s.LastVersion.Plans[s.Last.Plan], o.status.PlanStatus[s.Last.Plan]) {
		outcomes[at] = plan.Outcome{Status: status, Message: "broken"}
	}
	return outcomes
}

// complete starts and completes plans until nothing is left to do.
func (o *owing) complete() {
	for range 20 {
		if o.state().LastStatus.IsRunning() {
			o.end(kudo.Complete)
		} else if !o.start() {
			return
		}
	}
	o.t.Fatal("it does not settle")
}

// fail starts the next plan and lets it fail, or the running one.
func (o *owing) fail() {
	o.start()
	o.end(kudo.FatalError)
}

// formatOwed formats the owed plans.
func (o *owing) formatOwed() string {
	var owed []string
	for _, p := range o.status.Execution.Owed {
		entry := p.Plan
		if p.Whole {
			entry = "all of " + entry
		}
		if p.Outcome != "" {
			entry += " " + string(p.Outcome)
		}
		owed = append(owed, entry)
	}
	return strings.Join(owed, ", ")
}

func TestOwedPlans(t *testing.T) {
	for name, test := range map[string]struct {
		play  func(o *owing)
		log   []string
		owed  string
		whole string // the version
	}{
		"deploy owes itself until it is complete": {
			play: func(o *owing) { o.complete() },
			log:  []string{"deploy restarts"}, whole: "1.0.0",
		},
		"a failed deploy stays owed, and does not start again by itself": {
			play: func(o *owing) { o.fail(); o.complete() },
			log:  []string{"deploy restarts"}, owed: "all of deploy Failed",
		},
		"a manual plan that completes does not hide a failed deploy": {
			play: func(o *owing) { o.fail(); o.request("noop", "r"); o.complete() },
			log:  []string{"deploy restarts", "noop"}, owed: "all of deploy Failed",
		},
		"every edit starts a failed deploy again, whatever it triggers": {
			play: func(o *owing) { o.fail(); o.setParameters("NOTE=x"); o.complete() },
			log:  []string{"deploy restarts", "deploy restarts", "noop"}, whole: "1.0.0",
		},
		"deploy is started again also by another version": {
			play: func(o *owing) { o.fail(); o.upgrade(); o.complete() },
			log:  []string{"deploy restarts", "deploy restarts"}, whole: "2.0.0",
		},
		"a version and parameters in one edit run both plans": {
			play: func(o *owing) { o.complete(); o.upgrade("EXPORTER=true"); o.complete() },
			log:  []string{"deploy restarts", "update restarts", "exporter"}, whole: "2.0.0",
		},
		"a version and a parameter without trigger in one edit run the whole plan alone": {
			play: func(o *owing) {
				o.addUpgrade()
				o.complete()
				o.upgrade("SIZE=2")
				o.complete()
			},
			log: []string{"deploy restarts", "upgrade restarts"}, whole: "2.0.0",
		},
		"a parameter without trigger adds nothing to a whole plan that is still owed": {
			play: func(o *owing) {
				o.addUpgrade()
				o.complete()
				o.upgrade()
				o.fail()
				o.setParameters("SIZE=2")
				o.complete()
			},
			log: []string{"deploy restarts", "upgrade restarts", "upgrade restarts"}, whole: "2.0.0",
		},
		"nor to a deploy that is still owed": {
			play: func(o *owing) {
				o.versions[one].Plans["deploy"] = o.versions[one].Plans["backup"]
				o.fail()
				o.setParameters("SIZE=2", "EXPORTER=true")
				o.complete()
			},
			log: []string{"deploy restarts", "deploy restarts", "exporter"}, whole: "1.0.0",
		},
		"nor to another version if its own plan failed before": {
			play: func(o *owing) {
				o.addUpgrade()
				o.complete()
				o.setParameters("SIZE=2")
				o.fail()
				o.upgrade()
				o.complete()
			},
			log: []string{"deploy restarts", "update restarts", "upgrade restarts"}, whole: "2.0.0",
		},
		"a parameter that names update as its trigger runs it after the whole plan": {
			play: func(o *owing) {
				o.addUpgrade()
				o.nameUpdate()
				o.complete()
				o.upgrade("UPDATED=1", "SIZE=2")
				o.complete()
			},
			log: []string{"deploy restarts", "upgrade restarts", "update"}, whole: "2.0.0",
		},
		"unless the whole plan contains its tasks": {
			play: func(o *owing) {
				o.nameUpdate()
				o.versions[two].Plans["upgrade"] = o.versions[two].Plans["update"]
				o.complete()
				o.upgrade("UPDATED=1", "EXPORTER=true")
				o.complete()
			},
			log: []string{"deploy restarts", "upgrade restarts", "exporter"}, whole: "2.0.0",
		},
		"a failed update that a parameter names stays owed beside another version": {
			play: func(o *owing) {
				o.addUpgrade()
				o.nameUpdate()
				o.complete()
				o.setParameters("UPDATED=1")
				o.fail()
				o.upgrade()
				o.complete()
			},
			log: []string{"deploy restarts", "update restarts", "upgrade restarts", "update"}, whole: "2.0.0",
		},
		"a triggered plan whose tasks the whole plan contains is not run": {
			play: func(o *owing) { o.complete(); o.upgrade("TUNING=1"); o.complete() },
			log:  []string{"deploy restarts", "update restarts"}, whole: "2.0.0",
		},
		"a triggered plan that an interrupted whole plan contains is run after one that does not": {
			play: func(o *owing) {
				o.versions[two].Plans["update"] = planOf("app", "exporter")
				o.complete()
				o.upgrade("EXPORTER=true")
				o.start()
				o.setParameters()
				o.spec.Reference = one
				o.start()
				o.complete()
			},
			log: []string{"deploy restarts", "update restarts", "update restarts", "exporter"}, whole: "1.0.0",
		},
		"but not after a deploy of another version, which applies everything": {
			play: func(o *owing) {
				o.versions[one].Plans["deploy"] = planOf("app", "exporter")
				o.start()
				o.upgrade()
				o.start()
				o.complete()
			},
			log: []string{"deploy restarts", "deploy restarts"}, whole: "2.0.0",
		},
		"a triggered plan does not start before the whole plan is complete": {
			play: func(o *owing) { o.complete(); o.upgrade("EXPORTER=true"); o.fail(); o.complete() },
			log:  []string{"deploy restarts", "update restarts"}, owed: "all of update Failed, exporter", whole: "1.0.0",
		},
		"a manual whole plan settles all": {
			play: func(o *owing) {
				o.complete()
				o.upgrade("EXPORTER=true")
				o.fail()
				o.request("update", "r")
				o.complete()
			},
			log: []string{"deploy restarts", "update restarts", "update"}, whole: "2.0.0",
		},
		"a manual whole plan that fails is owed": {
			play: func(o *owing) { o.complete(); o.request("deploy", "r"); o.fail(); o.complete() },
			log:  []string{"deploy restarts", "deploy"}, owed: "all of deploy Failed", whole: "1.0.0",
		},
		"a failed triggered plan stays owed while another one completes, and is tried again after it": {
			play: func(o *owing) {
				o.complete()
				o.setParameters("EXPORTER=true")
				o.fail()
				o.setParameters("NOTE=x")
				o.complete()
			},
			log: []string{"deploy restarts", "exporter restarts", "noop restarts", "exporter"}, whole: "1.0.0",
		},
		"a plan that failed for one value of an edit does not start again after the plan of another value": {
			play: func(o *owing) { o.complete(); o.setParameters("EXPORTER=true", "NOTE=x"); o.fail(); o.complete() },
			log:  []string{"deploy restarts", "exporter restarts", "noop restarts"}, owed: "exporter Failed", whole: "1.0.0",
		},
		"a triggered cleanup owes deploy as well": {
			play: func(o *owing) { o.complete(); o.setParameters("WIPE=now"); o.complete() },
			log:  []string{"deploy restarts", "cleanup restarts", "deploy"}, whole: "1.0.0",
		},
		"an owed plan that is run manually is settled": {
			play: func(o *owing) {
				o.complete()
				o.setParameters("EXPORTER=true")
				o.fail()
				o.request("exporter", "r")
				o.complete()
			},
			log: []string{"deploy restarts", "exporter restarts", "exporter"}, whole: "1.0.0",
		},
		"a superseded plan starts again by itself": {
			play: func(o *owing) {
				o.complete()
				o.setParameters("EXPORTER=true")
				o.start()
				o.status = observationOf(o.versions[one]).Advance(o.status, o.outcomes(kudo.Error))
				o.request("backup", "r")
				o.start()
				o.complete()
			},
			log: []string{"deploy restarts", "exporter restarts", "backup", "exporter"}, whole: "1.0.0",
		},
		"a cancelled plan does not": {
			play: func(o *owing) {
				o.complete()
				o.setParameters("EXPORTER=true")
				o.start()
				o.cancel()
				o.start()
				o.complete()
			},
			log: []string{"deploy restarts", "exporter restarts", "cancel"}, owed: "exporter Cancelled", whole: "1.0.0",
		},
		"a manual plan that fails owes nothing": {
			play: func(o *owing) { o.complete(); o.request("backup", "r"); o.fail(); o.complete() },
			log:  []string{"deploy restarts", "backup"}, whole: "1.0.0",
		},
		"a manual cleanup owes deploy, which starts by itself": {
			play: func(o *owing) { o.complete(); o.request("cleanup", "r"); o.complete() },
			log:  []string{"deploy restarts", "cleanup", "deploy"}, whole: "1.0.0",
		},
		"a handled request is inert for good": {
			play: func(o *owing) {
				o.complete()
				for _, uid := range []types.UID{"a", "b", "a", "b"} {
					o.request("backup", uid)
					o.complete()
				}
			},
			log: []string{"deploy restarts", "backup", "backup"}, whole: "1.0.0",
		},
		"values that restart no pods restart none, even while the whole plan is owed": {
			play: func(o *owing) { o.fail(); o.setParameters("QUIET=1"); o.complete() },
			log:  []string{"deploy restarts", "deploy"}, whole: "1.0.0",
		},
		"an OperatorVersion that was deleted and created again is adopted": {
			play: func(o *owing) {
				o.complete()
				again := one
				again.UID = "restored"
				o.versions[again] = versionWithExporter("1.0.0")
				o.versions[again].Operator.Namespace = "elsewhere"
				o.spec.Reference = again
				o.complete()
			},
			log: []string{"deploy restarts", "adopt"}, whole: "1.0.0",
		},
		"one that was re-created while its plan runs is adopted, too": {
			play: func(o *owing) {
				o.start()
				again := one
				again.UID = "restored"
				o.versions[again] = versionWithExporter("1.0.0")
				o.spec.Reference = again
				o.start()
				o.complete()
			},
			log: []string{"deploy restarts", "adopt"}, whole: "1.0.0",
		},
		"one that was re-created with another content is another version": {
			play: func(o *owing) {
				o.complete()
				again := one
				again.UID = "restored"
				o.versions[again] = versionWithExporter("1.0.1")
				o.spec.Reference = again
				o.complete()
			},
			log: []string{"deploy restarts", "update restarts"}, whole: "1.0.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwing(t)
			test.play(o)
			if diff := cmp.Diff(test.log, o.log); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			if got := o.formatOwed(); got != test.owed {
				t.Errorf("owed: got %q, want %q", got, test.owed)
			}
			var whole string
			if o.status.Whole != nil {
				whole = o.status.Whole.Version
			}
			if whole != test.whole {
				t.Errorf("whole: got %q, want %q", whole, test.whole)
			}
		})
	}
}

// An execution that the forecast lists starts, in that order, if each completes.
func TestForecastOfOwedPlans(t *testing.T) {
	o := newOwing(t)
	o.complete()
	o.upgrade("EXPORTER=true", "TUNING=2")
	o.request("backup", "r")
	forecast, err := plan.Forecast(o.state())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, coming := range forecast {
		cause := string(coming.Cause)
		if len(coming.Changed) > 0 {
			cause += " of " + strings.Join(coming.Changed, " ")
		}
		got = append(got, fmt.Sprintf("%s: %s, whole %v, restart %v", coming.Plan, cause, coming.Whole, coming.Restart))
	}
	want := []string{
		"update: OtherVersion of EXPORTER TUNING, whole true, restart true", "exporter: OtherParameters of EXPORTER, whole false, restart true",
		"backup: RequestedByHand, whole false, restart false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before := len(o.log)
	o.complete()
	if started := o.log[before:]; !slices.Equal(started, []string{"update restarts", "exporter", "backup"}) {
		t.Errorf("started %v", started)
	}
}

func TestCurrent(t *testing.T) {
	legacy := func(ran string, status kudo.ExecutionStatus, request types.UID, others ...string) kudo.InstanceStatus {
		s := kudo.InstanceStatus{
			Execution:  &kudo.Execution{UID: "x", Plan: ran, OperatorVersion: one, Request: request},
			PlanStatus: map[string]kudo.PlanStatus{ran: {Name: ran, UID: "x", Status: status}},
		}
		for _, other := range others {
			s.PlanStatus[other] = kudo.PlanStatus{Name: other, UID: "o", Status: kudo.Complete}
		}
		return s
	}
	for name, test := range map[string]struct {
		status kudo.InstanceStatus
		owed   string
		whole  bool
	}{
		"a complete deploy":                            {legacy("deploy", kudo.Complete, ""), "", true},
		"a complete upgrade":                           {legacy("upgrade", kudo.Complete, ""), "", true},
		"a deploy that runs":                           {legacy("deploy", kudo.InProgress, ""), "all of deploy", false},
		"a failed upgrade":                             {legacy("upgrade", kudo.FatalError, ""), "all of upgrade Failed", false},
		"a complete plan after a complete deploy":      {legacy("noop", kudo.Complete, "", "deploy"), "", true},
		"a complete plan after a failed deploy":        {legacy("noop", kudo.Complete, ""), "all of deploy Failed", false},
		"a triggered plan that runs":                   {legacy("exporter", kudo.InProgress, "", "deploy"), "exporter", true},
		"a triggered plan that failed":                 {legacy("exporter", kudo.FatalError, "", "deploy"), "exporter Failed", true},
		"a manual plan that failed":                    {legacy("backup", kudo.FatalError, "x", "deploy"), "", true},
		"an automatic plan that failed after a manual": {legacy("update", kudo.FatalError, "r", "deploy"), "update Failed", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &owing{t: t, status: plan.MigrateStatus(test.status, versionWithExporter("1.0.0"))}
			if got := o.formatOwed(); got != test.owed {
				t.Errorf("owed: got %q, want %q", got, test.owed)
			}
			if (o.status.Whole != nil) != test.whole {
				t.Errorf("whole: got %v", o.status.Whole)
			}
			if diff := cmp.Diff(o.status, plan.MigrateStatus(o.status, nil)); diff != "" {
				t.Errorf("it is converted twice:\n%s", diff)
			}
			if request := test.status.Execution.Request; request != "" && !slices.Contains(o.status.HandledRequests, request) {
				t.Error("the handled request is forgotten")
			}
		})
	}
}

func TestMarkRestart(t *testing.T) {
	workload := func(name, task string, restart types.UID) kudo.InventoryEntry {
		return kudo.InventoryEntry{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: name, Task: task, Restart: restart}
	}
	inventory := entries{workload("app", "app", "old"), workload("other", "other", "old"), workload("broken", "broken", ""), config("settings", "app")}
	rendered := entries{workload("app", "another", ""), config("settings", "app"), workload("new", "app", "")}
	got := plan.MarkRestart(inventory, rendered, map[string]bool{"broken": true}, "x")
	want := entries{workload("app", "app", "x"), workload("other", "other", "old"), workload("broken", "broken", "x"), config("settings", "app")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if uid := plan.RequiredRestart(got, workload("app", "", "")); uid != "x" {
		t.Errorf("app: got %q", uid)
	}
	if uid := plan.RequiredRestart(got, config("settings", "")); uid != "" {
		t.Errorf("settings: got %q", uid)
	}
	listed := plan.List(got, workload("app", "later", ""))
	if uid := plan.RequiredRestart(listed, workload("app", "", "")); uid != "x" {
		t.Errorf("a later task forgets the restart: got %q", uid)
	}
}

// An earlier release wrote the status, and the OperatorVersion of its last execution is lost.
func TestStartAfterAnEarlierRelease(t *testing.T) {
	status := kudo.InstanceStatus{
		Execution:  &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one, Request: "restore"},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": {Name: "deploy", UID: "x", Status: kudo.Complete}},
	}
	o := plan.Observation{Instance: &kudo.Instance{Status: status}, Desired: versionWithExporter("2.0.0"), Reference: two, Now: noon}.Normalize()
	choice, err := plan.Choose(o.State())
	if err != nil {
		t.Fatal(err)
	}
	started := plan.Start(o.Instance.Status, choice, "y", noon)
	if started.Whole == nil || !slices.Contains(started.HandledRequests, "restore") {
		t.Errorf("whole %v, handled %v", started.Whole, started.HandledRequests)
	}
}

func TestLastRequestThatWasSuperseded(t *testing.T) {
	for name, supersede := range map[string]func(o *owing){
		"the same plan is restarted": func(o *owing) { o.request("deploy", "r"); o.start(); o.setParameters("SIZE=2"); o.upgrade() },
		"another version":            func(o *owing) { o.request("backup", "r"); o.start(); o.end(kudo.Error); o.upgrade() },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwing(t)
			o.complete()
			supersede(o)
			running := plan.LastRequest(o.status)
			if running == nil || running.Status != metav1.ConditionUnknown {
				t.Fatalf("got %v", running)
			}
			o.status.Conditions = []metav1.Condition{*running}
			o.complete()
			got := plan.LastRequest(o.status)
			if got == nil || got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "superseded") {
				t.Errorf("got %v", got)
			}
		})
	}
}
