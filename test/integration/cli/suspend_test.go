package cli

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("A suspension of many Instances", func() {
	var cluster, namespace string
	BeforeEach(func(ctx SpecContext) {
		cluster, namespace = "suspended-"+rand.String(6), "manager-"+rand.String(6)
		createCluster(ctx, cluster)
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	})

	out := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		got := run(ctx, args...)
		Expect(got.err).NotTo(HaveOccurred())
		return got.out
	}
	annotation := func(ctx context.Context, object client.Object) string {
		GinkgoHelper()
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		reason, suspended := object.GetAnnotations()[kudo.AnnotationSuspend]
		if !suspended {
			return "not suspended"
		}
		return reason
	}

	It("of a cluster is set and removed, with its reason", func(ctx SpecContext) {
		name, object := "managedcluster.cluster.open-cluster-management.io/"+cluster, managedCluster(cluster)
		for _, step := range []struct {
			args       []string
			want, then string
		}{
			{[]string{"suspend", "--all", "--cluster", cluster}, "suspended", ""},
			{[]string{"suspend", "--all", "--cluster", cluster}, "already suspended", ""},
			{[]string{"suspend", "--all", "--cluster", cluster, "--reason", "storage fails"}, "suspended", "storage fails"},
			{[]string{"suspend", "--all", "--cluster", cluster}, "already suspended", "storage fails"},
			{[]string{"resume", "--all", "--cluster", cluster}, "resumed", "not suspended"},
			{[]string{"resume", "--all", "--cluster", cluster}, "not suspended", "not suspended"},
		} {
			Expect(out(ctx, step.args...)).To(Equal(name + " " + step.want + "\n"))
			Expect(annotation(ctx, object)).To(Equal(step.then))
		}
		Expect(run(ctx, "suspend", "--all", "--cluster", "nowhere").err).To(MatchError(ContainSubstring("nowhere")))
	})

	It("of an add-on needs its ClusterManagementAddOn", func(ctx SpecContext) {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "addon-" + rand.String(6)}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		name := "clustermanagementaddon.addon.open-cluster-management.io/" + definition.Name
		Expect(out(ctx, "suspend", definition.Name, "--everywhere", "--reason", "a bad release")).To(Equal(name + " suspended\n"))
		Expect(annotation(ctx, definition)).To(Equal("a bad release"))
		Expect(out(ctx, "resume", definition.Name, "--everywhere")).To(Equal(name + " resumed\n"))
		Expect(annotation(ctx, definition)).To(Equal("not suspended"))
		Expect(run(ctx, "suspend", "nothing", "--everywhere").err).To(MatchError(`ClusterManagementAddOn "nothing" does not exist: an Instance that belongs to ` +
			"no add-on is suspended on its clusters (--cluster, --selector, --placement or --all-clusters)"))
	})

	It("of everything is a ConfigMap beside addon-manager", func(ctx SpecContext) {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kudo.SuspendConfigMap}}
		all := []string{"suspend", "--all", "--everywhere", "-n", namespace}
		Expect(out(ctx, all...)).To(Equal("everything (configmap/tandem-suspend) suspended\n"))
		Expect(out(ctx, all...)).To(Equal("everything (configmap/tandem-suspend) already suspended\n"))
		Expect(out(ctx, append(all, "--reason", "storage fails")...)).To(Equal("everything (configmap/tandem-suspend) suspended\n"))
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
		Expect(config.Data).To(Equal(map[string]string{kudo.SuspendKey: "storage fails"}))

		By("listing it")
		Expect(run(ctx, "check", "-n", namespace, "--cluster", cluster).out).To(And(
			ContainSubstring(`everything is suspended by ConfigMap `+namespace+`/tandem-suspend ("storage fails"): no plan starts`),
			ContainSubstring("kubectl addon resume --all --everywhere --namespace "+namespace)))
		all[0] = "resume"
		Expect(out(ctx, all...)).To(Equal("everything (configmap/tandem-suspend) resumed\n"))
		Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(config), config))).To(BeTrue())
		Expect(out(ctx, all...)).To(Equal("everything (configmap/tandem-suspend) not suspended\n"))
		Expect(run(ctx, "suspend", "--all", "--everywhere", "-n", "nowhere").err).To(MatchError(ContainSubstring(`namespaces "nowhere" not found`)))
	})

	It("is named when one of the Instances is resumed, with the commands that end it", func(ctx SpecContext) {
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
		instance.Spec.OperatorVersion.Name = "shop-1.0.0"
		instance.Spec.Suspend = true
		instance.Spec.SuspendedBy = `ManagedCluster ` + cluster + ` ("storage fails"), ClusterManagementAddOn shop`
		Expect(hub.Create(ctx, instance)).To(Succeed())
		wider := "  still suspended by " + instance.Spec.SuspendedBy + "; to resume:\n" +
			"  kubectl addon resume --all --cluster " + instance.Namespace + "\n  kubectl addon resume shop --everywhere\n"
		Expect(out(ctx, "resume", "shop", "--cluster", instance.Namespace)).To(Equal("instance.kudo.dev/shop resumed\n" + wider))
		Expect(out(ctx, "resume", "shop", "--cluster", instance.Namespace)).To(Equal("instance.kudo.dev/shop not suspended\n" + wider))
		Expect(run(ctx, "check", "--cluster", instance.Namespace).out).To(ContainSubstring("nothing is suspended"))
		Expect(out(ctx, "suspend", "shop", "--cluster", instance.Namespace)).To(Equal("instance.kudo.dev/shop suspended\n"))
		Expect(run(ctx, "check", "--cluster", instance.Namespace).out).To(ContainSubstring("1 Instance is suspended by spec.suspend: " + instance.Namespace + "/shop"))
	})
})
