package wrap

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// valuesOf decodes the values of a release.
func valuesOf(t *testing.T, encoded string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(encoded))
	decoder.UseNumber()
	values := map[string]any{}
	if err := decoder.Decode(&values); err != nil {
		t.Fatal(err)
	}
	return values
}

func parse(t *testing.T, args ...string) []Choice {
	t.Helper()
	choices, err := ParseChoices(args)
	if err != nil {
		t.Fatal(err)
	}
	return choices
}

func TestReleaseFiles(t *testing.T) {
	from := Release{Name: "web", Namespace: "shops", Revision: 3, Values: valuesOf(t, `{
		"replicas": 3, "image": {"tag": "1.2", "pullPolicy": "Never", "digest": "yes"}, "limits": {"cpu": null, "memory": "1Gi"}, "hosts": ["b.example.com", "0123"],
		"others": null, "extra": {"a": [[], {}, [1, [2]], {"b": 1.5, "c": {"d": true}}], "config": "one\n  two\n\nthree\n", "text": "{{ fail }}\n"},
		"db": {"password": "hunter2"}, "added": "x"}`)}
	choices := parse(t, "replicas", "image.pullPolicy=WHEN", "limits", "image.repository", "others", "added", "db.password=PASSWORD", "debug")
	choices[6].Sensitive = true
	files, secrets, err := ReleaseFiles("shop", "web-1.2.3.tgz", chart(), choices, from)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(secrets, map[string]string{"PASSWORD": "hunter2"}) {
		t.Errorf("got secrets %v", secrets)
	}
	for name, want := range map[string]string{
		"operator.yaml": "      valuesFile: values.yaml\n      releaseName: web\n",
		"params.yaml": `apiVersion: kudo.dev/v1beta1
parameters:
  - name: REPLICAS
    description: Number of pods
    type: integer
    default: 3
  - name: WHEN
    description: When the image is pulled
    enum:
      - Always
      - Never
    default: Never
  - name: LIMITS
    description: Value limits of chart web
    type: map
    default:
      cpu: null
      memory: 1Gi
  - name: IMAGE_REPOSITORY
    description: Where the image is
    default: example.com/web
  - name: OTHERS
    description: Value others of chart web
    type: map
    required: false
  - name: ADDED
    description: Value added of chart web
    default: x
  - name: PASSWORD
    description: Value db.password of chart web
    sensitive: true
  - name: DEBUG
    description: Value debug of chart web
    type: boolean
    default: false
`,
		"templates/values.yaml": `added: {{ .Params.ADDED | quote }}
db:
  password: {{ .Params.PASSWORD | quote }}
extra:
  a:
    - []
    - {}
    - - 1
      - - 2
    - b: 1.5
      c:
        d: true
  config: |
    one
      two

    three
  text: "{\u007b fail }\u007d\n"
hosts:
  - b.example.com
  - "0123"
image:
  digest: "yes"
  pullPolicy: {{ .Params.WHEN | quote }}
  tag: "1.2"
  repository: {{ .Params.IMAGE_REPOSITORY | quote }}
limits: {{ .Params.LIMITS | toJson }}
others: {{ with .Params.OTHERS }}{{ . | toJson }}{{ else }}null{{ end }}
replicas: {{ .Params.REPLICAS }}
debug: {{ .Params.DEBUG }}
`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, files[name], want)
		}
		if strings.Contains(files[name], "hunter2") {
			t.Errorf("%s contains a sensitive value", name)
		}
	}
	if !strings.Contains(files["operator.yaml"], "# Created from release web of Helm in namespace shops, revision 3\n") {
		t.Errorf("got %s", files["operator.yaml"])
	}
}

func TestAChosenMapHasTheValuesOfTheChartBelowThoseOfTheRelease(t *testing.T) {
	c := Chart{Name: "web", Version: "1.0.0", Values: []byte("outer: &o\n  inner: {a: 1, b: 2, c: 3}\n  other: [x]\ncopy: *o\n")}
	from := Release{Name: "web", Values: valuesOf(t, `{"outer": {"inner": {"b": 4, "c": null, "d": "x"}}, "copy": {"other": ["y"]}}`)}
	files, _, err := ReleaseFiles("shop", "web.tgz", c, parse(t, "outer", "copy"), from)
	for _, want := range []string{
		"    default:\n      inner:\n        a: 1\n        b: 4\n        c: null\n        d: x\n      other: [x]\n", "    default:\n      inner: {a: 1, b: 2, c: 3}\n      other:\n        - y\n",
	} {
		if err != nil || !strings.Contains(files["params.yaml"], want) {
			t.Errorf("got error %v and\n%s\nwant\n%s", err, files["params.yaml"], want)
		}
	}
}

func TestReleaseErrors(t *testing.T) {
	from := Release{Name: "web", Values: valuesOf(t, `{"image": "none", "limits": {"cpu": 1}, "pin": 1234}`)}
	for sentence, test := range map[string]struct {
		choice    string
		sensitive bool
		want      string
	}{
		"a value that neither chart nor release has": {"replica", false, `chart "web" has no value "replica" (did you mean replicas?)`},
		"a value below one that is no map":           {"image.tag", false, "value image is set to something else than a map: make it a parameter instead of image.tag"},
		"a map as a sensitive parameter":             {"limits", true, `value limits is no text in release "web"`},
		"a number as a sensitive parameter":          {"pin", true, `value pin is no text in release "web"`},
		"a sensitive parameter without value":        {"db.password", true, `value db.password is no text in release "web"`},
	} {
		choices := parse(t, test.choice)
		choices[0].Sensitive = test.sensitive
		if _, _, err := ReleaseFiles("shop", "web.tgz", chart(), choices, from); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q", sentence, err, test.want)
		}
	}
}

func TestSuspects(t *testing.T) {
	from := Release{Values: valuesOf(t, `{
		"auth": {"username": "admin", "password": "x", "enabled": true, "existingSecret": "db", "secretKeys": {"adminPasswordKey": "a"}},
		"secretName": "tls", "imagePullSecrets": [{"name": "registry"}], "replicas": 3, "tokens": {"a": "b"}, "password": "",
		"env": [{"name": "A", "value": "b"}, {"name": "DB_PASSWORD", "value": "x"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}],
		"users": {"list": [{"name": "a", "password": "b"}, {"name": "c", "password": "d"}]}, "url": "postgres://me:pw@db/shop",
		"note": "-----BEGIN RSA PRIVATE KEY-----", "keys": ["AKIAIOSFODNN7EXAMPLE"], "kept": {"password": "x"}, "pin": 1234}`)}
	choices := parse(t, "kept", "tokens")
	choices[0].Sensitive = true
	var got []string
	for _, path := range from.Suspects(choices) {
		got = append(got, path.String())
	}
	if want := []string{"auth.password", "env", "keys", "note", "pin", "tokens.a", "url", "users.list"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// FuzzValuesText checks that the values of a package without parameters are those of the release, and that its template executes none of them.
func FuzzValuesText(f *testing.F) {
	for _, value := range []string{
		`{"a": "b"}`, `{"a": ["x", ["y", {"z": null}], {"b": [], "c": {}}]}`, `{"{{ a }}": "{{{{ b }}", "yes": "no", "": "", "1": "1"}`,
		`{"a": "b\n\n  c\n", "d": " e\nf", "g": "h\n\n", "i": "j\n \nk", "l": "# m\n- n\n", "o": "\t\np"}`, `{"a": "\u0000\u007f\u2028\ufeff\ufffe\ud83d\ude00\u0085"}`,
		`{"a": 1, "b": -1.5, "c": 1e21, "d": true, "e": 12345678901234567890}`, `{"a": "12:30", "b": "0x1F", "c": "1e3", "d": ".5", "e": "~", "f": "=", "g": "<<"}`,
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		decoder := json.NewDecoder(strings.NewReader(encoded))
		decoder.UseNumber()
		values := map[string]any{}
		if decoder.Decode(&values) != nil {
			return
		}
		written := valuesText(nil, nodeOf(values))
		if strings.Contains(written, "{{") {
			t.Fatalf("a template may execute\n%s", written)
		}
		got, err := yaml.YAMLToJSONStrict([]byte(written))
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		var read, want any
		wanted, err := json.Marshal(values)
		if err != nil || json.Unmarshal(got, &read) != nil || json.Unmarshal(wanted, &want) != nil {
			return // a number that no float can be
		}
		if len(values) > 0 && !reflect.DeepEqual(read, want) {
			t.Errorf("%s becomes\n%s", encoded, written)
		}
	})
}
