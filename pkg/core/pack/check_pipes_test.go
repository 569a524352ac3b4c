package pack_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestVerifyWantsFilesMadeBeforeTheyAreUsed(t *testing.T) {
	const complete = "plan %q: task \"use\" uses .Pipes.KEY, which task \"make\" creates, but not in this plan"
	late := `plan "deploy": task "use" uses .Pipes.KEY, which task "make" may not have created yet: run that task first`
	for sentence, test := range map[string]struct {
		plans string
		want  []string
	}{
		"in an earlier task":    {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [make, use]}]}]}", nil},
		"in an earlier step":    {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [make]}, {name: b, tasks: [use]}]}]}", nil},
		"in an earlier phase":   {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [make]}]}, {name: b, strategy: parallel, steps: [{name: b, tasks: [use]}]}]}", nil},
		"in a later task":       {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [use, make]}]}]}", []string{late}},
		"in a later step":       {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [use]}, {name: b, tasks: [make]}]}]}", []string{late}},
		"in a later phase":      {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [use]}]}, {name: b, steps: [{name: b, tasks: [make]}]}]}", []string{late}},
		"in a step beside it":   {"deploy: {phases: [{name: a, strategy: parallel, steps: [{name: a, tasks: [make]}, {name: b, tasks: [use]}]}]}", []string{late}},
		"in a phase beside it":  {"deploy: {strategy: parallel, phases: [{name: a, steps: [{name: a, tasks: [make]}]}, {name: b, steps: [{name: b, tasks: [use]}]}]}", []string{late}},
		"in deploy, for update": {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [make]}]}]}\nupdate: {phases: [{name: a, steps: [{name: a, tasks: [use]}]}]}", nil},
		"in another plan than deploy": {"deploy: {phases: [{name: a, steps: [{name: a, tasks: [use]}]}]}\nother: {phases: [{name: a, steps: [{name: a, tasks: [make]}]}]}",
			[]string{strings.Replace(complete, "%q", `"deploy"`, 1)}},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec := &kudo.OperatorVersionSpec{
				Operator: corev1.ObjectReference{Name: "shop"}, Version: "1.0.0",
				Templates: map[string]string{
					"use.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\ndata: {a: \"{{ .Pipes.KEY }}\", b: \"{{ .Pipes.KEY }}\"}\n",
					"make.yaml": "{{ .Pipes.KEY }}",
				},
			}
			maker, user := kudo.Task{Name: "make", Kind: kudo.TaskPipe}, kudo.Task{Name: "use", Kind: kudo.TaskApply}
			maker.Spec.Pod, maker.Spec.Pipe = "make.yaml", []kudo.PipeSpec{{File: "/a/b", Kind: "Secret", Key: "KEY"}}
			user.Spec.Resources = []string{"use.yaml"}
			spec.Tasks = []kudo.Task{maker, user}
			if err := yaml.Unmarshal([]byte(test.plans), &spec.Plans); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, problem := range pack.Check(spec) {
				got = append(got, problem.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
