package render

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// newContext returns a Context with templates, given as name, text, name, text.
func newContext(templates ...string) Context {
	version := &kudo.OperatorVersionSpec{Version: "0.3.0", AppVersion: "3.6.2", Templates: map[string]string{}}
	version.Operator.Name = "zookeeper"
	for i := 0; i < len(templates); i += 2 {
		version.Templates[templates[i]] = templates[i+1]
	}
	text := func(s string) *string { return &s }
	version.Parameters = []kudo.Parameter{
		{Name: "NODES", Default: text("3"), Type: kudo.IntegerType},
		{Name: "BIG", Default: text("2000000"), Type: kudo.IntegerType},
		{Name: "EMPTY"},
		{Name: "LABELS", Default: text(`{"port": 2000000, "ratio": 1.10, "huge": 18446744073709551616, "on": "yes"}`), Type: kudo.MapType},
		{Name: "HOSTS", Default: text("[a, b]"), Type: kudo.ArrayType},
	}
	return Context{
		Version: version, Instance: "parent.zk", Namespace: "prod",
		Plan: "deploy", Phase: "main", Step: "nodes", Execution: "uid-1",
		Pipes: map[string]string{"certificate": "zk-cert"},
	}
}

func TestTextSeesWhatTemplatesMayReferTo(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"the name has dashes for dots":            {"{{ .Name }}", "parent-zk"},
		"the namespace":                           {"{{ .Namespace }}", "prod"},
		"the operator":                            {"{{ .OperatorName }} {{ .OperatorVersion }} {{ .AppVersion }}", "zookeeper 0.3.0 3.6.2"},
		"plan, phase and step":                    {"{{ .PlanName }} {{ .PhaseName }} {{ .StepName }}", "deploy main nodes"},
		"a parameter":                             {"{{ .Params.NODES }}", "3"},
		"a parameter without a value":             {"[{{ .Params.EMPTY }}]", "[]"},
		"a parameter by index":                    {`{{ index .Params "NODES" }}`, "3"},
		"a pipe":                                  {"{{ .Pipes.certificate }}", "zk-cert"},
		"a large integer in text":                 {"{{ .Params.BIG }}", "2000000"},
		"a large integer after arithmetic":        {"{{ mul 2 .Params.BIG }}", "4000000"},
		"an integer of a map":                     {"{{ .Params.LABELS.port }}", "2000000"},
		"an integer beyond 64 bits":               {"{{ .Params.LABELS.huge }}", "18446744073709551616"},
		"a number keeps its digits":               {"{{ .Params.LABELS.ratio }}", "1.10"},
		"a list in a loop":                        {"{{ range .Params.HOSTS }}{{ . }};{{ end }}", "a;b;"},
		"a list by index":                         {"{{ index .Params.HOSTS 1 }}", "b"},
		"a map as YAML":                           {"{{ toYaml .Params.LABELS }}", "huge: 18446744073709551616\n\"on\": \"yes\"\nport: 2000000\nratio: 1.10"},
		"a list as YAML":                          {"{{ toYaml (dict \"hosts\" .Params.HOSTS) }}", "hosts:\n- a\n- b"},
		"a change stays in the template it is in": {`{{ $_ := set .Params "NODES" "4" }}{{ .Params.NODES }}`, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRenderer(newContext("t", test.template), "t")
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.execute("t")
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != test.want {
				t.Errorf("got %q, want %q", got.Text, test.want)
			}
		})
	}
}

func TestAFaultIsOneLine(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"about a name": {"apiVersion: v1\nkind: \"A\\nB\"\nmetadata: {name: a, labels: []}", "A B a: metadata.labels must be an object, got a list"},
		"about a name twice": {
			"{apiVersion: v1, kind: A, metadata: {name: \"a\\nb\"}}\n---\n{apiVersion: v1, kind: A, metadata: {name: \"a\\nb\"}}",
			`A prod/a b is also rendered`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Objects(newContext("t", test.template), "t")
			var problem *template.Error
			if !errors.As(err, &problem) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			if strings.ContainsAny(err.Error()+problem.Err.Error(), "\n\r\v\f\u0085\u2028\u2029") {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
}

func TestUnknownTemplate(t *testing.T) {
	for name, test := range map[string]struct {
		context Context
		want    string
	}{
		"the templates that exist are named": {newContext("b.yaml", "", "a.yaml", ""), `template "x": not found: the operator has a.yaml, b.yaml`},
		"there are none":                     {newContext(), `template "x": not found: the operator has no templates`},
		"there are many": {
			newContext("a", "", "b", "", "c", "", "d", "", "e", "", "f", "", "g", "", "h", "", "i", "", "j", "", "k", "", "l", "", "m", ""),
			"j, k, l, and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Objects(test.context, "x")
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestInvalidParametersAreNamed(t *testing.T) {
	c := newContext("t", "")
	c.Parameters = map[string]string{"NODES": "three"}
	_, err := Objects(c, "t")
	var invalid *parameter.InvalidError
	if !errors.As(err, &invalid) || invalid.Problems[0].Parameter != "NODES" {
		t.Errorf("want an *InvalidError about NODES, got %v", err)
	}
	if _, err := Objects(Context{}); err == nil {
		t.Error("want an error without an OperatorVersion")
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %}\n"

// configMapNamed returns a ConfigMap of that name.
func configMapNamed(name string) string { return strings.ReplaceAll(configMap, "%", name) }

func TestObjectsComeInTheOrderTheyStandIn(t *testing.T) {
	for name, test := range map[string]struct {
		templates []string
		want      []string
	}{
		"in the order listed":                       {[]string{configMapNamed("a"), configMapNamed("b")}, []string{"ConfigMap a", "ConfigMap b"}},
		"several documents in one template":         {[]string{configMapNamed("a") + "---\n" + configMapNamed("b")}, []string{"ConfigMap a", "ConfigMap b"}},
		"documents with comments behind the marker": {[]string{"--- # first\n" + configMapNamed("a") + "--- # second\n" + configMapNamed("b")}, []string{"ConfigMap a", "ConfigMap b"}},
		"documents ended by dots":                   {[]string{configMapNamed("a") + "...\n" + configMapNamed("b")}, []string{"ConfigMap a", "ConfigMap b"}},
		"documents with Windows line ends":          {[]string{strings.ReplaceAll(configMapNamed("a")+"---\n"+configMapNamed("b"), "\n", "\r\n")}, []string{"ConfigMap a", "ConfigMap b"}},
		"empty documents":                           {[]string{"---\n---\n# nothing\n---\nnull\n---\n" + configMapNamed("a") + "---\n\n"}, []string{"ConfigMap a"}},
		"an empty template":                         {[]string{"{{ if false }}x{{ end }}"}, nil},
		"a marker inside of a text": {
			[]string{configMapNamed("a") + "data:\n  x: |\n    a\n    ---\n    b\n"}, []string{"ConfigMap a"},
		},
		"a list": {
			[]string{`{"apiVersion": "v1", "kind": "List", "items": [` + asJSON(configMapNamed("a")) + `, ` + asJSON(configMapNamed("b")) + `]}`},
			[]string{"ConfigMap a", "ConfigMap b"},
		},
		"an empty list": {[]string{"apiVersion: v1\nkind: List\n"}, nil},
		"a list of one kind": {
			[]string{"apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n"},
			[]string{"ConfigMap a", "ConfigMap b"},
		},
		"a list in a list": {
			[]string{"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}]}\n"},
			[]string{"Secret a"},
		},
		"a kind that only ends in List": {
			[]string{"apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {}\n"}, []string{"AllowList a"},
		},
		"one name in two namespaces": {
			[]string{configMapNamed("a, namespace: north"), configMapNamed("a, namespace: south")}, []string{"ConfigMap north/a", "ConfigMap south/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext()
			var names []string
			for i, text := range test.templates {
				names = append(names, string(rune('a'+i)))
				c.Version.Templates[names[i]] = text
			}
			objects, err := Objects(c, names...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, obj := range objects {
				got = append(got, identify(obj, "").String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func asJSON(text string) string {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

func TestObjectsKeepNumbersExact(t *testing.T) {
	c := newContext("t", `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec:
  replicas: {{ .Params.BIG }}
  largest: 9223372036854775807
  smallest: -9223372036854775808
  exponent: 1e3
  ratio: 1.5
  labels: {{ .Params.LABELS | toJson }}
  indented:
    {{- toYaml .Params.LABELS | nindent 4 }}
`)
	objects, err := Objects(c, "t")
	if err != nil {
		t.Fatal(err)
	}
	fromMap := map[string]any{"port": int64(2000000), "ratio": 1.1, "huge": 18446744073709551616.0, "on": "yes"}
	want := map[string]any{
		"replicas": int64(2000000), "largest": int64(9223372036854775807), "smallest": int64(-9223372036854775808),
		"exponent": int64(1000), "ratio": 1.5, "labels": fromMap, "indented": fromMap,
	}
	if diff := cmp.Diff(want, objects[0].Object["spec"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestObjectsNameTheFault(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"broken YAML, with the line of the rendered text": {
			configMapNamed("a") + "---\n{{ if true }}\napiVersion: v1\nkind: a: b\n{{ end }}",
			`template "t", document 2 (line 7 of the rendered text): mapping values are not allowed in this context`,
		},
		"a key that is set twice, with both lines": {
			configMapNamed("a") + "---\n" + configMapNamed("b") + "data:\n  a: b\n  a: c\n", `template "t", document 2 (line 10 of the rendered text): key "a" is already set on line 9`,
		},
		"a separator that is joined with the next line": {
			configMapNamed("a") + "{{- if true }}\n---\n{{- end -}}\n" + configMapNamed("b"), `document 1 (line 4 of the rendered text): a separator (---) must be alone on its line`,
		},
		"a byte order mark in the middle": {
			configMapNamed("a") + "---\n\ufeff" + configMapNamed("b"), `document 2 (line 5 of the rendered text): the line begins with a byte order mark (U+FEFF)`,
		},
		"a byte order mark before a separator": {
			configMapNamed("a") + "\ufeff---\n" + configMapNamed("b"), `(line 4 of the rendered text): the line begins with a byte order mark (U+FEFF)`,
		},
		"a tab instead of spaces":      {configMapNamed("a") + "data:\n\ta: b\n", `document 1 (line 5 of the rendered text): the line is indented with a tab: use spaces`},
		"a tab after spaces":           {configMapNamed("a") + "data:\n  a: b\n  \tc: d\n", `the line is indented with a tab: use spaces`},
		"a document that is a list":    {"- a\n", `document 1 (line 1 of the rendered text): must be an object with apiVersion, kind and metadata, got a list`},
		"a document that is text":      {"hello\n", `got "hello"`},
		"no apiVersion":                {"kind: ConfigMap\nmetadata: {name: a}", "apiVersion is missing or empty"},
		"no kind":                      {"apiVersion: v1\nmetadata: {name: a}", "kind is missing or empty"},
		"a kind that is a list":        {"apiVersion: v1\nkind: [a]\nmetadata: {name: a}", "kind must be a string, got a list"},
		"an apiVersion of three parts": {"apiVersion: a/b/c\nkind: A\nmetadata: {name: a}", `apiVersion "a/b/c" must be VERSION or GROUP/VERSION`},
		"an Instance":                  {"apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: a}", "objects of kudo.dev are created on the hub and cannot be created by a template: use a task of kind KudoOperator"},
		"no metadata":                  {"apiVersion: v1\nkind: ConfigMap", "metadata must be an object with a name, got nothing"},
		"no name":                      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "metadata.name is missing or empty"},
		"an empty name":                {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Params.EMPTY }}\"}", "metadata.name is empty"},
		"a name that is a number":      {configMapNamed("123"), "metadata.name must be a string, got 123: quote it"},
		"a namespace that is a number": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: 1}", "metadata.namespace must be a string, got 1"},
		"a generated name":             {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}", "metadata.generateName is not supported"},
		"an object rendered twice":     {configMapNamed("a") + "---\n" + configMapNamed("a"), `ConfigMap prod/a is also rendered by template "t"`},
		"an object in two versions": {
			"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a, namespace: prod}\n",
			"PodDisruptionBudget prod/a is also rendered",
		},
		"a list of something else":        {"apiVersion: v1\nkind: List\nitems: [1]", "items[0] of the List must be an object, got 1"},
		"labels that are a list":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: []}", "ConfigMap a: metadata.labels must be an object, got a list"},
		"a label that is a number":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {v: 1}}", `metadata.labels: the value of "v" must be a string, got 1: quote it`},
		"an annotation that is a boolean": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {v: yes}}", `metadata.annotations: the value of "v" must be a string, got true`},
		"a spec that is text":             {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: x", `Deployment a: spec must be an object, got "x"`},
		"a pod template that is a list":   {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: []}", "spec.template must be an object, got a list"},
		"a pod's label that is a number": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {metadata: {labels: {v: 1}}}}",
			`spec.template.metadata.labels: the value of "v" must be a string, got 1`,
		},
		"a pod's annotations that are text": {
			"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {jobTemplate: {spec: {template: {metadata: {annotations: x}}}}}",
			`spec.jobTemplate.spec.template.metadata.annotations must be an object, got "x"`,
		},
		"volume claim templates that are an object": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: {}}",
			"spec.volumeClaimTemplates must be a list, got an object",
		},
		"a volume claim template that is text": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: [x]}",
			`spec.volumeClaimTemplates[0] must be an object, got "x"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Objects(newContext("t", test.template), "t")
			var problem *template.Error
			if !errors.As(err, &problem) || problem.Template != "t" {
				t.Fatalf("want an *Error of template t, got %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

// everything contains each kind of template and object that rendering handles separately.
const everything = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}", labels: {app: zk, empty: }, annotations: {note: kept}}
spec:
  selector: {matchLabels: {app: zk}}
  template: {metadata: {labels: {app: zk}, annotations: {note: kept}}, spec: {}}
  volumeClaimTemplates: [{metadata: {name: data}}]
---
apiVersion: batch/v1beta1
kind: CronJob
metadata: {name: "{{ .Name }}"}
spec: {jobTemplate: {spec: {template: {spec: {}}}}}
---
apiVersion: example.com/v1
kind: Custom
metadata: {name: "{{ .Name }}", namespace: }
spec: {template: {metadata: {}}}
`

func TestObjectsCarryLabelsAndAnnotations(t *testing.T) {
	c := newContext("t", everything)
	c.OperatorVersion = "0.3.0-custom"
	objects, err := Objects(c, "t")
	if err != nil {
		t.Fatal(err)
	}
	const labels = `"heritage": "kudo", "kudo.dev/operator": "zookeeper", "kudo.dev/instance": "parent-zk"`
	const annotations = `"kudo.dev/plan": "deploy", "kudo.dev/phase": "main", "kudo.dev/step": "nodes", "kudo.dev/operator-version": "0.3.0-custom",
		"kudo.dev/last-plan-execution-uid": "uid-1", "kudo.dev/instance-namespace": "prod"`
	want := `[
	{"apiVersion": "apps/v1", "kind": "StatefulSet",
	 "metadata": {"name": "parent-zk", "labels": {"app": "zk", "empty": "", ` + labels + `}, "annotations": {"note": "kept", ` + annotations + `}},
	 "spec": {
		"selector": {"matchLabels": {"app": "zk"}},
		"template": {"metadata": {"labels": {"app": "zk", ` + labels + `}, "annotations": {"note": "kept"}}, "spec": {}},
		"volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {` + labels + `}}}]}},
	{"apiVersion": "batch/v1", "kind": "CronJob",
	 "metadata": {"name": "parent-zk", "labels": {` + labels + `}, "annotations": {` + annotations + `}},
	 "spec": {"jobTemplate": {"metadata": {"labels": {` + labels + `}},
		"spec": {"template": {"metadata": {"labels": {` + labels + `}}, "spec": {}}}}}},
	{"apiVersion": "example.com/v1", "kind": "Custom",
	 "metadata": {"name": "parent-zk", "labels": {` + labels + `}, "annotations": {` + annotations + `}},
	 "spec": {"template": {"metadata": {}}}}
	]`
	if diff := cmp.Diff(mustDecode(t, want), mustDecode(t, mustEncode(t, objects))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnnotationsAreLeftOutWhereThereIsNothingToSay(t *testing.T) {
	c := newContext("t", configMapNamed("a"))
	c.Plan, c.Phase, c.Step, c.Execution, c.Namespace = "", "", "", "", ""
	objects, err := Objects(c, "t")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{kudo.AnnotationOperatorVersion: "0.3.0"}, objects[0].GetAnnotations()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRenderingTwiceGivesTheSame(t *testing.T) {
	c := newContext(
		"t", everything+"---\n"+configMapNamed("first")+`data: {{ set .Params.LABELS "on" "no" | toJson }}`+"\n",
		"u", configMapNamed("last")+"data: {seen: {{ .Params.LABELS.on | quote }}}\n",
	)
	before := mustEncode(t, c)
	first, err := Objects(c, "t", "u")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Objects(c, "t", "u")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustEncode(t, first), mustEncode(t, second)); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	if diff := cmp.Diff(before, mustEncode(t, c)); diff != "" {
		t.Errorf("the input was changed (-before +after)\n%s", diff)
	}
	if seen, _, _ := unstructured.NestedString(first[len(first)-1].Object, "data", "seen"); seen != "yes" {
		t.Errorf("a template sees what another one set: %q", seen)
	}
}

func mustEncode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustDecode(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestRenderingSideBySide(t *testing.T) {
	c := newContext("t", everything)
	want, err := Objects(c, "t")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := Objects(c, "t")
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-alone +beside others)\n%s", diff)
			}
		})
	}
	group.Wait()
}

func TestObjectsHaveImagesOfMirrors(t *testing.T) {
	c := newContext("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: 'quay.io/a:{{ .Params.NODES }}'}]}\n")
	c.Registries = []kudo.ImageRegistry{{Source: "quay.io", Mirror: "quay.io/mirror"}}
	objects, err := Objects(c, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod, err := NamedObject(c, "a.yaml", "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, pod) {
		if got := mustEncode(t, o.Object["spec"]); !strings.Contains(got, `"quay.io/mirror/a:3"`) {
			t.Error(got)
		}
	}
}
