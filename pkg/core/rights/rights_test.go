package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// parsePermissions reads permissions as in operator.yaml.
func parsePermissions(t *testing.T, text string) *kudo.Permissions {
	t.Helper()
	p := &kudo.Permissions{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// objects reads a list of objects.
func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range documents {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

func TestProblemsNameTheRuleAndTheWayOut(t *testing.T) {
	for name, test := range map[string]struct {
		declared string
		want     []string
	}{
		"nothing is declared":  {"{}", nil},
		"a rule that is valid": {`rules: [{apiGroups: [""], resources: [configmaps, pods/exec], verbs: [create, patch]}]`, nil},
		"the core group is missing": {`rules: [{resources: [configmaps], verbs: [create]}]`,
			[]string{`permissions.rules[0]: the rule has no apiGroups: list them; the core group is ""`}},
		"no resources": {`rules: [{apiGroups: [""], verbs: [create]}]`,
			[]string{"permissions.rules[0]: the rule has no resources: list them in the plural, such as configmaps"}},
		"no verbs": {`rules: [{apiGroups: [""], resources: [pods], verbs: []}]`,
			[]string{"permissions.rules[0]: the rule has no verbs: list them, such as create and patch"}},
		"an empty verb": {`rules: [{apiGroups: [""], resources: [pods], verbs: [""]}]`,
			[]string{"permissions.rules[0].verbs: must not contain an empty name"}},
		"a kind in place of a resource": {`rules: [{apiGroups: [""], resources: [ConfigMap], verbs: [create]}]`,
			[]string{`permissions.rules[0].resources: resource "ConfigMap" is not valid: use the lower-case plural, such as configmaps`}},
		"a URL in a namespace": {`rules: [{nonResourceURLs: [/metrics], verbs: [get]}]`,
			[]string{"permissions.rules[0].nonResourceURLs: apply to the whole cluster: move the rule to clusterRules"}},
		"a URL in the cluster": {`clusterRules: [{nonResourceURLs: [/metrics], verbs: [get]}]`, nil},
		"a URL and resources": {`clusterRules: [{nonResourceURLs: [/metrics], apiGroups: [""], resources: [pods], verbs: [get]}]`,
			[]string{"permissions.clusterRules[0].nonResourceURLs: a rule is for resources or for nonResourceURLs, not both: split it"}},
		"creation by name": {`rules: [{apiGroups: [""], resources: [pods], resourceNames: [a], verbs: [create]}]`,
			[]string{"permissions.rules[0].resourceNames: warning: verb create never matches a rule with resourceNames: put it in a rule without them"}},
		"a namespace twice": {`namespaces: [{name: a, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}, {name: a, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]`,
			[]string{`permissions.namespaces[1].name: namespace "a" is listed twice: put its rules in one entry`}},
		"a namespace that is no name": {`namespaces: [{name: A_b, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]`,
			[]string{`permissions.namespaces[0].name: namespace "A_b" is not valid: `}},
		"a namespace without rules": {`namespaces: [{name: a}]`, []string{`permissions.namespaces[0]: namespace "a" has no rules: remove it`}},
		"a namespace without a name": {`namespaces: [{rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]`,
			[]string{"permissions.namespaces[0]: the namespace has no name"}},
		"escalation": {`rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}]`,
			[]string{"permissions.rules[0]: warning: verb escalate grants permissions beyond the declared ones: agents refuse this unless they run with --allow-escalation=roles"}},
		"escalation by the wildcard": {`rules: [{apiGroups: ["*"], resources: [roles], verbs: ["*"]}]`,
			[]string{"permissions.rules[0]: warning: * on roles.rbac.authorization.k8s.io includes escalate on roles.rbac.authorization.k8s.io, which grants permissions beyond the declared ones: agents refuse"}},
		"impersonation by the wildcard": {`rules: [{apiGroups: [""], resources: ["*"], verbs: ["*"]}]`,
			[]string{"permissions.rules[0]: warning: * on * includes impersonate on users, which acts as other users, * on * includes create on serviceaccounts/token, which"}},
		"impersonation in parts": {`clusterRules: [{apiGroups: [authentication.k8s.io], resources: [users], verbs: ["impersonate:user-info"]}]`,
			[]string{"permissions.clusterRules[0]: warning: verb impersonate acts as other users: agents refuse"}},
		"the wildcard on harmless resources": {`rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range rights.Problems(parsePermissions(t, test.declared)) {
				severity := ": "
				if p.Warning {
					severity = ": warning: "
				}
				got = append(got, p.Field+severity+p.Message)
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("got %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
	if p := rights.Problems(&kudo.Permissions{Rules: make([]rbacv1.PolicyRule, 501)}); len(p) != 1 {
		t.Errorf("too many rules: %v", p)
	}
	if p := rights.Problems(&kudo.Permissions{Namespaces: make([]kudo.NamespacePermissions, 101)}); len(p) != 1 {
		t.Errorf("too many namespaces: %v", p)
	}
}

const rules = `[{apiGroups: [""], resources: [configmaps], verbs: [create]}]`

func TestGrantsAreOneForEachNamespace(t *testing.T) {
	got := rights.Grants(parsePermissions(t, "{rules: "+rules+", clusterRules: "+rules+", namespaces: [{name: b, rules: "+rules+"}, {name: own, rules: "+rules+"}]}"), "own")
	var where []string
	for _, grant := range got {
		where = append(where, grant.Namespace)
		if len(grant.Rules) != 1 {
			t.Errorf("namespace %q has %d rules", grant.Namespace, len(grant.Rules))
		}
	}
	if diff := cmp.Diff([]string{"", "b", "own"}, where); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(rights.Grants(nil, "own")) > 0 || len(rights.Grants(&kudo.Permissions{}, "own")) > 0 {
		t.Error("there are grants without rules")
	}
}

func TestAnUpgradeHasThePermissionsOfBothVersions(t *testing.T) {
	secrets := strings.ReplaceAll(rules, "configmaps", "secrets")
	running := parsePermissions(t, "{rules: "+rules+", namespaces: [{name: a, rules: "+rules+"}]}")
	before := parsePermissions(t, "{rules: "+secrets+", clusterRules: "+rules+", namespaces: [{name: a, rules: "+secrets+"}, {name: b, rules: "+rules+"}]}")
	got := rights.Union(running, before)
	want := parsePermissions(t, `{rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}, {apiGroups: [""], resources: [secrets], verbs: [create]}],
clusterRules: `+rules+`, namespaces: [
{name: a, rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}, {apiGroups: [""], resources: [secrets], verbs: [create]}]},
{name: b, rules: `+rules+`}]}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(running, rights.Union(running, running)); diff != "" {
		t.Errorf("of equal versions (-want +got):\n%s", diff)
	}
	if rights.Union(nil, before) != nil || rights.Union(running, nil) != running {
		t.Error("a version without permissions adds some, or loses them")
	}
	if diff := cmp.Diff(parsePermissions(t, "{rules: "+rules+", namespaces: [{name: a, rules: "+rules+"}]}"), running); diff != "" {
		t.Errorf("the input changed:\n%s", diff)
	}
}

func TestNeedsAreTheVerbsOfTheEngine(t *testing.T) {
	all := objects(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: own}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: j}}`,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n, namespace: other}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`,
		`{apiVersion: example.com/v1, kind: Gateway, metadata: {name: g, namespace: own}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gateways.example.com},
spec: {group: example.com, scope: Cluster, names: {kind: Gateway, plural: gateways}}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: p}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r},
rules: [{apiGroups: [apps], resources: [deployments], resourceNames: [main], verbs: [get]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cr}, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: rb}, roleRef: {kind: Role, name: r}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: crb}, roleRef: {kind: ClusterRole, name: cr}}`,
	)
	needs := rights.NewNeeds("own", all)
	for _, o := range all {
		use := rights.Applies
		switch o.GetKind() {
		case "Secret":
			use = rights.Toggles
		case "Pod":
			use = rights.Pipes
		}
		needs.Add("task", use, o)
	}
	needs.AddKind("task", rights.Deletes, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
	want := parsePermissions(t, `
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create, patch]}
- {apiGroups: [""], resources: [pods, secrets], verbs: [create, delete, patch]}
- {apiGroups: [""], resources: [pods/exec], verbs: [create, get]}
- {apiGroups: [apps], resources: [deployments], resourceNames: [main], verbs: [get]}
- {apiGroups: [apps], resources: [statefulsets], verbs: [delete]}
- {apiGroups: [batch], resources: [jobs], verbs: [create, delete, patch]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, roles], verbs: [create, patch]}
clusterRules:
- {nonResourceURLs: [/metrics], verbs: [get]}
- {apiGroups: [""], resources: [namespaces], verbs: [create, patch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [create, patch]}
- {apiGroups: [example.com], resources: [gateways], verbs: [create, patch]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterrolebindings, clusterroles], verbs: [create, patch]}
namespaces:
- name: other
  rules:
  - {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [create, patch]}
`)
	if diff := cmp.Diff(want, needs.Permissions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if unknown := needs.Unknown(); len(unknown) > 0 {
		t.Errorf("unknown: %q", unknown)
	}
	if missing := needs.FindMissing(needs.Permissions()); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	if excess := needs.Excess(needs.Permissions()); len(excess) > 0 {
		t.Errorf("excess: %v", excess)
	}
	for _, problem := range rights.Problems(needs.Permissions()) {
		if !problem.Warning {
			t.Errorf("problem: %v", problem)
		}
	}
}

func TestWhatDependsOnTheClusterIsNamed(t *testing.T) {
	all := objects(t,
		`{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: rb}, roleRef: {kind: ClusterRole, name: view}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cr}, aggregationRule: {}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: wrong}, rules: text}`,
	)
	needs := rights.NewNeeds("own", all)
	for _, o := range all {
		needs.Add("task", rights.Applies, o)
	}
	unknown := strings.Join(needs.Unknown(), "\n")
	for _, want := range []string{
		"Widget.example.com is not one of Kubernetes' kinds", "resource widgets", "RoleBinding rb refers to ClusterRole view, which is not part",
		"ClusterRole cr aggregates", "ClusterRole wrong has invalid rules",
	} {
		if !strings.Contains(unknown, want) {
			t.Errorf("%q is missing in:\n%s", want, unknown)
		}
	}
	if len(needs.Excess(parsePermissions(t, "{rules: "+rules+"}"))) > 0 {
		t.Error("there is excess although not everything is known")
	}
}

func TestDeclaredPermissionsAreComparedWithTheNeeded(t *testing.T) {
	config := objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	for name, test := range map[string]struct {
		declared        string
		missing, excess string
	}{
		"exactly what is needed":      {`rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch]}]`, "", ""},
		"nothing":                     {`{}`, "config: create, patch on configmaps", ""},
		"a verb is missing":           {`rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]`, "config: patch on configmaps", ""},
		"a name is no permission":     {`rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [c], verbs: [create, patch]}]`, "config: create, patch on configmaps", `permissions.rules[0]: create on configmaps "c", patch on configmaps "c"`},
		"wildcards":                   {`rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`, "", ""},
		"the whole cluster":           {`clusterRules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch]}]`, "", ""},
		"another namespace":           {`namespaces: [{name: x, rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch]}]}]`, "config: create, patch on configmaps", "permissions.namespaces[0].rules[0]: create on configmaps, patch on configmaps"},
		"more than needed":            {`rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: [create, patch]}]`, "", "permissions.rules[0]: create on secrets, patch on secrets"},
		"a URL that nothing needs":    {`clusterRules: [{nonResourceURLs: [/x], verbs: [get]}]`, "config: create, patch on configmaps", "permissions.clusterRules[0]: get on /x"},
		"a subresource by wildcard":   {`rules: [{apiGroups: [""], resources: [configmaps, "*/status"], verbs: [create, patch]}]`, "", "permissions.rules[0]: create on */status, patch on */status"},
		"another group of that name":  {`rules: [{apiGroups: [apps], resources: [configmaps], verbs: [create, patch]}]`, "config: create, patch on configmaps", "permissions.rules[0]: create on configmaps.apps, patch on configmaps.apps"},
		"a verb that nothing needs":   {`rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch, list]}]`, "", "permissions.rules[0]: list on configmaps"},
		"a rule beside another's use": {`rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch]}, {apiGroups: [""], resources: [configmaps], verbs: [patch]}]`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			needs := rights.NewNeeds("own", config)
			needs.Add("config", rights.Applies, config[0])
			var missing, excess []string
			for _, m := range needs.FindMissing(parsePermissions(t, test.declared)) {
				missing = append(missing, m.Task+": "+m.Right)
			}
			for field, what := range needs.Excess(parsePermissions(t, test.declared)) {
				excess = append(excess, field+": "+what)
			}
			if got := strings.Join(missing, "; "); got != test.missing {
				t.Errorf("missing: got %q, want %q", got, test.missing)
			}
			if got := strings.Join(excess, "; "); got != test.excess {
				t.Errorf("excess: got %q, want %q", got, test.excess)
			}
		})
	}
}

func TestRefusalsNameThePermission(t *testing.T) {
	const user = "tandem:instance:ns:app"
	for name, test := range map[string]struct{ answer, want string }{
		"in a namespace": {
			`configmaps "c" is forbidden: User "tandem:instance:ns:app" cannot patch resource "configmaps" in API group "" in the namespace "ns"`,
			`the package has no permission to patch configmaps in namespace "ns": declare it under permissions in operator.yaml`},
		"on the cluster": {
			`clusterroles.rbac.authorization.k8s.io "c" is forbidden: User "tandem:instance:ns:app" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`,
			"the package has no permission to create clusterroles.rbac.authorization.k8s.io on the whole cluster: declare it under permissions.clusterRules in operator.yaml"},
		"of a Role": {
			"roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"tandem:instance:ns:app\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}",
			`the package may not grant permissions that it does not have: declare them under permissions in operator.yaml: {APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`},
		"of a quota":      {`pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`, ""},
		"of another user": {`users "x" is forbidden: User "agent" cannot impersonate resource "users" in API group "" at the cluster scope`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rights.Refusal(user, test.answer); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestActors(t *testing.T) {
	permissions := &kudo.Permissions{}
	reserved := []string{"kube-system", "tandem-system"}
	powerful := &kudo.Permissions{Rules: []rbacv1.PolicyRule{{Verbs: []string{"bind"}}}}
	system := &kudo.Permissions{Namespaces: []kudo.NamespacePermissions{{Name: "kube-system", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}}}
	for name, test := range map[string]struct {
		policy  rights.Policy
		subject rights.Subject
		user    string
		refused string
	}{
		"KUDO's way":                         {},
		"declared permissions":               {subject: rights.Subject{Permissions: permissions}, user: "tandem:instance:ns:app"},
		"declared ones precede an account":   {subject: rights.Subject{Permissions: permissions, ServiceAccount: "a"}, user: "tandem:instance:ns:app"},
		"none although they are required":    {policy: rights.Policy{Declared: true}, refused: "--rights=declared"},
		"none during a removal":              {policy: rights.Policy{Declared: true}, subject: rights.Subject{Removing: true}, refused: "(--rights=declared)"},
		"an account is no declaration":       {policy: rights.Policy{Declared: true}, subject: rights.Subject{ServiceAccount: "a"}, refused: "--rights=declared"},
		"those that are required":            {policy: rights.Policy{Declared: true}, subject: rights.Subject{Permissions: permissions}, user: "tandem:instance:ns:app"},
		"the Instance's account":             {subject: rights.Subject{ServiceAccount: "a"}, user: "system:serviceaccount:ns:a"},
		"a default account":                  {policy: rights.Policy{DefaultServiceAccount: "x/y"}, user: "system:serviceaccount:x:y"},
		"a default account of the namespace": {policy: rights.Policy{DefaultServiceAccount: "y"}, user: "system:serviceaccount:ns:y"},
		"another one than the default": {policy: rights.Policy{DefaultServiceAccount: "y"}, subject: rights.Subject{ServiceAccount: "a"},
			refused: "remove serviceAccountName"},
		"another one than the default, permitted": {policy: rights.Policy{DefaultServiceAccount: "y", ServiceAccountNamespaces: []string{"ns"}},
			subject: rights.Subject{ServiceAccount: "a"}, user: "system:serviceaccount:ns:a"},
		"an account where none is permitted": {policy: rights.Policy{ServiceAccountNamespaces: []string{}}, subject: rights.Subject{ServiceAccount: "a"},
			refused: "remove serviceAccountName"},
		"an account of the cluster": {policy: rights.Policy{Allowed: reserved}, subject: rights.Subject{Namespace: "kube-system", ServiceAccount: "a"},
			refused: "remove serviceAccountName"},
		"power":                           {subject: rights.Subject{Permissions: powerful}, refused: "--allow-escalation"},
		"power that is permitted":         {policy: rights.Policy{Escalation: []string{"roles"}}, subject: rights.Subject{Permissions: powerful}, user: "tandem:instance:ns:app"},
		"a reserved namespace":            {subject: rights.Subject{Permissions: system}, refused: "--allow-namespaces"},
		"a reserved namespace, permitted": {policy: rights.Policy{Allowed: reserved}, subject: rights.Subject{Permissions: system}, user: "tandem:instance:ns:app"},
	} {
		t.Run(name, func(t *testing.T) {
			test.policy.Reserved = reserved
			test.subject.Name = "app"
			if test.subject.Namespace == "" {
				test.subject.Namespace = "ns"
			}
			actor, err := test.policy.Actor(test.subject)
			if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Fatalf("the error is %v, want %q", err, test.refused)
			}
			if actor.User != test.user {
				t.Errorf("got user %q, want %q", actor.User, test.user)
			}
			if own := slices.Contains(actor.Groups, rights.Group); own != (actor.Permissions != nil) {
				t.Errorf("user %q has groups %q", actor.User, actor.Groups)
			}
			if (actor.Permissions != nil) != strings.HasPrefix(test.user, "tandem:") {
				t.Errorf("the permissions to grant are %v", actor.Permissions)
			}
		})
	}
}
