package render

import (
	"errors"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// onCluster returns a Context with a ConfigMap whose data is given, and with facts of a cluster.
func onCluster(data, claim string) Context {
	c := guardedContext(data, nil)
	c.Cluster = &kudo.ClusterFacts{Name: "one", Labels: map[string]string{"region": "eu", "example.com/tier": "gold"}, Claims: map[string]string{"id": claim}}
	c.KubernetesVersion = "v1.34.2"
	return c
}

func TestTemplatesReadFactsOfTheCluster(t *testing.T) {
	for data, want := range map[string]string{
		"data: {a: '{{ .Cluster.Name }}'}":                                                    "one",
		"data: {a: '{{ .Cluster.Labels.region }}'}":                                           "eu",
		"data: {a: '{{ index .Cluster.Labels \"example.com/tier\" }}'}":                       "gold",
		"data: {a: 'x{{ index .Cluster.Labels \"none\" }}'}":                                  "x",
		"data: {a: '{{ default \"none\" (index .Cluster.Claims \"none\") }}'}":                "none",
		"data: {a: {{ index .Cluster.Claims \"id\" | quote }}}":                               "a: {b",
		"data: {a: {{ .Cluster.Claims | toJson | quote }}}":                                   `{"id":"a: {b"}`,
		"data: {a: '{{ range $k, $v := .Cluster.Labels }}{{ $k }}={{ $v }},{{ end }}'}":       "example.com/tier=gold,region=eu,",
		"data: {a: '{{ with .Capabilities.KubeVersion }}{{ .Major }}.{{ .Minor }}{{ end }}'}": "1.34",
		"data: {a: '{{ .Capabilities.KubeVersion.Version }}'}":                                "v1.34.2",
	} {
		t.Run(data, func(t *testing.T) {
			objects, err := Objects(onCluster(data, "a: {b"), "t")
			if err != nil {
				t.Fatal(err)
			}
			if got := objects[0].Object["data"].(map[string]any)["a"]; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestAFactCannotChangeTheStructure(t *testing.T) {
	for name, test := range map[string]struct{ data, claim, want string }{
		"another document": {"data:\n  a: {{ index .Cluster.Claims \"id\" }}\n", "x" + evil, "what the cluster has as .Cluster.Claims"},
		"a key":            {"data:\n  a: {{ .Cluster.Claims.id }}\n", "x\n  b: y", "what the cluster has as .Cluster.Claims"},
		"a variable":       {"data:\n{{ $c := .Cluster }}  a: {{ $c.Claims.id }}\n", "[x]", "changes the structure"},
		"a loop":           {"data:\n{{ range $k, $v := .Cluster.Claims }}  {{ $k }}: {{ $v }}\n{{ end }}", "{x: y}", "what the cluster has as .Cluster.Claims"},
		"the whole":        {"data:\n  a: x\n{{ range $k, $v := .Cluster }}{{ if eq $k \"Claims\" }}  b: {{ $v.id }}\n{{ end }}{{ end }}", "x\n  c: y", "changes the structure"},
		"quoted by hand":   {"data: {a: \"{{ .Cluster.Claims.id }}\"}\n", `", b: "`, "what the cluster has as .Cluster.Claims"},
		"with a parameter": {"data:\n  a: {{ print .Params.A .Cluster.Claims.id }}\n", "x\n  b: y", "changes the structure"},
	} {
		t.Run(name, func(t *testing.T) {
			c := onCluster(test.data, test.claim)
			_, err := Objects(c, "t")
			var changes *StructureError
			if !errors.As(err, &changes) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "b: y") {
				t.Fatalf("got error %v, want %q", err, test.want)
			}
			if _, err := Objects(onCluster(test.data, "plain"), "t"); err != nil {
				t.Errorf("a plain value: %v", err)
			}
		})
	}
}

func TestErrorsOfFactsNameTheFields(t *testing.T) {
	for data, want := range map[string]string{
		"data: {a: '{{ .Cluster.Nam }}'}":         ".Cluster has the fields .Name, .Labels and .Claims",
		"data: {a: '{{ .Cluster.Labels.none }}'}": `index .Cluster.Labels "NAME"`,
		"data: {a: '{{ .Capabilities.APIs }}'}":   ".KubeVersion.Version",
		"data: {a: '{{ .Clusters }}'}":            ".Cluster and .Capabilities",
	} {
		if _, err := Objects(onCluster(data, "x"), "t"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", data, err, want)
		}
	}
	c := onCluster("data: {a: '{{ .Cluster.Name }}'}", "x")
	c.Cluster = nil
	if _, err := Objects(c, "t"); err == nil || !strings.Contains(err.Error(), "upgrade addon-manager") {
		t.Errorf("without facts: got error %v", err)
	}
}

func TestAClaimIsNoSensitiveParameterOfAParameterFile(t *testing.T) {
	c := onCluster("", "tandem-sensitive-0.")
	c.Version.Parameters = append(c.Version.Parameters, kudo.Parameter{Name: "PASSWORD", Sensitive: new(true)})
	c.Version.Templates["file"] = "OPEN: {{ .Cluster.Claims.id }}\nSECRET: {{ .Params.PASSWORD }}\n"
	c.Sensitive = map[string]string{"PASSWORD": "s3cret"}
	values, passed, err := File(c, "file")
	if err != nil {
		t.Fatal(err)
	}
	if values["OPEN"] != "tandem-sensitive-0." || len(passed) != 1 || passed["SECRET"] != "PASSWORD" {
		t.Errorf("got values %v, passed on %v", values, passed)
	}
}
