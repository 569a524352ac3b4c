package controller_test

import (
	"flag"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tandem-addons/tandem/pkg/controller"
)

// clients returns clients of the config as controller-runtime creates them, for two kinds.
func clients(t *testing.T, config *rest.Config) (one, other rest.Interface) {
	t.Helper()
	var made []rest.Interface
	for _, kind := range []string{"Secret", "Lease"} {
		gvk := corev1.SchemeGroupVersion.WithKind(kind)
		if kind == "Lease" {
			gvk = coordinationv1.SchemeGroupVersion.WithKind(kind)
		}
		h, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		c, err := apiutil.RESTClientForGVK(gvk, false, false, config, scheme.Codecs, h)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, c)
	}
	return made[0], made[1]
}

func TestAllClientsTogetherHaveTheLimit(t *testing.T) {
	config := &rest.Config{}
	(&controller.Limit{QPS: 0.001, Burst: 2}).Together(config)
	one, other := clients(t, config)
	for i, c := range []rest.Interface{one, other} {
		if !c.GetRateLimiter().TryAccept() {
			t.Errorf("request %d of 2 has to wait", i+1)
		}
	}
	if one.GetRateLimiter().TryAccept() || other.GetRateLimiter().TryAccept() {
		t.Error("there is more than the limit")
	}

	alone, _ := clients(t, controller.Apart(config))
	for request := range 3 {
		if passes := alone.GetRateLimiter().TryAccept(); passes != (request < 2) {
			t.Errorf("request %d of 2 of who is apart passes: %v", request+1, passes)
		}
	}
}

func TestFlags(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		want      controller.Limit
		err       string
	}{
		"the defaults":                      {nil, controller.Limit{QPS: 20, Burst: 40}, ""},
		"others":                            {[]string{"--hub-api-qps=0.5", "--hub-api-burst=1"}, controller.Limit{QPS: 0.5, Burst: 1}, ""},
		"no requests at all":                {[]string{"--hub-api-qps=0"}, controller.Limit{}, "--hub-api-qps and --hub-api-burst must be greater than 0, got 0 and 40"},
		"no limit at all":                   {[]string{"--hub-api-qps=-1"}, controller.Limit{}, "must be greater than 0, got -1 and 40"},
		"a number of requests that is none": {[]string{"--hub-api-qps=NaN"}, controller.Limit{}, "must be greater than 0, got NaN and 40"},
		"no requests at once":               {[]string{"--hub-api-burst=0"}, controller.Limit{}, "must be greater than 0, got 20 and 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := controller.Limit{QPS: 20, Burst: 40}
			fs := flag.NewFlagSet("test", flag.ContinueOnError)
			got.Bind(fs, "hub-api", "the hub")
			if err := fs.Parse(test.arguments); err != nil {
				t.Fatal(err)
			}
			switch err := got.Check(); {
			case test.err == "" && (err != nil || got.QPS != test.want.QPS || got.Burst != test.want.Burst):
				t.Errorf("%v, %v and %d, want %v and %d", err, got.QPS, got.Burst, test.want.QPS, test.want.Burst)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("the error is %v, want one with %q", err, test.err)
			}
		})
	}
}
