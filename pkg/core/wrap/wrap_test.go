package wrap

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

const values = `# Number of servers.
#
# -- Number of pods
replicas: 2
image:
  # @param image.repository Where the image is
  repository: example.com/web
  tag: ""
  pullPolicy: Always
resources: {}
hosts: [a.example.com] # names
limits: &limits
  # in millicores
  cpu: 0.5
others: *limits
debug: false
nodePort: null
"a.b/c":
  "on": x
`

const described = `{"properties": {
  "image": {"properties": {"pullPolicy": {"enum": ["Always", "Never"], "description": "When the image\nis pulled"}}},
  "nodePort": {"type": ["integer", "null"]},
  "extra": {"type": "object", "title": "More"},
  "debug": true
}}`

func chart() Chart {
	return Chart{
		Name: "web", Version: "1.2.3+build", AppVersion: "v9", Description: "Serves\npages", Home: "https://example.com", Values: []byte(values),
		Schema: []byte(described), Subcharts: []Chart{{Name: "db"}}, Defaults: defaultsOf(values + "db: {size: 1, users: {}, password: null}\n"), Maintainers: []Maintainer{{Name: "A: B", Email: "a@example.com"}},
	}
}

// defaultsOf returns the values of a chart as Helm reads them.
func defaultsOf(values string) []byte {
	encoded, err := sigsyaml.YAMLToJSON([]byte(values))
	if err != nil {
		panic(err)
	}
	return encoded
}

func TestFiles(t *testing.T) {
	choices, err := ParseChoices([]string{
		"replicas", "image.repository", "image.pullPolicy=WHEN", "resources", "hosts", "limits", "others.cpu", "debug", "nodePort", "db.size", `a\.b/c.on=ON`, "extra",
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files("shop", "web-1.2.3.tgz", chart(), choices)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"operator.yaml": `# Serves pages
apiVersion: kudo.dev/v1beta1
name: shop
operatorVersion: 1.2.3
appVersion: v9
url: https://example.com
maintainers:
  - name: 'A: B'
    email: a@example.com
tasks:
  - name: chart
    kind: Helm
    spec:
      chart: web-1.2.3.tgz
      valuesFile: values.yaml
plans:
  deploy:
    phases:
      - name: main
        steps:
          - name: chart
            tasks: [chart]
`,
		"params.yaml": `apiVersion: kudo.dev/v1beta1
parameters:
  - name: REPLICAS
    description: Number of pods
    type: integer
    default: 2
  - name: IMAGE_REPOSITORY
    description: Where the image is
    default: example.com/web
  - name: WHEN
    description: When the image is pulled
    enum:
      - Always
      - Never
    default: Always
  - name: RESOURCES
    description: Value resources of chart web
    type: map
    default: {}
  - name: HOSTS
    description: Value hosts of chart web
    type: array
    default: [a.example.com]
  - name: LIMITS
    description: Value limits of chart web
    type: map
    default:
      cpu: 0.5
  - name: OTHERS_CPU
    description: in millicores
    type: number
    default: 0.5
  - name: DEBUG
    description: Value debug of chart web
    type: boolean
    default: false
  - name: NODE_PORT
    description: Value nodePort of chart web
    type: integer
    required: false
  - name: DB_SIZE
    description: Value db.size of chart web
    type: integer
    default: 1
  - name: "ON"
    description: Value a\.b/c.on of chart web
    default: x
  - name: EXTRA
    description: More
    type: map
    required: false
`,
		"templates/values.yaml": `replicas: {{ .Params.REPLICAS }}
image:
  repository: {{ .Params.IMAGE_REPOSITORY | quote }}
  pullPolicy: {{ .Params.WHEN | quote }}
resources: {{ .Params.RESOURCES | toJson }}
hosts: {{ .Params.HOSTS | toJson }}
limits: {{ .Params.LIMITS | toJson }}
others:
  cpu: {{ .Params.OTHERS_CPU }}
debug: {{ .Params.DEBUG }}
{{ with .Params.NODE_PORT }}nodePort: {{ . }}{{ end }}
db:
  size: {{ .Params.DB_SIZE }}
"a.b/c":
  "on": {{ .Params.ON | quote }}
{{ with .Params.EXTRA }}extra: {{ . | toJson }}{{ end }}
`,
	} {
		if files[name] != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, files[name], want)
		}
	}
}

func TestWithoutChoices(t *testing.T) {
	files, err := Files("shop", "web.tgz", Chart{Name: "web", Version: "1.0.0", AppVersion: "1.0.0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := files["operator.yaml"]
	if len(files) != 2 || !strings.HasSuffix(files["params.yaml"], "\nparameters: []\n") || !strings.HasPrefix(text, "# Helm chart web\n") || strings.Contains(text, "valuesFile") || strings.Contains(text, "appVersion") {
		t.Errorf("got %v", files)
	}
}

func TestSourcesAreNamed(t *testing.T) {
	digest := "sha256:12"
	for want, source := range map[string]Source{
		"      chart: web.tgz\n      version: 1.0.0\n      repository: https://charts.example.com\n      digest: sha256:12\n": {
			Repository: "https://charts.example.com", From: "https://charts.example.com/web.tgz", Digest: digest},
		"# Helm chart web\n# The chart is from https://example.com/a b.tgz, sha256:12\napiVersion": {From: "https://example.com/a\nb.tgz", Digest: digest},
	} {
		files, err := Files("shop", "web.tgz", Chart{Name: "web", Version: "1.0.0", Source: source}, nil)
		if err != nil || !strings.Contains(files["operator.yaml"], want) {
			t.Errorf("got error %v and\n%s\nwant\n%s", err, files["operator.yaml"], want)
		}
	}
}

func TestVersionsAreParts(t *testing.T) {
	for _, test := range []struct{ version, app, wantVersion, wantApp string }{
		{"1.2.3", "1.2.3", "1.2.3", ""}, {"1.2.3-rc.1+5", "v1.0", "1.2.3-rc.1", "v1.0"}, {"1.0.0", "RELEASE.2026", "1.0.0", ""},
		{"1.0.0", "latest build", "1.0.0", ""}, {"1.0.0", "", "1.0.0", ""}, {"1.0.0", strings.Repeat("9", 64), "1.0.0", ""},
	} {
		version, app := Versions(Chart{Version: test.version, AppVersion: test.app})
		if version != test.wantVersion || app != test.wantApp {
			t.Errorf("%v: got %q and %q", test, version, app)
		}
	}
}

func TestTextsOfAChartStayTexts(t *testing.T) {
	hostile := Chart{
		Name: "web", Version: "1.0.0", Description: "a\nname: b\x1b[1m", Home: "x\ntasks: []", Values: []byte("\"{{ .Params.X }}\": '{{ fail }}'\n"),
	}
	choices, err := ParseChoices([]string{`{{ \.Params\.X }}=X`})
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files("shop", "web.tgz", hostile, choices)
	if err != nil {
		t.Fatal(err)
	}
	operator := map[string]any{}
	if err := yaml.Unmarshal([]byte(files["operator.yaml"]), &operator); err != nil || operator["name"] != "shop" || operator["url"] != hostile.Home {
		t.Errorf("operator.yaml says something else: %v\n%s", err, files["operator.yaml"])
	}
	if strings.Contains(files["operator.yaml"], "\x1b") {
		t.Errorf("a character controls a terminal: %q", files["operator.yaml"])
	}
	if got, want := files["templates/values.yaml"], "\"{\\u007b .Params.X }\\u007d\": {{ .Params.X | quote }}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrors(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for name := 'b'; name < 'g'; name++ {
		last := string(name - 1)
		bomb += string(name) + ": &" + string(name) + " [" + strings.TrimSuffix(strings.Repeat("*"+last+", ", 10), ", ") + "]\n"
	}
	for sentence, test := range map[string]struct {
		choices []string
		values  string
		schema  string
		want    string
	}{
		"a value that does not exist":    {choices: []string{"replica"}, want: `chart "web" has no value "replica" (did you mean replicas?)`},
		"a value below a text":           {choices: []string{"image.tag.x"}, want: `no value "image.tag.x"`},
		"a name for two":                 {choices: []string{"replicas=A", "debug=A"}, want: "parameter A is chosen for replicas and for debug"},
		"names that differ in case":      {choices: []string{"replicas=A", "debug=a"}, want: "parameters A and a differ only in case"},
		"a value and its part":           {choices: []string{"image", "image.tag"}, want: "image.tag is a part of image"},
		"a part and its value":           {choices: []string{"image.tag", "image"}, want: "image.tag is a part of image"},
		"a value twice":                  {choices: []string{"replicas=A", "replicas=B"}, want: "replicas is a part of replicas"},
		"an element of a list":           {choices: []string{"hosts[0]"}, want: "choose the list"},
		"a name that is none":            {choices: []string{"replicas=a b"}, want: `parameter "a b": use letters, digits and _`},
		"an empty name":                  {choices: []string{"replicas="}, want: "the name is empty"},
		"an empty key":                   {choices: []string{"image..tag"}, want: "a key is empty"},
		"no path":                        {choices: []string{"=A"}, want: "a key is empty"},
		"a path that is too long":        {choices: []string{strings.Repeat("a.", 32) + "a"}, want: "33 keys"},
		"a key with a control character": {choices: []string{"a\x1b"}, want: "cannot be printed"},
		"too many":                       {choices: make([]string, MaxChoices+1), want: "501 values are chosen"},
		"values that are no YAML":        {choices: []string{"a"}, values: "a: [", want: `values.yaml of chart "web" is invalid`},
		"a schema that is no JSON":       {choices: []string{"replicas"}, schema: "{", want: `values.schema.json of chart "web" is invalid`},
		"a default that grows":           {choices: []string{"f"}, values: bomb, want: "has more than 10000 parts"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := chart()
			if test.values != "" {
				c.Values, c.Defaults = []byte(test.values), nil
			}
			if test.schema != "" {
				c.Schema = []byte(test.schema)
			}
			choices, err := ParseChoices(test.choices)
			if err == nil {
				_, err = Files("shop", "web.tgz", c, choices)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func TestNamesOfParameters(t *testing.T) {
	for path, want := range map[string]string{
		"image.pullPolicy": "IMAGE_PULL_POLICY", "a-b.c": "A_B_C", "serviceURL": "SERVICE_URL", "9x": "_9X", `a\.b`: "A_B", "é": "_",
	} {
		choices, err := ParseChoices([]string{path})
		if err != nil || choices[0].Parameter != want {
			t.Errorf("%s: got %v and error %v, want %s", path, choices, err, want)
		}
	}
}
