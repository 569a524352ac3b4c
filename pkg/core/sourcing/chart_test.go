package sourcing

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
)

// newChart returns a chart with values.
func newChart(values string, parameters ...kudo.SourceParameter) *kudo.SourceChart {
	c := &kudo.SourceChart{Repository: "https://charts.example.com", Name: "web", Version: "~1.2", Digest: "sha256:1", Parameters: parameters}
	if values != "" {
		c.Values = &runtime.RawExtension{Raw: []byte(values)}
	}
	return c
}

func TestReadChart(t *testing.T) {
	ref, got, err := ReadChart(newChart(`{"count": 12345678901234567890}`,
		kudo.SourceParameter{Value: "image.tag"}, kudo.SourceParameter{Value: `pods.a\.b`, Name: "PODS", Sensitive: true}))
	want := ChartOptions{
		Choices: []wrap.Choice{{Path: wrap.Path{"image", "tag"}, Parameter: "IMAGE_TAG"}, {Path: wrap.Path{"pods", "a.b"}, Parameter: "PODS", Sensitive: true}},
		Values:  map[string]any{"count": json.Number("12345678901234567890")},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if ref.Version != "~1.2" || ref.Digest != "sha256:1" {
		t.Errorf("got %+v", ref)
	}
}

func TestInvalidCharts(t *testing.T) {
	name := newChart("")
	name.Name = "a/b"
	invalid := newChart("")
	invalid.Version = "~~"
	for want, c := range map[string]*kudo.SourceChart{
		"a/b": name,
		"~~":  invalid,
		`spec.chart.parameters[1]: value "b..c": a key is empty`:                    newChart("", kudo.SourceParameter{Value: "a"}, kudo.SourceParameter{Value: "b..c"}),
		`spec.chart.parameters: parameter TAG is chosen for image.tag and for tag`:  newChart("", kudo.SourceParameter{Value: "image.tag", Name: "TAG"}, kudo.SourceParameter{Value: "tag"}),
		`spec.chart.values: json: cannot unmarshal array into Go value of type map`: newChart("[]"),
		`spec.chart.values has 262153 bytes, more than the limit of 262144`:         newChart(`{"a": "` + strings.Repeat("x", maxValues) + `"}`),
	} {
		if _, _, err := ReadChart(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestValuesThatLookLikeSecretsAreNamed(t *testing.T) {
	for values, want := range map[string]string{
		"":                        "",
		`{"auth": {"user": "a"}}`: "",
		`{"token": "x1y2", "auth": {"password": "hunter2", "password\u001b": "a"}}`: "; these values look like secrets, and everyone who may read OperatorVersions can read them: auth.password, auth.password^[, token; make them sensitive parameters",
		`{"auth": {"user": "a", "token": "$x"}, "password": "hunter2"}`:             "; these values look like secrets, and everyone who may read OperatorVersions can read them: auth.token, password; make them sensitive parameters",
	} {
		c := newChart(values, kudo.SourceParameter{Value: "auth.user"})
		source := newSource(func(s *kudo.PackageSource) { s.Spec.Package, s.Spec.Chart = nil, c })
		ready := meta.FindStatusCondition(Status(source, newStored("1.0.0")).Conditions, kudo.ConditionReady)
		_, got, _ := strings.Cut(ready.Message, "@sha256:1")
		if got != want {
			t.Errorf("%s: got %q, want %q", values, got, want)
		}
	}
}
