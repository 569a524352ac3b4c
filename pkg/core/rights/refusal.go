package rights

import (
	"fmt"
	"regexp"
	"strings"
)

// The API server's messages about missing permissions: the reason of its authorizer (k8s.io/apiserver, endpoints/handlers/responsewriters), and
// the check of Roles and bindings (k8s.io/component-helpers, auth/rbac/validation). There is no code for either: quotas and admission
// policies answer with the same status.
var (
	cannot = regexp.MustCompile(`User "([^"]*)" cannot (\S+) (?:resource "([^"]*)" in API group "([^"]*)"|path "([^"]*)")` +
		`(?: in the namespace "([^"]*)")?`)
	exceeds = regexp.MustCompile(`(?s)user "([^"]*)" \(groups=\[[^\]]*\]\) is attempting to grant RBAC permissions not currently held:\s*(.*)`)
)

// Refusal explains an answer of the API server: user lacks a permission. It is empty if the answer has another cause.
func Refusal(user, answer string) string {
	if m := cannot.FindStringSubmatch(answer); m != nil && m[1] == user {
		what := m[5]
		if m[3] != "" {
			what = strings.TrimSuffix(m[3]+"."+m[4], ".")
		}
		where := "on the whole cluster: declare it under permissions.clusterRules in operator.yaml"
		if m[6] != "" {
			where = fmt.Sprintf("in namespace %q: declare it under permissions in operator.yaml", m[6])
		}
		return fmt.Sprintf("the package has no permission to %s %s %s", m[2], what, where)
	}
	if m := exceeds.FindStringSubmatch(answer); m != nil && m[1] == user {
		return "the package may not grant permissions that it does not have: declare them under permissions in operator.yaml: " +
			strings.Join(strings.Fields(m[2]), " ")
	}
	return ""
}
