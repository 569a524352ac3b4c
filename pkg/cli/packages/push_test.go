package packages

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

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
			if diff := cmp.Diff(test.want, changedFields(&stored, &wanted)); diff != "" {
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
			if diff := cmp.Diff(test.want, changedFields(&kudo.OperatorVersionSpec{Tasks: stored}, &kudo.OperatorVersionSpec{Tasks: test.wanted})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
