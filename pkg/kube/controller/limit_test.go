package controller_test

import (
	"flag"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
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
	(&controller.Limit{QPS: 0.001, Burst: 2}).ApplyTo(config)
	one, other := clients(t, config)
	for i, c := range []rest.Interface{one, other} {
		if !c.GetRateLimiter().TryAccept() {
			t.Errorf("request %d of 2 has to wait", i+1)
		}
	}
	if one.GetRateLimiter().TryAccept() || other.GetRateLimiter().TryAccept() {
		t.Error("there is more than the limit")
	}

	alone, _ := clients(t, controller.WithoutLimits(config))
	for request := range 3 {
		if passes := alone.GetRateLimiter().TryAccept(); passes != (request < 2) {
			t.Errorf("request %d of 2 of who is apart passes: %v", request+1, passes)
		}
	}
}

func TestTheRateIsUnlimitedByDefault(t *testing.T) {
	config := &rest.Config{QPS: 5, Burst: 10} // as a kubeconfig or controller-runtime may set it
	new(controller.Limit).ApplyTo(config)
	one, _ := clients(t, config)
	if limiter := one.GetRateLimiter(); limiter != nil {
		t.Errorf("the rate is limited to %v requests a second", limiter.QPS())
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if limiter := kinds.RESTClient().GetRateLimiter(); limiter != nil {
		t.Errorf("the rate of discovery is limited to %v requests a second", limiter.QPS())
	}
}

func TestFlags(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		rate      float32
		burst     int
		err       string
	}{
		"no limit by default":                 {nil, 0, 0, ""},
		"no limit":                            {[]string{"--hub-api-qps=0", "--hub-api-burst=0"}, 0, 0, ""},
		"a limit":                             {[]string{"--hub-api-qps=0.5", "--hub-api-burst=3"}, 0.5, 3, ""},
		"a rate alone":                        {[]string{"--hub-api-qps=20"}, 20, 40, ""},
		"a rate of less than one":             {[]string{"--hub-api-qps=0.1"}, 0.1, 1, ""},
		"a negative rate":                     {[]string{"--hub-api-qps=-1"}, 0, 0, "--hub-api-qps must be greater than 0, or 0 for no limit, got -1"},
		"a rate that is no number":            {[]string{"--hub-api-qps=NaN"}, 0, 0, "--hub-api-qps must be greater than 0, or 0 for no limit, got NaN"},
		"an infinite rate":                    {[]string{"--hub-api-qps=Inf"}, 0, 0, "--hub-api-qps must be greater than 0, or 0 for no limit, got +Inf"},
		"a negative burst":                    {[]string{"--hub-api-qps=20", "--hub-api-burst=-1"}, 0, 0, "--hub-api-burst must be greater than 0, or 0 for twice --hub-api-qps, got -1"},
		"a burst that would not limit a rate": {[]string{"--hub-api-burst=40"}, 0, 0, "--hub-api-burst is 40, but without --hub-api-qps the rate is not limited"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var limit controller.Limit
			fs := flag.NewFlagSet("test", flag.ContinueOnError)
			limit.Bind(fs, "hub-api", "hub")
			if err := fs.Parse(test.arguments); err != nil {
				t.Fatal(err)
			}
			switch err := limit.Check(); {
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("the error is %v, want one with %q", err, test.err)
			case test.err == "" && err != nil:
				t.Error(err)
			}
			if test.err != "" {
				return
			}
			config := &rest.Config{}
			limit.ApplyTo(config)
			if limited := test.rate > 0; (config.RateLimiter != nil) != limited || limited && (config.QPS != test.rate || config.Burst != test.burst) {
				t.Errorf("limited to %v and %d by %v, want %v and %d", config.QPS, config.Burst, config.RateLimiter, test.rate, test.burst)
			}
		})
	}
}
