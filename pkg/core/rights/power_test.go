package rights_test

import (
	"slices"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// The cases follow https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks.
func TestPowersAreThoseThatKubernetesDocuments(t *testing.T) {
	const rbac, core = `apiGroups: [rbac.authorization.k8s.io], `, `apiGroups: [""], `
	for name, test := range map[string]struct {
		rule string
		// inCluster and inNamespace are the powers of the rule in clusterRules, and in rules of a namespace.
		inCluster, inNamespace string
	}{
		"Secrets are listed":                                       {core + "resources: [secrets], verbs: [list]", "secrets", ""},
		"Secrets are watched":                                      {core + "resources: [secrets], verbs: [watch]", "secrets", ""},
		"Secrets are read by name":                                 {core + "resources: [secrets], resourceNames: [a], verbs: [get]", "secrets", ""},
		"Secrets with tokens are created":                          {core + "resources: [secrets], verbs: [create]", "secrets", ""},
		"pods are created":                                         {core + "resources: [pods], verbs: [create]", "workloads", ""},
		"pods are read":                                            {core + "resources: [pods, pods/log], verbs: [get, list, watch]", "", ""},
		"commands are executed":                                    {core + "resources: [pods/exec], verbs: [create]", "workloads", ""},
		"commands are executed by WebSocket":                       {core + "resources: [pods/exec], verbs: [get]", "workloads", ""},
		"containers are debugged":                                  {core + "resources: [pods/ephemeralcontainers], verbs: [patch]", "workloads", ""},
		"Deployments are patched":                                  {"apiGroups: [apps], resources: [deployments], verbs: [patch]", "workloads", ""},
		"DaemonSets are created":                                   {"apiGroups: [apps], resources: [daemonsets], verbs: [create]", "workloads", ""},
		"CronJobs are updated":                                     {"apiGroups: [batch], resources: [cronjobs], verbs: [update]", "workloads", ""},
		"Deployments are scaled":                                   {"apiGroups: [apps], resources: [deployments/scale], verbs: [patch]", "workloads", ""},
		"everything is scaled":                                     {"apiGroups: [apps], resources: ['*/scale'], verbs: [update]", "workloads", ""},
		"services are called":                                      {core + "resources: [services/proxy], verbs: [get]", "workloads", ""},
		"pods are bound to nodes":                                  {core + "resources: [pods/binding], verbs: [create]", "workloads", ""},
		"pods are labelled by their status":                        {core + "resources: [pods/status], verbs: [patch]", "cluster-wide-writes", ""},
		"Services are redirected":                                  {core + "resources: [services/status], verbs: [patch]", "cluster-wide-writes", ""},
		"namespaces are deleted":                                   {core + "resources: [namespaces], verbs: [delete]", "cluster-wide-writes", ""},
		"mirrors are changed":                                      {"apiGroups: [kudo.dev], resources: [instances/status], verbs: [patch]", "cluster-wide-writes", ""},
		"Instances are read":                                       {"apiGroups: [kudo.dev], resources: [instances], verbs: [get, list, watch]", "", ""},
		"pods are evicted":                                         {core + "resources: [pods/eviction], verbs: [create]", "", ""},
		"volumes of nodes are created":                             {core + "resources: [persistentvolumes], verbs: [create]", "volumes", "volumes"},
		"volumes are read":                                         {core + "resources: [persistentvolumes], verbs: [get, list, watch]", "", ""},
		"logs of nodes are read":                                   {core + "resources: [nodes/log], verbs: [get]", "nodes", "nodes"},
		"the memory of containers is dumped":                       {core + "resources: [nodes/checkpoint], verbs: [create]", "nodes", "nodes"},
		"the kubelet is called":                                    {core + "resources: [nodes/proxy], verbs: [get]", "nodes", "nodes"},
		"nodes are labelled":                                       {core + "resources: [nodes], verbs: [patch]", "nodes", "nodes"},
		"nodes are read":                                           {core + "resources: [nodes, nodes/metrics], verbs: [get, list, watch]", "", ""},
		"roles are escalated":                                      {rbac + "resources: [roles], verbs: [escalate]", "roles", "roles"},
		"roles are bound":                                          {rbac + "resources: [clusterroles], resourceNames: [edit], verbs: [bind]", "roles", "roles"},
		"roles are created":                                        {rbac + "resources: [clusterroles], verbs: [create, patch]", "", ""},
		"users are impersonated":                                   {core + "resources: [users], verbs: [impersonate]", "impersonation", "impersonation"},
		"users are impersonated partly":                            {"apiGroups: [authentication.k8s.io], resources: [users], verbs: ['impersonate:user-info']", "impersonation", "impersonation"},
		"users are impersonated for one resource":                  {core + "resources: [pods], verbs: ['impersonate-on:user-info:list']", "impersonation", "impersonation"},
		"extra fields are impersonated":                            {"apiGroups: [authentication.k8s.io], resources: [userextras/scopes], verbs: ['*']", "impersonation", "impersonation"},
		"requests for certificates are created":                    {"apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get]", "", ""},
		"requests for certificates are approved":                   {"apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]", "certificates", "certificates"},
		"certificates are issued":                                  {"apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/status], verbs: [patch]", "certificates", "certificates"},
		"approval for a signer":                                    {"apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kube-apiserver-client], verbs: [approve]", "certificates", "certificates"},
		"a signature of a signer":                                  {"apiGroups: [certificates.k8s.io], resources: [signers], verbs: [sign]", "certificates", "certificates"},
		"tokens are requested":                                     {core + "resources: [serviceaccounts/token], verbs: [create]", "tokens", "tokens"},
		"tokens are requested by a wildcard":                       {core + "resources: ['*/token'], verbs: [create]", "tokens", "tokens"},
		"tokens are requested for one account":                     {core + "resources: [serviceaccounts/token], resourceNames: [a], verbs: [create]", "tokens", "tokens"},
		"service accounts are created":                             {core + "resources: [serviceaccounts], verbs: [create]", "cluster-wide-writes", ""},
		"webhooks are created":                                     {"apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [create]", "admission", "admission"},
		"webhooks are deleted":                                     {"apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [delete]", "admission", "admission"},
		"policies are bound":                                       {"apiGroups: [admissionregistration.k8s.io], resources: [mutatingadmissionpolicybindings], verbs: [create]", "admission", "admission"},
		"webhooks are read":                                        {"apiGroups: [admissionregistration.k8s.io], resources: ['*'], verbs: [get, list, watch]", "", ""},
		"an API is served":                                         {"apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [create]", "apis", "apis"},
		"namespaces are labelled":                                  {core + "resources: [namespaces], verbs: [patch]", "namespaces", "namespaces"},
		"a namespace is labelled":                                  {core + "resources: [namespaces], resourceNames: [a], verbs: [update]", "namespaces", "namespaces"},
		"namespaces are read":                                      {core + "resources: [namespaces], verbs: [get, list, watch]", "", ""},
		"definitions are created":                                  {"apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [create, patch]", "", ""},
		"ConfigMaps of kube-system are changed":                    {core + "resources: [configmaps], verbs: [patch]", "cluster-wide-writes", ""},
		"leases of kube-system are changed":                        {"apiGroups: [coordination.k8s.io], resources: [leases], verbs: [update]", "cluster-wide-writes", ""},
		"endpoints of kube-system are changed":                     {"apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [create]", "cluster-wide-writes", ""},
		"network policies of kube-system are lost":                 {"apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [deletecollection]", "cluster-wide-writes", ""},
		"ConfigMaps of kube-system are read":                       {core + "resources: [configmaps], verbs: [get, list, watch]", "", ""},
		"events are created":                                       {`apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]`, "", ""},
		"custom resources are managed":                             {"apiGroups: [kafka.example.com], resources: ['*'], verbs: ['*']", "", ""},
		"access is reviewed":                                       {"apiGroups: [authentication.k8s.io, authorization.k8s.io], resources: [tokenreviews, subjectaccessreviews], verbs: [create]", "", ""},
		"every verb on ConfigMaps":                                 {core + "resources: [configmaps], verbs: ['*']", "cluster-wide-writes", ""},
		"every verb on service accounts":                           {core + "resources: [serviceaccounts], verbs: ['*']", "impersonation cluster-wide-writes", "impersonation"},
		"reading everything":                                       {"apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]", "nodes secrets workloads", "nodes"},
		"every subresource of pods as Kubernetes does not know it": {core + "resources: ['pods/*'], verbs: ['*']", "", ""},
		"everything of the core": {core + "resources: ['*'], verbs: ['*']",
			"impersonation tokens nodes volumes namespaces secrets workloads cluster-wide-writes", "impersonation tokens nodes volumes namespaces"},
		"everything": {"apiGroups: ['*'], resources: ['*'], verbs: ['*']", strings.Join(rights.PowerNames(), " "),
			"roles impersonation tokens certificates nodes volumes admission apis namespaces"},
		"every path": {"nonResourceURLs: ['*'], verbs: ['*']", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for field, want := range map[string]string{
				"clusterRules: [{": test.inCluster, "rules: [{": test.inNamespace, "namespaces: [{name: a, rules: [{": test.inNamespace,
			} {
				end := "}]"
				if strings.HasPrefix(field, "namespaces") {
					end += "}]"
				}
				var got []string
				for _, p := range rights.PowersOf(parsePermissions(t, field+test.rule+end)) {
					got = append(got, p.Name)
				}
				if !slices.Equal(got, strings.Fields(want)) {
					t.Errorf("%s}]: got %q, want %q", field+test.rule, got, want)
				}
			}
		})
	}
}

func TestPowersNameThePermissionAndTheFlag(t *testing.T) {
	for name, test := range map[string]struct {
		declared, allowed, want, flag string
	}{
		"no power":      {`rules: [{apiGroups: [""], resources: [pods], verbs: [create]}]`, "", "", ""},
		"one power":     {`clusterRules: [{apiGroups: [""], resources: [pods, secrets], verbs: [get, list]}]`, "", "get on secrets reaches the Secrets of every namespace", "secrets"},
		"a wildcard":    {`clusterRules: [{apiGroups: ["*"], resources: [deployments], verbs: ["*"]}]`, "", "* on deployments.apps includes create on deployments.apps, which runs or changes containers in every namespace", "workloads"},
		"all resources": {`clusterRules: [{apiGroups: [batch], resources: ["*"], verbs: [patch]}]`, "", "patch on * includes patch on cronjobs.batch, which runs or changes containers in every namespace", "workloads"},
		"the same power twice": {`{rules: [{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}], clusterRules: [{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}]}`,
			"", "get on nodes/proxy controls nodes and their containers", "nodes"},
		"two of which one is allowed": {`clusterRules: [{apiGroups: [""], resources: [secrets, nodes/proxy], verbs: [get]}]`, "secrets",
			"get on nodes/proxy controls nodes and their containers", "nodes"},
		"all are allowed": {`clusterRules: [{apiGroups: [""], resources: [secrets, nodes/proxy], verbs: [get]}]`, "*", "", ""},
		"many": {`clusterRules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`, "roles,impersonation,tokens,certificates,nodes,volumes,admission",
			"* on * includes create on apiservices.apiregistration.k8s.io, which intercepts requests of others, " +
				"* on * includes create on namespaces, which changes labels by which namespaces are protected, " +
				"* on * includes * on secrets, which reaches the Secrets of every namespace and 2 more", "apis,namespaces,secrets,workloads,cluster-wide-writes"},
	} {
		t.Run(name, func(t *testing.T) {
			powers := rights.PowersOf(parsePermissions(t, test.declared)).Except(strings.Split(test.allowed, ","))
			if powers.String() != test.want {
				t.Errorf("got %q, want %q", powers, test.want)
			}
			if len(powers) > 0 && powers.Flag() != "--allow-escalation="+test.flag {
				t.Errorf("got %q, want %q", powers.Flag(), test.flag)
			}
			actor, err := rights.Policy{Escalation: strings.Split(test.allowed, ",")}.Actor(
				rights.Subject{Namespace: "ns", Name: "app", Permissions: parsePermissions(t, test.declared)})
			if (err == nil) != (test.want == "") || err == nil && actor.User == "" {
				t.Errorf("the identity is %v, the refusal %v", actor, err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), powers.Flag())) {
				t.Errorf("the refusal does not name permission and flag: %v", err)
			}
		})
	}
	if rights.PowersOf(nil) != nil || rights.PowersOf(&kudo.Permissions{}) != nil {
		t.Error("no permissions have powers")
	}
}
