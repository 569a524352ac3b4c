package compatibility_test

import (
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
)

func TestProblem(t *testing.T) {
	const lacks = ", and the cluster has "
	for name, test := range map[string]struct {
		required, chart, cluster string
		charts                   []string
		want                     string
	}{
		"no constraint":                                   {cluster: "v1.20.0"},
		"the lowest version":                              {required: "1.25.0", cluster: "v1.25.0"},
		"a higher version than the lowest":                {required: "1.25.0", cluster: "v1.37.2"},
		"a higher major version":                          {required: "1.25.0", cluster: "v2.0.0"},
		"a lower version than the lowest":                 {required: "1.25.0", cluster: "v1.24.17", want: "the package requires Kubernetes 1.25.0" + lacks + "v1.24.17"},
		"the lowest version of a vendor":                  {required: "1.25.0", cluster: "v1.25.0-gke.100"},
		"the lowest version without a patch":              {required: "1.25", cluster: "v1.25.3"},
		"the lowest version with a prefix":                {required: "v1.25.0", cluster: "v1.24.0", want: "the package requires Kubernetes v1.25.0" + lacks + "v1.24.0"},
		"KUDO's oldest":                                   {required: "0.15.0", cluster: "v1.37.2"},
		"a range":                                         {required: ">=1.25.0-0 <1.30.0-0", cluster: "v1.29.9"},
		"above a range":                                   {required: ">=1.25.0-0 <1.30.0-0", cluster: "v1.30.0", want: "the package requires Kubernetes >=1.25.0-0 <1.30.0-0" + lacks + "v1.30.0"},
		"alternatives":                                    {required: "~1.25 || >=1.30", cluster: "v1.25.9"},
		"no constraint at all":                            {required: "new", cluster: "v1.30.0", want: `the package requires Kubernetes "new", which is not a valid constraint such as >=1.25.0-0`},
		"a constraint that is too long":                   {required: strings.Repeat("1", 254), cluster: "v1.30.0", want: "which is not a valid constraint"},
		"a version of the cluster that is none":           {required: "1.25.0", cluster: "latest", want: `the cluster has "latest", which is not a valid version`},
		"a chart":                                         {chart: ">=1.31.0-0", charts: []string{"web.tgz"}, cluster: "v1.33.1-gke.100"},
		"a chart without -0, and a version with a suffix": {chart: ">=1.31.0", charts: []string{"web.tgz"}, cluster: "v1.33.1-gke.100"},
		"a chart with one version":                        {chart: "1.31.x", charts: []string{"web.tgz"}, cluster: "v1.31.4+k3s1"},
		"a bare version of a chart is that version":       {chart: "1.31.0", charts: []string{"web.tgz"}, cluster: "v1.31.4", want: `chart "web.tgz" requires Kubernetes 1.31.0` + lacks + "v1.31.4"},
		"a chart of another plan":                         {chart: "<1.20.0", charts: []string{"other.tgz"}, cluster: "v1.31.4"},
		"the package first": {
			required: "1.40.0", chart: "<1.20.0", charts: []string{"web.tgz"}, cluster: "v1.31.4", want: "the package requires Kubernetes 1.40.0" + lacks + "v1.31.4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &kudo.OperatorVersionSpec{KubernetesVersion: test.required}
			if test.chart != "" {
				spec.Content = []kudo.ContentFile{{File: "large.yaml"}, {File: "web.tgz", KubeVersion: test.chart}}
			}
			got := compatibility.Problem(spec, test.charts, test.cluster)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if is, want := compatibility.IsConstrained(spec), test.required != "" || test.chart != ""; is != want {
				t.Errorf("constrained: %v, want %v", is, want)
			}
		})
	}
	if compatibility.IsConstrained(nil) {
		t.Error("no version is constrained")
	}
}

func TestParseCluster(t *testing.T) {
	for given, want := range map[string]string{
		"1.36": "v1.36.0", "v1.36": "v1.36.0", "1.36.2": "v1.36.2", "v1.36.2-gke.100": "v1.36.2-gke.100", "1.36.2+k3s1": "v1.36.2+k3s1",
		"": "", "1": "", "latest": "", "0.36.0": "", "1.36.0.1": "", "vv1.36.0": "", ">=1.36": "", "1.36.x": "", "1.36.0\n": "", "1.036.0": "",
		"1.36.0-" + strings.Repeat("a", 64): "",
	} {
		got, err := compatibility.ParseCluster(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", given, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "such as 1.36.0") {
			t.Errorf("%q: the error has no example: %v", given, err)
		}
	}
}

func TestIsReached(t *testing.T) {
	for versions, want := range map[[2]string][2]bool{
		{"v1.36.0", "v1.36.0"}: {true, true}, {"v1.36.1-gke.1", "v1.36.1"}: {true, true}, {"v1.35.9", "v1.36.0"}: {false, true}, {"v2.0.0", "v1.36.0"}: {true, true},
		{"", "v1.36.0"}: {false, false}, {"new", "v1.36.0"}: {false, false}, {"v1.36.0", "new"}: {false, false},
	} {
		reached, known := compatibility.IsReached(versions[0], versions[1])
		if reached != want[0] || known != want[1] {
			t.Errorf("%v: got %v, %v", versions, reached, known)
		}
	}
}

func TestUnmet(t *testing.T) {
	for problem, want := range map[string]string{
		"": "", "the package requires Kubernetes >=1.25, <1.30, and the cluster has v1.36.0": "the package requires Kubernetes >=1.25, <1.30",
	} {
		if got := compatibility.Unmet(problem); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
