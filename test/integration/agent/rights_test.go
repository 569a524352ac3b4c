package agent

import (
	"context"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/test/integration/environment"
	tried "github.com/tandem-addons/tandem/test/rights"
)

// withDeclaredRights returns a version that declares exactly the permissions that `package rights` prints.
func withDeclaredRights(spec kudo.OperatorVersionSpec) kudo.OperatorVersionSpec {
	p := &pack.Package{Version: spec}
	spec.Permissions, _ = p.Rights()
	return spec
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// grantedRules returns the permissions of the Instance's user by namespace, as bound on the managed cluster.
func (h *hubPart) grantedRules(ctx context.Context) map[string][]rbacv1.PolicyRule {
	GinkgoHelper()
	user, found := rights.User(h.namespace, h.name), map[string][]rbacv1.PolicyRule{}
	own := client.MatchingLabels{kudo.LabelRightsNamespace: h.namespace, kudo.LabelRightsInstance: h.name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	var bindings rbacv1.RoleBindingList
	Expect(managed.List(ctx, &bindings, own)).To(Succeed())
	for _, binding := range bindings.Items {
		role := &rbacv1.Role{}
		if managed.Get(ctx, client.ObjectKeyFromObject(&binding), role) == nil && slices.Equal(binding.Subjects, subjects) {
			found[role.Namespace] = role.Rules
		}
	}
	var everywhere rbacv1.ClusterRoleBindingList
	Expect(managed.List(ctx, &everywhere, own)).To(Succeed())
	for _, binding := range everywhere.Items {
		role := &rbacv1.ClusterRole{}
		if managed.Get(ctx, client.ObjectKeyFromObject(&binding), role) == nil && slices.Equal(binding.Subjects, subjects) {
			found[""] = role.Rules
		}
	}
	return found
}

// grants returns declared permissions in the same form.
func (h *hubPart) grants(permissions *kudo.Permissions) map[string][]rbacv1.PolicyRule {
	all := map[string][]rbacv1.PolicyRule{}
	for _, grant := range rights.Grants(permissions, h.namespace) {
		all[grant.Namespace] = grant.Rules
	}
	return all
}

// expectNoRights waits until no Role or binding of the Instance is left.
func (h *hubPart) expectNoRights(ctx context.Context) {
	GinkgoHelper()
	own := client.MatchingLabels{kudo.LabelRightsNamespace: h.namespace, kudo.LabelRightsInstance: h.name}
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		Eventually(func() (left []string) {
			Expect(managed.List(ctx, list, own)).To(Succeed())
			Expect(eachItem(list, func(o client.Object) { left = append(left, o.GetName()) })).To(Succeed())
			return left
		}).Should(BeEmpty())
	}
}

// failsWith waits until a plan has failed permanently with that message.
func (h *hubPart) failsWith(ctx context.Context, plan, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := h.plan(ctx, plan)
		g.Expect(status.Message).To(ContainSubstring(message))
		g.Expect(status.Status).To(Equal(kudo.FatalError))
	}).Should(Succeed())
}

var _ = Describe("An Instance of a package that declares permissions", func() {
	Context("with an agent", func() {
		BeforeEach(func() { DeferCleanup(runAgent()) })

		It("runs all of its plans with them, and loses them last", func(ctx context.Context) {
			spec := withDeclaredRights(standard())
			h := newInstance(ctx, spec, map[string]string{"FEATURE": "true"})
			h.resolve(ctx)
			h.rollOut(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			Expect(h.grantedRules(ctx)).To(Equal(h.grants(spec.Permissions)))
			Expect(h.config(ctx, "-feature")).To(Equal("one"))

			By("switching a feature off, which needs to delete")
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"FEATURE": "false"} })
			h.completes(ctx, "feature", kudo.PlanStatus{})
			Expect(h.config(ctx, "-feature")).To(BeEmpty())

			By("removing everything, although its permissions do not include to delete ConfigMaps that it applies")
			Expect(managed.Get(ctx, client.ObjectKey{Name: h.namespace + "-" + h.name}, &rbacv1.ClusterRole{})).To(Succeed())
			h.finish(ctx)
			Expect(h.config(ctx, "-config")).To(BeEmpty())
			h.expectNoRights(ctx)
		})

		It("fails with the name of a permission that is missing", func(ctx context.Context) {
			spec := withDeclaredRights(configOnly())
			spec.Permissions.Rules = nil
			h := newInstance(ctx, spec, nil)
			h.resolve(ctx)
			h.failsWith(ctx, "deploy", `the package has no permission to patch configmaps in namespace "`+h.namespace+
				`": declare it under permissions in operator.yaml`)
			h.finish(ctx)
			h.expectNoRights(ctx)
		})

		It("cannot grant more than it has", func(ctx context.Context) {
			spec := configOnly()
			spec.Templates["role.yaml"] = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Name }}"}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
`
			spec = withDeclaredRights(spec)
			Expect(spec.Permissions.Rules).To(ContainElement(rule("", "secrets", "get")))
			fits := newInstance(ctx, spec, nil)
			fits.resolve(ctx)
			fits.completes(ctx, "deploy", kudo.PlanStatus{})

			narrow := *spec.DeepCopy()
			narrow.Permissions.Rules = slices.DeleteFunc(narrow.Permissions.Rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "secrets" })
			exceeds := newInstance(ctx, narrow, nil)
			exceeds.resolve(ctx)
			exceeds.failsWith(ctx, "deploy", `the package may not grant permissions that it does not have: declare them under permissions in `+
				`operator.yaml: {APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)
			exceeds.finish(ctx)
			fits.finish(ctx)
		})

		It("has the permissions of both versions during an upgrade", func(ctx context.Context) {
			first := withDeclaredRights(standard())
			h := newInstance(ctx, first, nil)
			h.resolve(ctx)
			h.rollOut(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})

			second := standard()
			second.Version = "2.0.0"
			second.Tasks[0].Spec.Resources = []string{"config.yaml"} // without its ClusterRole
			second.Parameters[1].Default = ptr.To("3")
			second = withDeclaredRights(second)
			Expect(first.Permissions.ClusterRules).NotTo(BeEmpty())
			Expect(second.Permissions.ClusterRules).To(BeEmpty())
			second.Permissions.Rules = append(second.Permissions.Rules, rule("", "secrets", "get"))
			push(ctx, h.name+"-2.0.0", second)
			h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
			Eventually(func() map[string][]rbacv1.PolicyRule { return h.grantedRules(ctx) }).
				Should(Equal(h.grants(rights.Union(second.Permissions, first.Permissions))))
			Eventually(func() int32 {
				app := &appsv1.Deployment{}
				Expect(h.local(ctx, "-app", app)).To(BeTrue())
				return *app.Spec.Replicas
			}).Should(Equal(int32(3)))
			Expect(h.grantedRules(ctx)).To(HaveKey(""))

			h.rollOut(ctx)
			Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "update").Status }).Should(Equal(kudo.Complete))
			Eventually(func() map[string][]rbacv1.PolicyRule { return h.grantedRules(ctx) }).Should(Equal(h.grants(second.Permissions)))
			role := &rbacv1.ClusterRole{}
			Eventually(func() error { return managed.Get(ctx, client.ObjectKey{Name: h.namespace + "-" + h.name}, role) }).
				Should(MatchError(apierrors.IsNotFound, "the ClusterRole of the version before is pruned"))
			h.finish(ctx)
			h.expectNoRights(ctx)
		})

		It("passes them to a child without its own", func(ctx context.Context) {
			task := task("child", kudo.TaskKudoOperator)
			task.Spec.Package = "child"
			spec := withDeclaredRights(configOnly())
			child := configOnly() // declares none
			spec.Tasks = append(spec.Tasks, task)
			spec.Plans = map[string]kudo.Plan{"deploy": serial("child")}
			parent := newInstance(ctx, spec, nil)
			parent.resolve(ctx)
			Eventually(func() string { return parent.plan(ctx, "deploy").Message }).ShouldNot(BeEmpty())

			born := &hubPart{name: parent.name + ".child", namespace: parent.namespace}
			born.make(ctx, child, nil)
			owner := parent.get(ctx)
			born.edit(ctx, func(i *kudo.Instance) {
				i.Labels = map[string]string{kudo.LabelRoot: parent.name}
				i.OwnerReferences = []metav1.OwnerReference{{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: owner.Name, UID: owner.UID,
					Controller: ptr.To(true)}}
			})
			born.resolve(ctx)
			Eventually(func() string { return born.plan(ctx, "deploy").Message }).
				Should(ContainSubstring("waiting for parent Instance"), "the hub has not acknowledged it")
			Expect(born.config(ctx, "-config")).To(BeEmpty())
			acknowledged := born.get(ctx)
			parent.report(ctx, func(i *kudo.Instance) {
				i.Status.Children = []kudo.ChildStatus{{Task: "child", Execution: i.Status.Execution.UID, State: kudo.ChildApplied,
					Instance: born.name, UID: acknowledged.UID, Generation: acknowledged.Generation}}
			})
			born.completes(ctx, "deploy", kudo.PlanStatus{})
			Expect(born.grantedRules(ctx)).To(Equal(parent.grants(spec.Permissions)))
			parent.completes(ctx, "deploy", kudo.PlanStatus{})

			By("removing the parent first")
			born.edit(ctx, func(i *kudo.Instance) { i.OwnerReferences = nil })
			parent.finish(ctx)
			parent.expectNoRights(ctx)
			Expect(born.grantedRules(ctx)).To(Equal(born.grants(spec.Permissions)))
			born.finish(ctx)
			born.expectNoRights(ctx)
		})

		It("does not write them again, and repairs them", func(ctx context.Context) {
			spec := withDeclaredRights(configOnly())
			h := newInstance(ctx, spec, nil)
			h.resolve(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			name := rights.User(h.namespace, h.name)

			By("changing a Role, deleting a binding and binding another role")
			Expect(environment.Edit(ctx, managed, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}},
				func(r *rbacv1.Role) { r.Rules = append(r.Rules, rule("*", "*", "*")) })).To(Succeed())
			Expect(managed.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
			Eventually(func() map[string][]rbacv1.PolicyRule { return h.grantedRules(ctx) }).Should(Equal(h.grants(spec.Permissions)))
			binding := &rbacv1.RoleBinding{}
			Expect(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, binding)).To(Succeed())
			forged := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: binding.Labels},
				Subjects: binding.Subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}
			Expect(managed.Delete(ctx, binding)).To(Succeed())
			if err := managed.Create(ctx, forged); !apierrors.IsAlreadyExists(err) {
				Expect(err).NotTo(HaveOccurred())
			}
			Eventually(func() string {
				Expect(client.IgnoreNotFound(managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, binding))).To(Succeed())
				return binding.RoleRef.Kind
			}).Should(Equal("Role"))
			h.finish(ctx)
			h.expectNoRights(ctx)
		})

		It("refuses verbs that exceed the declared permissions", func(ctx context.Context) {
			spec := withDeclaredRights(configOnly())
			spec.Permissions.Rules = append(spec.Permissions.Rules, rule(rbacv1.GroupName, "roles", "escalate"))
			h := newInstance(ctx, spec, nil)
			h.resolve(ctx)
			h.failsWith(ctx, "deploy", "permissions: verb escalate grants permissions beyond the declared ones: declare narrower rules (the agent's flag to allow it is --allow-escalation=roles)")
			Expect(h.grantedRules(ctx)).To(BeEmpty())
			Expect(h.config(ctx, "-config")).To(BeEmpty())
			h.finish(ctx)
		})
	})

	It("has its requests in a FlowSchema of their own", func(ctx context.Context) {
		var mutex sync.Mutex
		schemas := map[string]sets.Set[string]{} // the UIDs of FlowSchemas by user
		of := func(user string) []string {
			mutex.Lock()
			defer mutex.Unlock()
			return schemas[user].UnsortedList()
		}
		recorded := rest.CopyConfig(agentLocally)
		recorded.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil {
					mutex.Lock()
					defer mutex.Unlock()
					user := r.Header.Get(transport.ImpersonateUserHeader)
					if schemas[user] == nil {
						schemas[user] = sets.New[string]()
					}
					schemas[user].Insert(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))
				}
				return response, err
			})
		})
		objects, err := manifests.Objects(manifests.FS, "agent/priority.yaml", nil)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			Expect(managed.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(managed.Delete(ctx, object)).To(Succeed()) })
		}
		schema := &flowcontrolv1.FlowSchema{}
		Expect(managed.Get(ctx, client.ObjectKey{Name: "tandem-instances"}, schema)).To(Succeed())
		anyone := rights.OwnUser("any", "one", nil)
		impersonating := rest.CopyConfig(recorded)
		impersonating.Impersonate = rest.ImpersonationConfig{UserName: anyone.User, Groups: anyone.Groups}
		probe := clientOf(impersonating)
		Eventually(func() []string { // the API server takes a moment to notice a FlowSchema
			_ = probe.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}) // forbidden
			return of(anyone.User)
		}).Should(ContainElement(string(schema.UID)))

		runAgentWith(agentOnHub, recorded)
		h := newInstance(ctx, withDeclaredRights(configOnly()), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(of(rights.User(h.namespace, h.name))).To(ConsistOf(string(schema.UID)))
		h.finish(ctx)
	})

	It("costs no requests at rest, and few when it is installed", func(ctx context.Context) {
		recorded, writes := environment.RecordWrites(agentLocally)
		stop := runAgentWith(agentOnHub, recorded)
		spec := withDeclaredRights(configOnly())
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		ofRights := slices.DeleteFunc(writes.Requests(), func(r string) bool { return path.Base(r) != rights.User(h.namespace, h.name) })
		Expect(ofRights).To(HaveLen(4), "a Role, a ClusterRole and their bindings")
		stop()

		again, writes := environment.RecordWrites(agentLocally)
		stop = runAgentWith(agentOnHub, again)
		h.tamper(ctx, func(i *kudo.Instance) { i.Labels = map[string]string{"changed": "true"} })
		Eventually(func() bool { return h.mirror(ctx) != nil }).Should(BeTrue())
		Consistently(func() []string { return h.writesOf(writes, nil) }).Should(BeEmpty())
		h.finish(ctx)
		h.expectNoRights(ctx)
		stop()
	})

	It("has them removed by an agent that was away", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, withDeclaredRights(configOnly()), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.grantedRules(ctx)).NotTo(BeEmpty())
		stop()
		h.edit(ctx, func(i *kudo.Instance) { i.Finalizers = nil })
		Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		h.loseMirror(ctx)
		runAgent()
		h.expectNoRights(ctx)
	})
})

var _ = Describe("An agent that restricts permissions", func() {
	restricted := func(policy rights.Policy) func() {
		return runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.Rights = policy })
	}
	reserved := []string{"kube-system", "tandem-system"}

	It("requires packages to declare them", func(ctx context.Context) {
		restricted(rights.Policy{Declared: true})
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.failsWith(ctx, "deploy", "the package declares no permissions, and the agent requires them (--rights=declared)")
		Expect(h.config(ctx, "-config")).To(BeEmpty())
		declares := newInstance(ctx, withDeclaredRights(configOnly()), nil)
		declares.resolve(ctx)
		declares.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
		declares.finish(ctx)
	})

	It("removes what a package without them has applied, and skips its cleanup plan on request", func(ctx context.Context) {
		stop := runAgent()
		spec := configOnly()
		plain := newInstance(ctx, spec, nil)
		spec.Plans["cleanup"] = serial("farewell")
		h := newInstance(ctx, spec, nil)
		for _, each := range []*hubPart{plain, h} {
			each.resolve(ctx)
			each.completes(ctx, "deploy", kudo.PlanStatus{})
		}
		stop()
		restricted(rights.Policy{Declared: true})
		plain.finish(ctx)
		Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Message }).Should(Equal(`plan "cleanup" failed and will be retried: ` +
			"the package declares no permissions, and the agent requires them (--rights=declared); if it cannot succeed, " +
			"annotate the Instance on the hub with kudo.dev/skip-cleanup=true to remove its objects without the plan, " +
			"or run 'kubectl addon uninstall --release' to release the Instance and leave its objects"))
		Expect(h.config(ctx, "-config")).To(Equal("one"))

		h.edit(ctx, func(i *kudo.Instance) { i.Annotations = map[string]string{kudo.AnnotationSkipCleanup: "true"} })
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect([]string{h.config(ctx, "-config"), h.config(ctx, "-farewell")}).To(Equal([]string{"", ""}))
		h.release(ctx)
	})

	It("acts as a service account for packages that declare none", func(ctx context.Context) {
		restricted(rights.Policy{DefaultServiceAccount: "installer"})
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).
			Should(ContainSubstring(`User "system:serviceaccount:` + h.namespace + `:installer" cannot patch`))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.ServiceAccountName = "admin" })
		h.failsWith(ctx, "deploy", `the agent does not permit Instances in namespace "`+h.namespace+`" to name a service account`)
		h.finish(ctx)
	})

	It("applies nothing to reserved namespaces", func(ctx context.Context) {
		stop := restricted(rights.Policy{Reserved: reserved})
		foreign := configOnly()
		foreign.Templates["config.yaml"] = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}", namespace: kube-system}}`
		h := newInstance(ctx, foreign, nil)
		h.resolve(ctx)
		message := `nothing is applied to namespace "kube-system": use another one (the agent's flag to allow it is --allow-namespaces)`
		h.failsWith(ctx, "deploy", "ConfigMap kube-system/"+h.name+": "+message)
		declares := newInstance(ctx, withDeclaredRights(foreign), nil)
		declares.resolve(ctx)
		declares.failsWith(ctx, "deploy", message)
		for _, name := range []string{h.name, declares.name} {
			err := managed.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: name}, &corev1.ConfigMap{})
			Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
		}
		h.finish(ctx)
		stop()

		By("allowing one")
		restricted(rights.Policy{Reserved: reserved, Allowed: reserved[:1]})
		declares.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"} })
		declares.completes(ctx, "deploy", kudo.PlanStatus{})
		declares.finish(ctx)
		declares.expectNoRights(ctx)
	})
})

var _ = Describe("The permissions that package rights prints", func() {
	It("are those of the Instances of the examples, as the API server answers", func(ctx SpecContext) {
		DeferCleanup(runAgent())
		var instances []*hubPart
		var wants []*kudo.Permissions
		const examples = "../../../examples/packages"
		Expect(fs.WalkDir(os.DirFS(examples), ".", func(file string, _ fs.DirEntry, err error) error {
			if err != nil || path.Base(file) != "operator.yaml" {
				return err
			}
			p, _ := pack.Load(os.DirFS(path.Join(examples, path.Dir(file))))
			needed, _ := p.Rights()
			_, version := p.Objects(packages)
			version.Spec.Permissions = needed
			h := newInstance(ctx, version.Spec, map[string]string{})
			h.resolve(ctx)
			instances, wants = append(instances, h), append(wants, needed)
			return nil
		})).To(Succeed())
		Expect(instances).To(HaveLen(8))
		for i, h := range instances {
			Eventually(func() map[string][]rbacv1.PolicyRule { return h.grantedRules(ctx) }).Should(Equal(h.grants(wants[i])))
		}
		shared := []string{metav1.NamespaceDefault, metav1.NamespaceSystem}
		var own []string // those of other specs are many
		for _, h := range instances {
			own = append(own, h.namespace)
		}
		as := func(namespaces []string, user string, groups ...string) []tried.Right {
			GinkgoHelper()
			subject := rest.CopyConfig(managedServer.Config)
			subject.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
			all, err := tried.Within(ctx, managedServer.Config, subject, namespaces...)
			Expect(err).NotTo(HaveOccurred())
			return all
		}
		everyone := as(append(shared, own...), "no-such-user")
		for i, h := range instances {
			// Tens of thousands of requests would be needed to try all namespaces of all Instances.
			namespaces := append(shared[:2:2], h.namespace, own[(i+1)%len(own)])
			granted := slices.DeleteFunc(as(namespaces, rights.User(h.namespace, h.name), rights.Group), func(r tried.Right) bool {
				return slices.Contains(everyone, r)
			})
			var want []tried.Right
			for namespace, rules := range h.grants(wants[i]) {
				for _, r := range rules {
					for _, resource := range r.Resources {
						for _, verb := range r.Verbs {
							named := schema.GroupResource{Group: r.APIGroups[0], Resource: resource}.String()
							want = append(want, tried.Right{Resource: named, Namespace: namespace, Verb: verb})
						}
					}
				}
			}
			Expect(granted).To(ConsistOf(want), h.name)
		}
		for _, h := range instances {
			h.edit(ctx, func(i *kudo.Instance) { i.Finalizers = nil })
			Expect(hub.Delete(ctx, h.onHub())).To(Succeed())
		}
		for _, h := range instances { // their objects stay
			h.expectNoRights(ctx)
		}
	}, SpecTimeout(15*time.Minute)) // for a busy machine: it takes less than a minute otherwise
})
