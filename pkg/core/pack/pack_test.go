package pack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

const operatorYAML = `apiVersion: kudo.dev/v1beta1
name: shop
operatorVersion: 1.2.0
appVersion: 1.10
tasks:
  - name: app
    kind: Apply
    spec:
      resources:
        - app.yaml
plans:
  deploy:
    strategy: serial
    phases:
      - name: main
        strategy: parallel
        steps:
          - name: app
            tasks:
              - app
`

const paramsYAML = `apiVersion: kudo.dev/v1beta1
parameters:
  - name: REPLICAS
    default: 2
`

const appYAML = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
data:
  replicas: "{{ .Params.REPLICAS }}"
`

// files returns a valid package with the given files replaced, or removed if empty.
func files(replaced map[string]string) fstest.MapFS {
	texts := map[string]string{"operator.yaml": operatorYAML, "params.yaml": paramsYAML, "templates/app.yaml": appYAML}
	maps.Copy(texts, replaced)
	fsys := fstest.MapFS{}
	for name, text := range texts {
		if text != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return fsys
}

func verify(fsys fstest.MapFS) []string {
	p, _ := pack.Load(fsys)
	problems := []string{}
	for _, f := range p.Verify() {
		f.Column = 0 // TestVerifyPointsToTheColumn checks columns
		problems = append(problems, f.String())
	}
	return problems
}

func TestVerifyAcceptsAValidPackage(t *testing.T) {
	if diff := cmp.Diff([]string{}, verify(files(nil))); diff != "" {
		t.Error(diff)
	}
}

// change replaces the only occurrence of a part of a text; a missing part fails the test.
func change(t *testing.T, text, old, replacement string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q does not stand in\n%s", old, text)
	}
	return strings.Replace(text, old, replacement, 1)
}

func TestVerifyOperatorFile(t *testing.T) {
	for sentence, test := range map[string]struct {
		old, replacement string
		want             []string
	}{
		"a field that does not exist": {"name: shop\n", "name: shop\nfruit: 1\n",
			[]string{`operator.yaml:3: error: fruit: unknown field: must be one of apiVersion, name, description, operatorVersion, appVersion, dependencyVersion, dependencies, kudoVersion, kubernetesVersion, maintainers, url, namespaceManifest, permissions, health, drift, returnable, tasks, plans`}},
		"a version as packages had it before KUDO 0.10": {"operatorVersion:", "version:",
			[]string{`operator.yaml:3: error: version: unknown field: KUDO 0.10 renamed it to operatorVersion`}},
		"a field that is misspelt": {"appVersion: 1.10\n", "appversion: 1.10\n",
			[]string{`operator.yaml:4: error: appversion: unknown field: did you mean appVersion?`}},
		"a field that is misspelt, but only describes": {"name: shop\n", "name: shop\ndesription: sells\n",
			[]string{`operator.yaml:3: warning: desription: unknown field: did you mean description?`}},
		"a field with a name that would garble the terminal": {"name: shop\n", "name: shop\n\"\\e[2J\": 1\n",
			[]string{`operator.yaml:3: error: "\x1b[2J": unknown field: must be one of apiVersion, name, description, operatorVersion, appVersion, dependencyVersion, dependencies, kudoVersion, kubernetesVersion, maintainers, url, namespaceManifest, permissions, health, drift, returnable, tasks, plans`}},
		"constraints on other add-ons": {"name: shop\n", "name: shop\ndependencies:\n- {name: kafka, version: '>=2 <4'}\n- {name: zookeeper, version: ~3.8}\n", []string{}},
		"constraints on other add-ons that are not valid": {"name: shop\n",
			"name: shop\ndependencies:\n- {name: kafka, version: new}\n- {name: kafka, version: '>=2'}\n- {name: No Name, version: '>=2'}\n- {name: redis}\n",
			[]string{
				`operator.yaml:4: error: version "new" is not a constraint such as >=3.8 <5: improper constraint: "new"`,
				`operator.yaml:5: error: "kafka" is listed twice: join the constraints, such as >=3.8 <5`,
				`operator.yaml:6: error: "No Name" is not the name of an add-on: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`operator.yaml:7: error: dependencies[3]: required field version is missing`,
			}},
		"fields whose changes are no drift": {"name: shop\n", "name: shop\ndrift: {ignore: [{kind: ConfigMap, name: leader, paths: [/data/holder, '/data/*']}]}\n", []string{}},
		"fields whose changes are no drift that are not valid": {"name: shop\n",
			"name: shop\ndrift:\n  ignore:\n  - {kind: ConfigMap, paths: [/data/holder, data]}\n  - {kind: ConfigMap, paths: []}\n  - {}\n",
			[]string{
				`operator.yaml:5: error: "data" is not a JSON pointer: write a path such as /data/key or /spec/template/spec/containers/web/image`,
				`operator.yaml:6: error: there are 0 paths: write one to 64`,
				`operator.yaml:7: error: drift.ignore[2]: required field paths is missing`,
			}},
		"a field that is set twice": {"name: shop\n", "name: shop\nname: pub\n",
			[]string{`operator.yaml:3: error: name: is set twice, first in line 2: remove one`}},
		"a field that says the same twice": {"name: shop\n", "name: shop\nname: shop\n",
			[]string{`operator.yaml:3: warning: name: is set twice, first in line 2: remove one`}},
		"a plan that is defined twice": {"plans:\n", "plans:\n  deploy: {}\n",
			[]string{`operator.yaml:6: warning: task "app" is not used by any step`, `operator.yaml:13: error: plans.deploy: is set twice, first in line 12: remove one`}},
		"a missing field, deep down": {"  - name: app\n    kind: Apply\n", "  - name: app\n",
			[]string{`operator.yaml:6: error: tasks[0]: required field kind is missing`}},
		"every problem, not only the first": {"name: shop\noperatorVersion: 1.2.0\n", "name: Shop\noperatorVersion: one\n",
			[]string{
				`operator.yaml:2: error: operator name "Shop" is not valid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`operator.yaml:3: error: operatorVersion "one" is not a semantic version such as 1.2.0`,
			}},
		"a name that is valid for nothing": {"name: shop\n", "name: -rf\n",
			[]string{`operator.yaml:2: error: operator name "-rf" is not valid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		"a list for a text": {"name: shop\n", "name: [shop]\n",
			[]string{`operator.yaml:2: error: name: must be a string, got a list`}},
		"a text for a list": {"        - app.yaml\n", "        app.yaml\n",
			[]string{
				`operator.yaml:8: warning: task "app" has no resources and does nothing`,
				`operator.yaml:10: error: tasks[0].spec.resources: must be a list, got "app.yaml"`,
				`templates/app.yaml: warning: template "app.yaml" is not used by any task`,
			}},
		"a list for fields": {"  deploy:\n    strategy: serial\n    phases:\n", "  deploy:\n", // phases follow as a list
			[]string{
				`operator.yaml:6: warning: task "app" is not used by any step`,
				`operator.yaml:13: error: plans.deploy: must be a map, got a list`,
			}},
		"another API version": {"kudo.dev/v1beta1", "kudo.dev/v1",
			[]string{`operator.yaml:1: error: apiVersion: must be kudo.dev/v1beta1, got "kudo.dev/v1"`}},
		"an alias": {"name: shop\noperatorVersion: 1.2.0\n", "name: &a shop\noperatorVersion: *a\n",
			[]string{`operator.yaml:3: error: operatorVersion: must be a string, got the alias *a: write the value out`}},
		"a flag in quotes": {"    kind: Apply\n    spec:\n", "    kind: Apply\n    spec:\n      done: \"true\"\n",
			[]string{`operator.yaml:9: error: tasks[0].spec.done: must be true or false without quotes, got "true"`}},
		"a timeout that is none": {"    strategy: serial\n", "    timeout: soon\n",
			[]string{`operator.yaml:13: error: plans.deploy.timeout: must be a duration such as 90s or 5m, got "soon"`}},
		"a timeout that is too short for an OperatorVersion": {"    strategy: serial\n", "    timeout: 999us\n",
			[]string{`operator.yaml:13: error: plans.deploy.timeout: must be a duration from 1ms to 99999h, such as 90s or 5m, got "999us"`}},
		"a timeout that is too long for an OperatorVersion": {"        strategy: parallel\n", "        timeout: 100000h\n",
			[]string{`operator.yaml:16: error: plans.deploy.phases[0].timeout: must be a duration from 1ms to 99999h, such as 90s or 5m, got "100000h"`}},
		"a timeout of nothing": {"          - name: app\n", "          - name: app\n            timeout: 0s\n",
			[]string{`operator.yaml:19: error: plans.deploy.phases[0].steps[0].timeout: must be a duration from 1ms to 99999h, such as 90s or 5m, got "0s"`}},
		"a timeout below nothing": {"    strategy: serial\n", "    timeout: -1s\n",
			[]string{`operator.yaml:13: error: plans.deploy.timeout: must be a duration from 1ms to 99999h, such as 90s or 5m, got "-1s"`}},
		"the shortest timeout": {"    strategy: serial\n", "    timeout: 1ms\n", []string{}},
		"the longest timeout":  {"    strategy: serial\n", "    timeout: 99999h59m59.999999999s\n", []string{}},
		"a step that deletes": {"          - name: app\n", "          - name: app\n            delete: true\n",
			[]string{`operator.yaml:19: warning: plans.deploy.phases[0].steps[0].delete: has no effect: use a task of kind Delete`}},
		"a second document": {"plans:", "---\nplans:",
			[]string{
				`operator.yaml: error: required field plans is missing`,
				`operator.yaml:6: warning: task "app" is not used by any step`,
				`operator.yaml:11: error: contains more than one YAML document: must contain exactly one`,
			}},
		"no YAML": {"name: shop", "name: [shop",
			[]string{`operator.yaml:1: error: is not valid YAML: did not find expected ',' or ']'`}},
		"an appVersion that no name can hold": {"appVersion: 1.10", "appVersion: 1_10",
			[]string{
				`operator.yaml:4: error: appVersion "1_10" cannot be part of the name of an OperatorVersion: ` + subdomain,
				`operator.yaml:4: warning: appVersion "1_10" is not a version such as 1.25.0`,
			}},
		"a version that no name can hold": {"operatorVersion: 1.2.0", "operatorVersion: 1.2.0+b",
			[]string{`operator.yaml:3: error: operatorVersion "1.2.0+b" cannot be part of the name of an OperatorVersion: ` + subdomain}},
		"a namespace's manifest":            {"name: shop\n", "name: shop\nnamespaceManifest: ns.yaml\n", []string{`operator.yaml:3: error: namespaceManifest "ns.yaml" does not exist: must be one of app.yaml`}},
		"a Kubernetes version that is none": {"name: shop\n", "name: shop\nkubernetesVersion: new\n", []string{`operator.yaml:3: error: kubernetesVersion "new" is neither a version such as 1.25.0, which is the lowest one, nor a constraint such as >=1.25.0-0 <1.40.0-0: improper constraint: "new"`}},
		"a constraint on Kubernetes":        {"name: shop\n", "name: shop\nkubernetesVersion: '>=1.25.0-0 <1.40.0-0'\n", []string{}},
		"versions that are none": {"appVersion: 1.10\n", "appVersion: new\nkudoVersion: not-built-on-release\n",
			[]string{`operator.yaml:4: warning: appVersion "new" is not a version such as 1.25.0`, `operator.yaml:5: warning: kudoVersion "not-built-on-release" is not a version such as 1.25.0`}},
		"a version of two parts": {"operatorVersion: 1.2.0", "operatorVersion: 1.2",
			[]string{`operator.yaml:3: warning: operatorVersion "1.2" should have three parts, such as 1.2.0`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := change(t, operatorYAML, test.old, test.replacement)
			if diff := cmp.Diff(test.want, verify(files(map[string]string{"operator.yaml": text}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// subdomain is apimachinery's description of object names.
var subdomain = validation.IsDNS1123Subdomain("_")[0]

func TestVerifyTasks(t *testing.T) {
	for sentence, test := range map[string]struct {
		tasks string // replaces the task, from line 6 on; its name must be app
		want  []string
	}{
		"an Apply of a template that does not exist": {"{name: app, kind: Apply, spec: {resources: [app.yaml, other.yaml]}}",
			[]string{`operator.yaml:6: error: task "app": template "other.yaml" does not exist: must be one of app.yaml`}},
		"an Apply of one template twice": {"{name: app, kind: Apply, spec: {resources: [app.yaml, app.yaml]}}",
			[]string{`operator.yaml:6: error: task "app": template "app.yaml" is listed twice: remove one`}},
		"a kind that does not exist": {"{name: app, kind: Aply, spec: {resources: [app.yaml]}}",
			[]string{`operator.yaml:6: error: task "app": unknown kind "Aply": must be one of Apply, Delete, Toggle, Pipe, Dummy, KudoOperator, Helm`}},
		"a field of another kind": {"{name: app, kind: Delete, spec: {resources: [app.yaml], parameter: ON}}",
			[]string{`operator.yaml:6: warning: task "app": a task of kind Delete does not use parameter`}},
		"a Toggle by a boolean":                     {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: ON}}", []string{}},
		"a Toggle by a text that converts":          {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: TEXT_ON}}", []string{}},
		"a Toggle by a text without default":        {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: NO_DEFAULT}}", []string{}},
		"a Toggle by nothing":                       {"{name: app, kind: Toggle, spec: {resources: [app.yaml]}}", []string{`operator.yaml:6: error: task "app": parameter is required for kind Toggle`}},
		"a Toggle by a text that does not convert":  {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: TEXT}}", []string{`operator.yaml:6: error: task "app": parameter "TEXT" has the default "yes": must be true or false`}},
		"a Toggle by a number":                      {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: REPLICAS}}", []string{`operator.yaml:6: error: task "app": parameter "REPLICAS" is of type integer: must be a boolean`}},
		"a Toggle by what does not exist":           {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: OFF}}", []string{`operator.yaml:6: error: task "app": parameter "OFF" does not exist: must be one of REPLICAS, ON, TEXT, TEXT_ON, NO_DEFAULT, UNSET`}},
		"a Dummy without anything waits for ever":   {"{name: app, kind: Dummy, spec: {resources: null}}", []string{`operator.yaml:6: warning: task "app" never completes (Dummy without done: true), and neither does any plan that runs it: to forbid a change, make the parameter immutable`}},
		"a Dummy that is done":                      {"{name: app, kind: Dummy, spec: {done: true}}", []string{}},
		"a KudoOperator":                            {"{name: app, kind: KudoOperator, spec: {package: db, parameterFile: app.yaml, enablingParameter: ON}}", []string{}},
		"an Operator, its alias":                    {"{name: app, kind: Operator, spec: {package: db, operatorVersion: 1.0.0}}", []string{}},
		"a KudoOperator without package":            {"{name: app, kind: KudoOperator, spec: {}}", []string{`operator.yaml:6: error: task "app": package is required for kind KudoOperator`}},
		"a KudoOperator without its parameter file": {"{name: app, kind: KudoOperator, spec: {package: db, parameterFile: x.yaml}}", []string{`operator.yaml:6: error: task "app": template "x.yaml" does not exist: must be one of app.yaml`}},
		"a KudoOperator enabled by no boolean":      {"{name: app, kind: KudoOperator, spec: {package: db, enablingParameter: TEXT}}", []string{`operator.yaml:6: error: task "app": parameter "TEXT" has the default "yes": must be true or false`}},
		"a KudoOperator with an impossible name":    {"{name: app, kind: KudoOperator, spec: {package: db, instanceName: D_B}}", []string{`operator.yaml:6: error: task "app": instanceName "D_B" is not valid: ` + subdomain}},
		"a Pipe": {"{name: app, kind: Pipe, spec: {pod: app.yaml, pipe: [{file: /a, kind: Secret, key: a}]}}", []string{
			`templates/app.yaml: warning: task "app": a Pipe task must run a Pod of v1, got a ConfigMap of v1`}},
		"a Pipe with a key that only index reaches": {"{name: app, kind: Pipe, spec: {pod: app.yaml, pipe: [{file: /a, kind: Secret, key: a-b}]}}",
			[]string{`operator.yaml:6: warning: task "app": templates cannot refer to key "a-b" as .Pipes.KEY, only as index .Pipes "a-b": use letters, digits and _`,
				`templates/app.yaml: warning: task "app": a Pipe task must run a Pod of v1, got a ConfigMap of v1`}},
		"a Toggle by what need not be set": {"{name: app, kind: Toggle, spec: {resources: [app.yaml], parameter: UNSET}}",
			[]string{`params.yaml:7: warning: parameter "UNSET" enables task "app" and has no default: Instances that do not set it are rejected`}},
		"a KudoOperator enabled by what need not be set": {"{name: app, kind: KudoOperator, spec: {package: db, enablingParameter: UNSET}}",
			[]string{`params.yaml:7: warning: parameter "UNSET" enables task "app" and has no default: Instances that do not set it are rejected`}},
		"a Toggle without resources": {"{name: app, kind: Toggle, spec: {parameter: ON}}", []string{`operator.yaml:6: warning: task "app" has no resources and does nothing`}},
		"a Pipe without anything": {"{name: app, kind: Pipe, spec: {}}", []string{
			`operator.yaml:6: error: task "app": pipe is required for kind Pipe: list at least one file`,
			`operator.yaml:6: error: task "app": pod is required for kind Pipe: set it to the name of a template`,
		}},
		"a Pipe with everything wrong": {"{name: app, kind: Pipe, spec: {pod: app.yaml, pipe: [{file: a, envFile: /b, kind: Pod, key: a.b}, {file: /a, kind: Secret, key: k}, {envFile: /a, kind: Secret, key: k}]}}", []string{
			`operator.yaml:6: error: task "app": "a/b" must be an absolute path in the container`,
			`operator.yaml:6: error: task "app": each entry of pipe must have either file or envFile`,
			`operator.yaml:6: error: task "app": kind of a file must be Secret or ConfigMap, got "Pod"`,
			`operator.yaml:6: error: task "app": key "a.b" is not valid: use letters, digits and _`,
			`operator.yaml:6: error: task "app": key "k" is already used by task "app": choose a unique key`,
		}},
		"a task that is defined twice": {"{name: app, kind: Dummy, spec: {done: true}}\n  - {name: app, kind: Dummy, spec: {done: true}}",
			[]string{`operator.yaml:7: error: task "app" is defined twice: rename one`}},
		"tasks that differ in case": {"{name: app, kind: Dummy, spec: {done: true}}\n  - {name: App, kind: Dummy, spec: {done: true}}",
			[]string{`operator.yaml:7: warning: task "App" differs from "app" only in case: rename one`, `operator.yaml:7: warning: task "App" is not used by any step`}},
		"a third one that differs in case": {"{name: App, kind: Dummy, spec: {done: true}}\n  - {name: app, kind: Dummy, spec: {done: true}}\n  - {name: app, kind: Dummy, spec: {done: true}}",
			[]string{
				`operator.yaml:6: warning: task "App" is not used by any step`,
				`operator.yaml:7: warning: task "app" differs from "App" only in case: rename one`,
				`operator.yaml:8: error: task "app" is defined twice: rename one`,
			}},
		"a task without name": {"{name: app, kind: Dummy, spec: {done: true}}\n  - {name: '', kind: Dummy, spec: {done: true}}",
			[]string{`operator.yaml:7: error: task 2 has no name`}},
		"a task that no step runs": {"{name: app, kind: Dummy, spec: {done: true}}\n  - {name: b, kind: Dummy, spec: {done: true}}",
			[]string{`operator.yaml:7: warning: task "b" is not used by any step`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			head, rest, _ := strings.Cut(operatorYAML, "  - name: app\n")
			_, plans, _ := strings.Cut(rest, "plans:")
			got := verify(files(map[string]string{
				"operator.yaml": head + "  - " + test.tasks + "\nplans:" + plans,
				"params.yaml": `parameters:
  - {name: REPLICAS, default: 1, type: integer}
  - {name: ON, default: true, type: boolean, trigger: deploy}
  - {name: TEXT, default: "yes", trigger: deploy}
  - {name: TEXT_ON, default: "T", trigger: deploy}
  - {name: NO_DEFAULT, trigger: deploy}
  - {name: UNSET, trigger: deploy, type: boolean, required: false}
`}))
			got = without(got, `templates/app.yaml: warning: template "app.yaml" is not used by any task`)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// without drops problems that are unrelated to a table.
func without(problems []string, aside string) []string {
	kept := []string{}
	for _, f := range problems {
		if f != aside {
			kept = append(kept, f)
		}
	}
	return kept
}

func TestVerifyPlans(t *testing.T) {
	const deploy = "{phases: [{name: m, steps: [{name: s, tasks: [app]}]}]}"
	for sentence, test := range map[string]struct {
		plans []string
		want  []string
	}{
		"no deploy plan":    {[]string{"other: " + deploy}, []string{`operator.yaml:12: error: plan deploy is missing: it installs the operator`}},
		"only an upgrade":   {[]string{"upgrade: " + deploy}, []string{`operator.yaml:12: warning: plan deploy is missing: Instances can only be upgraded to this version`}},
		"an empty plan":     {[]string{"deploy: " + deploy, "other: {}"}, []string{}},
		"a plan of nothing": {[]string{"deploy: " + deploy, "other:"}, []string{}},
		"timeouts":          {[]string{"deploy: {timeout: 5m, phases: [{name: m, timeout: 4m, steps: [{name: s, timeout: 90s, tasks: [app]}]}]}"}, []string{}},
		"timeouts that are never reached": {[]string{"deploy: {timeout: 5m, phases: [{name: m, timeout: 6m, steps: [{name: s, timeout: 7m, tasks: [app]}]}, {name: n, timeout: 1m, steps: [{name: s, timeout: 2m, tasks: [app]}]}]}"}, []string{
			`operator.yaml:13: warning: plan "deploy", phase "m": timeout 6m0s has no effect: the enclosing timeout is 5m0s`,
			`operator.yaml:13: warning: plan "deploy", phase "m", step "s": timeout 7m0s has no effect: the enclosing timeout is 5m0s`,
			`operator.yaml:13: warning: plan "deploy", phase "n", step "s": timeout 2m0s has no effect: the enclosing timeout is 1m0s`,
		}},
		"plans, phases and steps that differ in case": {[]string{"deploy: " + deploy, "Deploy: {phases: [{name: m}, {name: M, steps: [{name: s, tasks: [app]}, {name: S, tasks: [app]}]}]}"}, []string{
			`operator.yaml:13: warning: plan "deploy" differs from "Deploy" only in case: rename one`,
			`operator.yaml:14: warning: plan "Deploy": phase "M" differs from "m" only in case: rename one`,
			`operator.yaml:14: warning: plan "Deploy", phase "M": step "S" differs from "s" only in case: rename one`,
		}},
		"strategies that do not exist": {[]string{"deploy: " + deploy, "other: {strategy: fast, phases: [{name: m, strategy: slow}]}"}, []string{
			`operator.yaml:14: error: plan "other": unknown strategy "fast": must be serial or parallel`,
			`operator.yaml:14: error: plan "other", phase "m": unknown strategy "slow": must be serial or parallel`,
		}},
		"phases and steps of one name": {[]string{"deploy: " + deploy, "other: {phases: [{name: m}, {name: m, steps: [{name: s, tasks: [app]}, {name: s, tasks: [app]}]}]}"}, []string{
			`operator.yaml:14: error: plan "other": phase "m" is defined twice: rename one`,
			`operator.yaml:14: error: plan "other", phase "m": step "s" is defined twice: rename one`,
		}},
		"phases and steps without name": {[]string{"deploy: " + deploy, "other: {phases: [{name: '', steps: [{name: '', tasks: [app]}]}]}"}, []string{
			`operator.yaml:14: error: plan "other": phase 1 has no name`,
			`operator.yaml:14: error: plan "other", phase "": step 1 has no name`,
		}},
		"a task that does not exist": {[]string{"deploy: " + deploy, "other: {phases: [{name: m, steps: [{name: s, tasks: [ap]}]}]}"},
			[]string{`operator.yaml:14: error: plan "other", step "s": task "ap" does not exist: must be one of app, child`}},
		"a task that is defined twice in a step": {[]string{"deploy: " + deploy, "other: {phases: [{name: m, steps: [{name: s, tasks: [app, app]}]}]}"},
			[]string{`operator.yaml:14: error: plan "other", step "s": task "app" is listed twice, and a step runs each task once: remove one`}},
		"a step without tasks": {[]string{"deploy: " + deploy, "other: {phases: [{name: m, steps: [{name: s, tasks: }]}]}"},
			[]string{`operator.yaml:14: warning: plan "other", step "s" has no tasks and does nothing`}},
		"a child in any plan but cleanup": {[]string{"deploy: " + deploy, "cleanup: {phases: [{name: m, steps: [{name: s, tasks: [app, child]}]}]}"},
			[]string{`operator.yaml:14: error: plan cleanup, step "s": task "child" is of kind KudoOperator, which cleanup cannot run: children are removed with their parent`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			head, _, _ := strings.Cut(operatorYAML, "plans:")
			head += "  - {name: child, kind: KudoOperator, spec: {package: db}}\nplans:\n  "
			got := verify(files(map[string]string{"operator.yaml": head + strings.Join(test.plans, "\n  ") + "\n"}))
			got = without(got, `operator.yaml:11: warning: task "child" is not used by any step`)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyParams(t *testing.T) {
	for sentence, test := range map[string]struct {
		parameters []string // from line 3 on; REPLICAS comes first, trigger: deploy keeps the others from being unused
		want       []string
	}{
		"a list of old":                {nil, []string{`params.yaml:1: error: must be a map, got a list`, `templates/app.yaml:6: error: parameter "REPLICAS" is not defined in params.yaml: none exist`}},
		"a field that does not exist":  {[]string{"{name: A, trigger: deploy, typ: map}"}, []string{`params.yaml:3: error: parameters[1].typ: unknown field: did you mean type?`}},
		"a field with no similar name": {[]string{"{name: A, trigger: deploy, colour: red}"}, []string{`params.yaml:3: error: parameters[1].colour: unknown field: must be one of name, displayName, description, required, default, trigger, type, immutable, enum, forcePodRestart, structure, sensitive, group, advanced, hint`}},
		"a sensitive parameter":        {[]string{"{name: A, trigger: deploy, sensitive: true}"}, []string{}},
		"a sensitive parameter that everyone can read": {[]string{"{name: A, trigger: deploy, sensitive: true, default: a, enum: [a]}"}, []string{
			`params.yaml:3: error: parameter "A" is sensitive and cannot have a default, which everyone can read: remove it, and set required: false if it is optional`,
			`params.yaml:3: error: parameter "A" is sensitive and cannot have an enum, which everyone can read: remove it`,
		}},
		"a sensitive parameter of another kind": {[]string{"{name: A, trigger: deploy, sensitive: true, type: map, immutable: true, structure: true}"}, []string{
			`params.yaml:3: error: parameter "A" is sensitive and must be of type string: parts of a value of another type could not be masked in messages`,
			`params.yaml:3: error: parameter "A" is sensitive and cannot be immutable, because its Secret can change at any time: remove one of the two`,
			`params.yaml:3: error: parameter "A" is sensitive and cannot insert structure, which could become the name of an object: remove one of the two`,
		}},
		"names that differ in case":                   {[]string{"{name: A, trigger: deploy}", "{name: a, trigger: deploy}"}, []string{`params.yaml:4: error: parameter "a" differs from "A" only in case: rename one`}},
		"a name that lists of parameters cannot hold": {[]string{"{name: 'A;B', trigger: deploy}"}, []string{`params.yaml:3: error: parameter "A;B": the name must not contain any of ",;": use letters, digits and _`}},
		"an enum of nothing":                          {[]string{"{name: A, trigger: deploy, enum: []}"}, []string{`params.yaml:3: error: parameters[1].enum: must not be empty: list the allowed values, or remove the field`}},
		"an advanced one that must be set":            {[]string{"{name: A, trigger: deploy, advanced: true}"}, []string{`params.yaml:3: warning: parameter "A" is advanced, but must be set: set a default, or required: false`}},
		"an advanced that is none":                    {[]string{"{name: A, trigger: deploy, advanced: perhaps}"}, []string{`params.yaml:3: error: parameters[1].advanced: must be true or false without quotes, got "perhaps"`}},
		"a default that is empty where it matters":    {[]string{`{name: A, trigger: deploy, type: integer, default: ""}`}, []string{}},
		"numbers keep their digits":                   {[]string{`{name: A, trigger: deploy, type: integer, default: 123456789012345678901234567890, enum: [123456789012345678901234567890]}`, `{name: B, trigger: deploy, type: number, default: 1e400}`}, []string{}},
		"no name":                                     {[]string{"{trigger: deploy}"}, []string{`params.yaml:3: error: parameters[1]: required field name is missing`}},
		"a name that is set twice":                    {[]string{"{name: A, trigger: deploy}", "{name: A, trigger: deploy}"}, []string{`params.yaml:4: error: parameter "A" is defined twice: remove one`}},
		"a name that templates cannot write":          {[]string{"{name: a-b, trigger: deploy}"}, []string{`params.yaml:3: warning: parameter "a-b": templates must use index .Params "a-b" instead of .Params.NAME, and AddOnDeploymentConfigs cannot set it: use letters, digits and _`}},
		"an unused parameter":                         {[]string{"{name: A}"}, []string{`params.yaml:3: warning: parameter "A" is not used by any template or task`}},
		"a trigger that does not exist":               {[]string{"{name: A, trigger: restart}"}, []string{`params.yaml:3: error: parameter "A" triggers plan "restart", which does not exist: must be one of deploy`}},
		"a type that does not exist":                  {[]string{"{name: A, trigger: deploy, type: list}"}, []string{`params.yaml:3: error: parameter "A": unknown type "list": must be one of string, integer, number, boolean, array, map`}},
		"a default of another type":                   {[]string{"{name: A, trigger: deploy, type: integer, default: x}"}, []string{`params.yaml:3: error: parameter "A": default "x": must be an integer, such as 3`}},
		"a list as the default of a text":             {[]string{"{name: A, trigger: deploy, default: [a]}"}, []string{`params.yaml:3: error: parameters[1].default: must be a string, got a list: set type: array or type: map`}},
		"a default outside of the enum":               {[]string{"{name: A, trigger: deploy, enum: [a, b], default: c}"}, []string{`params.yaml:3: error: parameter "A": default "c": must be one of "a", "b"`}},
		"an enum of another type":                     {[]string{"{name: A, trigger: deploy, type: integer, enum: [1, two]}"}, []string{`params.yaml:3: error: parameter "A": enum "two": must be an integer, such as 3`}},
		"an immutable one that can never be set":      {[]string{"{name: A, trigger: deploy, required: false, immutable: true}"}, []string{`params.yaml:3: warning: parameter "A" is immutable, not required, and has no default: it can only be set when the Instance is created`}},
		"a required flag in quotes":                   {[]string{`{name: A, trigger: deploy, required: "false"}`}, []string{`params.yaml:3: error: parameters[1].required: must be true or false without quotes, got "false"`}},
		"a forcePodRestart that is none":              {[]string{`{name: A, trigger: deploy, forcePodRestart: never}`}, []string{`params.yaml:3: error: parameters[1].forcePodRestart: must be true or false, got "never"`}},
		"a group that does not exist":                 {[]string{`{name: A, trigger: deploy, group: g}`}, []string{`params.yaml:3: warning: group "g" is not defined: add it to groups`}},
		"what only user interfaces need is accepted":  {[]string{`{name: A, trigger: deploy, advanced: true, required: false, hint: h, displayName: d, description: e}`}, []string{}},
		"an alias in a default":                       {[]string{`{name: A, trigger: deploy, type: array, default: [&a 1, *a]}`}, []string{`params.yaml:3: error: parameters[1].default: anchors and aliases are not supported: write the value out`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := "- {name: REPLICAS}\n"
			if test.parameters != nil {
				text = "parameters:\n  - {name: REPLICAS, default: 2}\n  - " + strings.Join(test.parameters, "\n  - ") + "\n"
			}
			if diff := cmp.Diff(test.want, verify(files(map[string]string{"params.yaml": text}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyGroups(t *testing.T) {
	for sentence, test := range map[string]struct {
		groups string
		want   []string
	}{
		"one that is used":         {"[{name: g, displayName: G, description: d, prio: 10}]", []string{}},
		"one that is set twice":    {"[{name: g}, {name: g}]", []string{`params.yaml:1: warning: groups[1]: group "g" is defined twice: remove one`}},
		"one with a /":             {"[{name: g}, {name: a/b}]", []string{`params.yaml:1: warning: groups[1]: the name of group "a/b" contains a slash, which user interfaces do not support`}},
		"one without a name":       {"[{name: g}, {prio: 1}]", []string{`params.yaml:1: error: groups[1]: required field name is missing`}},
		"a priority that is none":  {"[{name: g, prio: first}]", []string{`params.yaml:1: error: groups[0].prio: must be an integer, got "first"`}},
		"a field that is misspelt": {"[{name: g, displayname: G}]", []string{`params.yaml:1: warning: groups[0].displayname: unknown field: did you mean displayName?`}},
		"none":                     {"[]", []string{`params.yaml:3: warning: group "g" is not defined: add it to groups`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := "groups: " + test.groups + "\nparameters:\n- {name: REPLICAS, default: 2, group: g}\n"
			if diff := cmp.Diff(test.want, verify(files(map[string]string{"params.yaml": text}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyPointsToTheColumn(t *testing.T) {
	for sentence, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the name of an unknown field":           {map[string]string{"operator.yaml": operatorYAML + "  cleanup: {phase: []}\n"}, `operator.yaml:21:13: error: plans.cleanup.phase: unknown field: did you mean phases?`},
		"a value of the wrong type":              {map[string]string{"params.yaml": "parameters:\n- {name: REPLICAS, required: never}\n"}, `params.yaml:2:30: error: parameters[0].required: must be true or false without quotes, got "never"`},
		"the field that a rule judges":           {map[string]string{"params.yaml": "parameters:\n- {name: REPLICAS, trigger: fly}\n"}, `params.yaml:2:20: error: parameter "REPLICAS" triggers plan "fly", which does not exist: must be one of deploy`},
		"an item of a list":                      {map[string]string{"operator.yaml": strings.Replace(operatorYAML, "- app.yaml", "- web.yaml", 1)}, `operator.yaml:10:11: error: task "app": template "web.yaml" does not exist: must be one of app.yaml`},
		"the object in which a field is missing": {map[string]string{"params.yaml": "parameters:\n- {name: REPLICAS}\n- {default: 1}\n"}, `params.yaml:3:3: error: parameters[1]: required field name is missing`},
		"no column of a template":                {map[string]string{"templates/app.yaml": "a: {{ .Params.B }}{{ .Params.REPLICAS }}"}, `templates/app.yaml:1: error: parameter "B" is not defined in params.yaml: must be one of REPLICAS`},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, _ := pack.Load(files(test.files))
			errors := pack.Errors(p.Verify())
			if len(errors) != 1 || errors[0].String() != test.want {
				t.Errorf("got  %v\nwant [%s]", errors, test.want)
			}
		})
	}
}

// A package may have thousands of wrong names; the search for similar names must be fast, and the first ones are enough.
func TestVerifyOfThousandsOfWrongNames(t *testing.T) {
	var params, template strings.Builder
	params.WriteString("parameters:\n")
	for i := range 8000 {
		fmt.Fprintf(&params, "- {name: P%05d, trigger: deploy}\n", i)
		fmt.Fprintf(&template, "{{.Params.P%05dX}}\n", i)
	}
	p, _ := pack.Load(files(map[string]string{"params.yaml": params.String(), "templates/app.yaml": template.String()}))
	errors := pack.Errors(p.Verify())
	const first = `parameter "P00000X" is not defined in params.yaml: did you mean P00000?`
	const last = "templates/app.yaml:101: error: there are more wrong references from here on: fix the others first"
	if len(errors) != 101 || errors[0].Message != first || errors[100].String() != last {
		t.Errorf("got %d problems, the first %v", len(errors), errors[:min(1, len(errors))])
	}
}

func TestVerifyTemplates(t *testing.T) {
	for sentence, test := range map[string]struct {
		text string
		want []string
	}{
		"everything that templates can refer to": {"# {{ .Name }}{{ .Namespace }}{{ .OperatorName }}{{ .OperatorVersion }}{{ .AppVersion }}{{ .PlanName }}{{ .PhaseName }}{{ .StepName }}", []string{}},
		"wrong syntax":                           {"a:\n  {{ if }}", []string{`templates/b.yaml:2: error: missing value for if`}},
		"a function that does not exist":         {"{{ env \"HOME\" }}", []string{`templates/b.yaml:1: error: function "env" not defined`}},
		"a parameter that does not exist":        {"a\n{{ .Params.REPLICA }}", []string{`templates/b.yaml:2: error: parameter "REPLICA" is not defined in params.yaml: did you mean REPLICAS?`}},
		"through the dollar":                     {"{{ range until 3 }}{{ $.Params.A }}{{ $.Nme }}{{ end }}", []string{`templates/b.yaml:1: error: .Nme does not exist: templates can refer to .Name, .Namespace, .OperatorName, .OperatorVersion, .AppVersion, .PlanName, .PhaseName, .StepName, .Params, .Pipes, .Cluster, .Capabilities`, `templates/b.yaml:1: error: parameter "A" is not defined in params.yaml: must be one of REPLICAS`}},
		"through a variable":                     {"{{ $root := . }}{{ $root.Params.A }}{{ $root.Whatever }}", []string{`templates/b.yaml:1: error: parameter "A" is not defined in params.yaml: must be one of REPLICAS`}},
		"through index":                          {"{{ index .Params \"A\" }}", []string{`templates/b.yaml:1: error: parameter "A" is not defined in params.yaml: must be one of REPLICAS`}},
		"in a condition, a pipeline and parentheses": {"{{ if (eq .Params.A \"1\") }}{{ else if .Params.B }}{{ end }}\n{{ .Params.C | quote }}", []string{
			`templates/b.yaml:1: error: parameter "A" is not defined in params.yaml: must be one of REPLICAS`,
			`templates/b.yaml:1: error: parameter "B" is not defined in params.yaml: must be one of REPLICAS`,
			`templates/b.yaml:2: error: parameter "C" is not defined in params.yaml: must be one of REPLICAS`,
		}},
		"in a template defined in it":             {"{{ define \"x\" }}{{ .Params.A }}{{ .Whatever }}{{ $.Whatever }}{{ end }}{{ template \"x\" . }}", []string{`templates/b.yaml:1: error: parameter "A" is not defined in params.yaml: must be one of REPLICAS`}},
		"the fields of something else":            {"{{ with fromJson \"{}\" }}{{ .Whatever }}{{ else }}{{ .Name }}{{ end }}", []string{}},
		"a field of the cluster":                  {"{{ .Cluster.Name }}{{ index .Cluster.Labels \"a\" }}{{ .Capabilities.KubeVersion.Minor }}", []string{}},
		"a field that the cluster does not have":  {"{{ .Cluster.Nam }}", []string{`templates/b.yaml:1: error: .Cluster.Nam does not exist: the fields of .Cluster are .Name, .Labels, .Claims`}},
		"a variable that does not exist":          {"{{ .Instance }}", []string{`templates/b.yaml:1: error: .Instance does not exist: templates can refer to .Name, .Namespace, .OperatorName, .OperatorVersion, .AppVersion, .PlanName, .PhaseName, .StepName, .Params, .Pipes, .Cluster, .Capabilities`}},
		"a key that no Pipe has":                  {"{{ .Pipes.cert }}", []string{`templates/b.yaml:1: error: .Pipes.cert is not a key of any Pipe task: none exist`}},
		"the same through index":                  {"{{ index .Pipes \"cert\" }}", []string{`templates/b.yaml:1: error: .Pipes.cert is not a key of any Pipe task: none exist`}},
		"a Namespace":                             {"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Name }}\n", []string{`templates/b.yaml:1: warning: the Namespace and everything in it are deleted with the Instance: use the add-on's install namespace instead`}},
		"an API version that has a successor":     {"kind: PodDisruptionBudget\n# and\napiVersion: policy/v1beta1 # old\n", []string{`templates/b.yaml:3: warning: policy/v1beta1 PodDisruptionBudget is no longer served by Kubernetes and is applied as policy/v1: use that instead`}},
		"an API version whose fields are changed": {"---\nx: 1\n---\napiVersion: \"extensions/v1beta1\"\r\nkind: 'Ingress'\r\n", []string{`templates/b.yaml:4: warning: extensions/v1beta1 Ingress is no longer served as of Kubernetes 1.22: use networking.k8s.io/v1, which has different fields`}},
		"a kind that is gone":                     {"{{ if .Params.REPLICAS }}\napiVersion: policy/v1beta1\nkind: PodSecurityPolicy\n{{ end }}", []string{`templates/b.yaml:2: warning: policy/v1beta1 PodSecurityPolicy is no longer served as of Kubernetes 1.25 and has no replacement: remove it`}},
		"the items of a list":                     {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: batch/v1beta1\n  kind: CronJob\n- kind: Role\n  apiVersion: rbac.authorization.k8s.io/v1beta1\n", []string{`templates/b.yaml:4: warning: batch/v1beta1 CronJob is no longer served by Kubernetes and is applied as batch/v1: use that instead`, `templates/b.yaml:7: warning: rbac.authorization.k8s.io/v1beta1 Role is no longer served by Kubernetes and is applied as rbac.authorization.k8s.io/v1: use that instead`}},
		"a name that every Instance shares": {"kind: A\napiVersion: v1\nmetadata:\n  labels: {}\n  name: \"{{ .PlanName }}-job\" # x\nspec:\n  name: b\n---\nkind: B\napiVersion: v1\nmetadata:\n  name: {{ .Name }}-b\n  labels:\n    name: b\n",
			[]string{"templates/b.yaml:5: warning: the name \"\\\"{{ .PlanName }}-job\\\"\" is the same for every Instance, and two Instances in one namespace would share the object: include .Name in it"}},
		"names that every Instance shares": {"metadata:\n  name: a\nkind: A\n---\nmetadata:\n  name: b\n---\nmetadata:\n  name: c\n---\nmetadata:\n  name: d\n---\nmetadata:\n  name: e\n---\nmetadata:\n  name: f\n",
			[]string{`templates/b.yaml:2: warning: the names of 6 objects are the same for every Instance, and two Instances in one namespace would share the objects: include .Name in them: "a", "b", "c", "d", "e", and 1 more`}},
		"a resource definition has the name that it must have": {"kind: A\nmetadata:\n  name: {{ .Name }}\n---\nkind: CustomResourceDefinition\nmetadata:\n  name: toys.example.com\n---\nmetadata:\n  name: toys.example.com\nkind: CustomResourceDefinition\n", []string{}},
		"a name by a parameter":                                {"kind: A\napiVersion: v1\nmetadata:\n  name: {{ .Params.REPLICAS | quote }}\n", []string{}},
		"a reference is no object":                             {"apiVersion: v1\nkind: ConfigMap\nref:\n  apiVersion: policy/v1beta1\n  kind: PodDisruptionBudget\n", []string{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := slices.DeleteFunc(verifyTemplate(t, test.text), func(problem string) bool {
				return strings.Contains(problem, "does not render") // most of these texts are no objects
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// verifyTemplate adds b.yaml to the valid package.
func verifyTemplate(t *testing.T, text string) []string {
	t.Helper()
	return verify(files(map[string]string{
		"templates/b.yaml": text,
		"operator.yaml":    change(t, operatorYAML, "        - app.yaml\n", "        - app.yaml\n        - b.yaml\n"),
	}))
}

func TestVerifyTakesTheNamespaceManifestForUsed(t *testing.T) {
	got := verify(files(map[string]string{
		"operator.yaml":     operatorYAML + "namespaceManifest: ns.yaml\n",
		"templates/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}\n",
	}))
	if diff := cmp.Diff([]string{}, got); diff != "" {
		t.Error(diff)
	}
}

func TestVerifyNamespaceManifest(t *testing.T) {
	for sentence, test := range map[string]struct {
		text string
		want []string
	}{
		"of another kind": {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n", []string{`operator.yaml:21: warning: namespaceManifest "ns.yaml" must contain exactly one object, of kind Namespace`}},
		"of two":          {"apiVersion: v1\nkind: Namespace\n---\napiVersion: v1\nkind: Namespace\n", []string{`operator.yaml:21: warning: namespaceManifest "ns.yaml" must contain exactly one object, of kind Namespace`}},
		"of nothing":      {"# later\n", []string{`operator.yaml:21: warning: namespaceManifest "ns.yaml" must contain exactly one object, of kind Namespace`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := verify(files(map[string]string{"operator.yaml": operatorYAML + "namespaceManifest: ns.yaml\n", "templates/ns.yaml": test.text}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyRendersWithTheDefaults(t *testing.T) {
	const prefix = "warning: does not render with the default parameters: "
	for sentence, test := range map[string]struct {
		text string
		want []string
	}{
		"what refuses them":    {"{{ if eq .Params.REPLICAS \"2\" }}\n{{ fail \"two is too few\" }}\n{{ end }}", []string{"templates/b.yaml:2: " + prefix + `at <fail "two is too few">: error calling fail: two is too few`}},
		"what is no object":    {"a: b", []string{"templates/b.yaml:1: " + prefix + "document 1, line 1 of the rendered text: apiVersion is missing or empty"}},
		"what is switched off": {"{{ if ne .Params.REPLICAS \"2\" }}\n{{ fail \"more\" }}\n{{ end }}", []string{}},
		"what is not applied": {
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: '{{ .Name }}'\n  resourceVersion: '12'\n---\n{apiVersion: v1, kind: Pod, metadata: {name: '{{ .Name }}', uid: a, initializers: {}}, status: {a: b}}",
			[]string{
				"templates/b.yaml:5: warning: Service instance: metadata.resourceVersion is not applied, because the API server sets it: remove it",
				"templates/b.yaml:7: warning: Pod instance: metadata.initializers is not applied, because Kubernetes has removed the field in 1.16: remove it",
				"templates/b.yaml:7: warning: Pod instance: metadata.uid is not applied, because the API server sets it: remove it",
				"templates/b.yaml:7: warning: Pod instance: status is not applied, because the API server sets it: remove it",
			},
		},
		"what is autoscaled": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Name }}'}\nspec:\n  replicas: 2\n---\n" +
				"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Name }}-other'}\nspec: {}\n---\n" +
				"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: '{{ .Name }}'}\n" +
				"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: '{{ .Name }}'}}\n---\n" +
				"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: '{{ .Name }}-other'}\n" +
				"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: '{{ .Name }}-other'}}",
			[]string{"templates/b.yaml:5: warning: spec.replicas of Deployment instance only counts until HorizontalPodAutoscaler instance scales it: remove the field"},
		},
		"what is not kept": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '{{ .Name }}'\n  annotations:\n    kudo.dev/keep: 'yes'\n---\n" +
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-policy', annotations: {helm.sh/resource-policy: retain}}\n---\n" +
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-kept', annotations: {kudo.dev/keep: 'true'}}",
			[]string{
				`templates/b.yaml: warning: ConfigMap instance: annotation kudo.dev/keep is "yes", which has no effect: set it to "true" or "false", or remove it`,
				`templates/b.yaml:10: warning: ConfigMap instance-policy: annotation helm.sh/resource-policy is "retain", which has no effect: set it to "keep", or remove it`,
			},
		},
		"nothing, while others err": {"{{ fail .Params.NONE }}", []string{`templates/b.yaml:1: error: parameter "NONE" is not defined in params.yaml: must be one of REPLICAS`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, verifyTemplate(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestVerifyRefusesInvalidYAML checks templates that can never be applied.
func TestVerifyRefusesInvalidYAML(t *testing.T) {
	const prefix = "does not render with the default parameters: document 1, line "
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n"
	for sentence, test := range map[string]struct{ text, want string }{
		"a key that is set twice":                {config + "data:\n  a: b\n  a: c\n", ":7: error: " + prefix + `7 of the rendered text: key "a" is already set on line 6`},
		"an object that is not separated":        {config + config, ":5: error: " + prefix + `5 of the rendered text: key "apiVersion" is already set on line 1: separate objects by a line with ---`},
		"a separator that is joined":             {"{{- if true }}\n---\n{{- end -}}\n" + config, ": error: " + prefix + "2 of the rendered text: a separator (---) must be alone on its line: the template joins it with the next line, perhaps by {{- or -}}"},
		"a byte order mark in the middle":        {"---\n\ufeff" + config, ":2: error: " + prefix + "2 of the rendered text: the line begins with a byte order mark (U+FEFF), which is allowed only at the beginning of a file: remove it"},
		"a tab":                                  {config + "data:\n\ta: b\n", ":6: error: " + prefix + "6 of the rendered text: the line is indented with a tab: use spaces"},
		"what depends on a template's condition": {config + "data:\n  a: b\n{{ if true }}  a: c\n{{ end }}", ": error: " + prefix + `7 of the rendered text: key "a" is already set on line 6`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff([]string{"templates/b.yaml" + test.want}, verifyTemplate(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyRendersWithSamples(t *testing.T) {
	const parameters = "  - {name: TEXT}\n  - {name: COUNT, type: integer}\n  - {name: LIST, type: array}\n  - {name: CHOICE, enum: [b, c]}\n"
	const prefix = "templates/b.yaml"
	for sentence, test := range map[string]struct {
		text string
		want []string
	}{
		"which fit their types": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}, data: {a: '{{ add .Params.COUNT 1 }}{{ first .Params.LIST }}{{ .Params.CHOICE }}{{ .Params.TEXT }}'}}", nil,
		},
		"and names them": {
			"a: {{ fail .Params.CHOICE }}", []string{prefix + ":1: warning: does not render with the default parameters, and samples of CHOICE: at <fail .Params.CHOICE>: error calling fail: b"},
		},
		"which may be at fault": {
			"a: [{{ eq .Params.TEXT \"x\" | ternary \"[\" \"\" }}]\n",
			[]string{prefix + ": warning: does not render with the default parameters, and samples of TEXT: document 1, line 1 of the rendered text: did not find expected ',' or ']'"},
		},
		"which other faults do not depend on": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, metadata: {name: '{{ .Name }}'}}",
			[]string{prefix + `:1: error: does not render with the default parameters: document 1, line 1 of the rendered text: key "metadata" is already set on line 1`},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, _ := pack.Load(files(map[string]string{
				"templates/b.yaml": test.text, "params.yaml": paramsYAML + parameters,
				"operator.yaml": change(t, operatorYAML, "        - app.yaml\n", "        - app.yaml\n        - b.yaml\n"),
			}))
			var got []string
			for _, problem := range p.Verify() {
				if problem.File == "templates/b.yaml" {
					got = append(got, problem.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyTriesThePodOfAPipe(t *testing.T) {
	const pod = `apiVersion: v1
kind: Pod
spec:
  volumes: [{name: made, emptyDir: {}}]
  initContainers: [{name: make, image: busybox, volumeMounts: [{name: made, mountPath: /tmp}]}]
`
	for sentence, test := range map[string]struct {
		pod, file string
		want      []string
	}{
		"one that makes the file":         {pod, "/tmp/a", []string{}},
		"no pod":                          {strings.Replace(pod, "Pod", "Job", 1), "/tmp/a", []string{`templates/app.yaml: warning: task "app": a Pipe task must run a Pod of v1, got a Job of v1`}},
		"one that makes another file":     {pod, "/etc/a", []string{`templates/app.yaml: warning: task "app": file "/etc/a" is not in a volume of init container "make": write it to an emptyDir`}},
		"one that does not render":        {"{{ fail \"no\" }}", "/tmp/a", []string{`templates/app.yaml:1: warning: does not render with the default parameters: at <fail "no">: error calling fail: no`}},
		"one that takes another's result": {pod + "# {{ .Pipes.KEY }}\n", "/tmp/a", []string{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			task := "    kind: Pipe\n    spec:\n      pod: app.yaml\n      pipe: [{file: " + test.file + ", kind: Secret, key: KEY}]\n"
			text := change(t, operatorYAML, "    kind: Apply\n    spec:\n      resources:\n        - app.yaml\n", task)
			got := verify(files(map[string]string{"operator.yaml": text, "templates/app.yaml": test.pod}))
			got = without(got, `params.yaml:3: warning: parameter "REPLICAS" is not used by any template or task`)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyFiles(t *testing.T) {
	for sentence, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"other files are left alone": {map[string]string{"README.md": "# x", "docs/a.yaml": "{", "templates/.hidden": "{{", "templates/.git/x": "{{"}, []string{}},
		"operator.yaml is missing":   {map[string]string{"operator.yaml": ""}, []string{`operator.yaml: error: file not found: a package consists of operator.yaml, params.yaml and templates/`}},
		"operator.yaml is empty":     {map[string]string{"operator.yaml": "# nothing\n"}, []string{`operator.yaml: error: is empty`}},
		"params.yaml is missing":     {map[string]string{"params.yaml": ""}, []string{`params.yaml: error: file not found: a package consists of operator.yaml, params.yaml and templates/`}},
		"params.yaml is no YAML, which is all that is said of parameters": {map[string]string{
			"params.yaml": "parameters:\n- [", "operator.yaml": strings.Replace(operatorYAML, "kind: Apply\n    spec:\n", "kind: Toggle\n    spec:\n      parameter: ON\n", 1),
		}, []string{`params.yaml:2: error: is not valid YAML: did not find expected node content`}},
		"the templates are a file": {map[string]string{"templates": "x", "templates/app.yaml": ""}, []string{
			`operator.yaml:10: error: task "app": template "app.yaml" does not exist: none exist`,
			`params.yaml:3: warning: parameter "REPLICAS" is not used by any template or task`, `templates: error: is not a folder`,
		}},
		"a template is not text": {map[string]string{"templates/logo.png": "\xff\xfe"}, []string{`templates/logo.png: error: is not UTF-8 text: remove it from the package or encode it, for example with base64`}},
		"a template is not used": {map[string]string{"templates/sub/b.yaml": "a: b"}, []string{`templates/sub/b.yaml: warning: template "sub/b.yaml" is not used by any task`}},
		"a file expands to more than allowed": {map[string]string{"params.yaml": "parameters:\n- &x {name: A, description: " + strings.Repeat("x", 10_000) + "}\n" + strings.Repeat("- *x\n", 1000)},
			[]string{`params.yaml: error: is not valid: it expands to more than 8 MiB, with its aliases written out and 64 bytes for each value: remove aliases, or divide it`}},
		"a template of a task is larger than any that renders, which is all that is said of it": {
			map[string]string{"templates/app.yaml": strings.Repeat("x", content.MaxTemplateBytes+1)},
			[]string{`templates/app.yaml: error: has 4194305 bytes, more than the limit of 4194304 for a template: split the operator or shorten the file`}},
		"a template that is not applied is larger than an OperatorVersion": {map[string]string{"templates/b": strings.Repeat("x", pack.MaxSize+1)}, []string{
			`operator.yaml: error: the OperatorVersion has 1049100 bytes, more than the limit of 1048576: split the operator or shorten its templates; the largest is "b"`,
			`templates/b: warning: template "b" is not used by any task`}},
		"the parameters are larger than allowed": {map[string]string{"params.yaml": strings.Repeat("#", pack.MaxSize+1)}, []string{
			`params.yaml: error: has 1048577 bytes, more than the limit of 1048576 for an OperatorVersion: split the operator or shorten the file`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, verify(files(test.files))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyRefusesWhatCannotBeStored(t *testing.T) {
	half := strings.Repeat("x", pack.MaxSize/2)
	p, _ := pack.Load(files(map[string]string{"templates/b": half, "templates/c": half}))
	errors := pack.Errors(p.Verify())
	const want = `more than the limit of 1048576: split the operator or shorten its templates; the largest is "b"`
	if len(errors) != 1 || !strings.Contains(errors[0].Message, want) {
		t.Errorf("got %v", errors)
	}
}

// large is a template of a ConfigMap with that many bytes of comments.
func large(bytes int) string {
	line := "# " + strings.Repeat("x", 97) + "\n"
	return strings.Repeat(line, bytes/len(line)) + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\n"
}

func TestALargeTemplateIsStoredAsContent(t *testing.T) {
	p, problems := pack.Load(files(map[string]string{"templates/app.yaml": large(3 << 20)}))
	if problems = append(problems, pack.Errors(p.Verify())...); len(problems) > 0 {
		t.Fatal(problems)
	}
	_, whole := p.Objects("packages")
	stored, moved := pack.Divide(whole)
	if len(whole.Spec.Templates) == 0 || len(stored.Spec.Templates) != 0 || string(moved["app.yaml"]) != whole.Spec.Templates["app.yaml"] {
		t.Errorf("got templates %d and %d, content %d", len(whole.Spec.Templates), len(stored.Spec.Templates), len(moved))
	}
	if err := pack.Admit(stored); err != nil {
		t.Error(err)
	}
	if changes := pack.Compare(&whole.Spec, &stored.Spec); len(changes) > 0 {
		t.Error("the same text is a change: ", changes)
	}
	changed := stored.DeepCopy()
	changed.Spec.Content[0].Digest = content.DigestOf(nil)
	want := []pack.Change{{Section: pack.InTemplates, Name: "app.yaml", Kind: pack.Changed}}
	if diff := cmp.Diff(want, pack.Compare(&whole.Spec, &changed.Spec)); diff != "" {
		t.Error(diff)
	}
}

func TestContentIsVerified(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*kudo.OperatorVersionSpec)
		want   []string
	}{
		"complete":          {func(*kudo.OperatorVersionSpec) {}, nil},
		"a chart beside it": {func(s *kudo.OperatorVersionSpec) { content.Add(s, "chart.tgz", []byte("x")) }, nil},
		"a size that no agent stores": {func(s *kudo.OperatorVersionSpec) { s.Content[0].Size = 1 << 40 }, []string{
			`content[0]: error: file "app.yaml" has 1099511627776 bytes: 1 to 16777216 are allowed`,
			`content: error: charts and large templates have more than 16777216 bytes in total: split the operator; the largest is "app.yaml"`}},
		"nothing": {func(s *kudo.OperatorVersionSpec) { s.Content[0].Size, s.Content[0].Parts = 0, nil }, []string{
			`content[0]: error: file "app.yaml" has 0 bytes: 1 to 16777216 are allowed`}},
		"too few parts": {func(s *kudo.OperatorVersionSpec) { s.Content[0].Parts = s.Content[0].Parts[1:] }, []string{
			`content[0]: error: file "app.yaml" has 3145763 bytes, but 3 parts instead of 4: push the package with 'kubectl addon package push'`}},
		"a digest that is none": {func(s *kudo.OperatorVersionSpec) { s.Content[0].Parts[1] = "sha256:../x" }, []string{
			`content[0]: error: file "app.yaml" has a digest that is not sha256:HEX: push the package with 'kubectl addon package push'`}},
		"more files than are stored": {func(s *kudo.OperatorVersionSpec) {
			s.Content = slices.Repeat(s.Content, 257)
		}, []string{`content: error: the package has 257 charts and large templates, more than the limit of 256: split the operator`}},
		"a name that is too long": {func(s *kudo.OperatorVersionSpec) {
			s.Content = append(s.Content, content.List(strings.Repeat("x", 254), []byte("x")))
		}, []string{`content[1]: error: file "` + strings.Repeat("x", 60) + `"… has a name of 254 bytes: at most 253 are allowed`}},
		"a file twice": {func(s *kudo.OperatorVersionSpec) { s.Content = append(s.Content, s.Content[0]) }, []string{
			`content[1]: error: file "app.yaml" is stored twice: push the package with 'kubectl addon package push'`}},
		"a template twice": {func(s *kudo.OperatorVersionSpec) { s.Templates = map[string]string{"app.yaml": ""} }, []string{
			`content[0]: error: file "app.yaml" is stored twice: push the package with 'kubectl addon package push'`}},
		"too much in total": {func(s *kudo.OperatorVersionSpec) {
			s.Content = nil
			for _, name := range []string{"app.yaml", "b.tgz"} {
				content.Add(s, name, make([]byte, 9<<20))
			}
		}, []string{`content: error: charts and large templates have more than 16777216 bytes in total: split the operator; the largest is "app.yaml"`}},
		"a pod, which the hub would have to render": {func(s *kudo.OperatorVersionSpec) {
			s.Tasks[0].Kind, s.Tasks[0].Spec.Resources, s.Tasks[0].Spec.Pod = kudo.TaskPipe, nil, "app.yaml"
			s.Tasks[0].Spec.Pipe = []kudo.PipeSpec{{File: "/x", Kind: "Secret", Key: "X"}}
		}, []string{`tasks[0].spec.pod: error: task "app": template "app.yaml" does not exist: none exist`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, _ := pack.Load(files(map[string]string{"templates/app.yaml": large(3 << 20)}))
			_, whole := p.Objects("packages")
			stored, _ := pack.Divide(whole)
			test.change(&stored.Spec)
			var got []string
			for _, problem := range pack.Errors(pack.Check(&stored.Spec)) {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	p, problems := pack.Load(files(map[string]string{
		"operator.yaml": `name: shop
operatorVersion: "1.2.0"
appVersion: 1.10
kubernetesVersion: 1.13.0
url: https://shop.example
maintainers: [{name: A, email: <a@b.c>}]
tasks:
  - {name: app, kind: Toggle, spec: {parameter: ON, resources: [app.yaml]}}
plans:
  other:
  deploy: {timeout: 5m, phases: [{name: n}, {name: m, strategy: parallel, steps: [{name: s, tasks: [app]}]}]}
`,
		"params.yaml": `parameters:
  - {name: REPLICAS, default: 2000000, type: integer, forcePodRestart: "false", trigger: deploy}
  - {name: VERSION, default: 1.10, required: false, immutable: true, displayName: d, description: e, enum: [1.10, 007]}
  - {name: "ON", default: false, type: boolean, forcePodRestart: true}
  - {name: LIST, type: array, default: [1.10, {a: <b>}]}
  - {name: MAP, type: map, default: "a: b"}
  - {name: EMPTY, type: array, default: }
  - {name: NONE}
`}))
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	operator, version := p.Objects("addon-packages")
	wantOperator := &kudo.Operator{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kudo.dev/v1beta1", Kind: "Operator"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "addon-packages"},
		Spec: kudo.OperatorSpec{
			KubernetesVersion: "1.13.0", URL: "https://shop.example", Maintainers: []kudo.Maintainer{{Name: "A", Email: "<a@b.c>"}},
		},
	}
	if diff := cmp.Diff(wantOperator, operator); diff != "" {
		t.Error(diff)
	}
	wantVersion := &kudo.OperatorVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kudo.dev/v1beta1", Kind: "OperatorVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop-1.10-1.2.0", Namespace: "addon-packages"},
		Spec: kudo.OperatorVersionSpec{
			Operator:   corev1.ObjectReference{Kind: "Operator", Name: "shop"},
			Version:    "1.2.0",
			AppVersion: "1.10", KubernetesVersion: "1.13.0",
			Templates: map[string]string{"app.yaml": appYAML},
			Tasks: []kudo.Task{{Name: "app", Kind: "Toggle", Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"app.yaml"}},
				ToggleTaskSpec:   kudo.ToggleTaskSpec{Parameter: "ON"},
			}}},
			Parameters: []kudo.Parameter{
				{Name: "REPLICAS", Required: new(true), Default: new("2000000"), Type: "integer", ForcePodRestart: new(kudo.Flag(false)), Trigger: "deploy"},
				{Name: "VERSION", Required: new(false), Default: new("1.10"), Type: "string", Immutable: new(true), DisplayName: "d", Description: "e", Enum: []string{"1.10", "007"}},
				{Name: "ON", Required: new(true), Default: new("false"), Type: "boolean", ForcePodRestart: new(kudo.Flag(true))},
				{Name: "LIST", Required: new(true), Default: new(`[1.10,{"a":"<b>"}]`), Type: "array"},
				{Name: "MAP", Required: new(true), Default: new("a: b"), Type: "map"},
				{Name: "EMPTY", Required: new(true), Default: new(""), Type: "array"},
				{Name: "NONE", Required: new(true), Type: "string"},
			},
			Plans: map[string]kudo.Plan{"other": {Strategy: "serial"}, "deploy": {
				Strategy: "serial",
				Timeout:  &metav1.Duration{Duration: 5 * time.Minute},
				Phases: []kudo.Phase{
					{Name: "n", Strategy: "serial"},
					{Name: "m", Strategy: "parallel", Steps: []kudo.Step{{Name: "s", Tasks: []string{"app"}}}},
				},
			}},
		},
	}
	if diff := cmp.Diff(wantVersion, version); diff != "" {
		t.Error(diff)
	}
}

func TestCheckNamesFieldsInsteadOfFiles(t *testing.T) {
	spec := &kudo.OperatorVersionSpec{
		Operator:  corev1.ObjectReference{Name: "shop"},
		Version:   "1.0.0",
		Templates: map[string]string{"a.yaml": "\n{{ .Nme }}"},
		Tasks: []kudo.Task{{Name: "app", Kind: "Apply", Spec: kudo.TaskSpec{
			ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"a.yaml", "b.yaml"}},
		}}},
		Plans: map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "m", Steps: []kudo.Step{{Name: "s", Tasks: []string{"app"}}}}}}},
	}
	want := []pack.Problem{
		{Field: "tasks[0].spec.resources[1]", Severity: pack.Error, Message: `task "app": template "b.yaml" does not exist: must be one of a.yaml`},
		{Field: "templates[a.yaml]", Line: 2, Severity: pack.Error, Message: `.Nme does not exist: templates can refer to .Name, .Namespace, .OperatorName, .OperatorVersion, .AppVersion, .PlanName, .PhaseName, .StepName, .Params, .Pipes, .Cluster, .Capabilities`},
	}
	if diff := cmp.Diff(want, pack.Check(spec)); diff != "" {
		t.Error(diff)
	}
}

// The resource definition admits a timeout of zero.
func TestCheckRefusesTimeoutsOfNothing(t *testing.T) {
	none := &metav1.Duration{}
	spec := &kudo.OperatorVersionSpec{
		Operator: corev1.ObjectReference{Name: "shop"},
		Version:  "1.0.0",
		Tasks:    []kudo.Task{{Name: "app", Kind: "Dummy", Spec: kudo.TaskSpec{DummyTaskSpec: kudo.DummyTaskSpec{Done: true}}}},
		Plans: map[string]kudo.Plan{"deploy": {Timeout: none, Phases: []kudo.Phase{
			{Name: "m", Timeout: none, Steps: []kudo.Step{{Name: "s", Timeout: none, Tasks: []string{"app"}}}},
		}}},
	}
	const why = ": timeout 0s must be greater than 0: set a duration such as 90s or 5m, or remove it"
	want := []pack.Problem{
		{Field: "plans.deploy.timeout", Severity: pack.Error, Message: `plan "deploy"` + why},
		{Field: "plans.deploy.phases[0].timeout", Severity: pack.Error, Message: `plan "deploy", phase "m"` + why},
		{Field: "plans.deploy.phases[0].steps[0].timeout", Severity: pack.Error, Message: `plan "deploy", phase "m", step "s"` + why},
	}
	if diff := cmp.Diff(want, pack.Check(spec)); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	problems := []pack.Problem{{Severity: pack.Warning, Message: "a"}, {Severity: pack.Error, Message: "b"}}
	if diff := cmp.Diff(problems[1:], pack.Errors(problems)); diff != "" {
		t.Error(diff)
	}
}

func TestVersionName(t *testing.T) {
	for want, got := range map[string]string{
		"kafka-2.5.1-1.3.2":    pack.VersionName("kafka", "2.5.1", "1.3.2"),
		"first-operator-0.2.0": pack.VersionName("first-operator", "", "0.2.0"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzCheck checks that any OperatorVersion from an API server is judged, always in the same way, and rejected with a readable message.
func FuzzCheck(f *testing.F) {
	f.Add(`{"operator":{"name":"a"},"version":"1.0.0","plans":{"deploy":{"phases":[{"steps":[{"tasks":["a"]}]}]}},"tasks":[{"name":"a","kind":"Toggle","spec":{"parameter":"P"}}]}`)
	f.Add(`{"parameters":[{"name":"P","default":"[1","value-type":"array","enum":["[1]"],"immutable":true,"trigger":"x"},{"name":"p"}],"templates":{"a":"{{ .Params.P }}","":"kind: Namespace\napiVersion: v1"}}`)
	f.Add(`{"tasks":[{"kind":"Pipe","spec":{"pod":"a","pipe":[{"key":"-","file":"x"}]}},{"kind":"Operator","spec":{"enablingParameter":"P","instanceName":"_"}}],"plans":{"":{"timeout":"1s","phases":[{"timeout":"2s"},{}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		version := &kudo.OperatorVersion{}
		if json.Unmarshal([]byte(text), &version.Spec) != nil {
			return
		}
		problems := pack.Check(&version.Spec)
		if diff := cmp.Diff(problems, pack.Check(&version.Spec)); diff != "" {
			t.Errorf("a second look finds something else (-first +second)\n%s", diff)
		}
		if err := pack.Admit(version); (err != nil) != (len(pack.Errors(problems)) > 0) {
			t.Errorf("admission says %v, verification %v", err, problems)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(operatorYAML, paramsYAML, appYAML)
	f.Add("tasks: [&a {name: *a}]\nplans: {deploy: }", "- a", "{{ define \"x\" }}{{ end }}{{ range }}")
	f.Add("name: {}\n? [a]\n: b", "parameters: [{default: {a: [1.0]}, enum: [1, {}]}]", "{{ (.Params).A }}{{ break }}")
	f.Fuzz(func(t *testing.T, operator, params, template string) {
		p, problems := pack.Load(files(map[string]string{"operator.yaml": operator, "params.yaml": params, "templates/app.yaml": template}))
		all := p.Verify()
		if len(pack.Errors(all)) < len(pack.Errors(problems)) {
			t.Errorf("Verify forgets what Load found:\n%v\n%v", problems, all)
		}
		_, version := p.Objects("ns")
		if again := pack.Check(&version.Spec); fmt.Sprint(again) != fmt.Sprint(pack.Check(&version.Spec)) {
			t.Errorf("Check is not deterministic: %v", again)
		}
	})
}
