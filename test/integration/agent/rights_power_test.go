package agent

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// account is the service account of a package's pods, bound to one rule in a namespace or, if it is empty, in the whole cluster.
const account = `apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Name }}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sRole
metadata: {name: "{{ .Namespace }}-{{ .Name }}-account"}
rules: [{apiGroups: [%[2]q], resources: [%[3]s], verbs: [%[4]s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sRoleBinding
metadata: {name: "{{ .Namespace }}-{{ .Name }}-account"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]sRole, name: "{{ .Namespace }}-{{ .Name }}-account"}
subjects: [{kind: ServiceAccount, name: "{{ .Name }}", namespace: "{{ .Namespace }}"}]
`

// accountPackage returns a package whose pods have a permission, which it declares.
func accountPackage(scope, group, resource, verb string) kudo.OperatorVersionSpec {
	spec := configOnly()
	spec.Templates["config.yaml"] = fmt.Sprintf(account, scope, group, resource, verb)
	return withDeclaredRights(spec)
}

var _ = Describe("A package that declares a power", func() {
	powers := []any{
		func(ctx context.Context, scope, group, resource, verb, power string) {
			DeferCleanup(runAgent())
			h := newInstance(ctx, accountPackage(scope, group, resource, verb), nil)
			h.resolve(ctx)
			h.failsWith(ctx, "deploy", "permissions: "+verb+" on "+resource)
			h.failsWith(ctx, "deploy", "declare narrower rules (the agent's flag to allow it is --allow-escalation="+power+")")
			Expect(h.grantedRules(ctx)).To(BeEmpty())
			Expect(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: h.name}, &corev1.ServiceAccount{})).NotTo(Succeed())
			h.finish(ctx)
		},
		Entry("to read all Secrets", "Cluster", "", "secrets", "get", "secrets"),
		Entry("to create pods everywhere", "Cluster", "", "pods", "create", "workloads"),
		Entry("to write to kube-system, as to any namespace", "Cluster", "", "configmaps", "patch", "cluster-wide-writes"),
		Entry("to issue tokens", "", "", "serviceaccounts/token", "create", "tokens"),
		Entry("to call kubelets", "Cluster", "", "nodes/proxy", "get", "nodes"),
		Entry("to approve certificates", "Cluster", "certificates.k8s.io", "signers", "approve", "certificates"),
		Entry("to change labels of namespaces", "Cluster", "", "namespaces", "patch", "namespaces"),
		Entry("to intercept requests", "Cluster", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "create", "admission"),
	}
	DescribeTable("is refused", powers...)

	It("has it if the agent allows it, and then reaches what no rule names", func(ctx context.Context) {
		DeferCleanup(runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.Rights = rights.Policy{Escalation: []string{"secrets"}} }))
		h := newInstance(ctx, accountPackage("Cluster", "", "secrets", "get"), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: h.namespace + "-" + h.name}}
		Expect(managed.Create(ctx, secret)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(managed.Delete(ctx, secret)).To(Succeed()) })
		pods := rest.CopyConfig(managedServer.Config)
		pods.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + h.namespace + ":" + h.name}
		c, err := client.New(pods, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}) }).Should(Succeed())
		h.finish(ctx)

		other := newInstance(ctx, accountPackage("Cluster", rbacv1.GroupName, "clusterroles", "bind"), nil)
		other.resolve(ctx)
		other.failsWith(ctx, "deploy", "--allow-escalation=roles")
		other.finish(ctx)
	})
})
