package pack_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// The rules for three real kinds judge samples of their objects.
func TestExampleOfHealthVerifies(t *testing.T) {
	p, _ := pack.Load(os.DirFS("../../../examples/health"))
	for _, problem := range append(p.Verify(), p.VerifyValues()...) {
		t.Error(problem)
	}
	if len(p.Version.Health) != 3 {
		t.Errorf("%d rules", len(p.Version.Health))
	}
	files, err := pack.Files(os.DirFS("../../../examples/health"))
	if err != nil || !strings.Contains(strings.Join(files, " "), "health/kafka.failed.yaml") {
		t.Errorf("the samples do not belong to the files of the package: %v, %v", files, err)
	}
}

const brokerRule = `
- group: x.example.com
  kind: Broker
  healthy: self.status.phase == 'Ready'
  failed: self.status.phase == 'Broken'
  message: self.status.why`

func TestHealth(t *testing.T) {
	sample := func(phase string) string {
		return fmt.Sprintf("apiVersion: x.example.com/v1\nkind: Broker\nmetadata: {name: b}\nstatus: {phase: %s}\n", phase)
	}
	for name, tc := range map[string]struct {
		rules   string
		samples map[string]string
		want    []string
	}{
		"samples with their states": {brokerRule, map[string]string{
			"a.healthy.yaml": sample("Ready"), "a.progressing.yaml": sample("Starting"), "a.failed.yaml": sample("Broken"), "README.md": "x", ".hidden.yaml": "x",
		}, nil},
		"no rules, and a folder of that name": {" []", map[string]string{"x.yaml": "x"}, nil},
		"no sample": {brokerRule, nil, []string{
			`operator.yaml:14:3: warning: health of "Broker.x.example.com" has no sample of a healthy object: store one as health/NAME.healthy.yaml, as 'kubectl get -o yaml' prints it`,
			`operator.yaml:17:3: warning: failed of health of "Broker.x.example.com" has no sample of an object that has failed: store one as health/NAME.failed.yaml, as 'kubectl get -o yaml' prints it`,
		}},
		"a rule that never fails, and a sample of a healthy object": {"\n- {group: x.example.com, kind: Broker, healthy: self.status.phase == 'Ready'}",
			map[string]string{"a.healthy.yaml": sample("Ready")}, nil},
		"another state": {brokerRule, map[string]string{"a.healthy.yaml": sample("Starting")}, []string{
			"health/a.healthy.yaml: error: the name says Healthy, but the rule finds Progressing (correct the rule, or rename the sample): Broker b: is not healthy yet",
			`operator.yaml:17:3: warning: failed of health of "Broker.x.example.com" has no sample of an object that has failed: store one as health/NAME.failed.yaml, as 'kubectl get -o yaml' prints it`,
		}},
		"no state in the name": {brokerRule, map[string]string{"a.healthy.yaml": sample("Ready"), "b.yaml": sample("Ready"), "healthy.yaml": sample("Ready")}, []string{
			"health/b.yaml: error: is not a sample: name it NAME.STATE.yaml, where STATE is healthy, progressing or failed",
			"health/healthy.yaml: error: is not a sample: name it NAME.STATE.yaml, where STATE is healthy, progressing or failed",
		}},
		"another kind": {brokerRule, map[string]string{"a.healthy.yaml": sample("Ready"), "b.healthy.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: p}}"}, []string{
			`health/b.healthy.yaml: error: no rule in health of operator.yaml judges kind "Pod": add one, or remove the sample`,
			`operator.yaml:17:3: warning: failed of health of "Broker.x.example.com" has no sample of an object that has failed: store one as health/NAME.failed.yaml, as 'kubectl get -o yaml' prints it`,
		}},
		"no object": {brokerRule, map[string]string{"a.healthy.yaml": "- 1"}, []string{
			"health/a.healthy.yaml: error: is not an object in YAML, as 'kubectl get -o yaml' prints one: ",
		}},
		"an expression that is malformed": {"\n- {group: x.example.com, kind: Broker, healthy: 'self.status.'}", nil, []string{
			`operator.yaml:14:40: error: health of "Broker.x.example.com": healthy: line 1, column 13: Syntax error`,
		}},
		"a Secret": {"\n- {group: '', kind: Secret, healthy: 'true', message: self.data.password}", nil, []string{
			`operator.yaml:14:15: error: health of "Secret": kind: Secrets cannot be judged by expressions, because messages could show their data`,
		}},
		"a kind twice": {brokerRule + brokerRule, nil, []string{
			`operator.yaml:19:3: error: health of "Broker.x.example.com" is defined twice: remove one`,
		}},
		"too many": {strings.Repeat(brokerRule, 17), nil, []string{`operator.yaml:13:1: error: there are 17 rules, more than the limit of 16`}},
		"a field that does not exist": {brokerRule + "\n  current: 'true'", map[string]string{"a.healthy.yaml": sample("Ready")}, []string{
			`operator.yaml:19:3: error: health[0].current: unknown field: must be one of group, kind, healthy, failed, message`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{
				"params.yaml": {Data: []byte("parameters: []\n")},
				"operator.yaml": {Data: []byte("name: app\noperatorVersion: 1.0.0\ntasks:\n- {name: app, kind: Dummy, spec: {done: true}}\nplans:\n" +
					"  deploy:\n    strategy: serial\n    phases:\n    - name: main\n      strategy: serial\n" +
					"      steps: [{name: app, tasks: [app]}]\n\nhealth:" + tc.rules + "\n")},
			}
			for file, content := range tc.samples {
				files["health/"+file] = &fstest.MapFile{Data: []byte(content)}
			}
			p, _ := pack.Load(files)
			var got []string
			for i, problem := range p.Verify() {
				got = append(got, problem.String())
				if i < len(tc.want) && strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Admission refuses what an author has not verified.
func TestAdmitRefusesMalformedHealth(t *testing.T) {
	version := &kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{
		Version: "1.0.0", Tasks: []kudo.Task{{Name: "a", Kind: kudo.TaskDummy, Spec: kudo.TaskSpec{DummyTaskSpec: kudo.DummyTaskSpec{Done: true}}}},
		Plans:  map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "a", Steps: []kudo.Step{{Name: "a", Tasks: []string{"a"}}}}}}},
		Health: []kudo.HealthRule{{Group: "x.example.com", Kind: "Broker", Healthy: "self.status.phase == "}},
	}}
	version.Name = "app-1.0.0"
	err := pack.Admit(version)
	if want := `health[0].healthy: error: health of "Broker.x.example.com": healthy: line 1, column `; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	version.Spec.Health[0].Healthy = "self.status.phase == 'Ready'"
	if err := pack.Admit(version); err != nil {
		t.Error(err)
	}
}
