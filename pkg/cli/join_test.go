package cli

import (
	"strings"
	"testing"
)

func TestJoinRefusesWhatCannotBe(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no cluster":                 {nil, "expected CLUSTER, got 0 arguments", ExitUsage},
		"a name that is none":        {[]string{"Cluster_1", "--cluster-context", "c"}, `cluster name "Cluster_1" is not valid`, ExitUsage},
		"no way to the cluster":      {[]string{"cluster1"}, "--cluster-context or --cluster-kubeconfig of the managed cluster is required", ExitUsage},
		"a certificate for a moment": {[]string{"cluster1", "--cluster-context", "c", "--valid", "1s"}, `invalid argument "1s" for "--valid" flag: must be at least 10m0s`, ExitUsage},
		"a hub that is nowhere": {[]string{"cluster1", "--cluster-context", "c", "--kubeconfig", "testdata/nowhere"},
			"reading the kubeconfig of the hub: ", ExitFailure},
		"a hub whose certificate is not verified": {[]string{"cluster1", "--cluster-context", "c", "--kubeconfig", "testdata/insecure"},
			"or use --agent-insecure-skip-tls-verify to accept that", ExitFailure},
		"a hub whose certificate need not be verified": {
			[]string{"cluster1", "--cluster-context", "c", "--kubeconfig", "testdata/insecure", "--agent-insecure-skip-tls-verify"},
			`context "c" does not exist; contexts of the kubeconfig: hub`, ExitFailure},
		"a hub of another name": {[]string{"cluster1", "--cluster-context", "hub", "--kubeconfig", "testdata/insecure", "--context", "hbu"},
			`reading the kubeconfig of the hub: context "hbu" does not exist (did you mean hub?); contexts of the kubeconfig: hub`, ExitFailure},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, code := run(append([]string{"join"}, test.args...)...)
			if code != test.code || !strings.Contains(output, test.want) {
				t.Errorf("got %d, %s", code, output)
			}
		})
	}
}
