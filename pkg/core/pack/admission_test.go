package pack_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestAdmit(t *testing.T) {
	valid := kudo.OperatorVersionSpec{
		Version: "1.0.0",
		Tasks:   []kudo.Task{{Name: "wait", Kind: kudo.TaskDummy, Spec: kudo.TaskSpec{DummyTaskSpec: kudo.DummyTaskSpec{Done: true}}}},
		Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
			Name: "main", Steps: []kudo.Step{{Name: "main", Tasks: []string{"wait"}}},
		}}}},
	}
	valid.Operator.Name = "kafka"
	warned := valid.DeepCopy()
	warned.Parameters = []kudo.Parameter{{Name: "UNUSED"}}
	unnamed := valid.DeepCopy()
	unnamed.Operator.Name = ""
	capital := valid.DeepCopy()
	capital.Operator.Name = "Toy_Box"
	long := valid.DeepCopy()
	long.Operator.Name = strings.Repeat("x", 64)
	upgrading := valid.DeepCopy()
	upgrading.Plans = map[string]kudo.Plan{kudo.UpgradePlan: valid.Plans[kudo.DeployPlan]}
	broken := valid.DeepCopy()
	broken.Plans[kudo.DeployPlan].Phases[0].Steps[0].Tasks = []string{"miss"}
	worse := valid.DeepCopy()
	for i := range 12 {
		worse.Parameters = append(worse.Parameters, kudo.Parameter{Name: fmt.Sprintf("P%d", i), Trigger: "missing"})
	}

	for name, test := range map[string]struct {
		spec  *kudo.OperatorVersionSpec
		wants []string // in the error; none if empty
	}{
		"one that can be run":                    {spec: &valid},
		"one that verification only warns about": {spec: warned},
		"one that cannot be run": {spec: broken, wants: []string{
			"OperatorVersion addon-packages/kafka-1.0.0 is not valid; fix the package ('kubectl addon package verify DIR' checks it): " +
				"plans.deploy.phases[0].steps[0]", `"miss"`,
		}},
		"one with more problems than are listed": {spec: worse, wants: []string{`"P9"`, "; and 2 more errors"}},
		"one without an operator":                {spec: unnamed},
		"an operator's name with upper case":     {spec: capital},
		"an operator's name that is no label":    {spec: long, wants: []string{`is not valid: must be no more than 63`}},
		"one that exists to upgrade to":          {spec: upgrading},
		"one that says nothing at all":           {spec: &kudo.OperatorVersionSpec{}, wants: []string{"plan deploy is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := pack.Admit(&kudo.OperatorVersion{
				ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: "kafka-1.0.0"}, Spec: *test.spec,
			})
			if (err != nil) != (len(test.wants) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not mention %q", err, want)
				}
			}
		})
	}
}
