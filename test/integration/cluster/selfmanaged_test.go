package cluster

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// OCM calls such a hub self-managed, and names its cluster local-cluster.
var _ = Describe("A hub that is a managed cluster of its own", Ordered, func() {
	const name, workloads = "local-cluster", "workloads"
	var (
		version *kudo.OperatorVersion
		writes  *environment.Writes // addon-manager's
	)

	BeforeAll(func(ctx SpecContext) {
		itself := start()
		beforeHub, beforeServer, beforeManaged, beforeHere, beforeAs := hubServer, server, managed, here, hubOnHub
		DeferCleanup(func() {
			hubServer, server, managed, here, hubOnHub = beforeHub, beforeServer, beforeManaged, beforeHere, beforeAs
		})
		hubServer, server, managed = itself, clientOf(itself.Config), clientOf(itself.Config)
		here = as(itself.Config, "system:serviceaccount:tandem-system:addon-agent")
		hubOnHub, writes = environment.RecordWrites(as(itself.Config, "system:serviceaccount:tandem-system:addon-manager"))
		for _, folder := range []string{"hub", "cluster", "admission", "agent"} {
			Expect(itself.Apply(ctx, folder, manifests.ClusterParameters{Cluster: name})).To(Succeed())
		}
		Expect(server.Create(ctx, (&site{name: name}).cluster())).To(Succeed())
		Expect(server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workloads}})).To(Succeed())
		Eventually(func() error {
			return server.Create(ctx, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
				Namespace: workloads, Name: "probe", Annotations: map[string]string{kudo.AnnotationHubUID: "x"},
			}}, client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("can only be written by addon-agent")))
		collectGarbage(workloads)
		version = pushVersion(ctx, "store")
		runHub()
		runAgentOf(name)
	})

	instance := func(named, into string) *kudo.Instance {
		i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: named}}
		i.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
		i.Spec.InstallNamespace = into
		return i
	}
	ready := func(of *kudo.Instance) func(context.Context) *metav1.Condition {
		return func(ctx context.Context) *metav1.Condition {
			GinkgoHelper()
			current := &kudo.Instance{}
			Expect(server.Get(ctx, client.ObjectKeyFromObject(of), current)).To(Succeed())
			return meta.FindStatusCondition(current.Status.Conditions, kudo.ConditionReady)
		}
	}

	It("runs an Instance beside its mirror, which is the agent's alone", func(ctx SpecContext) {
		store := instance("store", workloads)
		Expect(server.Create(ctx, store)).To(Succeed())
		Eventually(ready(store)).WithContext(ctx).Should(HaveValue(HaveField("Status", metav1.ConditionTrue)))

		mirror := &kudo.Instance{}
		key := types.NamespacedName{Namespace: workloads, Name: store.Name}
		Expect(server.Get(ctx, key, mirror)).To(Succeed())
		Expect(mirror.Finalizers).To(ContainElement(kudo.Finalizer))
		Expect(kudo.IsMirror(mirror)).To(BeTrue())
		stored := func() string {
			GinkgoHelper()
			Expect(server.Get(ctx, key, mirror)).To(Succeed())
			return mirror.ResourceVersion
		}
		Eventually(func(g Gomega) { g.Consistently(stored).Should(Equal(stored())) }).WithContext(ctx).Should(Succeed(), "it rests")
		Expect(writes.Requests()).NotTo(ContainElement(ContainSubstring("/namespaces/"+workloads+"/")), "addon-manager leaves it alone")

		parameters := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"A":"b"}}}`))
		Expect(server.Patch(ctx, mirror, parameters, client.DryRunAll)).To(MatchError(apierrors.IsForbidden, "forbidden"))

		Expect(server.Delete(ctx, store)).To(Succeed())
		for _, gone := range []client.ObjectKey{key, client.ObjectKeyFromObject(store)} {
			Eventually(func() error { return server.Get(ctx, gone, &kudo.Instance{}) }).WithContext(ctx).
				Should(MatchError(apierrors.IsNotFound, "not found"), gone.String())
		}
	})

	It("says that the mirror and the Instance cannot have one namespace", func(ctx SpecContext) {
		collides := instance("collides", "")
		Expect(server.Create(ctx, collides)).To(Succeed())
		Eventually(ready(collides)).WithContext(ctx).Should(HaveValue(And(HaveField("Reason", kudo.ReasonNotMirrored),
			HaveField("Message", ContainSubstring("must not be the namespace of the cluster")))))
		Expect(server.Delete(ctx, collides)).To(Succeed())
		Eventually(func() error { return server.Get(ctx, client.ObjectKeyFromObject(collides), collides) }).WithContext(ctx).
			Should(MatchError(apierrors.IsNotFound, "not found"))
	})
})
