package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

var db = types.NamespacedName{Namespace: "ns", Name: "db"}

func TestAReferenceNeedsGetOnTheSecret(t *testing.T) {
	const get = `apiGroups: [""], resources: [secrets], verbs: [get]`
	for name, test := range map[string]struct {
		declared string
		may      bool
	}{
		"nothing":                          {"{}", false},
		"that Secret":                      {`rules: [{` + get + `, resourceNames: [other, db]}]`, true},
		"another Secret":                   {`rules: [{` + get + `, resourceNames: [other]}]`, false},
		"all Secrets":                      {`rules: [{` + get + `}]`, true},
		"all Secrets of the cluster":       {`clusterRules: [{` + get + `}]`, true},
		"that of a list for the namespace": {`namespaces: [{name: ns, rules: [{` + get + `, resourceNames: [db]}]}]`, true},
		"those of another namespace":       {`namespaces: [{name: other, rules: [{` + get + `}]}]`, false},
		"all resources":                    {`rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`, true},
		"to write Secrets":                 {`rules: [{apiGroups: [""], resources: [secrets], verbs: [create, patch, list, watch]}]`, false},
		"Secrets of another API group":     {`rules: [{apiGroups: [example.com], resources: [secrets], verbs: [get]}]`, false},
		"a subresource":                    {`rules: [{apiGroups: [""], resources: [secrets/status, "*/status"], verbs: [get]}]`, false},
		"ConfigMaps":                       {`rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create]}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			actor := rights.OwnUser("ns", "app", parsePermissions(t, test.declared))
			if may, known := actor.MayGet(db); may != test.may || !known {
				t.Errorf("may: %v, known: %v", may, known)
			}
		})
	}
}

func TestWrittenReservedNamespaces(t *testing.T) {
	const configs = `apiGroups: [""], resources: [configmaps]`
	for name, test := range map[string]struct {
		declared string
		want     []string
	}{
		"none":                    {"{}", nil},
		"another one":             {`namespaces: [{name: web, rules: [{` + configs + `, verbs: [create]}]}]`, nil},
		"one that is only read":   {`namespaces: [{name: kube-system, rules: [{` + configs + `, verbs: [get, list, watch]}]}]`, nil},
		"one that is written":     {`namespaces: [{name: kube-system, rules: [{` + configs + `, verbs: [get]}, {` + configs + `, verbs: [create, patch]}]}]`, []string{"kube-system"}},
		"all verbs":               {`namespaces: [{name: kube-public, rules: [{` + configs + `, verbs: ["*"]}]}]`, []string{"kube-public"}},
		"the agent's and another": {`namespaces: [{name: tandem-system, rules: [{` + configs + `, verbs: [patch]}]}, {name: kube-system, rules: [{` + configs + `, verbs: [delete]}]}]`, []string{"kube-system", "tandem-system"}},
		"the Instance's own":      {`rules: [{` + configs + `, verbs: [create]}]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rights.WrittenReserved(parsePermissions(t, test.declared))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := rights.WrittenReserved(nil); got != nil {
		t.Errorf("without permissions: %v", got)
	}
}

func TestOtherIdentitiesMayGetWhatTheAPIServerSays(t *testing.T) {
	if may, known := (rights.Actor{}).MayGet(db); !may || !known {
		t.Error("the agent may get every Secret")
	}
	account, err := rights.Policy{DefaultServiceAccount: "installer"}.Actor(rights.Subject{Namespace: "ns", Name: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if may, known := account.MayGet(db); may || known {
		t.Error("only the API server knows what a service account may do")
	}
}

func TestARefusedReferenceNamesSecretUserAndWayOut(t *testing.T) {
	for name, test := range map[string]struct {
		actor rights.Actor
		want  string
	}{
		"declared permissions": {rights.OwnUser("ns", "app", parsePermissions(t, "{}")), `user "tandem:instance:ns:app" has no permission to get Secret ns/db: ` +
			`declare it under permissions.rules in operator.yaml (apiGroups: [""], resources: [secrets], resourceNames: [db], verbs: [get]), ` +
			`or use a Secret that the user may get`},
		"a service account": {rights.Actor{User: "system:serviceaccount:ns:a"}, `user "system:serviceaccount:ns:a" has no permission to get Secret ns/db: ` +
			`grant it with a Role in namespace "ns", or use a Secret that the user may get`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.actor.CannotGet(db).Error(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReservedNamespacesAreRefusedUnlessAllowed(t *testing.T) {
	policy := rights.Policy{Reserved: rights.ReservedNamespaces("agents"), Allowed: []string{"kube-public"}}
	for namespace, want := range map[string]bool{
		"kube-system": true, "kube-node-lease": true, "open-cluster-management-agent": true, "agents": true, "kube-public": false, "tandem-system": false, "default": false, "": false,
	} {
		for what, err := range map[string]error{
			"apply": policy.Protects(namespace), "install": policy.CheckInstall(namespace),
			"read": policy.CheckSecret(types.NamespacedName{Namespace: namespace, Name: "a"}),
		} {
			if (err != nil) != want || err != nil && !strings.Contains(err.Error(), "(the agent's flag to allow it is --allow-namespaces)") {
				t.Errorf("%s in namespace %q: %v", what, namespace, err)
			}
		}
	}
	if got := rights.ReservedExcept([]string{"kube-system"}); !slices.Equal(got, []string{"kube-public", "kube-node-lease", "open-cluster-management-agent", "open-cluster-management-hub", "tandem-system"}) {
		t.Errorf("got %q", got)
	}
}

func TestCredentialsForTheAPIServerAreNotRead(t *testing.T) {
	for kind, want := range map[corev1.SecretType]bool{
		corev1.SecretTypeServiceAccountToken: true, corev1.SecretTypeBootstrapToken: true,
		corev1.SecretTypeOpaque: false, corev1.SecretTypeTLS: false, corev1.SecretTypeBasicAuth: false, "": false, "example.com/own": false,
	} {
		err := rights.CheckSecretType(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}, Type: kind})
		if (err != nil) != want || err != nil && !strings.Contains(err.Error(), "Secret ns/db has type "+string(kind)) {
			t.Errorf("type %q: %v", kind, err)
		}
	}
}

func TestParseNamespaces(t *testing.T) {
	for list, want := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}} {
		if got, err := rights.ParseNamespaces(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v", list, got, err)
		}
	}
	for _, list := range []string{"a,,b", "A", "a/b", "*"} {
		if _, err := rights.ParseNamespaces(list); err == nil || !strings.Contains(err.Error(), "is not the name of a namespace") {
			t.Errorf("%q: the error is %v", list, err)
		}
	}
}

func TestReferencesNeedGetOnSecretsOfTheNamespace(t *testing.T) {
	secrets := objects(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}}`)
	const writes = `{apiGroups: [""], resources: [secrets], verbs: [create, patch]}`
	for name, test := range map[string]struct {
		declared        string
		missing, excess string
	}{
		"any name":              {`rules: [` + writes + `, {apiGroups: [""], resources: [secrets], verbs: [get]}]`, "", ""},
		"some names":            {`rules: [` + writes + `, {apiGroups: [""], resources: [secrets], resourceNames: [a, b], verbs: [get]}]`, "", ""},
		"the whole cluster":     {`{rules: [` + writes + `], clusterRules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`, "", ""},
		"nothing":               {`rules: [` + writes + `]`, "PASSWORD: get on secrets", ""},
		"more than to get them": {`rules: [` + writes + `, {apiGroups: [""], resources: [secrets], resourceNames: [a], verbs: [get, list]}]`, "", `permissions.rules[1]: list on secrets "a"`},
		"another namespace": {`{rules: [` + writes + `], namespaces: [{name: x, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}]}`,
			"PASSWORD: get on secrets", "permissions.namespaces[0].rules[0]: get on secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			needs := rights.NewNeeds("own", secrets)
			needs.Add("credentials", rights.Applies, secrets[0])
			needs.AddReference("PASSWORD")
			var missing, excess []string
			for _, m := range needs.FindMissing(parsePermissions(t, test.declared)) {
				missing = append(missing, m.Task+m.Parameter+": "+m.Right)
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

func TestTheRuleOfReferencesIsPrintedByItself(t *testing.T) {
	secrets := objects(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}}`)
	needs := rights.NewNeeds("own", secrets)
	needs.Add("credentials", rights.Applies, secrets[0])
	needs.AddReference("PASSWORD")
	want := parsePermissions(t, `rules: [{apiGroups: [""], resources: [secrets], verbs: [create, patch]}, {apiGroups: [""], resources: [secrets], verbs: [get]}]`)
	if diff := cmp.Diff(want, needs.Permissions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if unknown := strings.Join(needs.Unknown(), "\n"); !strings.Contains(unknown, "read from Secrets (PASSWORD): add the names of these Secrets as resourceNames") {
		t.Errorf("unknown: %q", unknown)
	}
}
