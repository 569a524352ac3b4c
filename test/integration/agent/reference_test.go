package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// loot returns a package that may only write ConfigMaps in another namespace, and copies a sensitive value to one of them.
func loot(into string) kudo.OperatorVersionSpec {
	return kudo.OperatorVersionSpec{
		Operator: corev1.ObjectReference{Kind: "Operator", Name: "loot"},
		Version:  "1.0.0",
		Permissions: &kudo.Permissions{Namespaces: []kudo.NamespacePermissions{
			{Name: into, Rules: []rbacv1.PolicyRule{rule("", "configmaps", "create", "patch")}},
		}},
		Parameters: []kudo.Parameter{{Name: "PASSWORD", Required: ptr.To(true), Sensitive: new(true)}},
		Templates: map[string]string{"loot.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-loot\", namespace: " + into + "}\n" +
			"data: {value: {{ .Params.PASSWORD | quote }}}\n"},
		Tasks: []kudo.Task{task("take", kudo.TaskApply, "loot.yaml")},
		Plans: map[string]kudo.Plan{"deploy": serial("take")},
	}
}

// withPermissions returns the package with other permissions.
func withPermissions(permissions *kudo.Permissions) kudo.OperatorVersionSpec {
	spec := loot("loot")
	spec.Permissions = permissions
	return spec
}

var _ = Describe("A reference to a Secret", func() {
	const key = "password"
	reserved := rights.Policy{Reserved: rights.ReservedNamespaces(agent.DefaultNamespace)}

	restricted := func(policy rights.Policy) func() {
		return runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.Rights = policy })
	}
	create := func(ctx context.Context, objects ...client.Object) {
		GinkgoHelper()
		for _, o := range objects {
			Expect(client.IgnoreAlreadyExists(managed.Create(ctx, o))).To(Succeed())
		}
	}
	// secret creates a Secret, and its namespace.
	secret := func(ctx context.Context, namespace, name string) (value string) {
		GinkgoHelper()
		value = fmt.Sprintf("loot of %s/%s", namespace, name)
		create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{key: []byte(value)}})
		return value
	}
	// thief returns an Instance in an existing namespace, which refers to a Secret there.
	thief := func(ctx context.Context, namespace, name string, spec kudo.OperatorVersionSpec) *hubPart {
		GinkgoHelper()
		h := &hubPart{name: "loot-" + namespace + "-" + name, namespace: namespace}
		create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "loot"}})
		h.make(ctx, spec, nil)
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.ParametersFrom = from(name, key) })
		h.resolve(ctx)
		return h
	}
	// stolen returns the value in the ConfigMap of an Instance; empty if there is none.
	stolen := func(ctx context.Context, h *hubPart) string {
		GinkgoHelper()
		config := &corev1.ConfigMap{}
		name := client.ObjectKey{Namespace: "loot", Name: strings.ReplaceAll(h.name, ".", "-") + "-loot"}
		Expect(client.IgnoreNotFound(managed.Get(ctx, name, config))).To(Succeed())
		return config.Data["value"]
	}

	// upgrade makes an Instance run another version of the package.
	upgrade := func(ctx context.Context, h *hubPart, permissions *kudo.Permissions) {
		GinkgoHelper()
		next := loot("loot")
		next.Version, next.Permissions = "2.0.0", permissions
		push(ctx, h.name+"-2.0.0", next)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
	}
	again := func(ctx context.Context, h *hubPart) {
		GinkgoHelper()
		h.change(ctx, func(s *kudo.InstanceSpec) {
			s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: types.UID(h.name + "-again")}
		})
	}
	message := func(ctx context.Context, h *hubPart) func() string {
		return func() string { return h.ready(ctx).Message }
	}
	mayGet := func(names ...string) *kudo.Permissions {
		permissions := loot("loot").Permissions
		get := rule("", "secrets", "get")
		get.ResourceNames = names
		permissions.Rules = []rbacv1.PolicyRule{get}
		return permissions
	}

	It("is not followed in reserved namespaces, in which nothing is installed", func(ctx context.Context) {
		makeAgentNamespace(ctx)
		restricted(reserved)
		for _, namespace := range reserved.Reserved {
			secret(ctx, namespace, "cloud-admin")
			h := thief(ctx, namespace, "cloud-admin", loot("loot"))
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonNotMirrored),
				HaveField("Message", `nothing is installed in namespace "`+namespace+`", which is reserved: delete the Instance, and create it with `+
					`another spec.installNamespace (the agent's flag to allow it is --allow-namespaces)`)), namespace)
			Expect(h.mirror(ctx)).To(BeNil())
			Expect(h.versions(ctx)).NotTo(ContainElement(ContainSubstring(h.name)))
			Expect(stolen(ctx, h)).To(BeEmpty())
			h.finish(ctx)
		}
	})

	It("is not followed in a reserved namespace for an Instance that is installed there, which stays as it is", func(ctx context.Context) {
		stop := restricted(rights.Policy{}) // as of an earlier release, or with --allow-namespaces
		value := secret(ctx, "kube-system", "installed")
		h := thief(ctx, "kube-system", "installed", withPermissions(mayGet("installed")))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(stolen(ctx, h)).To(Equal(value))
		stop()

		restricted(reserved)
		Eventually(message(ctx, h)).Should(Equal(`all plans are complete and all applied objects are healthy; changes of Secrets are not followed: ` +
			`parameter "PASSWORD": Secret kube-system/installed is not read, because namespace "kube-system" is reserved: ` +
			`use a Secret in another namespace (the agent's flag to allow it is --allow-namespaces)`))
		Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue))
		again(ctx, h)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonSecretNotFound),
			HaveField("Message", ContainSubstring("plan deploy waits for the values of sensitive parameters"))))
		Expect(stolen(ctx, h)).To(Equal(value))
		h.finish(ctx)
		Expect(stolen(ctx, h)).To(BeEmpty())
	})

	It("follows one to a reserved namespace that is allowed, and never one to the agent's own", func(ctx context.Context) {
		makeAgentNamespace(ctx)
		allowed := reserved
		allowed.Allowed = []string{"kube-system", agent.DefaultNamespace}
		restricted(allowed)
		value := secret(ctx, "kube-system", "allowed")
		h := thief(ctx, "kube-system", "allowed", withPermissions(mayGet()))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(stolen(ctx, h)).To(Equal(value))
		h.finish(ctx)

		secret(ctx, agent.DefaultNamespace, "hub-kubeconfig")
		for name, spec := range map[string]kudo.OperatorVersionSpec{
			"hub-kubeconfig": withPermissions(mayGet()), "tandem-digest-key": withPermissions(nil),
		} {
			h := thief(ctx, agent.DefaultNamespace, name, spec)
			Eventually(message(ctx, h)).Should(HaveSuffix(`parameter "PASSWORD": addon-agent never reads its own Secret tandem-system/` + name +
				` for a parameter: use a Secret in another namespace`))
			Expect(h.ready(ctx).Reason).To(Equal(kudo.ReasonSecretNotFound))
			Expect(stolen(ctx, h)).To(BeEmpty())
			h.finish(ctx)
		}
	})

	It("needs the permission of the package", func(ctx context.Context) {
		locally, reads := environment.RecordReads(agentLocally)
		runAgentWith(agentOnHub, locally)
		value := secret(ctx, "victim", "db")
		secret(ctx, "victim", "other")
		h := thief(ctx, "victim", "db", loot("loot"))
		refused := func(name string) string {
			return `plan deploy waits for the values of sensitive parameters: parameter "PASSWORD": user "tandem:instance:victim:` + h.name +
				`" has no permission to get Secret victim/` + name + `: declare it under permissions.rules in operator.yaml (apiGroups: [""], ` +
				`resources: [secrets], resourceNames: [` + name + `], verbs: [get]), or use a Secret that the user may get`
		}
		Eventually(message(ctx, h)).Should(Equal(refused("db")))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.ParametersFrom = from("missing", key) })
		Eventually(message(ctx, h)).Should(Equal(refused("missing")), "the same, whether it exists or not")
		Expect(reads.Of("/namespaces/victim/secrets")).To(BeEmpty())
		Expect(stolen(ctx, h)).To(BeEmpty())

		By("upgrading to a version that may get it")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.ParametersFrom = from("db", key) })
		upgrade(ctx, h, mayGet("db"))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(stolen(ctx, h)).To(Equal(value))

		By("referring to another Secret")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.ParametersFrom = from("other", key) })
		Eventually(message(ctx, h)).Should(Equal(refused("other")))
		Expect(stolen(ctx, h)).To(Equal(value))
		h.finish(ctx)
	})

	It("keeps its value when the permission is lost, and says that changes are not followed", func(ctx context.Context) {
		runAgent()
		value := secret(ctx, "kept", "db")
		h := thief(ctx, "kept", "db", withPermissions(mayGet("db")))
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		upgrade(ctx, h, loot("loot").Permissions)
		remark := ContainSubstring(`; changes of Secrets are not followed: parameter "PASSWORD": user "tandem:instance:kept:` + h.name +
			`" has no permission to get Secret kept/db`)
		h.completes(ctx, "deploy", before)
		Eventually(message(ctx, h)).Should(remark)

		By("changing the Secret")
		Expect(environment.Edit(ctx, managed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kept", Name: "db"}},
			func(s *corev1.Secret) { s.Data[key] = []byte(password()) })).To(Succeed())
		before = h.plan(ctx, "deploy")
		again(ctx, h)
		h.completes(ctx, "deploy", before)
		Expect(stolen(ctx, h)).To(Equal(value))
		Expect(h.ready(ctx).Message).To(remark)
		h.finish(ctx)
	})

	It("needs the permission of the service account", func(ctx context.Context) {
		restricted(rights.Policy{DefaultServiceAccount: "installer"})
		const namespace = "accounts"
		value := secret(ctx, namespace, "db")
		role := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
			meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
			create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: meta,
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "installer"}},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
			return &rbacv1.Role{ObjectMeta: meta}
		}
		role("apply", rule("", "configmaps", "create", "patch"))
		spec := withPermissions(nil)
		spec.Templates["loot.yaml"] = strings.ReplaceAll(spec.Templates["loot.yaml"], ", namespace: loot", "")
		h := thief(ctx, namespace, "db", spec)
		Eventually(message(ctx, h)).Should(HaveSuffix(`parameter "PASSWORD": user "system:serviceaccount:accounts:installer" has no permission to get ` +
			`Secret accounts/db: grant it with a Role in namespace "accounts", or use a Secret that the user may get`))

		By("granting it")
		get := rule("", "secrets", "get")
		get.ResourceNames = []string{"db"}
		role("read", get)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		config := &corev1.ConfigMap{}
		Expect(h.local(ctx, "-loot", config)).To(BeTrue())
		Expect(config.Data["value"]).To(Equal(value))
		h.finish(ctx)
	})

	It("needs the child's permission, too, if a parent passes it on", func(ctx context.Context) {
		runAgent()
		value := secret(ctx, "family", "db")
		spec := withPermissions(mayGet("db"))
		spec.Templates["child.yaml"] = "PASSWORD: {{ .Params.PASSWORD }}\n"
		spec.Tasks = append(spec.Tasks, childTask("own", "child.yaml"), childTask("none", "child.yaml"))
		spec.Plans = map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "main", Strategy: kudo.Parallel, Steps: []kudo.Step{
			{Name: "own", Tasks: []string{"own"}}, {Name: "none", Tasks: []string{"none"}}}}}}}
		parent := thief(ctx, "family", "db", spec)
		Eventually(func() kudo.ExecutionStatus { return parent.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress))
		passOn := func(task string, spec kudo.OperatorVersionSpec) *hubPart {
			GinkgoHelper()
			child, owner := &hubPart{name: parent.name + "." + task, namespace: parent.namespace}, parent.get(ctx)
			child.make(ctx, spec, nil)
			child.edit(ctx, func(i *kudo.Instance) {
				i.Labels = map[string]string{kudo.LabelRoot: parent.name}
				i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kudo.GroupVersion.WithKind("Instance"))}
				i.Spec.ParametersFrom = from("db", key)
			})
			child.resolve(ctx)
			born := child.get(ctx)
			parent.report(ctx, func(i *kudo.Instance) {
				i.Status.Children = append(i.Status.Children, kudo.ChildStatus{Task: task, Execution: i.Status.Execution.UID,
					State: kudo.ChildApplied, Instance: child.name, UID: born.UID, Generation: born.Generation})
			})
			return child
		}
		own := passOn("own", loot("loot"))
		Eventually(message(ctx, own)).Should(ContainSubstring(`user "tandem:instance:family:` + own.name + `" has no permission to get Secret family/db`))
		Expect(stolen(ctx, own)).To(BeEmpty())
		none := passOn("none", withPermissions(nil)) // it has those of its parent
		none.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(stolen(ctx, none)).To(Equal(value))
		for _, child := range []*hubPart{own, none} {
			child.edit(ctx, func(i *kudo.Instance) { i.OwnerReferences = nil })
		}
		parent.finish(ctx)
		own.finish(ctx)
		none.finish(ctx)
	})

	It("is not followed to a token of a service account by any package", func(ctx context.Context) {
		runAgent()
		create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tokens"}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "tokens", Name: "admin"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tokens", Name: "admin", Annotations: map[string]string{
				corev1.ServiceAccountNameKey: "admin"}}, Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{key: []byte(password())}})
		h := thief(ctx, "tokens", "admin", withPermissions(nil))
		Eventually(message(ctx, h)).Should(HaveSuffix(`parameter "PASSWORD": Secret tokens/admin has type kubernetes.io/service-account-token, ` +
			`which is not read: use a Secret of another type`))
		Expect(stolen(ctx, h)).To(BeEmpty())
		h.finish(ctx)
	})

	It("reads nothing as the agent for a package that is refused", func(ctx context.Context) {
		locally, reads := environment.RecordReads(agentLocally)
		runAgentWith(agentOnHub, locally, func(o *agent.Options) { o.Rights = rights.Policy{Declared: true} })
		secret(ctx, "refused", "db")
		h := thief(ctx, "refused", "db", withPermissions(nil))
		Eventually(message(ctx, h)).Should(ContainSubstring(`parameter "PASSWORD": the package declares no permissions, and the agent requires them`))
		Expect(reads.Of("/namespaces/refused/secrets")).To(BeEmpty())
		h.finish(ctx)
	})
})
