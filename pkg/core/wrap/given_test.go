package wrap

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func parsed(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}

func TestGiven(t *testing.T) {
	given, problems := chart().Given(parsed(t, `
replicas: 3
image: {repository: example.org/web, pullPolicy: Never, digest: "sha256:1"}
resources: {limits: {cpu: 1}}
hosts: [a, b]
limits: {cpu: 2}
debug: true
nodePort: 80
db: {size: 3, users: {admin: {name: root}}}
extra: {a: b}
global: {zone: eu}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, g := range given {
		got = append(got, fmt.Sprintf("%s %s %s=%s", g.Path, g.kind, g.Parameter, g.Text))
	}
	want := []string{
		"replicas integer REPLICAS=3", "image.repository string IMAGE_REPOSITORY=example.org/web", "image.pullPolicy string IMAGE_PULL_POLICY=Never",
		"image.digest string IMAGE_DIGEST=sha256:1", `resources map RESOURCES={"limits":{"cpu":1}}`, `hosts array HOSTS=["a","b"]`, "limits.cpu number LIMITS_CPU=2",
		"debug boolean DEBUG=true", "nodePort integer NODE_PORT=80", "db.size integer DB_SIZE=3", `db.users map DB_USERS={"admin":{"name":"root"}}`,
		`extra map EXTRA={"a":"b"}`, "global.zone string GLOBAL_ZONE=eu",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	files, err := GivenFiles("shop", "web.tgz", chart(), given[:2])
	if err != nil || !strings.Contains(files["params.yaml"], "name: IMAGE_REPOSITORY") || !strings.Contains(files["templates/values.yaml"], "replicas: {{ .Params.REPLICAS }}") {
		t.Errorf("%v: %q", err, files)
	}
}

func TestGivenValuesThatAreWrong(t *testing.T) {
	for given, want := range map[string]string{
		"replica: 3":                   `1:1 chart "web" has no value "replica" (did you mean replicas?)`,
		"zzz: 3":                       `1:1 chart "web" has no value "zzz"`,
		"image: {repositry: x}":        `1:9 chart "web" has no value "image.repositry" (did you mean image.repository?)`,
		"image.repository: x":          `1:1 chart "web" has no value "image.repository": write it as image: {repository: …}`,
		"replicas: many":               `1:11 value replicas of chart "web" must be an integer, got "many"`,
		"replicas: 1.5":                `1:11 value replicas of chart "web" must be an integer, got "1.5"`,
		"debug: 1":                     `1:8 value debug of chart "web" must be true or false, got "1"`,
		"hosts: a":                     `1:8 value hosts of chart "web" must be a list, got "a"`,
		"resources: [a]":               `1:12 value resources of chart "web" must be a map, got a list`,
		"image: {repository: [a]}":     `1:21 value image.repository of chart "web" must be a text, got a list`,
		"replicas: null":               `1:11 value replicas of chart "web" must be set: leave it out to have the default of the chart, got nothing`,
		"replicas: 1\nreplicas : 2":    `2:1 value replicas is set twice, first in line 1: remove one`,
		"debug: &a true\nreplicas: *a": `2:11 value replicas of chart "web" must be written out, got an alias`,
		"resources: {a: &a 1, b: *a}":  `1:12 value resources: the list or map is not valid: it must not contain anchors, aliases or duplicate keys`,
		"db: {<<: {a: b}}":             `1:6 a key must be a text; anchors, aliases and merges are not supported: write the value out`,
	} {
		t.Run(given, func(t *testing.T) {
			_, problems := chart().Given(parsed(t, given))
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d:%d %s", p.Node.Line, p.Node.Column, p.Message))
			}
			if diff := cmp.Diff([]string{want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGivenValuesHaveNamesOfTheirOwn(t *testing.T) {
	given, problems := chart().Given(parsed(t, `db: {imageTag: a, image_tag: b, image-tag: c}`))
	var names []string
	for _, g := range given {
		names = append(names, g.Parameter)
	}
	if diff := cmp.Diff([]string{"DB_IMAGE_TAG", "DB_IMAGE_TAG_2", "DB_IMAGE_TAG_3"}, names); diff != "" || len(problems) > 0 {
		t.Errorf("%v %s", problems, diff)
	}
}

func TestFilesWithValues(t *testing.T) {
	choices := []Choice{{Path: Path{"replicas"}, Parameter: "REPLICAS"}, {Path: Path{"image", "repository"}, Parameter: "PASSWORD", Sensitive: true}}
	files, err := FilesWith("shop", "web.tgz", chart(), choices, valuesOf(t, `{"replicas": 7, "debug": true, "image": {"tag": "{{ x }}"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		"operator.yaml":         {"valuesFile: values.yaml"},
		"params.yaml":           {"name: REPLICAS\n", "default: 7\n", "name: PASSWORD\n", "sensitive: true\n"},
		"templates/values.yaml": {"replicas: {{ .Params.REPLICAS }}\n", "debug: true\n", "repository: {{ .Params.PASSWORD | quote }}\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[file], want) {
				t.Errorf("%s lacks %q:\n%s", file, want, files[file])
			}
		}
	}
	_, own, _ := strings.Cut(files["params.yaml"], "name: PASSWORD\n")
	if strings.Contains(own, "default:") || strings.Contains(files["templates/values.yaml"], "{{ x }}") {
		t.Errorf("a default of a sensitive parameter, or a value as a template: %s", files)
	}
	without, err := FilesWith("shop", "web.tgz", chart(), nil, nil)
	want, _ := Files("shop", "web.tgz", chart(), nil)
	if diff := cmp.Diff(want, without); err != nil || diff != "" {
		t.Errorf("without choices and values: %v %s", err, diff)
	}
}

func TestFilesWithValuesThatAreWrong(t *testing.T) {
	many, maps := map[string]any{}, map[string]any{}
	for i := range 100_000 { // in an acceptable time
		many[fmt.Sprint("key", i)] = json.Number("1")
		maps[fmt.Sprint("key", i)] = map[string]any{"a": map[string]any{"b": json.Number("1")}}
	}
	for sentence, test := range map[string]struct {
		values map[string]any
		choice Choice
		want   string
	}{
		"several values that the chart does not have": {values: valuesOf(t, `{"replica": 1, "zzz": 1}`),
			want: `chart "web" has no value "replica" (did you mean replicas?), chart "web" has no value "zzz"`},
		"a value of another type":         {values: valuesOf(t, `{"debug": 1}`), want: `value debug of chart "web" must be true or false, got "1"`},
		"a secret of another type":        {values: valuesOf(t, `{"image": "hunter2"}`), want: `value image of chart "web" must be a map, got a text`},
		"a number for a text":             {values: valuesOf(t, `{"image": {"repository": 1.20}}`), want: `value image.repository of chart "web" must be a text: write it in quotes`},
		"a parameter below a text":        {values: valuesOf(t, `{"db": {"name": "a"}}`), choice: Choice{Path: Path{"db", "name", "x"}}, want: "value db.name is set to something else than a map"},
		"a parameter of a subchart":       {choice: Choice{Path: Path{"db", "sise"}}, want: `chart "web" has no value "db.sise" (did you mean db.size?)`},
		"a wrong value of a subchart":     {values: valuesOf(t, `{"db": {"size": "x", "sise": 2}}`), want: `value db.size of chart "web" must be an integer, got a text`},
		"a sensitive list":                {choice: Choice{Path: Path{"hosts"}, Sensitive: true}, want: "value hosts is not a text: only a text can be a sensitive parameter"},
		"a sensitive value that is set":   {values: valuesOf(t, `{"image": {"repository": "a"}}`), choice: Choice{Path: Path{"image", "repository"}, Sensitive: true}, want: "value image.repository is in values, and also a sensitive parameter"},
		"a parameter that does not exist": {choice: Choice{Path: Path{"zzz"}}, want: `chart "web" has no value "zzz"`},
		"too many values":                 {values: many, want: "more than 2000 keys are set"},
		"too many maps":                   {values: maps, want: "more than 2000 keys are set"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var choices []Choice
			if test.choice.Path != nil {
				test.choice.Parameter = "P"
				choices = []Choice{test.choice}
			}
			if _, err := FilesWith("shop", "web.tgz", chart(), choices, test.values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestFilesWithValuesOfLargeCharts(t *testing.T) {
	large := chart()
	large.Values = []byte("a: [" + strings.Repeat("a,", maxParsed/2) + "a]\n")
	if files, err := FilesWith("shop", "web.tgz", large, nil, nil); err != nil || len(files) != 2 {
		t.Errorf("without choices and values: %v, %d files", err, len(files))
	}
	_, err := FilesWith("shop", "web.tgz", large, []Choice{{Path: Path{"a"}, Parameter: "A"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "more than the limit of 1048576 for a chart with parameters or values") {
		t.Errorf("with a choice: %v", err)
	}
	known := map[string]any{"db": map[string]any{"name": "a"}}
	files, err := FilesWith("shop", "web.tgz", chart(), []Choice{{Path: Path{"db", "name"}, Parameter: "NAME"}}, known)
	if err != nil || !strings.Contains(files["params.yaml"], "default: a\n") {
		t.Errorf("a value of a subchart that is set: %v %s", err, files["params.yaml"])
	}
}

func TestNodeAt(t *testing.T) {
	root := parsed(t, "a: {b: [x, y]}\nc: d\n")
	for path, want := range map[string][2]int{"": {1, 1}, "a/b/1": {1, 12}, "a/b/7": {1, 8}, "a/none": {1, 4}, "c": {2, 4}, "c/d": {2, 4}} {
		node := NodeAt(root, strings.FieldsFunc(path, func(r rune) bool { return r == '/' }))
		if got := [2]int{node.Line, node.Column}; got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestAListOrAMapMayReplaceAnEmptyText(t *testing.T) {
	c := Chart{Name: "web", Values: []byte("affinity: \"\"\nhosts: \"\"\nmode: fast\n")}
	given, problems := c.Given(parsed(t, "affinity: {a: b}\nhosts: [a]\nmode: [a]\n"))
	if len(given) != 2 || given[0].kind != mapKind || given[1].kind != arrayKind || len(problems) != 1 || !strings.Contains(problems[0].Message, "mode of chart") {
		t.Errorf("got %v and %v", given, problems)
	}
	files, err := GivenFiles("web", "web.tgz", c, given)
	if err != nil || strings.Contains(files["params.yaml"], "default:") || !strings.HasPrefix(files["templates/values.yaml"], "{{ with .Params.AFFINITY }}affinity: ") {
		t.Errorf("got %v and %v", files, err)
	}
}

func TestAnEmptyTextThatIsGivenIsKept(t *testing.T) {
	c := Chart{Name: "web", Values: []byte("labels: {a: x}\nport: null\n")}
	given, problems := c.Given(parsed(t, "labels: {other: \"\"}\nport: 1\n"))
	files, err := GivenFiles("web", "web.tgz", c, given)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if want := "labels:\n  other: {{ .Params.LABELS_OTHER | quote }}\n{{ with .Params.PORT }}port: {{ . }}{{ end }}\n"; files["templates/values.yaml"] != want {
		t.Errorf("got %q, want %q", files["templates/values.yaml"], want)
	}
}
