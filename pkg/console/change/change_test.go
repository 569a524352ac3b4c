package change

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestChangesThatWouldFailAreRefused(t *testing.T) {
	const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: brokers}\ndata: {x: {{ .Params.BROKERS }}}\n"
	for sentence, test := range map[string]struct {
		// brokers is the value in the spec after the change, and before the one that was started.
		before, brokers string
		sensitive       bool
		want            string
	}{
		"a value that fits": {brokers: "four"},
		"a value that changes the structure of a template": {brokers: "4}\ny: {", want: `cluster cluster1: a plan of Instance "kafka" would fail: ` +
			`task "brokers": template "brokers.yaml", line 4: the value of parameter "BROKERS" changes the structure of the rendered YAML: ` +
			`use a value without YAML syntax and line breaks, or quote it in the template (quote, toYaml); fix the cause, or use --force to make the change anyway`},
		"a value that is in place":                        {before: "4}\ny: {", brokers: "4}\ny: {"},
		"a value in a template that uses a sensitive one": {brokers: "4}\ny: {", sensitive: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			view := sample.ViewOf("deploy", kudo.FatalError)
			view.Version.Spec.Parameters = []kudo.Parameter{{Name: "BROKERS"}, {Name: "KEY", Sensitive: new(true)}}
			view.Version.Spec.Templates = map[string]string{"brokers.yaml": template}
			view.Version.Spec.Tasks = []kudo.Task{{Name: "brokers", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"brokers.yaml"}},
			}}}
			view.Version.Spec.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "all", Tasks: []string{"brokers"}}}}}}
			change := Change{Cluster: "cluster1"}
			change.Version, change.Started, change.Before, change.After = view.Version, view.Version, view.Instance, view.Instance.DeepCopy()
			if test.before != "" {
				change.Before.Spec.Parameters = map[string]string{"BROKERS": test.before}
			}
			if change.After.Spec.Parameters = map[string]string{"BROKERS": test.brokers}; test.sensitive {
				view.Version.Spec.Templates["brokers.yaml"] += "{{ .Params.KEY }}: {}"
				change.After.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "KEY", SecretKeyRef: kudo.SecretKeyRef{Name: "keys", Key: "key"}}}
			}
			if diff := cmp.Diff(test.want, errorText(change.Validate())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusalsAreNamedOnce(t *testing.T) {
	refused := Refusals{
		"cluster1": errors.New("Instance cluster1/kafka: not a number"), "cluster2": errors.New("Instance cluster2/kafka: not a number"),
		"cluster3": errors.New("Instance cluster3/kafka does not exist"),
	}
	const want = "Instance cluster1/kafka: not a number (also on cluster2)\nInstance cluster3/kafka does not exist"
	if diff := cmp.Diff(want, errorText(refused.Err())); diff != "" {
		t.Error(diff)
	}
}
