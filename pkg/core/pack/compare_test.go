package pack_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestCompare(t *testing.T) {
	before := kudo.OperatorVersionSpec{
		Operator: corev1.ObjectReference{Name: "shop"}, Version: "1.0.0",
		Templates:  map[string]string{"app.yaml": "a", "old.yaml": "a"},
		Parameters: []kudo.Parameter{{Name: "SIZE", Type: "integer", Default: new("2")}, {Name: "OLD"}},
		Tasks: []kudo.Task{
			{Name: "app", Kind: "Apply", Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"app.yaml"}}}},
			{Name: "old", Kind: "Dummy"},
		},
		Plans: map[string]kudo.Plan{"deploy": {Strategy: kudo.Serial, Phases: []kudo.Phase{
			{Name: "main", Steps: []kudo.Step{{Name: "app", Tasks: []string{"app"}}, {Name: "old", Tasks: []string{"old"}}}},
			{Name: "end", Steps: []kudo.Step{{Name: "end"}}},
		}}},
	}
	for sentence, test := range map[string]struct {
		edit func(*kudo.OperatorVersionSpec)
		want []pack.Change
	}{
		"nothing": {func(*kudo.OperatorVersionSpec) {}, nil},
		"empty and nothing are the same, and so is another order of parameters and tasks": {func(s *kudo.OperatorVersionSpec) {
			s.UpgradableFrom = []corev1.ObjectReference{}
			s.Parameters[0].Enum = []string{}
			s.Parameters[0], s.Parameters[1] = s.Parameters[1], s.Parameters[0]
			s.Tasks[0], s.Tasks[1] = s.Tasks[1], s.Tasks[0]
		}, nil},
		"versions": {func(s *kudo.OperatorVersionSpec) {
			s.Version, s.AppVersion, s.UpgradableFrom = "1.1.0", "2", []corev1.ObjectReference{{Name: "x"}}
		}, []pack.Change{
			{Section: pack.InVersion, Name: "version", Kind: pack.Changed, From: "1.0.0", To: "1.1.0"},
			{Section: pack.InVersion, Name: "appVersion", Kind: pack.Changed, To: "2"},
			{Section: pack.InVersion, Name: "upgradableFrom", Kind: pack.Changed, To: []any{map[string]any{"name": "x"}}},
		}},
		"parameters": {func(s *kudo.OperatorVersionSpec) {
			s.Parameters = []kudo.Parameter{{Name: "SIZE", Type: "integer", Default: new(""), Immutable: new(true)}, {Name: "NEW"}}
		}, []pack.Change{
			{Section: pack.InParameters, Name: "NEW", Kind: pack.Added, To: map[string]any{"name": "NEW"}},
			{Section: pack.InParameters, Name: "OLD", Kind: pack.Removed, From: map[string]any{"name": "OLD"}},
			{Section: pack.InParameters, Name: "SIZE", Kind: pack.Changed, Field: "default", From: "2", To: ""},
			{Section: pack.InParameters, Name: "SIZE", Kind: pack.Changed, Field: "immutable", To: true},
		}},
		"tasks": {func(s *kudo.OperatorVersionSpec) {
			s.Tasks = s.Tasks[:1]
			s.Tasks[0].Spec.Resources = []string{"app.yaml", "new.yaml"}
		}, []pack.Change{
			{Section: pack.InTasks, Name: "app", Kind: pack.Changed, Field: "spec.resources", From: []any{"app.yaml"}, To: []any{"app.yaml", "new.yaml"}},
			{Section: pack.InTasks, Name: "old", Kind: pack.Removed, From: map[string]any{"name": "old", "kind": "Dummy"}},
		}},
		"plans": {func(s *kudo.OperatorVersionSpec) {
			deploy := s.Plans["deploy"]
			deploy.Strategy = kudo.Parallel
			deploy.Phases[0].Steps[0].Timeout = &metav1.Duration{Duration: time.Minute}
			deploy.Phases[0].Steps[1] = kudo.Step{Name: "new"}
			deploy.Phases[0], deploy.Phases[1] = deploy.Phases[1], deploy.Phases[0]
			s.Plans["deploy"], s.Plans["backup"] = deploy, kudo.Plan{}
		}, []pack.Change{
			{Section: pack.InPlans, Name: "backup", Kind: pack.Added, To: map[string]any{}},
			{Section: pack.InPlans, Name: "deploy", Kind: pack.Changed, Field: "phases", From: []string{"main", "end"}, To: []string{"end", "main"}},
			{Section: pack.InPlans, Name: "deploy", Kind: pack.Changed, Field: "phases[main].steps", From: []string{"app", "old"}, To: []string{"app", "new"}},
			{Section: pack.InPlans, Name: "deploy", Kind: pack.Changed, Field: "phases[main].steps[app].timeout", To: "1m0s"},
			{Section: pack.InPlans, Name: "deploy", Kind: pack.Changed, Field: "strategy", From: "serial", To: "parallel"},
		}},
		"templates": {func(s *kudo.OperatorVersionSpec) { s.Templates = map[string]string{"app.yaml": "b", "empty.yaml": ""} }, []pack.Change{
			{Section: pack.InTemplates, Name: "app.yaml", Kind: pack.Changed},
			{Section: pack.InTemplates, Name: "empty.yaml", Kind: pack.Added},
			{Section: pack.InTemplates, Name: "old.yaml", Kind: pack.Removed},
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			after := before.DeepCopy()
			test.edit(after)
			if diff := cmp.Diff(test.want, pack.Compare(&before, after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangedFields(t *testing.T) {
	stored := kudo.OperatorVersionSpec{
		Version:   "1.0.0",
		Templates: map[string]string{"a": "1", "b": "1", "gone": "1"},
		Tasks:     []kudo.Task{{Name: "a", Kind: "Dummy"}},
		Plans:     map[string]kudo.Plan{"deploy": {}},
	}
	for sentence, test := range map[string]struct {
		edit func(*kudo.OperatorVersionSpec)
		want []string
	}{
		"nothing": {func(*kudo.OperatorVersionSpec) {}, nil},
		"empty and nothing are the same": {func(s *kudo.OperatorVersionSpec) {
			s.Parameters = []kudo.Parameter{}
			s.Tasks = []kudo.Task{{Name: "a", Kind: "Dummy", Spec: kudo.TaskSpec{PipeTaskSpec: kudo.PipeTaskSpec{Pipe: []kudo.PipeSpec{}}}}}
		}, nil},
		"templates": {func(s *kudo.OperatorVersionSpec) { s.Templates = map[string]string{"a": "2", "b": "1", "new": "1"} },
			[]string{"template a", "template gone", "template new"}},
		"everything else": {func(s *kudo.OperatorVersionSpec) {
			*s = kudo.OperatorVersionSpec{
				Operator: corev1.ObjectReference{Name: "x"}, Version: "2", AppVersion: "2", ConnectionString: "x", Templates: s.Templates,
				Parameters: []kudo.Parameter{{Name: "A"}}, UpgradableFrom: []corev1.ObjectReference{{Name: "x"}},
			}
		}, []string{"appVersion", "connectionString", "operator", "parameter A", "plan deploy", "task a", "upgradableFrom", "version"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			wanted := *stored.DeepCopy()
			test.edit(&wanted)
			if diff := cmp.Diff(test.want, pack.ChangedFields(&stored, &wanted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangedTasks(t *testing.T) {
	child := func(name, version string) kudo.Task {
		task := kudo.Task{Name: name, Kind: kudo.TaskKudoOperator}
		task.Spec.Package, task.Spec.OperatorVersion = "zz", version
		return task
	}
	switched := child("a", "1.0.0")
	switched.Spec.EnablingParameter = "ON"
	dummy := kudo.Task{Name: "a", Kind: kudo.TaskDummy}
	exactly := func(task kudo.Task, name string) kudo.Task {
		task.Spec.OperatorVersionName = name
		return task
	}
	stored := []kudo.Task{child("a", "1.0.0"), exactly(child("b", "1.0.0"), "zz-1.0.0")}
	for sentence, test := range map[string]struct {
		wanted []kudo.Task
		want   []string
	}{
		"none":          {stored, nil},
		"another order": {[]kudo.Task{stored[1], stored[0]}, []string{"order of parameters or tasks"}},
		"another child": {[]kudo.Task{child("a", "1.1.0"), stored[1]}, []string{"task a with child operator zz-1.1.0 instead of zz-1.0.0"}},
		"the exact name of a child that an earlier release has stored without": {[]kudo.Task{exactly(stored[0], "zz-1.0.0"), stored[1]}, nil},
		"another child of the same version": {[]kudo.Task{stored[0], exactly(stored[1], "zz")},
			[]string{"task b with child operator zz instead of zz-1.0.0"}},
		"the same child otherwise": {[]kudo.Task{switched, stored[1]}, []string{"task a"}},
		"no child any more":        {[]kudo.Task{dummy, stored[1]}, []string{"task a"}},
		"one that is gone":         {[]kudo.Task{stored[1]}, []string{"task a"}},
		"a new one":                {append(stored[:2:2], child("c", "1.0.0")), []string{"task c"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, pack.ChangedFields(&kudo.OperatorVersionSpec{Tasks: stored}, &kudo.OperatorVersionSpec{Tasks: test.wanted})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
