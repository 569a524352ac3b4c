package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestLabelsOfOCMsFeaturesAreNoFacts(t *testing.T) {
	all := map[string]string{"region": "eu", "feature.open-cluster-management.io/addon-web": "available"}
	if diff := cmp.Diff(map[string]string{"region": "eu"}, LabelsOf(all)); diff != "" {
		t.Error(diff)
	}
	if len(all) != 2 {
		t.Error("the argument is changed")
	}
	delete(all, "region")
	if got := LabelsOf(all); got != nil {
		t.Errorf("got %v", got)
	}
}

// many returns a number of values of that many bytes.
func many(count, bytes int) map[string]string {
	values := map[string]string{}
	for i := range count {
		values[fmt.Sprintf("n%03d", i)] = strings.Repeat("x", bytes)
	}
	return values
}

func TestFactsAreRefusedAndNotCut(t *testing.T) {
	for name, tc := range map[string]struct {
		facts kudo.ClusterFacts
		want  string
	}{
		"as many as fit":    {kudo.ClusterFacts{Labels: many(64, 50), Claims: many(64, 50)}, ""},
		"too many labels":   {kudo.ClusterFacts{Labels: many(65, 1)}, "it has more than 64 labels"},
		"too many claims":   {kudo.ClusterFacts{Claims: many(65, 1)}, "it has more than 64 claims"},
		"a claim too large": {kudo.ClusterFacts{Claims: many(1, 16<<10)}, "its labels and claims have more than 16384 bytes"},
		"claims too large":  {kudo.ClusterFacts{Labels: many(1, 5), Claims: many(60, 1024)}, "its labels and claims have more than 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Problem(&tc.facts); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			bounded := Bound(&tc.facts)
			if got := Problem(bounded); got != tc.want {
				t.Errorf("bounded facts have the problem %q, want %q", got, tc.want)
			}
			if size := len(encode(bounded.Labels)) + len(encode(bounded.Claims)); size > 3*MaxBytes {
				t.Errorf("bounded facts have %d bytes", size)
			}
		})
	}
}

func TestUseOfFacts(t *testing.T) {
	for source, want := range map[string][2]bool{
		"{{ .Cluster.Name }}":                                    {true, false},
		"{{ with . }}{{ $.Cluster.Labels.a }}{{ end }}":          {true, false},
		`{{ (index . "Cluster").Name }}`:                         {true, false},
		"{{ $d := . }}{{ get $d `Cluster` }}":                    {true, false},
		"{{ .Capabilities.KubeVersion.Minor }}":                  {false, true},
		"kind: ClusterRole\nx: {{ .Params.ClusterName }}":        {false, false},
		"kind: \"ClusterRole\"\n# see docs.ClusterRoleBinding x": {false, false},
		"{{ .Name }}": {false, false},
	} {
		t.Run(source, func(t *testing.T) {
			spec := &kudo.OperatorVersionSpec{Templates: map[string]string{"a": "a: b", "t": source}}
			if got := [2]bool{UseCluster(spec), UseCapabilities(spec)}; got != want || Use(source) != (want[0] || want[1]) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestAVariableIsReplaced(t *testing.T) {
	known := &kudo.ClusterFacts{Name: "one", Labels: map[string]string{"a": "b"}, Claims: map[string]string{"c": "d: {"}}
	for _, variable := range Known(known, "v1.34.2") {
		same, version, err := With(variable, Text(variable, known, "v1.34.2"), known, "v1.34.2")
		if err != nil || !Equal(same, known) || version != "v1.34.2" {
			t.Errorf("%s: got %+v, %q and error %v", variable, same, version, err)
		}
		other, version := Without(variable, known, "v1.34.2")
		if Equal(other, known) && version == "v1.34.2" {
			t.Errorf("%s is not replaced", variable)
		}
	}
	if known.Claims["c"] != "d: {" || known.Name != "one" {
		t.Error("the argument is changed")
	}
	if same, version := Without("PARAMETER", known, "v1.34.2"); same != known || version != "v1.34.2" {
		t.Error("a parameter replaces facts")
	}
}

func TestVariablesOfTheVersion(t *testing.T) {
	for given, want := range map[string]map[string]any{
		"v1.34.2":       {"Version": "v1.34.2", "Major": "1", "Minor": "34"},
		"v1.31.1+k3s1":  {"Version": "v1.31.1+k3s1", "Major": "1", "Minor": "31"},
		"not a version": {"Version": "not a version", "Major": "", "Minor": ""},
	} {
		if diff := cmp.Diff(map[string]any{"Capabilities": map[string]any{"KubeVersion": want}}, Variables(nil, given)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestChangeOfFacts(t *testing.T) {
	ran := &kudo.ClusterFacts{Name: "one", Labels: map[string]string{"a": "1", "b": "2"}, Claims: map[string]string{"c": "3"}}
	for name, tc := range map[string]struct {
		spec, ran *kudo.ClusterFacts
		want      string
	}{
		"none are used":         {nil, ran, ""},
		"the same":              {ran.DeepCopy(), ran, ""},
		"others":                {&kudo.ClusterFacts{Name: "one", Labels: map[string]string{"b": "\x1b[2J", "d": "4"}}, ran, `label "a", label "b", label "d", claim "c"`},
		"an agent without them": {&kudo.ClusterFacts{Name: "one"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := &kudo.Instance{Spec: kudo.InstanceSpec{Cluster: tc.spec}}
			if got := Change(i); got != "" {
				t.Errorf("before any plan: %q", got)
			}
			i.Status.Execution = &kudo.Execution{Cluster: tc.ran}
			if got := Change(i); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
