package cluster

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// gcFinalizer acts as OCM's finalizer: it keeps a ManagedCluster until everything in its namespace is deleted.
const gcFinalizer = "tandem.test/gc"

// site is a cluster for one spec, with a plan-based add-on and a user's Instance.
type site struct {
	name     string
	addOn    *addonv1alpha1.ManagedClusterAddOn
	instance *kudo.Instance
}

// prepare registers the cluster, and stores the package that runs on it.
func (s *site) prepare(ctx context.Context) {
	GinkgoHelper()
	Expect(hubServer.Apply(ctx, "cluster", manifests.ClusterParameters{Cluster: s.name})).To(Succeed())
	s.register(ctx)
	version := pushVersion(ctx, s.name)
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-addon"}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
	}}
	Expect(server.Create(ctx, definition)).To(Succeed())
	s.addOn = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: definition.Name}}
	s.addOn.Spec.InstallNamespace = s.name
	s.instance = &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.name + "-mine"},
		Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}},
	}
}

// install creates the add-on and the Instance, and waits until both are ready.
func (s *site) install(ctx context.Context) {
	GinkgoHelper()
	Expect(server.Create(ctx, s.addOn.DeepCopy())).To(Succeed())
	Expect(server.Create(ctx, s.instance.DeepCopy())).To(Succeed())
	for _, name := range s.names() {
		Eventually(s.isReady(ctx, name)).Should(BeTrue(), name)
	}
}

func (s *site) names() []string { return []string{s.addOn.Name, s.instance.Name} }

func (s *site) cluster() *unstructured.Unstructured {
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetName(s.name)
	return cluster
}

func (s *site) register(ctx context.Context) {
	GinkgoHelper()
	cluster := s.cluster()
	cluster.SetFinalizers([]string{gcFinalizer})
	Expect(server.Create(ctx, cluster)).To(Succeed())
}

// unregister removes the finalizer of the ManagedCluster.
func (s *site) unregister(ctx context.Context) {
	GinkgoHelper()
	Expect(server.Patch(ctx, s.cluster(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	Expect(client.IgnoreNotFound(server.Delete(ctx, s.cluster()))).To(Succeed())
}

// onHub returns an Instance on the hub, or nil.
func (s *site) onHub(ctx context.Context, name string) *kudo.Instance {
	return s.read(ctx, server, name)
}

// mirror returns an Instance on the managed cluster, or nil.
func (s *site) mirror(ctx context.Context, name string) *kudo.Instance {
	return s.read(ctx, managed, name)
}

func (s *site) read(ctx context.Context, from client.Client, name string) *kudo.Instance {
	GinkgoHelper()
	instance := &kudo.Instance{}
	if err := from.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, instance); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return nil
	}
	return instance
}

func (s *site) isReady(ctx context.Context, name string) func() bool {
	return func() bool {
		instance := s.onHub(ctx, name)
		return instance != nil && meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionReady)
	}
}

// holds sets the finalizers of the object applied by an Instance of that name.
func (s *site) holds(ctx context.Context, name string, finalizers ...string) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	Expect(err).NotTo(HaveOccurred())
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: strings.ReplaceAll(name, ".", "-")}}
	Expect(managed.Patch(ctx, config, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// exists reports whether the object applied by the Instance exists and is not being deleted.
func (s *site) exists(ctx context.Context, name string) bool {
	GinkgoHelper()
	config := &corev1.ConfigMap{}
	err := managed.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, config)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil && config.DeletionTimestamp == nil
}

// isDetached waits until nothing remains on the hub, and checks that everything still exists on the cluster.
func (s *site) isDetached(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		err := server.Get(ctx, client.ObjectKeyFromObject(s.addOn), &addonv1alpha1.ManagedClusterAddOn{})
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred(), "the add-on is gone")
		for _, name := range s.names() {
			g.Expect(s.onHub(ctx, name)).To(BeNil())
		}
	}).Should(Succeed())
	s.isOrphaned(ctx)
}

func (s *site) isOrphaned(ctx context.Context) {
	GinkgoHelper()
	for _, name := range s.names() {
		Eventually(func() map[string]string { return s.mirror(ctx, name).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		Consistently(func() bool { return s.exists(ctx, name) }).Should(BeTrue())
		Expect(s.mirror(ctx, name).Annotations).NotTo(HaveKey(kudo.AnnotationHubDeleted))
		Expect(s.mirror(ctx, name).DeletionTimestamp).To(BeNil())
	}
}

// empty deletes the namespace and its content.
func (s *site) empty(ctx context.Context) {
	GinkgoHelper()
	Expect(server.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})).To(Succeed())
	s.deleteAll(ctx)
}

// deleteAll deletes the content of the namespace as the namespace controller does.
func (s *site) deleteAll(ctx context.Context) {
	GinkgoHelper()
	emptying := systemClient("namespace-controller")
	Expect(emptying.DeleteAllOf(ctx, &kudo.Instance{}, client.InNamespace(s.name))).To(Succeed())
	Expect(emptying.DeleteAllOf(ctx, &addonv1alpha1.ManagedClusterAddOn{}, client.InNamespace(s.name))).To(Succeed())
}

// disable deletes the add-on and the user's Instance.
func (s *site) disable(ctx context.Context) {
	GinkgoHelper()
	Expect(server.Delete(ctx, s.addOn)).To(Succeed())
	Expect(server.Delete(ctx, s.instance)).To(Succeed())
}

var _ = Describe("A cluster that is detached", func() {
	It("by deleting its namespace on the hub hangs nowhere there, and loses nothing", func(ctx SpecContext) {
		runHub()
		s := attachWithAgent(ctx)
		s.empty(ctx)
		s.isDetached(ctx)
		s.unregister(ctx)
	})

	It("while addon-manager is away loses nothing, and hangs nowhere once it is back", func(ctx SpecContext) {
		stopHub := runHub()
		s := attachWithAgent(ctx)
		stopHub()
		s.empty(ctx)
		s.isOrphaned(ctx)
		Expect(s.onHub(ctx, s.instance.Name)).NotTo(BeNil())
		runHub()
		s.isDetached(ctx)
		s.unregister(ctx)
	})

	It("by deleting its ManagedCluster, as OCM carries that out, loses nothing and is managed again when it returns", func(ctx SpecContext) {
		runHub()
		s := attachWithAgent(ctx)
		executed := map[string]any{}
		for _, name := range s.names() {
			executed[name] = s.mirror(ctx, name).Status.Execution.UID
		}
		Expect(server.Delete(ctx, s.cluster())).To(Succeed())
		Expect(server.Delete(ctx, s.addOn)).To(Succeed())
		Eventually(func() []string { return s.onHub(ctx, s.instance.Name).Finalizers }).Should(BeEmpty())
		Expect(server.Delete(ctx, s.instance)).To(Succeed())
		s.isDetached(ctx)
		s.unregister(ctx)

		By("attaching it again")
		s.register(ctx)
		s.install(ctx)
		for _, name := range s.names() {
			Expect(s.mirror(ctx, name).Status.Execution.UID).To(Equal(executed[name]), "nothing was executed again")
			Expect(s.mirror(ctx, name).Annotations).NotTo(HaveKey(kudo.AnnotationOrphaned))
		}

		By("disabling what is on it, which removes it")
		s.disable(ctx)
		for _, name := range s.names() {
			Eventually(func() *kudo.Instance { return s.onHub(ctx, name) }).Should(BeNil())
			Expect(s.exists(ctx, name)).To(BeFalse())
			Eventually(func() *kudo.Instance { return s.mirror(ctx, name) }).Should(BeNil())
		}
		s.unregister(ctx)
	})

	It("while an Instance waits in deletion for an agent that is gone, releases it", func(ctx SpecContext) {
		runHub()
		s, stopAgent := attachStoppable(ctx)
		stopAgent()
		Expect(server.Delete(ctx, s.instance)).To(Succeed())
		Consistently(func() *kudo.Instance { return s.onHub(ctx, s.instance.Name) }).ShouldNot(BeNil())
		Expect(server.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})).To(Succeed())
		Eventually(func() *kudo.Instance { return s.onHub(ctx, s.instance.Name) }).Should(BeNil())
		s.unregister(ctx)
	})
})

var _ = Describe("An Instance that is force-released", func() {
	It("leaves the hub, reports what it leaves behind, and stays on the cluster", func(ctx SpecContext) {
		runHub()
		s := attachWithAgent(ctx)
		name := s.instance.Name
		s.holds(ctx, name, "tandem.test/hold")
		Expect(server.Delete(ctx, s.instance)).To(Succeed())
		Eventually(func() string { return readyOf(s.onHub(ctx, name)) }).Should(Equal(kudo.ReasonRemoving))

		Expect(server.Patch(ctx, s.onHub(ctx, name), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+kudo.AnnotationForceRelease+`":"true"}}}`)))).To(Succeed())
		Eventually(func() *kudo.Instance { return s.onHub(ctx, name) }).Should(BeNil())
		Eventually(func() map[string]string { return s.mirror(ctx, name).Annotations }).Should(And(
			HaveKey(kudo.AnnotationOrphaned), HaveKey(kudo.AnnotationHubDeleted)))
		Eventually(func() []string { return notesOf(ctx, s.name, "ForceReleased") }).Should(ConsistOf(
			ContainSubstring("ConfigMap " + s.name + "/" + name)))

		By("removing the rest when it is made again and deleted")
		s.holds(ctx, name)
		Expect(server.Create(ctx, s.instance.DeepCopy())).To(Succeed())
		Eventually(s.isReady(ctx, name)).Should(BeTrue())
		Expect(s.exists(ctx, name)).To(BeTrue(), "it is deployed again")
		s.disable(ctx)
		Eventually(func() *kudo.Instance { return s.onHub(ctx, name) }).Should(BeNil())
		Expect(s.exists(ctx, name)).To(BeFalse())
		s.unregister(ctx)
	})

	It("whose agent is gone leaves the hub too", func(ctx SpecContext) {
		runHub()
		s, stopAgent := attachStoppable(ctx)
		stopAgent()
		Expect(server.Patch(ctx, s.onHub(ctx, s.instance.Name), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+kudo.AnnotationForceRelease+`":"true"}}}`)))).To(Succeed())
		Consistently(func() *kudo.Instance { return s.onHub(ctx, s.instance.Name) }).ShouldNot(BeNil(), "it is not deleted")
		Expect(server.Delete(ctx, s.instance)).To(Succeed())
		Eventually(func() *kudo.Instance { return s.onHub(ctx, s.instance.Name) }).Should(BeNil())
		Expect(s.exists(ctx, s.instance.Name)).To(BeTrue())
		s.unregister(ctx)
	})
})

// collectGarbage acts as the garbage collector of a namespace on the managed cluster until the spec ends.
func collectGarbage(namespace string) {
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	environment.CollectGarbage(ctx, managed, namespace,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Service"), appsv1.SchemeGroupVersion.WithKind("Deployment"))
}

// attachWithAgent attaches a cluster with an agent that runs until the spec ends.
func attachWithAgent(ctx context.Context) *site {
	GinkgoHelper()
	s, _ := attachStoppable(ctx)
	return s
}

// attachStoppable attaches a cluster, and returns a function that stops its agent.
func attachStoppable(ctx context.Context) (*site, func()) {
	GinkgoHelper()
	s := &site{name: "site-" + rand.String(6)}
	s.prepare(ctx)
	collectGarbage(s.name)
	stop := runAgentOf(s.name)
	s.install(ctx)
	return s, stop
}

// readyOf returns the reason of condition Ready; empty if there is none.
func readyOf(instance *kudo.Instance) string {
	if condition := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); condition != nil {
		return condition.Reason
	}
	return ""
}

// notesOf returns the notes of the events on the hub in a namespace that have that reason.
func notesOf(ctx context.Context, namespace, reason string) []string {
	GinkgoHelper()
	var events eventsv1.EventList
	Expect(server.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
	var notes []string
	for _, event := range events.Items {
		if event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}
