package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

var (
	one = corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-1.0.0", UID: "11111111"}
	two = corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-2.0.0", UID: "22222222"}
)

// versionOf returns a version with the named plans and parameters of every behaviour.
func versionOf(plans ...string) *kudo.OperatorVersionSpec {
	version := &kudo.OperatorVersionSpec{
		Plans: map[string]kudo.Plan{},
		Parameters: []kudo.Parameter{
			{Name: "PLAIN", Default: ptr.To("a")},
			{Name: "QUIET", Default: ptr.To("1"), ForcePodRestart: new(kudo.Flag(false))},
			{Name: "BACKUP", Trigger: "backup"},
			{Name: "BACKUP_QUIET", Trigger: "backup", ForcePodRestart: new(kudo.Flag(false))},
		},
	}
	for _, name := range plans {
		version.Plans[name] = kudo.Plan{}
	}
	return version
}

func TestChoose(t *testing.T) {
	all := versionOf("deploy", "update", "upgrade", "backup", "cleanup")
	done := &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one, Parameters: map[string]string{"PLAIN": "a"}}
	ran := func(name string, change func(*kudo.Execution)) *kudo.Execution {
		last := done.DeepCopy()
		last.Plan = name
		if change != nil {
			change(last)
		}
		return last
	}
	type started struct {
		kudo.Execution
		restart bool
	}
	// start returns the expected execution, as a change of a bare execution of the first version.
	start := func(name string, values map[string]string, restart bool) *started {
		return &started{kudo.Execution{Plan: name, Generation: 7, OperatorVersion: one, Parameters: values}, restart}
	}
	upgraded := func(e *started) *started {
		e.OperatorVersion = two
		return e
	}
	byHand := func(e *started) *started {
		e.UID, e.Request = "r", "r"
		return e
	}
	cleanup := func(request types.UID) *started {
		s := done.DeepCopy()
		s.Plan, s.UID, s.Request = "cleanup", "", request
		return &started{Execution: *s}
	}
	unchanged := map[string]string{"PLAIN": "a"}
	request := kudo.PlanExecution{PlanName: "backup", UID: "r"}

	for name, test := range map[string]struct {
		state  plan.State
		start  *started
		cancel bool
		remove bool
		lost   bool // the OperatorVersion of the last execution
		absent bool // the desired OperatorVersion
		lacks  string
	}{
		"never executed: deploy, and pods start with its uid": {
			state: plan.State{Parameters: unchanged},
			start: start("deploy", unchanged, true),
		},
		"never executed and no plan deploy: an error that names it": {
			state: plan.State{Version: versionOf("update")},
			lacks: "deploy",
		},
		"nothing differs: nothing": {
			state: plan.State{Parameters: unchanged, Last: done, LastStatus: kudo.Complete},
		},
		"a value set to its default is no difference": {
			state: plan.State{Parameters: nil, Last: done, LastStatus: kudo.Complete},
		},
		"another OperatorVersion: upgrade": {
			state: plan.State{Reference: two, Parameters: unchanged, Last: done, LastStatus: kudo.Complete},
			start: upgraded(start("upgrade", unchanged, true)),
		},
		"an OperatorVersion that was replaced under its name is another one; without upgrade: update": {
			state: plan.State{Version: versionOf("deploy", "update"), Last: ran("deploy", func(e *kudo.Execution) { e.OperatorVersion.UID = "0" }),
				LastStatus: kudo.Complete, Parameters: unchanged},
			start: start("update", unchanged, true),
		},
		"another OperatorVersion without upgrade and update: deploy": {
			state: plan.State{Version: versionOf("deploy"), Last: ran("deploy", func(e *kudo.Execution) { e.OperatorVersion.UID = "0" }),
				LastStatus: kudo.Complete, Parameters: unchanged},
			start: start("deploy", unchanged, true),
		},
		"a parameter without trigger: update": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b"}, true),
		},
		"a parameter without trigger in a package without update: deploy": {
			state: plan.State{Version: versionOf("deploy"), Parameters: map[string]string{"PLAIN": "b"}, Last: done, LastStatus: kudo.Complete},
			start: start("deploy", map[string]string{"PLAIN": "b"}, true),
		},
		"a parameter that restarts no pods": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "a", "QUIET": "2"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "a", "QUIET": "2"}, false),
		},
		"one parameter among them that restarts pods restarts them": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b", "QUIET": "2"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b", "QUIET": "2"}, true),
		},
		"a trigger of its own": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "a", "BACKUP": "x"}, Last: done, LastStatus: kudo.Complete},
			start: start("backup", map[string]string{"PLAIN": "a", "BACKUP": "x"}, true),
		},
		"a trigger that does not exist: an error that names it": {
			state: plan.State{Version: versionOf("deploy"), Parameters: map[string]string{"PLAIN": "a", "BACKUP": "x"}, Last: done, LastStatus: kudo.Complete},
			lacks: "backup",
		},
		"two triggers that got in: the first in the package's order, with its own values only": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b", "BACKUP": "x", "BACKUP_QUIET": "y"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b"}, true),
		},
		"and then the second": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b", "BACKUP_QUIET": "y"}, LastStatus: kudo.Complete,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters = map[string]string{"PLAIN": "b"} })},
			start: start("backup", map[string]string{"PLAIN": "b", "BACKUP_QUIET": "y"}, false),
		},
		"a parameter that was unset goes back to its default": {
			state: plan.State{Parameters: nil, LastStatus: kudo.Complete,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters = map[string]string{"PLAIN": "b"} })},
			start: start("update", map[string]string{}, true),
		},
		"a request by hand, with the uid that it gives": {
			state: plan.State{Parameters: unchanged, Request: request, Last: done, LastStatus: kudo.Complete},
			start: byHand(start("backup", unchanged, false)),
		},
		"a request that was handled is inert": {
			state: plan.State{Parameters: unchanged, Request: request, LastStatus: kudo.Complete,
				Last: ran("update", func(e *kudo.Execution) { e.Request = "r" })},
		},
		"a request for a plan that does not exist: an error that names it": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "fly", UID: "r"}, Last: done, LastStatus: kudo.Complete},
			lacks: "fly",
		},
		"a request by hand owes no restart of pods": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "deploy", UID: "r"}, Last: done, LastStatus: kudo.Complete},
			start: byHand(start("deploy", unchanged, false)),
		},
		"a request waits while another plan runs": {
			state: plan.State{Parameters: unchanged, Request: request, Last: done, LastStatus: kudo.InProgress},
		},
		"a request for the running plan restarts it": {
			state: plan.State{Parameters: unchanged, Request: request, Last: ran("backup", nil), LastStatus: kudo.InProgress},
			start: byHand(start("backup", unchanged, false)),
		},
		"a request supersedes a plan in ERROR": {
			state: plan.State{Parameters: unchanged, Request: request, Last: done, LastStatus: kudo.Error},
			start: byHand(start("backup", unchanged, false)),
		},
		"a request beside a change has its turn after it, and is not taken for handled": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b"}, Request: request, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b"}, true),
		},
		"a request before anything was executed has its turn after deploy": {
			state: plan.State{Parameters: unchanged, Request: request},
			start: start("deploy", unchanged, true),
		},
		"a request without a uid is not one yet": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "backup"}, Last: done, LastStatus: kudo.Complete},
		},
		"a request that names what was last started, as is left of one to cancel it, asks for nothing": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "deploy", UID: "x"}, Last: done, LastStatus: kudo.FatalError},
		},
		"a request for a plan that only the old version had waits for the upgrade": {
			state: plan.State{Version: versionOf("deploy", "upgrade"), Reference: two, Parameters: unchanged, Request: request, Last: done, LastStatus: kudo.Complete},
			start: upgraded(start("upgrade", unchanged, true)),
		},
		"and is an error after it": {
			state: plan.State{Version: versionOf("deploy", "upgrade"), Reference: two, Parameters: unchanged, Request: request, LastStatus: kudo.Complete,
				Last: ran("upgrade", func(e *kudo.Execution) { e.OperatorVersion = two })},
			lacks: "backup",
		},
		"a change that selects the running plan restarts it": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("update", nil), LastStatus: kudo.InProgress},
			start: start("update", map[string]string{"PLAIN": "c"}, true),
		},
		"a change that selects another plan waits": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("backup", nil), LastStatus: kudo.InProgress},
		},
		"unless the running one is in ERROR": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("backup", nil), LastStatus: kudo.Error},
			start: start("update", map[string]string{"PLAIN": "c"}, true),
		},
		"or it cannot go on, because its OperatorVersion is lost": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("backup", nil), LastStatus: kudo.InProgress},
			lost:  true,
			start: start("update", map[string]string{"PLAIN": "c"}, true),
		},
		"the second of two triggers of one edit waits for the end of the first, in ERROR too": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b", "BACKUP": "x"}, LastStatus: kudo.Error,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters, e.Generation = map[string]string{"PLAIN": "b"}, 7 })},
		},
		"and has its turn when the first has failed": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b", "BACKUP": "x"}, LastStatus: kudo.FatalError,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters, e.Generation = map[string]string{"PLAIN": "b"}, 7 })},
			start: start("backup", map[string]string{"PLAIN": "b", "BACKUP": "x"}, true),
		},
		"a change that selects the running plan restarts it also while another change waits for its end": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "b", "BACKUP": "y"}, LastStatus: kudo.InProgress,
				Last: ran("backup", func(e *kudo.Execution) { e.Parameters = map[string]string{"PLAIN": "a", "BACKUP": "x"} })},
			start: start("backup", map[string]string{"PLAIN": "a", "BACKUP": "y"}, true),
		},
		"a change that was taken back while it waited starts nothing": {
			state: plan.State{Parameters: unchanged, Last: ran("backup", nil), LastStatus: kudo.InProgress},
		},
		"a change of the running plan that is taken back restarts it": {
			state: plan.State{Parameters: unchanged, LastStatus: kudo.InProgress,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters = map[string]string{"PLAIN": "b"} })},
			start: start("update", unchanged, true),
		},
		"an upgrade waits for a plan that runs": {
			state: plan.State{Reference: two, Parameters: unchanged, Last: done, LastStatus: kudo.InProgress},
		},
		"and supersedes one in ERROR": {
			state: plan.State{Reference: two, Parameters: unchanged, Last: done, LastStatus: kudo.Error},
			start: upgraded(start("upgrade", unchanged, true)),
		},
		"and restarts the plan of its own name at once": {
			state: plan.State{Version: versionOf("deploy"), Reference: two, Parameters: unchanged, Last: done, LastStatus: kudo.InProgress},
			start: upgraded(start("deploy", unchanged, true)),
		},
		"an upgrade after a deploy that failed is an upgrade": {
			state: plan.State{Reference: two, Parameters: unchanged, Last: done, LastStatus: kudo.FatalError},
			start: upgraded(start("upgrade", unchanged, true)),
		},
		"an upgrade that is taken back while it waited starts nothing": {
			state: plan.State{Parameters: unchanged, Last: done, LastStatus: kudo.InProgress},
		},
		"an upgrade that is taken back while it runs waits, as any other version does": {
			state: plan.State{Version: versionOf("deploy", "update"), Parameters: unchanged, LastStatus: kudo.InProgress,
				Last: ran("upgrade", func(e *kudo.Execution) { e.OperatorVersion = two })},
		},
		"an upgrade takes the parameters as the spec has them, those that appear and without those that disappear": {
			state: plan.State{Reference: two, Parameters: map[string]string{"BACKUP": "x"}, LastStatus: kudo.Complete,
				Last: ran("deploy", func(e *kudo.Execution) { e.Parameters = map[string]string{"GONE": "1"} })},
			start: upgraded(start("upgrade", map[string]string{"BACKUP": "x"}, true)),
		},
		"an upgrade is one plan, whatever triggers the parameters that change with it have": {
			state: plan.State{Reference: two, Parameters: map[string]string{"PLAIN": "b", "BACKUP": "x"}, Last: done, LastStatus: kudo.Complete},
			start: upgraded(start("upgrade", map[string]string{"PLAIN": "b", "BACKUP": "x"}, true)),
		},
		"a default that another version changes is no change after the upgrade": {
			state: plan.State{Version: &kudo.OperatorVersionSpec{Plans: all.Plans, Parameters: []kudo.Parameter{{Name: "PLAIN", Default: ptr.To("z")}}},
				Reference: two, LastStatus: kudo.Complete,
				Last: ran("upgrade", func(e *kudo.Execution) { e.OperatorVersion, e.Parameters = two, nil })},
		},
		"what is not defined changes nothing": {
			state: plan.State{Parameters: map[string]string{"PLAIN": "a", "TYPO": "x"}, Last: done, LastStatus: kudo.Complete},
		},
		"an OperatorVersion that is not there starts nothing": {
			state:  plan.State{Reference: two, Parameters: unchanged, Request: request, Last: done, LastStatus: kudo.Complete},
			absent: true,
		},
		"and does not stand in the way of cancelling": {
			state:  plan.State{Request: kudo.PlanExecution{UID: "x", Cancel: true}, Last: done, LastStatus: kudo.InProgress},
			absent: true,
			cancel: true,
		},
		"after a failure, nothing is started again by itself": {
			state: plan.State{Parameters: unchanged, Last: done, LastStatus: kudo.FatalError},
		},
		"the flag of the version that runs counts: it has been turned round": {
			state: plan.State{Version: &kudo.OperatorVersionSpec{Plans: all.Plans, Parameters: []kudo.Parameter{
				{Name: "PLAIN", ForcePodRestart: new(kudo.Flag(false))}, {Name: "QUIET", ForcePodRestart: new(kudo.Flag(true))}}},
				Parameters: map[string]string{"PLAIN": "b"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b"}, false),
		},
		"a running execution is cancelled": {
			state:  plan.State{Parameters: unchanged, Request: kudo.PlanExecution{UID: "x", Cancel: true}, Last: done, LastStatus: kudo.InProgress},
			cancel: true,
		},
		"one that has ended is not, and its request starts nothing": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "backup", UID: "x", Cancel: true}, Last: done, LastStatus: kudo.Complete},
		},
		"a request to cancel another execution is inert": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{UID: "w", Cancel: true}, Last: done, LastStatus: kudo.InProgress},
		},
		"a change that comes with a request to cancel has its turn when that is done": {
			state:  plan.State{Parameters: map[string]string{"PLAIN": "b"}, Request: kudo.PlanExecution{UID: "x", Cancel: true}, Last: done, LastStatus: kudo.InProgress},
			cancel: true,
		},
		"the cleanup of a removal is not cancelled": {
			state: plan.State{Removing: true, Request: kudo.PlanExecution{UID: "x", Cancel: true}, Last: ran("cleanup", nil), LastStatus: kudo.InProgress},
		},
		"a cleanup that is run by hand is": {
			state: plan.State{Parameters: unchanged, Request: kudo.PlanExecution{UID: "x", Cancel: true}, LastStatus: kudo.InProgress,
				Last: ran("cleanup", func(e *kudo.Execution) { e.Request = "x" })},
			cancel: true,
		},
		"removal starts no other plan that waits": {
			state: plan.State{Removing: true, Reference: two, Parameters: map[string]string{"PLAIN": "c"}, Request: request,
				Last: ran("cleanup", nil), LastStatus: kudo.InProgress},
		},
		"removal of what was last started by an OperatorVersion that is lost needs no plan": {
			state:  plan.State{Removing: true, Last: done, LastStatus: kudo.Complete},
			lost:   true,
			remove: true,
		},
		"removal supersedes a running plan by cleanup, with what was last started": {
			state: plan.State{Removing: true, Reference: two, Parameters: map[string]string{"PLAIN": "c"}, Last: done, LastStatus: kudo.InProgress},
			start: cleanup(""),
		},
		"cleanup runs to its end": {
			state: plan.State{Removing: true, Last: ran("cleanup", nil), LastStatus: kudo.Error},
		},
		"and once, and then everything is removed": {
			state:  plan.State{Removing: true, Last: ran("cleanup", nil), LastStatus: kudo.Complete},
			remove: true,
		},
		"and again when it failed": {
			state: plan.State{Removing: true, Last: ran("cleanup", nil), LastStatus: kudo.FatalError},
			start: cleanup(""),
		},
		"a cleanup that was run by hand does not count": {
			state: plan.State{Removing: true, LastStatus: kudo.Complete,
				Last: ran("cleanup", func(e *kudo.Execution) { e.Request = e.UID })},
			start: cleanup("x"),
		},
		"and not if it is skipped, also while it runs": {
			state:  plan.State{Removing: true, SkipsCleanup: true, Last: ran("cleanup", nil), LastStatus: kudo.InProgress},
			remove: true,
		},
		"skipping a cleanup removes nothing that is not deleted": {
			state: plan.State{SkipsCleanup: true, Parameters: unchanged, Last: done, LastStatus: kudo.Complete},
		},
		"removal of what was never executed needs no plan": {
			state:  plan.State{Removing: true, Parameters: unchanged},
			remove: true,
		},
		"removal without a cleanup plan needs none, whatever runs": {
			state:  plan.State{Removing: true, Version: versionOf("deploy"), Last: done, LastStatus: kudo.Error},
			remove: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := test.state
			state.Generation = 7
			if state.Version == nil {
				state.Version = all
			}
			if state.Reference.Name == "" {
				state.Reference = one
			}
			if state.Last != nil && state.Whole == nil {
				state.Whole = &kudo.WholeVersion{OperatorVersion: state.Last.OperatorVersion}
			}
			if !test.lost {
				last := *state.Version
				if state.Last != nil && state.Last.OperatorVersion != state.Reference {
					last.Version = "another one"
				}
				state.LastVersion = &last
			}
			if test.absent {
				state.Version = nil
			}
			choice, err := plan.Choose(state)
			var missing *plan.MissingPlanError
			switch {
			case test.lacks != "" && (!errors.As(err, &missing) || missing.Plan != test.lacks):
				t.Fatalf("want an error about missing plan %q, got %v", test.lacks, err)
			case test.lacks == "" && err != nil:
				t.Fatal(err)
			}
			var got *started
			if choice.Start != nil {
				got = &started{*choice.Start, choice.Restart}
			}
			if diff := cmp.Diff(test.start, got, cmp.AllowUnexported(started{}), cmpopts.IgnoreFields(kudo.Execution{}, "Owed")); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			if choice.Cancel != test.cancel || choice.Remove != test.remove {
				t.Errorf("cancel: want %v, got %v; remove: want %v, got %v", test.cancel, choice.Cancel, test.remove, choice.Remove)
			}
		})
	}
}

func TestTriggers(t *testing.T) {
	definitions := []kudo.Parameter{
		{Name: "PLAIN", Default: ptr.To("a")},
		{Name: "SCALE", Trigger: "scale", Default: ptr.To("1")},
		{Name: "BACKUP", Trigger: "backup"},
		{Name: "BACKUP_QUIET", Trigger: "backup", ForcePodRestart: new(kudo.Flag(false))},
	}
	for name, test := range map[string]struct {
		before, after map[string]string
		want          []plan.Trigger
	}{
		"nothing changes":                         {before: map[string]string{"BACKUP": "x"}, after: map[string]string{"BACKUP": "x"}},
		"a default that is written out":           {after: map[string]string{"SCALE": "1"}},
		"a parameter that names no trigger":       {after: map[string]string{"PLAIN": "b"}},
		"one that is not defined":                 {after: map[string]string{"TYPO": "b"}},
		"a trigger":                               {after: map[string]string{"SCALE": "2"}, want: []plan.Trigger{{"scale", []string{"SCALE"}}}},
		"a trigger beside a parameter without it": {after: map[string]string{"SCALE": "2", "PLAIN": "b"}, want: []plan.Trigger{{"scale", []string{"SCALE"}}}},
		"two parameters of one trigger": {
			after: map[string]string{"BACKUP_QUIET": "x", "BACKUP": "x"},
			want:  []plan.Trigger{{"backup", []string{"BACKUP", "BACKUP_QUIET"}}},
		},
		"two triggers, in the package's order, one of them for a value that goes": {
			before: map[string]string{"SCALE": "2"}, after: map[string]string{"BACKUP": "x"},
			want: []plan.Trigger{{"scale", []string{"SCALE"}}, {"backup", []string{"BACKUP"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.Triggers(definitions, plan.Values{Given: test.before}, plan.Values{Given: test.after})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodsOfChartsRestartOnRequestOnly(t *testing.T) {
	for name, test := range map[string]struct {
		flag    *kudo.Flag
		trigger string
		charts  bool
	}{
		"a parameter that says nothing":              {},
		"one that restarts no pods":                  {flag: new(kudo.Flag(false))},
		"one that restarts pods":                     {flag: new(kudo.Flag(true)), charts: true},
		"one that says nothing and triggers a plan":  {trigger: "backup"},
		"one that restarts pods and triggers a plan": {flag: new(kudo.Flag(true)), trigger: "backup", charts: true},
	} {
		t.Run(name, func(t *testing.T) {
			version := versionOf("deploy", "update", "backup")
			version.Parameters = []kudo.Parameter{{Name: "VALUE", Trigger: test.trigger, ForcePodRestart: test.flag}}
			last := &kudo.Execution{UID: "1", Plan: "deploy", Parameters: map[string]string{"VALUE": "a"}}
			choice, err := plan.Choose(plan.State{
				Version: version, LastVersion: version, Parameters: map[string]string{"VALUE": "b"}, Last: last, LastStatus: kudo.Complete,
				Whole: &kudo.WholeVersion{},
			})
			if err != nil || choice.Start == nil || choice.RestartCharts != test.charts {
				t.Errorf("got %+v, %v, want RestartCharts %v", choice, err, test.charts)
			}
		})
	}
}
