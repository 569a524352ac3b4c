package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

func TestFlagsDescribeThePolicy(t *testing.T) {
	reserved := rights.ReservedNamespaces("own")
	for name, test := range map[string]struct {
		flags   string
		want    rights.Policy
		problem string
	}{
		"no flags":                {"", rights.Policy{}, ""},
		"declared only":           {"--rights=declared", rights.Policy{Declared: true}, ""},
		"a word that is unknown":  {"--rights=all", rights.Policy{}, `invalid argument "all" for "--rights" flag: must be declared or any`},
		"an account":              {"--default-service-account=a", rights.Policy{DefaultServiceAccount: "a"}, ""},
		"an account elsewhere":    {"--default-service-account=ns/a", rights.Policy{DefaultServiceAccount: "ns/a"}, ""},
		"a wrong account":         {"--default-service-account=ns/a/b", rights.Policy{}, "must be NAME or NAMESPACE/NAME"},
		"an account without name": {"--default-service-account=ns/", rights.Policy{}, "must be NAME or NAMESPACE/NAME"},
		"accounts somewhere":      {"--service-account-namespaces=a,b", rights.Policy{ServiceAccountNamespaces: []string{"a", "b"}}, ""},
		"accounts everywhere":     {"--service-account-namespaces=*", rights.Policy{ServiceAccountNamespaces: []string{"*"}}, ""},
		"no accounts":             {"--service-account-namespaces=none", rights.Policy{ServiceAccountNamespaces: []string{}}, ""},
		"a reserved namespace":    {"--allow-namespaces=kube-system", rights.Policy{Allowed: []string{"kube-system"}}, ""},
		"a wrong namespace":       {"--allow-namespaces=a,,b", rights.Policy{}, `"" is not the name of a namespace`},
		"every power":             {"--allow-escalation", rights.Policy{Escalation: []string{"*"}}, ""},
		"every power, as before":  {"--allow-escalation=true", rights.Policy{Escalation: []string{"*"}}, ""},
		"no power":                {"--allow-escalation=false", rights.Policy{}, ""},
		"some powers":             {"--allow-escalation=secrets,admission", rights.Policy{Escalation: []string{"secrets", "admission"}}, ""},
		"an unknown power":        {"--allow-escalation=secrets,might", rights.Policy{}, `unknown power "might": must be true, false or a list of roles, impersonation`},
	} {
		t.Run(name, func(t *testing.T) {
			var p permissions
			flags := flag.NewFlagSet("addon-agent", flag.ContinueOnError)
			p.bind(flags)
			flags.SetOutput(t.Output())
			got, err := rights.Policy{}, flags.Parse(strings.Fields(test.flags))
			if err == nil {
				got, err = p.policy("own")
			}
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("the error is %v, want %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			test.want.Reserved = reserved
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
