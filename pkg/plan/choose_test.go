package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

var (
	one = corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-1.0.0", UID: "11111111"}
	two = corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-2.0.0", UID: "22222222"}
)

// versionOf has the named plans, and parameters of every behaviour.
func versionOf(plans ...string) *kudo.OperatorVersionSpec {
	version := &kudo.OperatorVersionSpec{
		Plans: map[string]kudo.Plan{},
		Parameters: []kudo.Parameter{
			{Name: "PLAIN", Default: ptr.To("a")},
			{Name: "QUIET", Default: ptr.To("1"), ForcePodRestart: ptr.To(false)},
			{Name: "BACKUP", Trigger: "backup"},
			{Name: "BACKUP_QUIET", Trigger: "backup", ForcePodRestart: ptr.To(false)},
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
	// start is what is expected to be started, as a change of a bare execution of the first version.
	start := func(name string, values map[string]string, restart bool) *kudo.Execution {
		return &kudo.Execution{Plan: name, Generation: 7, OperatorVersion: one, Parameters: values, RestartPending: restart}
	}
	unchanged := map[string]string{"PLAIN": "a"}
	request := kudo.PlanExecution{PlanName: "backup", UID: "r"}

	for name, test := range map[string]struct {
		wish   plan.Wish
		start  *kudo.Execution
		cancel bool
		remove bool
		lacks  string
	}{
		"never executed: deploy, and pods start with its uid": {
			wish:  plan.Wish{Parameters: unchanged},
			start: start("deploy", unchanged, true),
		},
		"never executed and no plan deploy: an error that names it": {
			wish:  plan.Wish{Version: versionOf("update")},
			lacks: "deploy",
		},
		"nothing differs: nothing": {
			wish: plan.Wish{Parameters: unchanged, Last: done, LastStatus: kudo.Complete},
		},
		"a value set to its default is no difference": {
			wish: plan.Wish{Parameters: nil, Last: done, LastStatus: kudo.Complete},
		},
		"another OperatorVersion: upgrade": {
			wish: plan.Wish{Reference: two, Parameters: unchanged, Last: done, LastStatus: kudo.Complete},
			start: func() *kudo.Execution {
				s := start("upgrade", unchanged, true)
				s.OperatorVersion = two
				return s
			}(),
		},
		"an OperatorVersion that was replaced under its name is another one; without upgrade: update": {
			wish: plan.Wish{Version: versionOf("deploy", "update"), Last: ran("deploy", func(e *kudo.Execution) { e.OperatorVersion.UID = "0" }),
				LastStatus: kudo.Complete, Parameters: unchanged},
			start: start("update", unchanged, true),
		},
		"another OperatorVersion without upgrade and update: deploy": {
			wish: plan.Wish{Version: versionOf("deploy"), Last: ran("deploy", func(e *kudo.Execution) { e.OperatorVersion.UID = "0" }),
				LastStatus: kudo.Complete, Parameters: unchanged},
			start: start("deploy", unchanged, true),
		},
		"a parameter without trigger: update": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "b"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b"}, true),
		},
		"a parameter without trigger in a package without update: deploy": {
			wish:  plan.Wish{Version: versionOf("deploy"), Parameters: map[string]string{"PLAIN": "b"}, Last: done, LastStatus: kudo.Complete},
			start: start("deploy", map[string]string{"PLAIN": "b"}, true),
		},
		"a parameter that restarts no pods": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "a", "QUIET": "2"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "a", "QUIET": "2"}, false),
		},
		"one parameter among them that restarts pods restarts them": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "b", "QUIET": "2"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b", "QUIET": "2"}, true),
		},
		"a trigger of its own": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "a", "BACKUP": "x"}, Last: done, LastStatus: kudo.Complete},
			start: start("backup", map[string]string{"PLAIN": "a", "BACKUP": "x"}, true),
		},
		"a trigger that does not exist: an error that names it": {
			wish:  plan.Wish{Version: versionOf("deploy"), Parameters: map[string]string{"PLAIN": "a", "BACKUP": "x"}, Last: done, LastStatus: kudo.Complete},
			lacks: "backup",
		},
		"two triggers that got in: the first in the package's order, with its own values only": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "b", "BACKUP": "x", "BACKUP_QUIET": "y"}, Last: done, LastStatus: kudo.Complete},
			start: start("update", map[string]string{"PLAIN": "b"}, true),
		},
		"and then the second": {
			wish: plan.Wish{Parameters: map[string]string{"PLAIN": "b", "BACKUP_QUIET": "y"}, LastStatus: kudo.Complete,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters = map[string]string{"PLAIN": "b"} })},
			start: start("backup", map[string]string{"PLAIN": "b", "BACKUP_QUIET": "y"}, false),
		},
		"a parameter that was unset goes back to its default": {
			wish: plan.Wish{Parameters: nil, LastStatus: kudo.Complete,
				Last: ran("update", func(e *kudo.Execution) { e.Parameters = map[string]string{"PLAIN": "b"} })},
			start: start("update", map[string]string{}, true),
		},
		"a request by hand, with the uid that it gives": {
			wish: plan.Wish{Parameters: unchanged, Request: request, Last: done, LastStatus: kudo.Complete},
			start: func() *kudo.Execution {
				s := start("backup", unchanged, false)
				s.UID, s.Request = "r", "r"
				return s
			}(),
		},
		"a request that was handled is inert": {
			wish: plan.Wish{Parameters: unchanged, Request: request, LastStatus: kudo.Complete,
				Last: ran("update", func(e *kudo.Execution) { e.Request = "r" })},
		},
		"a request for a plan that does not exist: an error that names it": {
			wish:  plan.Wish{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "fly", UID: "r"}, Last: done, LastStatus: kudo.Complete},
			lacks: "fly",
		},
		"a change that selects the running plan restarts it": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("update", nil), LastStatus: kudo.InProgress},
			start: start("update", map[string]string{"PLAIN": "c"}, true),
		},
		"a change that selects another plan waits": {
			wish: plan.Wish{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("backup", nil), LastStatus: kudo.InProgress},
		},
		"unless the running one is in ERROR": {
			wish:  plan.Wish{Parameters: map[string]string{"PLAIN": "c"}, Last: ran("backup", nil), LastStatus: kudo.Error},
			start: start("update", map[string]string{"PLAIN": "c"}, true),
		},
		"after a failure, nothing is started again by itself": {
			wish: plan.Wish{Parameters: unchanged, Last: done, LastStatus: kudo.FatalError},
		},
		"a restart of pods that was owed stays owed": {
			wish: plan.Wish{Parameters: map[string]string{"PLAIN": "a", "QUIET": "2"}, LastStatus: kudo.FatalError,
				Last: ran("update", func(e *kudo.Execution) { e.RestartPending = true })},
			start: start("update", map[string]string{"PLAIN": "a", "QUIET": "2"}, true),
		},
		"a running execution is cancelled": {
			wish:   plan.Wish{Parameters: unchanged, Request: kudo.PlanExecution{UID: "x", Cancel: true}, Last: done, LastStatus: kudo.InProgress},
			cancel: true,
		},
		"one that has ended is not, and its request starts nothing": {
			wish: plan.Wish{Parameters: unchanged, Request: kudo.PlanExecution{PlanName: "backup", UID: "x", Cancel: true}, Last: done, LastStatus: kudo.Complete},
		},
		"removal supersedes a running plan by cleanup, with what was last started": {
			wish: plan.Wish{Removing: true, Reference: two, Parameters: map[string]string{"PLAIN": "c"}, Last: done, LastStatus: kudo.InProgress},
			start: func() *kudo.Execution {
				s := done.DeepCopy()
				s.Plan, s.UID = "cleanup", ""
				return s
			}(),
		},
		"cleanup runs to its end": {
			wish: plan.Wish{Removing: true, Last: ran("cleanup", nil), LastStatus: kudo.Error},
		},
		"and once, and then everything is removed": {
			wish:   plan.Wish{Removing: true, Last: ran("cleanup", nil), LastStatus: kudo.Complete},
			remove: true,
		},
		"and again when it failed": {
			wish: plan.Wish{Removing: true, Last: ran("cleanup", nil), LastStatus: kudo.FatalError},
			start: func() *kudo.Execution {
				s := done.DeepCopy()
				s.Plan, s.UID = "cleanup", ""
				return s
			}(),
		},
		"a cleanup that was run by hand does not count": {
			wish: plan.Wish{Removing: true, LastStatus: kudo.Complete,
				Last: ran("cleanup", func(e *kudo.Execution) { e.Request = e.UID })},
			start: func() *kudo.Execution {
				s := done.DeepCopy()
				s.Plan, s.UID, s.Request = "cleanup", "", "x"
				return s
			}(),
		},
		"removal of what was never executed needs no plan": {
			wish:   plan.Wish{Removing: true, Parameters: unchanged},
			remove: true,
		},
		"removal without a cleanup plan needs none, whatever runs": {
			wish:   plan.Wish{Removing: true, Version: versionOf("deploy"), Last: done, LastStatus: kudo.Error},
			remove: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			wish := test.wish
			wish.Generation = 7
			if wish.Version == nil {
				wish.Version = all
			}
			if wish.Reference.Name == "" {
				wish.Reference = one
			}
			wish.LastVersion = wish.Version
			choice, err := plan.Choose(wish)
			var missing *plan.MissingPlanError
			switch {
			case test.lacks != "" && (!errors.As(err, &missing) || missing.Plan != test.lacks):
				t.Fatalf("want an error about missing plan %q, got %v", test.lacks, err)
			case test.lacks == "" && err != nil:
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.start, choice.Start); diff != "" {
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
		{Name: "BACKUP_QUIET", Trigger: "backup", ForcePodRestart: ptr.To(false)},
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
			if diff := cmp.Diff(test.want, plan.Triggers(definitions, test.before, test.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
