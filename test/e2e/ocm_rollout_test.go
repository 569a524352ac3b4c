package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/census"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The add-ons of these specs: a plan-based one that is enabled by a Placement, and one of the same package that is enabled manually.
const (
	shop  = "shop"
	kiosk = "kiosk"
)

var _ = Describe("The life of add-ons on a hub with OCM", Label("ocm"), onSandbox("it is the sandbox that runs OCM"), Ordered, func() {
	var f *ocmFleet
	shops := placement("shops", 3)

	BeforeAll(func(ctx SpecContext) {
		f = newOCMFleet(ctx, 3)
		Expect(f.hub.Create(ctx, bindingOfDefaultSet())).To(Succeed())
		shops.Spec.NumberOfClusters = nil
		shops.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{shop: "open"}},
		}}}
		Expect(f.hub.Create(ctx, shops)).To(Succeed())
		for _, name := range f.names {
			f.label(ctx, name, "open")
		}
		for _, config := range []client.Object{shopPackage("1.0.0"), shopPackage("2.0.0", "widget.yaml"), shopConfig()} {
			Expect(f.hub.Create(ctx, config)).To(Succeed())
		}
	})

	It("has an add-on that a Placement wants wait for what it requires, and run then", func(ctx SpecContext) {
		definition := shopDefinition(shop, shopPackage("1.0.0"))
		definition.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: dependsOn(base)}
		definition.Spec.InstallStrategy = rollingOut(shops, "", shopPackage("1.0.0"), shopConfig())
		Expect(f.hub.Create(ctx, definition)).To(Succeed())
		for _, name := range f.names {
			f.expectCondition(ctx, name, shop, addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
			f.expectCondition(ctx, name, shop, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForDependencies)
		}
		for _, name := range f.names {
			f.enable(ctx, name, base)
			f.say(ctx, name, metav1.ConditionTrue)
		}
		for _, name := range f.names {
			f.expectCondition(ctx, name, shop, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
			Eventually(statusOf).WithContext(ctx).WithArguments(f.hub, name, shop, addonv1alpha1.ConditionDegraded).
				WithTimeout(ocmTimeout).WithPolling(interval).Should(BeEmpty(), name)
			Expect(f.at(name).Get(ctx, client.ObjectKey{Namespace: shop, Name: shop}, &appsv1.Deployment{})).To(Succeed())
		}

		By("one cluster on which what it requires is not available any more")
		f.say(ctx, "cluster1", metav1.ConditionFalse)
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
		Expect(statusOf(ctx, f.hub, "cluster2", shop, addonv1alpha1.ConditionAvailable)).To(Equal(metav1.ConditionTrue))
		f.say(ctx, "cluster1", metav1.ConditionTrue)
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
	})

	It("reports to OCM when the clusters have the new configuration", func(ctx SpecContext) {
		for _, name := range f.names {
			f.expectApplied(ctx, name, "shop-1.0.0")
		}
		f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
	})

	It("rolls a new version out cluster by cluster, as far as one whose plan fails", func(ctx SpecContext) {
		for _, name := range []string{"cluster1", "cluster3"} { // the clusters with the dependency of the new version
			Expect(f.at(name).Create(ctx, widgets())).To(Succeed())
		}
		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = rollingOut(shops, "1", shopPackage("2.0.0"), shopConfig())
		})
		f.expectApplied(ctx, "cluster1", "shop-2.0.0")
		f.expectRuns(ctx, "cluster2", "shop-2.0.0", kudo.ReasonPlanFailed)
		f.expectCondition(ctx, "cluster2", shop, addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, kudo.ReasonPlanFailed)
		Expect(f.condition(ctx, "cluster2", shop, addonv1alpha1.ConditionAvailable).Message).To(ContainSubstring("Widget"))

		f.expectRollout(ctx, shop, metav1.ConditionTrue, "2/3 progressing..., 0 failed 0 timeout.")
		f.expectCondition(ctx, "cluster2", shop, "Progressing", metav1.ConditionTrue, upstream.ProgressingReasonProgressing)
		f.expectCondition(ctx, "cluster3", shop, addonv1alpha1.ConditionConfigured, metav1.ConditionFalse, "ConfigurationsNotConfigured")
		Eventually(f.metric).WithContext(ctx).WithArguments("addon_rollout_unfinished").WithTimeout(timeout).WithPolling(interval).
			Should(ConsistOf(`{addon="shop",state="Failed"} 1`, `{addon="shop",state="Waiting"} 1`))
		Consistently(func(g Gomega) {
			g.Expect(f.instance(ctx, "cluster3", shop).Spec.OperatorVersion.Name).To(Equal("shop-1.0.0"))
			g.Expect(f.lastApplied(ctx, "cluster2")).To(BeEmpty(), "OCM forgets of a config what came before another name")
			g.Expect(f.lastApplied(ctx, "cluster3")).To(Equal("shop-1.0.0"))
		}).WithContext(ctx).WithTimeout(2 * time.Second).WithPolling(interval).Should(Succeed())
		Expect(statusOf(ctx, f.hub, "cluster3", shop, addonv1alpha1.ConditionAvailable)).To(Equal(metav1.ConditionTrue))
	})

	It("goes back to the version before, and counts no cluster until it runs that again", func(ctx SpecContext) {
		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = rollingOut(shops, "1", shopPackage("1.0.0"), shopConfig())
		})
		for _, name := range []string{"cluster1", "cluster2"} {
			Eventually(f.lastApplied).WithContext(ctx).WithArguments(name).WithTimeout(ocmTimeout).WithPolling(interval).
				Should(Equal("shop-1.0.0"), name)
			instance := f.instance(ctx, name, shop)
			Expect(instance.Spec.OperatorVersion.Name).To(Equal("shop-1.0.0"), name)
			Expect(instance.Status.Conditions).To(ContainElement(And(HaveField("Type", kudo.ConditionReady),
				HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", instance.Generation))), name)
		}
		f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")

		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = rollingOut(shops, "1", shopPackage("2.0.0"), shopConfig())
		})
		f.expectApplied(ctx, "cluster1", "shop-2.0.0")
		f.expectRuns(ctx, "cluster2", "shop-2.0.0", kudo.ReasonPlanFailed)
	})

	It("continues once that cluster is repaired", func(ctx SpecContext) {
		Expect(f.at("cluster2").Create(ctx, widgets())).To(Succeed())
		instance := f.instance(ctx, "cluster2", shop)
		again := instance.DeepCopy()
		request(kudo.DeployPlan)(&again.Spec)
		Expect(f.hub.Patch(ctx, again, client.MergeFrom(instance))).To(Succeed())
		for _, name := range f.names {
			f.expectApplied(ctx, name, "shop-2.0.0")
			f.expectCondition(ctx, name, shop, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		}
		f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
		Eventually(f.metric).WithContext(ctx).WithArguments("addon_rollout_unfinished").WithTimeout(timeout).WithPolling(interval).Should(BeEmpty())
	})

	It("stops at the first cluster for a misspelt parameter, and continues with the correct one", func(ctx SpecContext) {
		set := func(parameter string) {
			GinkgoHelper()
			Expect(environment.Edit(ctx, f.hub, shopConfig(), func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: parameter, Value: "3"}}
			})).To(Succeed())
		}
		set("REPLICS")
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationInvalid)
		Expect(f.condition(ctx, "cluster1", shop, addonv1alpha1.ConditionResolved).Message).To(ContainSubstring("did you mean REPLICAS?"))
		f.expectRollout(ctx, shop, metav1.ConditionTrue, "1/3 progressing..., 0 failed 0 timeout.")
		Eventually(f.metric).WithContext(ctx).WithArguments("addon_rollout_unfinished").WithTimeout(timeout).WithPolling(interval).
			Should(ConsistOf(`{addon="shop",state="Failed"} 1`, `{addon="shop",state="Waiting"} 2`))
		Consistently(func(g Gomega) {
			for _, name := range f.names {
				g.Expect(f.instance(ctx, name, shop).Spec.Parameters).To(BeEmpty(), name)
			}
		}).WithContext(ctx).WithTimeout(2 * time.Second).WithPolling(interval).Should(Succeed())

		set("REPLICAS")
		f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
		for _, name := range f.names {
			Expect(f.instance(ctx, name, shop).Spec.Parameters).To(Equal(map[string]string{"REPLICAS": "3"}), name)
		}
	})

	It("rolls the content of a ConfigMap out cluster by cluster", func(ctx SpecContext) {
		config := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shopPackage("2.0.0").Namespace, Name: shop, Labels: map[string]string{kudo.LabelConfiguration: "true"}},
			Data:       map[string]string{"REPLICAS": "2"},
		}
		Expect(f.hub.Create(ctx, config)).To(Succeed())
		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.SupportedConfigs = append(d.Spec.SupportedConfigs, upstream.ConfigMeta{ConfigGroupResource: resourceOf(config)})
			d.Spec.InstallStrategy = rollingOut(shops, "1", shopPackage("2.0.0"), shopConfig(), config)
		})
		all := func(replicas string) {
			GinkgoHelper()
			for _, name := range f.names {
				Eventually(f.parameters).WithContext(ctx).WithArguments(name, shop).WithTimeout(ocmTimeout).WithPolling(interval).
					Should(Equal(map[string]string{"REPLICAS": replicas}), name)
			}
			f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
		}
		all("2")
		By("a binary value, which stops at the first cluster")
		Expect(environment.Edit(ctx, f.hub, config, func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"LOGO": {0}} })).To(Succeed())
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationInvalid)
		f.expectRollout(ctx, shop, metav1.ConditionTrue, "1/3 progressing..., 0 failed 0 timeout.")
		Consistently(func(g Gomega) {
			for _, name := range f.names {
				g.Expect(f.parameters(ctx, name, shop)).To(Equal(map[string]string{"REPLICAS": "2"}), name)
			}
		}).WithContext(ctx).WithTimeout(2 * time.Second).WithPolling(interval).Should(Succeed())

		By("text only")
		Expect(environment.Edit(ctx, f.hub, config, func(c *corev1.ConfigMap) { c.Data, c.BinaryData = map[string]string{"REPLICAS": "4"}, nil })).To(Succeed())
		all("4")

		By("leaving it out again")
		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = rollingOut(shops, "1", shopPackage("2.0.0"), shopConfig())
		})
		all("3")
	})

	It("rolls mirrors of images out cluster by cluster, and counts a cluster once its pods have them", func(ctx SpecContext) {
		mirror := func(registries ...upstream.ImageMirror) {
			GinkgoHelper()
			Expect(environment.Edit(ctx, f.hub, shopConfig(), func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.Registries = registries })).To(Succeed())
		}
		all := func(image string) {
			GinkgoHelper()
			for _, name := range f.names {
				Eventually(f.image).WithContext(ctx).WithArguments(name, shop).WithTimeout(ocmTimeout).WithPolling(interval).Should(Equal(image), name)
			}
			f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
		}
		mirror(upstream.ImageMirror{Mirror: "mirror.example.com/apps"})
		all("mirror.example.com/apps/simulated")

		By("a mirror whose name is not valid, which stops at the first cluster")
		mirror(upstream.ImageMirror{Mirror: "https://mirror.example.com"})
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationInvalid)
		f.expectRollout(ctx, shop, metav1.ConditionTrue, "1/3 progressing..., 0 failed 0 timeout.")
		Consistently(func(g Gomega) {
			for _, name := range f.names {
				g.Expect(f.image(ctx, name, shop)).To(Equal("mirror.example.com/apps/simulated"), name)
			}
		}).WithContext(ctx).WithTimeout(2 * time.Second).WithPolling(interval).Should(Succeed())

		By("none any more")
		mirror()
		all("simulated")
	})

	It("upgrades Tandem's agents cluster by cluster, as far as one that OCM cannot apply anything to", func(ctx SpecContext) {
		agents := placement("agents", 3)
		Expect(f.hub.Create(ctx, agents)).To(Succeed())
		f.edit(ctx, addonv1alpha1.AgentAddOn, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.InstallStrategy = rollingOut(agents, "1") })
		f.expectRollout(ctx, addonv1alpha1.AgentAddOn, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")

		Expect(sandbox.StopProgram(ctx, f.home, "cluster2", "ocm-work-agent")).To(Succeed())
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: "addon-agent"}}
		Expect(environment.Edit(ctx, f.hub, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.CustomizedVariables[0].Value = "addon-agent:next"
		})).To(Succeed())
		image := func(name string, want string) {
			GinkgoHelper()
			Eventually(f.agentImage).WithContext(ctx).WithArguments(name).WithTimeout(ocmTimeout).WithPolling(interval).Should(Equal(want), name)
		}
		image("cluster1", "addon-agent:next")
		image("cluster2", "addon-agent:next")
		f.expectRollout(ctx, addonv1alpha1.AgentAddOn, metav1.ConditionTrue, "2/3 progressing..., 0 failed 0 timeout.")
		Consistently(f.agentImage).WithContext(ctx).WithArguments("cluster3").WithTimeout(2 * time.Second).WithPolling(interval).
			Should(Equal("addon-agent"))

		Expect(sandbox.StartProgram(ctx, f.home, "cluster2", "ocm-work-agent")).To(Succeed())
		image("cluster3", "addon-agent:next")
		f.expectRollout(ctx, addonv1alpha1.AgentAddOn, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
		for _, name := range f.names {
			agent := &appsv1.Deployment{}
			Expect(f.at(name).Get(ctx, client.ObjectKey{Namespace: "tandem-system", Name: "addon-agent"}, agent)).To(Succeed())
			Expect(agent.Spec.Template.Spec.Containers[0].Image).To(Equal("addon-agent:next"))
		}
	})

	It("cleans a cluster up that leaves the Placement", func(ctx SpecContext) {
		f.label(ctx, "cluster3", "")
		f.expectRemoved(ctx, "cluster3", shop)
	})

	It("does not conflict with clusteradm, which changes an add-on's configuration and then the add-on, thirty consecutive times", func(ctx SpecContext) {
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster3", Name: kiosk}}
		config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "REPLICAS", Value: "1"}}
		enabled := f.addOn("cluster3", kiosk)
		enabled.Spec.InstallNamespace = kiosk
		enabled.Spec.Configs = []upstream.AddOnConfig{{
			ConfigGroupResource: resourceOf(config), ConfigReferent: upstream.ConfigReferent{Namespace: config.Namespace, Name: config.Name},
		}}
		for _, object := range []client.Object{shopDefinition(kiosk, shopPackage("1.0.0")), config, enabled} {
			Expect(f.hub.Create(ctx, object)).To(Succeed())
		}
		f.expectCondition(ctx, "cluster3", kiosk, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		f.expectCondition(ctx, "cluster3", kiosk, upstream.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, upstream.ProgressingReasonCompleted)

		Eventually(f.appliedHash).WithContext(ctx).WithArguments("cluster3", kiosk).WithTimeout(ocmTimeout).WithPolling(interval).ShouldNot(BeEmpty())
		first := f.appliedHash(ctx, "cluster3", kiosk)

		const rounds, writeDelay = 30, 2 * time.Second
		var conflicts int
		var replicas string
		for round := 0; round < rounds; {
			start := time.Now()
			replicas = fmt.Sprint(round%3 + 1)
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"customizedVariables":[{"name":"REPLICAS","value":%q}]}}`, replicas))
			Expect(f.hub.Patch(ctx, config.DeepCopy(), patch)).To(Succeed())
			read := f.addOn("cluster3", kiosk)
			Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(read), read)).To(Succeed())
			f.hasReplicas(ctx, "cluster3", kiosk, replicas)
			read.Labels, read.Annotations, read.Spec = nil, nil, enabled.Spec
			err := f.hub.Update(ctx, read)
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
		Expect(conflicts).To(BeZero(), "of %d", rounds)

		By("OCM counting the last configuration after that")
		f.expectCondition(ctx, "cluster3", kiosk, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		Eventually(f.appliedHash).WithContext(ctx).WithArguments("cluster3", kiosk).WithTimeout(ocmTimeout).WithPolling(interval).
			Should(And(Not(BeEmpty()), Not(Equal(first))))
		Expect(f.hub.Delete(ctx, config)).To(Succeed())
	})

	It("cleans up after an add-on that is disabled by hand", func(ctx SpecContext) {
		Expect(f.hub.Delete(ctx, f.addOn("cluster3", kiosk))).To(Succeed())
		f.expectRemoved(ctx, "cluster3", kiosk)
	})

	It("destroys nothing on a cluster that is detached", func(ctx SpecContext) {
		cluster, key := f.at("cluster1"), client.ObjectKey{Namespace: shop, Name: shop}
		before := &appsv1.Deployment{}
		Expect(cluster.Get(ctx, key, before)).To(Succeed())
		Expect(f.hub.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}})).To(Succeed())
		Expect(f.hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}})).To(Succeed())
		f.expectGone(ctx, f.hub, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}})

		By("the agent, which goes with what OCM has delivered")
		f.expectGone(ctx, cluster, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: "addon-agent"}})
		after := &appsv1.Deployment{}
		Expect(cluster.Get(ctx, key, after)).To(Succeed())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.DeletionTimestamp).To(BeNil())
		Expect(after.Status.ReadyReplicas).To(Equal(before.Status.ReadyReplicas))
		Expect(cluster.Get(ctx, client.ObjectKey{Name: "tandem-system"}, &corev1.Namespace{})).To(Succeed())
		mirror := &kudo.Instance{}
		Expect(cluster.Get(ctx, key, mirror)).To(Succeed())
		Expect(mirror.DeletionTimestamp).To(BeNil())
		Expect(f.wrote("cluster1", "farewell-"+shop)).To(BeFalse(), "cleanup has run")
	})

	It("leaves nothing once it is uninstalled", func(ctx SpecContext) {
		for _, name := range []string{shop, kiosk, base} {
			Expect(client.IgnoreNotFound(f.hub.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
		}
		f.expectRemoved(ctx, "cluster2", shop)
		f.edit(ctx, addonv1alpha1.AgentAddOn, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}
		})
		for _, name := range []string{"cluster2", "cluster3"} {
			Expect(client.IgnoreNotFound(f.hub.Delete(ctx, f.addOn(name, base)))).To(Succeed())
			Expect(f.hub.Delete(ctx, f.addOn(name, addonv1alpha1.AgentAddOn))).To(Succeed())
		}
		for _, name := range []string{"cluster2", "cluster3"} {
			f.expectGone(ctx, f.hub, f.addOn(name, addonv1alpha1.AgentAddOn), f.work(name))
		}

		By("addon-manager, and then what was installed, on the hub")
		Expect(sandbox.StopProgram(ctx, f.home, "hub", "addon-manager")).To(Succeed())
		out, err := exec.CommandContext(ctx, filepath.Join(programs, "addon-manager"), "--uninstall",
			"--kubeconfig", f.box.Hub().Kubeconfig()).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		f.delete(ctx, f.hub, "ocm/*.yaml", "hub/*.yaml", "crds/kudo.dev_*.yaml")

		By("and what OCM leaves behind on a cluster")
		f.delete(ctx, f.at("cluster2"), "crds/kudo.dev_instances.yaml", "crds/kudo.dev_operatorversions.yaml", "crds/kudo.dev_operatorcontents.yaml")
		for _, namespace := range []string{"tandem-system", shop} {
			Expect(f.at("cluster2").Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		}
		Expect(f.at("cluster2").Delete(ctx, widgets())).To(Succeed())
		Expect(f.hub.Delete(ctx, shops)).To(Succeed())
		Expect(f.hub.Delete(ctx, placement("agents", 3))).To(Succeed())
		Expect(f.hub.Delete(ctx, bindingOfDefaultSet())).To(Succeed())
		for _, name := range []string{"hub", "cluster2"} {
			Eventually(f.since).WithContext(ctx).WithArguments(name).WithTimeout(2*ocmTimeout).WithPolling(time.Second).Should(BeEmpty(), name)
		}
	})
})

// ocmFleet is a sandbox with OCM, which has delivered Tandem's agents.
type ocmFleet struct {
	box   *sandbox.Sandbox
	home  string
	hub   client.Client
	names []string
	// before lists the initial objects of each cluster.
	before map[string]sets.Set[string]
}

func newOCMFleet(ctx context.Context, clusters int) *ocmFleet {
	GinkgoHelper()
	programsOfOCM, err := sandbox.FindOCM(os.Getenv)
	Expect(err).NotTo(HaveOccurred())
	f := &ocmFleet{before: map[string]sets.Set[string]{}}
	f.box = startSandbox(ctx, clusters, func(o *sandbox.Options) { o.OCM, o.DeliverAgents, f.home = programsOfOCM, true, o.Home })
	scheme := ocmScheme()
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	f.hub, err = client.New(f.box.Hub().Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	f.before["hub"] = f.census(ctx, f.box.Hub().Config())
	for i := range clusters {
		name := fmt.Sprintf("cluster%d", i+1)
		f.names = append(f.names, name)
		f.before[name] = f.census(ctx, f.box.Cluster(name).Config())
	}
	return f
}

// at returns an administrator's client for a managed cluster.
func (f *ocmFleet) at(name string) client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, kudo.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	c, err := client.New(f.box.Cluster(name).Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// census returns the objects of a cluster.
func (f *ocmFleet) census(ctx context.Context, config *rest.Config) sets.Set[string] {
	GinkgoHelper()
	objects, err := census.OfAll(ctx, config)
	Expect(err).NotTo(HaveOccurred())
	return sets.New(slices.DeleteFunc(objects, func(object string) bool { return strings.HasPrefix(object, "Event ") })...)
}

// isTandem reports whether an initial object of a cluster belongs to Tandem, by its name, namespace or kind.
func isTandem(object string) bool {
	return strings.Contains(object, "tandem") || strings.Contains(object, "addon-packages") || strings.Contains(object, "kudo.dev")
}

// since returns the objects of a cluster that would not exist without Tandem, except certificate signing requests, which Kubernetes deletes
// after an hour.
func (f *ocmFleet) since(ctx context.Context, name string) []string {
	GinkgoHelper()
	before := sets.New[string]()
	for object := range f.before[name] {
		if !isTandem(object) {
			before.Insert(object)
		}
	}
	return slices.DeleteFunc(sets.List(f.census(ctx, f.box.Cluster(name).Config()).Difference(before)), func(object string) bool {
		return strings.HasPrefix(object, "CertificateSigningRequest ")
	})
}

// label sets the Placement's label on a cluster, or removes it.
func (f *ocmFleet) label(ctx context.Context, name, value string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{}
	Expect(f.hub.Get(ctx, client.ObjectKey{Name: name}, cluster)).To(Succeed())
	labelled := cluster.DeepCopy()
	if labelled.Labels[shop] = value; value == "" {
		delete(labelled.Labels, shop)
	}
	Expect(f.hub.Patch(ctx, labelled, client.MergeFrom(cluster))).To(Succeed())
}

// edit changes a definition, which OCM's controllers write too.
func (f *ocmFleet) edit(ctx context.Context, name string, change func(*addonv1alpha1.ClusterManagementAddOn)) {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	Expect(f.hub.Get(ctx, client.ObjectKey{Name: name}, definition)).To(Succeed())
	edited := definition.DeepCopy()
	change(edited)
	Expect(f.hub.Patch(ctx, edited, client.MergeFrom(definition))).To(Succeed())
}

// appliedHash returns the hash of an add-on's own config, once OCM counts it as applied.
func (f *ocmFleet) appliedHash(ctx context.Context, cluster, name string) string {
	GinkgoHelper()
	current := f.addOn(cluster, name)
	Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
	for _, r := range current.Status.ConfigReferences {
		if r.Resource == addonv1alpha1.ResourceAddOnDeploymentConfigs && r.LastAppliedConfig != nil && *r.LastAppliedConfig == *r.DesiredConfig {
			return r.LastAppliedConfig.SpecHash
		}
	}
	return ""
}

// hasReplicas waits until the plan of an add-on has applied that number of replicas, for half a second at most.
func (f *ocmFleet) hasReplicas(ctx context.Context, cluster, name, replicas string) {
	GinkgoHelper()
	ctx, stop := context.WithTimeout(ctx, 500*time.Millisecond)
	defer stop()
	on, deployment := f.at(cluster), &appsv1.Deployment{}
	_ = wait.PollUntilContextCancel(ctx, interval/2, true, func(ctx context.Context) (bool, error) {
		err := on.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, deployment)
		return err == nil && fmt.Sprint(*deployment.Spec.Replicas) == replicas, nil
	})
}

func (f *ocmFleet) addOn(cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
}

// work returns the ManifestWork of Tandem's agent.
func (f *ocmFleet) work(cluster string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-tandem-deploy-0"}}
}

// enable enables an add-on manually, in a namespace of its own.
func (f *ocmFleet) enable(ctx context.Context, cluster, name string) {
	GinkgoHelper()
	enabled := f.addOn(cluster, name)
	enabled.Spec.InstallNamespace = name
	Expect(f.hub.Create(ctx, enabled)).To(Succeed())
}

// say writes the status of the base as its own writer would.
func (f *ocmFleet) say(ctx context.Context, cluster string, status metav1.ConditionStatus) {
	GinkgoHelper()
	probe(ctx, f.hub, f.addOn(cluster, base), status)
}

func (f *ocmFleet) condition(ctx context.Context, cluster, name, conditionType string) metav1.Condition {
	GinkgoHelper()
	subject := f.addOn(cluster, name)
	Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
	if found := meta.FindStatusCondition(subject.Status.Conditions, conditionType); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// expectCondition waits until an add-on has the condition.
func (f *ocmFleet) expectCondition(ctx context.Context, cluster, name, conditionType string, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		subject := f.addOn(cluster, name)
		g.Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
		g.Expect(subject.Status.Conditions).To(ContainElement(And(
			HaveField("Type", conditionType), HaveField("Status", status), HaveField("Reason", reason))))
	}).WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(Succeed(), "%s of %s on %s", conditionType, name, cluster)
}

func (f *ocmFleet) instance(ctx context.Context, cluster, name string) *kudo.Instance {
	GinkgoHelper()
	instance := &kudo.Instance{}
	Expect(f.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance)).To(Succeed())
	return instance
}

// parameters returns the parameters of an Instance on the hub.
func (f *ocmFleet) parameters(ctx context.Context, cluster, name string) map[string]string {
	GinkgoHelper()
	return f.instance(ctx, cluster, name).Spec.Parameters
}

// image returns the image of the Deployment of an add-on.
func (f *ocmFleet) image(ctx context.Context, cluster, name string) string {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(f.at(cluster).Get(ctx, client.ObjectKey{Namespace: name, Name: name}, deployment)).To(Succeed())
	return deployment.Spec.Template.Spec.Containers[0].Image
}

// replicas returns how many pods of the shop's Deployment are available.
func (f *ocmFleet) replicas(ctx context.Context, cluster string) int32 {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(f.at(cluster).Get(ctx, client.ObjectKey{Namespace: shop, Name: shop}, deployment)).To(Succeed())
	return deployment.Status.AvailableReplicas
}

// expectRuns waits until the shop of a cluster runs a version, with that reason.
func (f *ocmFleet) expectRuns(ctx context.Context, cluster, version, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		instance := f.instance(ctx, cluster, shop)
		g.Expect(instance.Spec.OperatorVersion.Name).To(Equal(version))
		g.Expect(meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)).To(HaveField("Reason", reason))
	}).WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(Succeed(), cluster)
}

// lastApplied returns the version that OCM last recorded as applied on a cluster.
func (f *ocmFleet) lastApplied(ctx context.Context, cluster string) string {
	GinkgoHelper()
	subject := f.addOn(cluster, shop)
	Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
	for _, reference := range subject.Status.ConfigReferences {
		if reference.Resource == addonv1alpha1.ResourceOperatorVersions && reference.LastAppliedConfig != nil {
			return reference.LastAppliedConfig.Name
		}
	}
	return ""
}

// expectApplied waits until OCM records a version as applied on a cluster.
func (f *ocmFleet) expectApplied(ctx context.Context, cluster, version string) {
	GinkgoHelper()
	Eventually(f.lastApplied).WithContext(ctx).WithArguments(cluster).WithTimeout(ocmTimeout).WithPolling(interval).Should(Equal(version), cluster)
	f.expectCondition(ctx, cluster, shop, "Progressing", metav1.ConditionFalse, upstream.ProgressingReasonCompleted)
}

// expectRollout waits until OCM reports the status of a rollout.
func (f *ocmFleet) expectRollout(ctx context.Context, name string, progressing metav1.ConditionStatus, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		definition := &addonv1alpha1.ClusterManagementAddOn{}
		g.Expect(f.hub.Get(ctx, client.ObjectKey{Name: name}, definition)).To(Succeed())
		g.Expect(definition.Status.InstallProgressions).To(HaveLen(1))
		g.Expect(definition.Status.InstallProgressions[0].Conditions).To(ContainElement(And(
			HaveField("Type", "Progressing"), HaveField("Status", progressing), HaveField("Message", message))))
	}).WithContext(ctx).WithTimeout(ocmTimeout).WithPolling(interval).Should(Succeed())
}

// agentImage returns the image of the agent delivered to a cluster.
func (f *ocmFleet) agentImage(ctx context.Context, cluster string) string {
	GinkgoHelper()
	delivered := f.work(cluster)
	Expect(f.hub.Get(ctx, client.ObjectKeyFromObject(delivered), delivered)).To(Succeed())
	for _, manifest := range delivered.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		Expect(object.UnmarshalJSON(manifest.Raw)).To(Succeed())
		if object.GetKind() != "Deployment" {
			continue
		}
		agent := &appsv1.Deployment{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, agent)).To(Succeed())
		return agent.Spec.Template.Spec.Containers[0].Image
	}
	return ""
}

// metric returns the samples of a metric of addon-manager.
func (f *ocmFleet) metric(ctx context.Context, name string) ([]string, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d/metrics", find(f.box, "hub", "addon-manager").Port)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var samples []string
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if sample, found := strings.CutPrefix(lines.Text(), name); found {
			samples = append(samples, sample)
		}
	}
	return samples, nil
}

// expectRemoved waits until an add-on is removed from the hub and its cluster, after its plan cleanup.
func (f *ocmFleet) expectRemoved(ctx context.Context, cluster, name string) {
	GinkgoHelper()
	key := metav1.ObjectMeta{Namespace: cluster, Name: name}
	f.expectGone(ctx, f.hub, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: key}, &kudo.Instance{ObjectMeta: key},
		&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-" + name + "-plan"}})
	there := metav1.ObjectMeta{Namespace: name, Name: name}
	f.expectGone(ctx, f.at(cluster), &kudo.Instance{ObjectMeta: there}, &appsv1.Deployment{ObjectMeta: there},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "farewell-" + name}})
	Expect(f.wrote(cluster, "farewell-"+name)).To(BeTrue(), "plan cleanup has run")
}

// wrote reports whether an object of that name has been written on a cluster, according to the audit log.
func (f *ocmFleet) wrote(cluster, name string) bool {
	GinkgoHelper()
	log, err := os.ReadFile(f.box.Cluster(cluster).AuditLog())
	Expect(err).NotTo(HaveOccurred())
	return strings.Contains(string(log), `"name":"`+name+`"`)
}

// expectGone waits until objects do not exist.
func (f *ocmFleet) expectGone(ctx context.Context, c client.Client, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(func(g Gomega) {
			err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			g.Expect(err).To(HaveOccurred(), "%T %s still exists", object, client.ObjectKeyFromObject(object))
		}).WithContext(ctx).WithTimeout(2 * ocmTimeout).WithPolling(interval).Should(Succeed())
	}
}

// delete deletes the existing objects of Tandem's manifests.
func (f *ocmFleet) delete(ctx context.Context, c client.Client, patterns ...string) {
	GinkgoHelper()
	for _, pattern := range patterns {
		objects, err := manifests.Objects(manifests.FS, pattern, nil)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			Expect(client.IgnoreNotFound(c.Delete(ctx, object))).To(Succeed())
		}
	}
}

// rollingOut returns an install strategy with a Placement and configs, with that concurrency; all clusters at the same time if empty.
func rollingOut(where *clusterv1beta1.Placement, concurrency string, configs ...client.Object) upstream.InstallStrategy {
	rollout := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
	if concurrency != "" {
		rollout = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.Parse(concurrency)},
		}
	}
	strategy := upstream.PlacementStrategy{
		PlacementRef: upstream.PlacementRef{Namespace: where.Namespace, Name: where.Name}, RolloutStrategy: rollout,
	}
	for _, config := range configs {
		strategy.Configs = append(strategy.Configs, upstream.AddOnConfig{
			ConfigGroupResource: resourceOf(config),
			ConfigReferent:      upstream.ConfigReferent{Namespace: config.GetNamespace(), Name: config.GetName()},
		})
	}
	return upstream.InstallStrategy{Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{strategy}}
}

// resourceOf returns the resource by which add-ons refer to configs of that kind.
func resourceOf(config client.Object) upstream.ConfigGroupResource {
	switch config.(type) {
	case *kudo.OperatorVersion:
		return upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	case *corev1.ConfigMap:
		return upstream.ConfigGroupResource{Resource: addonv1alpha1.ResourceConfigMaps}
	}
	return upstream.ConfigGroupResource{Group: upstream.GroupName, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}
}

// shopDefinition returns an add-on that runs a version by default.
func shopDefinition(name string, version *kudo.OperatorVersion) *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	byDefault := &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name}
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{ConfigGroupResource: resourceOf(version), DefaultConfig: byDefault}, {ConfigGroupResource: resourceOf(shopConfig())},
	}
	return definition
}

// shopConfig gives the shop a namespace of its own.
func shopConfig() *addonv1alpha1.AddOnDeploymentConfig {
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: shop}}
	config.Spec.AgentInstallNamespace = shop
	return config
}

// shopPackage returns a package with a Deployment and the version's additional templates, and with a cleanup plan.
func shopPackage(version string, more ...string) *kudo.OperatorVersion {
	apply := func(name string, resources ...string) kudo.Task {
		return kudo.Task{Name: name, Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: resources}}}
	}
	plan := func(task string) kudo.Plan {
		return kudo.Plan{
			Phases:  []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: task, Tasks: []string{task}}}}},
			Timeout: &metav1.Duration{Duration: 20 * time.Second}, // a task whose kind does not exist is retried until then
		}
	}
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-" + version, Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator:   corev1.ObjectReference{Name: "shop"},
			Version:    version,
			Parameters: []kudo.Parameter{{Name: "REPLICAS", Type: kudo.IntegerType, Default: new("2")}},
			Templates: map[string]string{
				"web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {shop: "{{ .Name }}"}}
  template:
    metadata: {labels: {shop: "{{ .Name }}"}}
    spec: {containers: [{name: web, image: simulated}]}
`,
				"widget.yaml":   "apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: \"{{ .Name }}\"}\n",
				"farewell.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"farewell-{{ .Name }}\"}\n",
			},
			Tasks: []kudo.Task{apply("web", append([]string{"web.yaml"}, more...)...), apply("farewell", "farewell.yaml")},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: plan("web"), kudo.CleanupPlan: plan("farewell")},
		},
	}
}

// widgets returns the CustomResourceDefinition that the second version of the package requires on a cluster.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	free := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.e2e.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "e2e.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &free},
				},
			}},
		},
	}
}
