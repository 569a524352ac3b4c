package hub

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func keyOf(object client.Object) types.NamespacedName { return client.ObjectKeyFromObject(object) }

var _ = Describe("The Instance controller", func() {
	var (
		f       fleet
		cluster string
		version *kudo.OperatorVersion
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		version = f.push(ctx, "kafka", packages)
	})
	// create creates a user's Instance.
	create := func(ctx SpecContext, name string, change func(*kudo.Instance)) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		if change != nil {
			change(instance)
		}
		Expect(server.Create(ctx, instance)).To(Succeed())
		return instance
	}

	It("admits a user's Instance, at each of its generations", func(ctx SpecContext) {
		instance := create(ctx, "mine", nil)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(get(ctx, instance).Finalizers).To(Equal([]string{kudo.Finalizer}))

		edit(ctx, instance, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"COUNT": "many"} })
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(
			HaveField("Status", "False"), HaveField("Reason", "ParametersInvalid")))
	})

	It("resolves an Instance again for another OperatorVersion of the same name, also if that was replaced while addon-manager was not running",
		func(ctx SpecContext) {
			instance := create(ctx, "mine", nil)
			since := func() metav1.Time {
				return meta.FindStatusCondition(get(ctx, instance).Status.Conditions, kudo.ConditionResolved).LastTransitionTime
			}
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			before := since()
			stopHub()
			Eventually(func() bool { // times have seconds
				Expect(server.Delete(ctx, version)).To(Succeed())
				version = f.push(ctx, "kafka", packages)
				return version.CreationTimestamp.After(before.Time)
			}).WithContext(ctx).Should(BeTrue())
			_, stopHub = runHub()
			Eventually(since).WithContext(ctx).ShouldNot(Equal(before), "agents keep the former OperatorVersion")
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			after := get(ctx, instance).ResourceVersion
			stopHub()
			_, stopHub = runHub()
			Eventually(resolvedOf(create(ctx, "other", nil))).WithContext(ctx).Should(HaveField("Status", "True"))
			Expect(get(ctx, instance).ResourceVersion).To(Equal(after), "it is resolved once")
		})

	It("does not resolve an Instance for the previous one of its name", func(ctx SpecContext) {
		stopHub()
		var (
			once      sync.Once
			inherited atomic.Pointer[metav1.Condition]
			replaced  atomic.Bool
		)
		runHub(withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if request.Method != http.MethodPatch || !strings.HasSuffix(request.URL.Path, "/instances/mine/status") {
				return next.RoundTrip(request)
			}
			defer GinkgoRecover()
			once.Do(func() {
				lost := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
				edit(ctx, lost, func(i *kudo.Instance) { i.Finalizers = nil })
				Expect(server.Delete(ctx, lost)).To(Succeed())
				create(ctx, "mine", func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "missing-1.0.0" })
				replaced.Store(true)
			})
			response, err := next.RoundTrip(request)
			current := get(ctx, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}})
			if resolved := meta.FindStatusCondition(current.Status.Conditions, kudo.ConditionResolved); resolved != nil {
				inherited.CompareAndSwap(nil, resolved)
			}
			return response, err
		}))
		create(ctx, "mine", nil)
		Eventually(replaced.Load).Should(BeTrue())
		Eventually(inherited.Load).Should(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "OperatorVersionNotFound"))))
	})

	DescribeTable("refuses",
		func(ctx SpecContext, name string, change func(*kudo.Instance), reason, message string) {
			instance := create(ctx, name, change)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(
				HaveField("Status", "False"), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
			Expect(get(ctx, instance).Finalizers).To(BeEmpty())

			By("releasing it immediately, because nothing was ever started")
			Expect(server.Delete(ctx, instance)).To(Succeed())
			Expect(exists(instance)(Default, ctx)).To(BeFalse())
		},
		Entry("an OperatorVersion that does not exist", "a",
			func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "missing-1.0.0" },
			"OperatorVersionNotFound", "OperatorVersion addon-packages/missing-1.0.0 does not exist: push its package"),
		Entry("an OperatorVersion beside it that does not exist", "a",
			func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "" },
			"OperatorVersionNotFound", "does not exist"),
		Entry("an OperatorVersion where agents may not read", "a",
			func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "kube-system" },
			"NamespaceNotAllowed", `spec.operatorVersion.namespace is "kube-system"`),
		Entry("an unknown parameter", "a",
			func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TYPO": "1"} },
			"ParametersInvalid", `"TYPO"`),
		Entry("a name that is too long", "a123456789b123456789c123456789d123456789e123456789f123456789-123", nil,
			"NameInvalid", "has 64 characters: at most 63 are allowed"),
	)

	It("refuses an OperatorVersion that cannot be run", func(ctx SpecContext) {
		broken := version.DeepCopy()
		broken.ObjectMeta = metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("broken") + "-1.0.0"}
		broken.Spec.Tasks[0].Spec.Resources = []string{"missing.yaml"}
		Expect(server.Create(ctx, broken)).To(Succeed())
		instance := create(ctx, "a", func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = broken.Name })
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(
			HaveField("Reason", "OperatorVersionInvalid"), HaveField("Message", ContainSubstring("missing.yaml"))))
	})

	It("fetches nothing from a URL that an OperatorVersion names", func(ctx SpecContext) {
		var requests atomic.Int32
		inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		defer inside.Close()
		parent := version.DeepCopy()
		parent.ObjectMeta = metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("fetching") + "-1.0.0"}
		child := kudo.Task{Name: parent.Spec.Tasks[0].Name, Kind: kudo.TaskKudoOperator}
		child.Spec.Package = inside.URL + "/child.tgz"
		parent.Spec.Tasks[0] = child
		Expect(server.Create(ctx, parent)).To(Succeed())
		instance := create(ctx, "a", func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = parent.Name })
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(
			HaveField("Status", "False"), HaveField("Message", ContainSubstring(inside.URL))))
		Expect(requests.Load()).To(BeZero())
	})

	It("admits an Instance as soon as its OperatorVersion is there", func(ctx SpecContext) {
		instance := create(ctx, "a", func(i *kudo.Instance) {
			i.Spec.OperatorVersion = corev1.ObjectReference{Name: f.nameOf("late") + "-1.0.0"}
		})
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Reason", "OperatorVersionNotFound"))
		f.push(ctx, "late", cluster)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
	})

	It("gives a name to the older of two Instances, and then to the younger", func(ctx SpecContext) {
		older := create(ctx, "a-b", func(i *kudo.Instance) { i.Spec.InstallNamespace = "x" })
		Eventually(resolvedOf(older)).WithContext(ctx).Should(HaveField("Status", "True"))
		younger := create(ctx, "a.b", func(i *kudo.Instance) { i.Spec.InstallNamespace = "x" })
		elsewhere := create(ctx, "a.b.c", func(i *kudo.Instance) { i.Spec.InstallNamespace = "y" })
		Eventually(resolvedOf(elsewhere)).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(resolvedOf(younger)).WithContext(ctx).Should(And(HaveField("Reason", "NameCollision"), HaveField("Message",
			"Instance "+cluster+`/a-b already has the name "a-b" in namespace "x" of the managed cluster: use another name or install namespace`)))
		Expect(resolvedOf(older)(Default, ctx).Status).To(Equal("True"))

		Expect(server.Delete(ctx, older)).To(Succeed())
		reportRemoved(ctx, older)
		Eventually(resolvedOf(younger)).WithContext(ctx).Should(HaveField("Status", "True"))
	})

	It("gives a name to the Instance of which the agent has run plans", func(ctx SpecContext) {
		older := create(ctx, "a-b", nil)
		Eventually(resolvedOf(older)).WithContext(ctx).Should(HaveField("Status", "True"))
		younger := create(ctx, "a.b", nil)
		Eventually(resolvedOf(younger)).WithContext(ctx).Should(HaveField("Reason", "NameCollision"))
		executes(ctx, younger, "first")
		Eventually(resolvedOf(younger)).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(resolvedOf(older)).WithContext(ctx).Should(HaveField("Reason", "NameCollision"))
	})

	Describe("asked for a plan by hand", func() {
		requestOf := func(instance *kudo.Instance) func(Gomega, context.Context) kudo.PlanExecution {
			return func(g Gomega, ctx context.Context) kudo.PlanExecution { return specOf(instance)(g, ctx).PlanExecution }
		}
		// ask requests a plan as KUDO's client does: by its name only.
		ask := func(ctx SpecContext, instance *kudo.Instance, plan string) {
			GinkgoHelper()
			Expect(server.Patch(ctx, instance.DeepCopy(), client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"planExecution":{"planName":"`+plan+`"}}}`)))).To(Succeed())
		}
		given := func(plan string) OmegaMatcher {
			return And(HaveField("PlanName", plan), WithTransform(
				func(request kudo.PlanExecution) string { return string(request.UID) }, HavePrefix("hub."+plan+".")))
		}

		It("gives the request a uid, clears it once it was handled, and takes the next one", func(ctx SpecContext) {
			instance := create(ctx, "a", nil)
			ask(ctx, instance, "deploy")
			Eventually(requestOf(instance)).WithContext(ctx).Should(given("deploy"))
			first := requestOf(instance)(Default, ctx)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			Consistently(requestOf(instance)).WithContext(ctx).Should(Equal(first))

			By("the agent handling it")
			executes(ctx, instance, first.UID)
			Eventually(requestOf(instance)).WithContext(ctx).Should(Equal(kudo.PlanExecution{}))
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			settled := get(ctx, instance).ResourceVersion
			Consistently(func(g Gomega) { g.Expect(get(ctx, instance).ResourceVersion).To(Equal(settled)) }).Should(Succeed())

			By("asking for the same plan again")
			ask(ctx, instance, "deploy")
			Eventually(requestOf(instance)).WithContext(ctx).Should(And(given("deploy"), HaveField("UID", Not(Equal(first.UID)))))
		})

		It("gives another uid when the plan changes before it was handled", func(ctx SpecContext) {
			instance := create(ctx, "a", func(i *kudo.Instance) {
				i.Spec.OperatorVersion.Name = f.pushPlans(ctx, "plans", packages, "backup", "restore").Name
			})
			ask(ctx, instance, "backup")
			Eventually(requestOf(instance)).WithContext(ctx).Should(given("backup"))
			ask(ctx, instance, "restore")
			Eventually(requestOf(instance)).WithContext(ctx).Should(given("restore"))
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		})

		It("leaves a user's uid alone, handled or not", func(ctx SpecContext) {
			instance := create(ctx, "a", func(i *kudo.Instance) {
				i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "mine"}
			})
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			executes(ctx, instance, "mine")
			Consistently(requestOf(instance)).WithContext(ctx).Should(Equal(kudo.PlanExecution{PlanName: "deploy", UID: "mine"}))
		})

		It("refuses a plan that does not exist, until another one is named", func(ctx SpecContext) {
			instance := create(ctx, "a", nil)
			ask(ctx, instance, "fly")
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(Equal(seen{"False", "RequestInvalid",
				`spec.planExecution.planName is "fly", but OperatorVersion addon-packages/` + version.Name +
					` has no such plan: use one of its plans (deploy), or remove spec.planExecution`}))
			ask(ctx, instance, "deploy")
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
			Expect(requestOf(instance)(Default, ctx)).To(given("deploy"))
		})
	})

	It("holds an Instance until its agent has removed it", func(ctx SpecContext) {
		instance := create(ctx, "a", nil)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(server.Delete(ctx, instance)).To(Succeed())
		Consistently(exists(instance)).WithContext(ctx).Should(BeTrue())
		reportRemoved(ctx, instance)
		Eventually(exists(instance)).WithContext(ctx).Should(BeFalse())
	})

	It("lets an Instance go when its managed cluster is gone", func(ctx SpecContext) {
		instance := create(ctx, "a", nil)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(server.Delete(ctx, instance)).To(Succeed())
		Consistently(exists(instance)).WithContext(ctx).Should(BeTrue())
		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		Eventually(exists(instance)).WithContext(ctx).Should(BeFalse())
	})

	It("reports that an Instance is on no managed cluster, until there is one", func(ctx SpecContext) {
		namespace := f.nameOf("elsewhere")
		makeNamespace(ctx, namespace)
		stopHub()
		writes, _ := runHub()
		outside := create(ctx, "a", func(i *kudo.Instance) {
			i.Namespace = namespace
			i.Spec.Parameters = map[string]string{"TYPO": "1"}
			i.Spec.PlanExecution.PlanName = kudo.DeployPlan
		})
		notFound := seen{"False", "ManagedClusterNotFound", `ManagedCluster "` + namespace +
			`" does not exist or is being deleted: create the Instance in the namespace of a managed cluster`}
		Eventually(resolvedOf(outside)).WithContext(ctx).Should(Equal(notFound))
		Eventually(eventsOn(outside)).WithContext(ctx).Should(ContainElement(HavePrefix("Warning ManagedClusterNotFound: ")))
		Consistently(on(namespace, writes)).Should(ConsistOf(HaveSuffix("/instances/a/status")))
		current := get(ctx, outside)
		Expect(current.Finalizers).To(BeEmpty())
		Expect(current.Spec).To(Equal(outside.Spec), "it may be one of KUDO's own")

		Expect(server.Create(ctx, managedCluster(namespace))).To(Succeed())
		Eventually(resolvedOf(outside)).WithContext(ctx).Should(HaveField("Reason", "ParametersInvalid"))
		edit(ctx, outside, func(i *kudo.Instance) { i.Spec.Parameters = nil })
		Eventually(resolvedOf(outside)).WithContext(ctx).Should(HaveField("Status", "True"))

		By("detaching the cluster again, which deletes nothing")
		Expect(server.Delete(ctx, managedCluster(namespace))).To(Succeed())
		Eventually(resolvedOf(outside)).WithContext(ctx).Should(Equal(notFound))
		Expect(get(ctx, outside).Finalizers).To(BeEmpty())
	})

	It("ignores mirrors", func(ctx SpecContext) {
		namespace := f.nameOf("elsewhere")
		makeNamespace(ctx, namespace)
		mirror := create(ctx, "a", func(i *kudo.Instance) {
			i.Namespace, i.Annotations = namespace, map[string]string{kudo.AnnotationHubUID: "x", kudo.AnnotationHubGeneration: "1"}
		})
		inside := create(ctx, "a", nil)
		Eventually(resolvedOf(inside)).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(get(ctx, mirror).Status).To(Equal(kudo.InstanceStatus{ObservedGeneration: -1}), "the default")
	})
})
