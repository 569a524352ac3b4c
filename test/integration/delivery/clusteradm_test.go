package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// clusteradm sends the requests of clusteradm 1.x's commands, by the same clients and in the same order.
type clusteradm struct {
	addOns   addonclient.Interface
	clusters clusterclient.Interface
	works    workclient.Interface

	mutex    sync.Mutex
	warnings []string
}

func newClusteradm() *clusteradm {
	GinkgoHelper()
	c := &clusteradm{}
	config := rest.CopyConfig(started.Config)
	config.WarningHandler = c
	var err error
	c.addOns, err = addonclient.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	c.clusters, err = clusterclient.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	c.works, err = workclient.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// HandleWarningHeader records the API server's warnings, which clusteradm prints.
func (c *clusteradm) HandleWarningHeader(_ int, _, text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.warnings = append(c.warnings, text)
}

// enable acts as `clusteradm addon enable`; the flags --labels, --annotate, --namespace and --config-file determine the add-on. The user
// repeats it after a conflict.
func (c *clusteradm) enable(ctx context.Context, addOn upstream.ManagedClusterAddOn) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return c.enableOnce(ctx, addOn, func() {}) })
}

// enableOnce calls meanwhile between reading the add-on and updating it.
func (c *clusteradm) enableOnce(ctx context.Context, addOn upstream.ManagedClusterAddOn, meanwhile func()) error {
	if _, err := c.clusters.ClusterV1().ManagedClusters().Get(ctx, addOn.Namespace, metav1.GetOptions{}); err != nil {
		return err
	}
	if _, err := c.addOns.AddonV1alpha1().ClusterManagementAddOns().Get(ctx, addOn.Name, metav1.GetOptions{}); err != nil {
		return err
	}
	addOns := c.addOns.AddonV1alpha1().ManagedClusterAddOns(addOn.Namespace)
	current, err := addOns.Get(ctx, addOn.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = addOns.Create(ctx, &addOn, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	meanwhile()
	current.Labels, current.Annotations = addOn.Labels, addOn.Annotations
	current.Spec.InstallNamespace = addOn.Spec.InstallNamespace
	if addOn.Spec.Configs != nil {
		current.Spec.Configs = addOn.Spec.Configs
	}
	_, err = addOns.Update(ctx, current, metav1.UpdateOptions{})
	return err
}

// disable acts as `clusteradm addon disable`.
func (c *clusteradm) disable(ctx context.Context, cluster, name string) error {
	if _, err := c.clusters.ClusterV1().ManagedClusters().Get(ctx, cluster, metav1.GetOptions{}); err != nil {
		return err
	}
	return c.addOns.AddonV1alpha1().ManagedClusterAddOns(cluster).Delete(ctx, name, metav1.DeleteOptions{})
}

// listed is the output of `clusteradm get addon` for an add-on: the number of its clusters, and for each of them three conditions and the
// ManifestWorks.
type listed struct {
	Clusters   int
	Conditions map[string]string
	Works      []string
}

// getAddOn acts as `clusteradm get addon NAME`, for Eventually.
func (c *clusteradm) getAddOn(name string) func(Gomega, context.Context) listed {
	return func(g Gomega, ctx context.Context) listed {
		clusters, err := c.clusters.ClusterV1().ManagedClusters().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		definitions, err := c.addOns.AddonV1alpha1().ClusterManagementAddOns().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(definitions.Items).To(ContainElement(HaveField("Name", name)))
		addOns, err := c.addOns.AddonV1alpha1().ManagedClusterAddOns(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		works, err := c.works.WorkV1().ManifestWorks(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			LabelSelector: upstream.AddonLabelKey,
		})
		g.Expect(err).NotTo(HaveOccurred())

		shown := listed{Conditions: map[string]string{}}
		for _, addOn := range addOns.Items {
			known := slices.ContainsFunc(clusters.Items, func(m clusterv1.ManagedCluster) bool { return m.Name == addOn.Namespace })
			if addOn.Name != name || !known {
				continue
			}
			shown.Clusters++
			for _, condition := range []string{"Available", "ManifestApplied", "RegistrationApplied"} {
				shown.Conditions[addOn.Namespace+" "+condition] = shownAs(meta.FindStatusCondition(addOn.Status.Conditions, condition))
			}
			for _, work := range works.Items {
				if work.Namespace == addOn.Namespace && work.Labels[upstream.AddonLabelKey] == name {
					shown.Works = append(shown.Works, work.Namespace+" "+work.Name)
				}
			}
		}
		return shown
	}
}

// getClusters acts as `clusteradm get clusters --clusterset SET`: for each cluster it returns the name, whether it is accepted and
// available, its capacity, and its Kubernetes version.
func (c *clusteradm) getClusters(ctx context.Context, set string) [][]any {
	GinkgoHelper()
	clusters, err := c.clusters.ClusterV1().ManagedClusters().List(ctx, metav1.ListOptions{
		LabelSelector: "cluster.open-cluster-management.io/clusterset=" + set,
	})
	Expect(err).NotTo(HaveOccurred())
	var rows [][]any
	for _, m := range clusters.Items {
		available := ""
		if condition := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); condition != nil {
			available = string(condition.Status)
		}
		cpu, memory := m.Status.Capacity[clusterv1.ResourceCPU], m.Status.Capacity[clusterv1.ResourceMemory]
		rows = append(rows, []any{m.Name, m.Spec.HubAcceptsClient, available, cpu.String(), memory.String(), m.Status.Version.Kubernetes})
	}
	return rows
}

// shownAs returns a condition as it is printed: a status other than true is printed as false, a missing condition as such.
func shownAs(condition *metav1.Condition) string {
	switch {
	case condition == nil:
		return "unknown"
	case condition.Status == metav1.ConditionTrue:
		return "true"
	default:
		return "false"
	}
}

var _ = Describe("clusteradm", func() {
	var (
		user             *clusteradm
		cluster          string
		version          *kudo.OperatorVersion
		config           *addonv1alpha1.AddOnDeploymentConfig
		zookeeper, kafka upstream.ManagedClusterAddOn
		asStored         *addonv1alpha1.ManagedClusterAddOn
	)
	BeforeEach(func(ctx SpecContext) {
		user, cluster, version = newClusteradm(), register(ctx), push(ctx, "kafka")
		definition := define(ctx, "kafka", version)
		zookeeper.ObjectMeta = metav1.ObjectMeta{Namespace: cluster, Name: define(ctx, "zookeeper", push(ctx, "zookeeper")).Name}
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: zookeeper.Name, Type: addonv1alpha1.DependencyTypeRequired}}
		})
		config = deploymentConfig(ctx, cluster, func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "TEXT", Value: "one"}}
		})
		kafka = upstream.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: definition.Name,
				Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"team": "streams"},
			},
			Spec: upstream.ManagedClusterAddOnSpec{
				InstallNamespace: "open-cluster-management-agent-addon", // clusteradm's default
				Configs:          []upstream.AddOnConfig{{ConfigGroupResource: deploymentConfigs, ConfigReferent: referent(config)}},
			},
		}
		asStored = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: kafka.Name}}
	})
	// available acts as addon-agent.
	available := func(ctx context.Context, name string, status metav1.ConditionStatus) {
		GinkgoHelper()
		current := get(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}})
		_, err := apply.Condition(ctx, server, current, current.Status.Conditions, "addon-agent-availability", metav1.Condition{
			Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: addonv1alpha1.ReasonPlanComplete,
		}, time.Now())
		Expect(err).NotTo(HaveOccurred())
	}
	// installed enables both add-ons, one of which requires the other.
	installed := func(ctx context.Context) {
		GinkgoHelper()
		Expect(user.enable(ctx, kafka)).To(Succeed())
		Eventually(conditionOf(asStored, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "WaitingForDependencies"}))
		Expect(user.enable(ctx, zookeeper)).To(Succeed())
		available(ctx, zookeeper.Name, metav1.ConditionTrue)
		Eventually(conditionOf(asStored, "Resolved")).WithContext(ctx).Should(Equal(seen{"True", "Resolved"}))
		awaitFinalizer(ctx, instanceOf(asStored))
		awaitNoWrites(ctx, cluster)
	}

	It("addon enable installs an add-on, and takes nothing from it when it is said again", func(ctx SpecContext) {
		installed(ctx)
		instance, before := get(ctx, instanceOf(asStored)), get(ctx, asStored)
		Expect(instance.Spec.Parameters).To(Equal(map[string]string{"TEXT": "one"}))
		Expect(instance.Spec.InstallNamespace).To(Equal(kafka.Spec.InstallNamespace))
		Expect(before.Finalizers).To(ContainElement(kudo.Finalizer))

		By("replacing all labels and annotations, and the namespace")
		written := len(in(cluster, writes)())
		Expect(user.enable(ctx, upstream.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: kafka.Name}, Spec: upstream.ManagedClusterAddOnSpec{InstallNamespace: "elsewhere"},
		})).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) int64 {
			return meta.FindStatusCondition(get(ctx, asStored).Status.Conditions, "Resolved").ObservedGeneration
		}).WithContext(ctx).Should(BeNumerically(">", before.Generation))
		awaitNoWrites(ctx, cluster)
		after := get(ctx, asStored)
		Expect(after.Labels).To(BeEmpty())
		Expect(after.Annotations).To(BeEmpty())
		Expect(after.Spec.InstallNamespace).To(Equal("elsewhere"))
		Expect(after.Spec.Configs).To(Equal(before.Spec.Configs))
		Expect(after.Finalizers).To(Equal(before.Finalizers))
		Expect(withoutResolved(after.Status.Conditions)).To(Equal(withoutResolved(before.Status.Conditions)))
		Expect(meta.FindStatusCondition(after.Status.Conditions, "Resolved")).To(And(HaveField("Status", metav1.ConditionTrue),
			HaveField("Message", HaveSuffix(`the add-on stays in namespace "open-cluster-management-agent-addon" of the managed cluster: `+
				`to move it to "elsewhere", disable it, and enable it again after its removal`))))
		Expect(get(ctx, instanceOf(asStored))).To(Equal(instance), "it stays where it was installed")
		Expect(in(cluster, writes)()[written:]).To(ConsistOf(HaveSuffix("/managedclusteraddons/"+kafka.Name+"/status")), "Resolved, of this generation")

		By("OCM's default namespace, which is no request")
		Expect(user.enable(ctx, kafka)).To(Succeed())
		Eventually(func() string {
			return meta.FindStatusCondition(get(ctx, asStored).Status.Conditions, "Resolved").Message
		}).
			WithContext(ctx).Should(Equal(meta.FindStatusCondition(before.Status.Conditions, "Resolved").Message))
		awaitNoWrites(ctx, cluster)

		By("disabling the required add-on: the dependency is still declared")
		available(ctx, zookeeper.Name, metav1.ConditionFalse)
		Eventually(conditionOf(asStored, "Degraded")).WithContext(ctx).Should(Equal(seen{"True", "RequiredDependencyNotSatisfied"}))
		Expect(user.enable(ctx, kafka)).To(Succeed())
		awaitNoWrites(ctx, cluster)
		Expect(conditionOf(asStored, "Degraded")(Default, ctx)).To(Equal(seen{"True", "RequiredDependencyNotSatisfied"}))
	})

	It("addon enable passes another configuration on", func(ctx SpecContext) {
		installed(ctx)
		other := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "other"}}
		other.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "TEXT", Value: "two"}}
		Expect(server.Create(ctx, other)).To(Succeed())
		kafka.Spec.Configs[0].ConfigReferent = referent(other)
		Expect(user.enable(ctx, kafka)).To(Succeed())
		Eventually(text(asStored)).WithContext(ctx).Should(Equal("two"))
	})

	It("addon enable with a config of another name may conflict with the status of an earlier change, and succeeds when it is repeated", func(ctx SpecContext) {
		installed(ctx)
		kafka.Labels = map[string]string{"tier": "silver"}
		kafka.Spec.InstallNamespace = "elsewhere"
		Expect(user.enable(ctx, kafka)).To(Succeed())
		other := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "other"}}
		other.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "TEXT", Value: "two"}}
		Expect(server.Create(ctx, other)).To(Succeed())
		kafka.Spec.Configs[0].ConfigReferent = referent(other)
		err := user.enableOnce(ctx, kafka, func() { // the creation of a config postpones nothing
			Eventually(func(g Gomega, ctx context.Context) {
				current := get(ctx, asStored)
				g.Expect(meta.FindStatusCondition(current.Status.Conditions, "Resolved").ObservedGeneration).To(Equal(current.Generation))
			}).WithContext(ctx).Should(Succeed())
		})
		Expect(err).To(MatchError(apierrors.IsConflict, "conflict"))
		Expect(text(asStored)(Default, ctx)).To(Equal("one"))
		Expect(user.enable(ctx, kafka)).To(Succeed())
		Eventually(text(asStored)).WithContext(ctx).Should(Equal("two"))
	})

	It("addon enable with a changed config file does not conflict with the status on a hub where OCM manages configs", func(ctx SpecContext) {
		const rounds, writeDelay = 30, 2 * time.Second
		installed(ctx)
		configure(ctx, asStored,
			upstream.InstallConfigReference{ConfigGroupResource: operatorVersions, DesiredConfig: &upstream.ConfigSpecHash{
				ConfigReferent: referent(version), SpecHash: install.VersionHash(version)}},
			upstream.InstallConfigReference{ConfigGroupResource: deploymentConfigs, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: referent(config)}})
		var conflicts int
		for round := 0; round < rounds; {
			value, start := fmt.Sprint("text ", round), time.Now()
			say(ctx, config, value)
			err := user.enableOnce(ctx, kafka, func() {
				until, stop := context.WithTimeout(ctx, 500*time.Millisecond)
				defer stop()
				if wait.PollUntilContextCancel(until, 20*time.Millisecond, true, func(context.Context) (bool, error) {
					return get(ctx, instanceOf(asStored)).Spec.Parameters["TEXT"] == value, nil
				}) == nil {
					reports(ctx, instanceOf(asStored), metav1.ConditionTrue, kudo.ReasonHealthy)
				}
			})
			if time.Since(start) >= writeDelay { // on a machine that is too busy for a promise of two seconds
				continue
			}
			round++
			if apierrors.IsConflict(err) {
				conflicts++
			} else {
				Expect(err).NotTo(HaveOccurred())
			}
		}
		Expect(conflicts).To(BeNumerically("<=", 2), "of %d: on a busy machine, a write may be in flight when the change arrives", rounds)

		By("OCM learning of the last configuration after that")
		Eventually(text(asStored)).WithContext(ctx).Should(Equal(get(ctx, config).Spec.CustomizedVariables[0].Value))
		reports(ctx, instanceOf(asStored), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(func(g Gomega, ctx context.Context) string {
			return get(ctx, asStored).Status.ConfigReferences[1].DesiredConfig.SpecHash
		}).WithContext(ctx).Should(Equal(install.DeploymentConfigHash(get(ctx, config))))
		Eventually(markHashes(asStored)).WithContext(ctx).Should(Equal(desiredHashes(ctx, asStored)))
		Eventually(conditionOf(asStored, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))
	})

	It("addon disable prints which add-ons require the add-on, and lets its agent clean up before it goes", func(ctx SpecContext) {
		installed(ctx)
		Expect(user.disable(ctx, cluster, zookeeper.Name)).To(Succeed())
		Expect(user.warnings).To(ConsistOf(And(ContainSubstring(kafka.Name), ContainSubstring("require"))))
		Eventually(conditionOf(asStored, "Degraded")).WithContext(ctx).Should(Equal(seen{"True", "RequiredDependencyNotSatisfied"}))

		instance := instanceOf(asStored)
		Expect(user.disable(ctx, cluster, kafka.Name)).To(Succeed())
		Eventually(func(g Gomega, ctx context.Context) *metav1.Time {
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			return instance.DeletionTimestamp
		}).WithContext(ctx).ShouldNot(BeNil(), "what starts the plan cleanup")
		Expect(user.disable(ctx, cluster, kafka.Name)).To(Succeed(), "clusteradm says the same again")
		warned := len(user.warnings)
		Expect(user.enable(ctx, kafka)).To(Succeed())
		Expect(user.warnings[warned:]).To(ConsistOf(kafka.Name+" is being removed from "+cluster+", so this change is lost: "+
			"enable it again once it is gone ('kubectl addon enable' waits for that)"), "clusteradm says that it is deployed")
		Consistently(exists(asStored)).WithContext(ctx).Should(BeTrue(), "the agent has not cleaned up yet")

		reportRemoved(ctx, instance)
		Eventually(exists(asStored)).WithContext(ctx).Should(BeFalse())
		Expect(apierrors.IsNotFound(user.disable(ctx, cluster, kafka.Name))).To(BeTrue(), "clusteradm says that there is none")
	})

	It("addon create --overwrite prints which dependencies it removes, and that it ends a suspension", func(ctx SpecContext) {
		definition := define(ctx, "annotated", version)
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: `[{"name":"` + zookeeper.Name + `"}]`, kudo.AnnotationSuspend: "storage"}
		})
		definitions := user.addOns.AddonV1alpha1().ClusterManagementAddOns()
		current, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		current.Annotations = nil
		Eventually(func(g Gomega) []string { // until the webhooks respond
			user.warnings = nil
			_, err := definitions.Update(ctx, current, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			g.Expect(err).NotTo(HaveOccurred())
			return user.warnings
		}).WithContext(ctx).Should(Equal([]string{
			fmt.Sprintf(`this write removes all dependencies of %q (%s): unless that is intended, restore annotation %s`,
				definition.Name, zookeeper.Name, addonv1alpha1.AnnotationDependencies),
			fmt.Sprintf(`to restore them: kubectl annotate clustermanagementaddon %s '%s=[{"name":"%s","type":"Required"}]'`,
				definition.Name, addonv1alpha1.AnnotationDependencies, zookeeper.Name),
			fmt.Sprintf(`this write resumes add-on %q on all clusters, and its plans start: unless that is intended, suspend it again`, definition.Name),
			fmt.Sprintf("to suspend it again: kubectl addon suspend %s --everywhere --reason storage", definition.Name),
		}))
	})

	It("get addon shows plan-based add-ons like all others, and their marks as their works", func(ctx SpecContext) {
		installed(ctx)
		Eventually(user.getAddOn(kafka.Name)).WithContext(ctx).Should(Equal(listed{Clusters: 1, Conditions: map[string]string{
			cluster + " Available": "unknown", cluster + " ManifestApplied": "unknown", cluster + " RegistrationApplied": "unknown",
		}}))
		available(ctx, kafka.Name, metav1.ConditionTrue)
		Eventually(user.getAddOn(kafka.Name)).WithContext(ctx).Should(HaveField("Conditions", HaveKeyWithValue(cluster+" Available", "true")))

		By("OCM rolling it out")
		place(ctx, kafka.Name, version, config)
		rollOut(ctx, asStored)
		reports(ctx, instanceOf(asStored), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(user.getAddOn(kafka.Name)).WithContext(ctx).Should(Equal(listed{
			Clusters: 1,
			Conditions: map[string]string{
				cluster + " Available": "true", cluster + " ManifestApplied": "true", cluster + " RegistrationApplied": "unknown",
			},
			Works: []string{fmt.Sprintf("%s addon-%s-plan", cluster, kafka.Name)},
		}))
	})

	It("get clusters shows what OCM says of a cluster, whatever is installed on it", func(ctx SpecContext) {
		clusters := user.clusters.ClusterV1().ManagedClusters()
		current, err := clusters.Get(ctx, cluster, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		current.Labels = map[string]string{"cluster.open-cluster-management.io/clusterset": "default"}
		current, err = clusters.Update(ctx, current, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		meta.SetStatusCondition(&current.Status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable",
		})
		current.Status.Capacity = clusterv1.ResourceList{
			clusterv1.ResourceCPU: resource.MustParse("16"), clusterv1.ResourceMemory: resource.MustParse("64Gi"),
		}
		current.Status.Version.Kubernetes = "v1.36.3"
		current, err = clusters.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())

		installed(ctx)
		Expect(user.getClusters(ctx, "default")).To(ContainElement([]any{cluster, true, "True", "16", "64Gi", "v1.36.3"}))
		after, err := clusters.Get(ctx, cluster, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.ResourceVersion).To(Equal(current.ResourceVersion), "it was not written")
	})
})

// withoutResolved returns conditions without Resolved, and without their observed generations.
func withoutResolved(conditions []metav1.Condition) []metav1.Condition {
	conditions = slices.Clone(conditions)
	meta.RemoveStatusCondition(&conditions, "Resolved")
	for i := range conditions {
		conditions[i].ObservedGeneration = 0
	}
	return conditions
}
