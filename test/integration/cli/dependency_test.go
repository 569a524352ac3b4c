package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("what add-ons depend on", func() {
	define := func(ctx context.Context, name string, needs ...addonv1alpha1.AddonDependency) {
		GinkgoHelper()
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		definition.Spec.Dependencies = needs
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
	}
	requires := func(name string) addonv1alpha1.AddonDependency { return addonv1alpha1.AddonDependency{Name: name} }
	uses := func(name, lost string) addonv1alpha1.AddonDependency {
		return addonv1alpha1.AddonDependency{Name: name, Type: addonv1alpha1.DependencyTypeOptional, Message: lost}
	}
	enable := func(ctx context.Context, cluster, name string, conditions ...metav1.Condition) {
		GinkgoHelper()
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, addOn)).To(Succeed()) })
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.Now()
		}
		addOn.Status.Conditions = conditions
		Expect(hub.Status().Update(ctx, addOn)).To(Succeed())
	}
	available := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Works"}
	broken := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "Broken", Message: "disk is gone"}

	It("with install Auto is enabled by addon-manager, which why, enable and disable say", func(ctx context.Context) {
		auto := func(name string) addonv1alpha1.AddonDependency {
			return addonv1alpha1.AddonDependency{Name: name, Install: addonv1alpha1.InstallAuto}
		}
		define(ctx, "shop", auto("kafka"), auto("placed"))
		define(ctx, "kafka")
		define(ctx, "placed")
		placed := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "placed"}}
		Expect(environment.Edit(ctx, hub, placed, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyPlacements
		})).To(Succeed())
		cluster := newCluster(ctx, nil)
		enabled := run(ctx, "enable", "shop", "--cluster", cluster)
		Expect(enabled.errOut).To(ContainSubstring("shop is waiting for required add-ons: Required placed (PlacementDecides)"))
		why := run(ctx, "why", "shop", "--cluster", cluster)
		Expect(why.out).To(And(
			ContainSubstring("It requires kafka, which is not enabled yet. addon-manager enables it automatically (install: Auto)."),
			ContainSubstring("It also requires placed, which is enabled by Placements only, so addon-manager does not enable it, despite install: Auto."), ContainSubstring("\n  kubectl label managedcluster "+cluster+" NAME=VALUE\n")))

		shop := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
		annotate := func(addOn *addonv1alpha1.ManagedClusterAddOn, name, value string) {
			GinkgoHelper()
			Expect(environment.Edit(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Annotations = map[string]string{name: value} })).To(Succeed())
		}
		annotate(shop, addonv1alpha1.AnnotationInstalledWith, "kafka")
		Expect(run(ctx, "tree", "shop", "--cluster", cluster).out).To(MatchRegexp(`kafka +Required +not installed +Declined\n`))
		Expect(run(ctx, "why", "shop", "--cluster", cluster).out).To(And(
			ContainSubstring("It requires kafka, which was disabled, so addon-manager does not enable it again, despite install: Auto."),
			ContainSubstring("\n  kubectl addon enable kafka --cluster "+cluster+"\n")))

		Expect(hub.Get(ctx, client.ObjectKeyFromObject(shop), shop)).To(Succeed())
		kafka := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka"}}
		Expect(hub.Create(ctx, kafka)).To(Succeed())
		annotate(kafka, addonv1alpha1.AnnotationInstalledFor, "shop="+string(shop.UID))
		disabled := func() string { return run(ctx, "disable", "shop", "--cluster", cluster, "--dry-run").out }
		Expect(disabled()).To(ContainSubstring("kafka: enabled automatically; will be disabled after shop"))
		Expect(run(ctx, "enable", "kafka", "--cluster", cluster).out).To(Equal("managedclusteraddon.addon.open-cluster-management.io/kafka configured on " + cluster + "\n"))
		Expect(disabled()).NotTo(ContainSubstring("automatically"))
	})

	Describe("tree", func() {
		It("shows all add-ons of a cluster, or one, with state and cause", func(ctx context.Context) {
			define(ctx, "shop", requires("kafka"), uses("graphs", "No graphs."))
			define(ctx, "kafka", requires("zookeeper"))
			define(ctx, "zookeeper")
			cluster := newNamespace(ctx)
			enable(ctx, cluster, "shop", available)
			enable(ctx, cluster, "kafka", broken)
			enable(ctx, cluster, "lonely")

			all := run(ctx, "tree", "--cluster", cluster)
			Expect(all.err).NotTo(HaveOccurred())
			Expect(all.out).To(Equal(`ADD-ON              TYPE       STATE                              CAUSE
lonely                         not available (not reported yet)
shop                           available
├── kafka           Required   not available (Broken)             NotAvailable
│   └── zookeeper   Required   not installed                      NotInstalled
└── graphs          Optional   no such add-on                     NoSuchAddOn
`))
			one := run(ctx, "tree", "kafka", "--cluster", cluster)
			Expect(one.code).To(Equal(cli.ExitOK))
			Expect(one.out).To(Equal(`ADD-ON          TYPE       STATE                    CAUSE
kafka                      not available (Broken)
└── zookeeper   Required   not installed            NotInstalled
`))
		})

		It("shows a cycle once", func(ctx context.Context) {
			define(ctx, "a", requires("b"))
			define(ctx, "b", requires("a"))
			cluster := newNamespace(ctx)
			enable(ctx, cluster, "a", available)
			enable(ctx, cluster, "b", available)
			Expect(run(ctx, "tree", "--cluster", cluster).out).To(Equal(`ADD-ON              TYPE       STATE       CAUSE
a                              available
└── b               Required   available   Circular: a -> b -> a
    └── a (cycle)   Required   available   Circular: b -> a -> b
`))
		})

		It("names what there is instead of what does not exist", func(ctx context.Context) {
			define(ctx, "kafka")
			cluster := newNamespace(ctx)
			nowhere := run(ctx, "tree", "--cluster", cluster)
			Expect(nowhere.err).To(MatchError(`managed cluster "` + cluster + `" not found; managed clusters: none`))
			Expect(nowhere.code).To(Equal(cli.ExitFailure))

			enable(ctx, cluster, "lonely")
			unknown := run(ctx, "tree", "zookeper", "--cluster", cluster)
			Expect(unknown.err).To(MatchError(
				`add-on "zookeper" not found; add-ons of cluster "` + cluster + `": lonely; ClusterManagementAddOns: kafka`))
			Expect(unknown.code).To(Equal(cli.ExitFailure))
			Expect(run(ctx, "tree").code).To(Equal(cli.ExitUsage))
		})
	})

	Describe("an available add-on whose last change is held up", func() {
		It("is blocked or waiting, with the reason, and not available", func(ctx context.Context) {
			unresolved := func(reason string) metav1.Condition {
				return metav1.Condition{Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionFalse, Reason: reason}
			}
			cluster := newCluster(ctx, nil)
			enable(ctx, cluster, "kafka", available, unresolved(kudo.ReasonParametersInvalid))
			enable(ctx, cluster, "shop", broken, unresolved(kudo.ReasonParametersInvalid))
			enable(ctx, cluster, "zookeeper", available, unresolved(addonv1alpha1.ReasonWaitingForConfiguration))

			fleet := run(ctx, "fleet", "--cluster", cluster)
			Expect(fleet.err).NotTo(HaveOccurred())
			Expect(fleet.out).To(And(
				ContainSubstring("2 of 3 are available (1 of them blocked, 1 waiting), 1 not available\n"),
				MatchRegexp(`(?m)^ParametersInvalid +blocked +1 \(kafka\)`), MatchRegexp(`(?m)^Broken, blocked: ParametersInvalid +not available +1 \(shop\)`),
				ContainSubstring("⊘ ✗ ~   1 ("), ContainSubstring("~ waiting   ⊘ blocked   ✗ not available\n"),
			))
			get := run(ctx, "get", "--cluster", cluster)
			Expect(get.out).To(And(
				MatchRegexp(`kafka +- +blocked +True +- +ParametersInvalid `), MatchRegexp(`shop +- +not available +False +- +Broken, blocked: ParametersInvalid `),
				MatchRegexp(`zookeeper +- +waiting +True +- +WaitingForConfiguration `),
			))
			Expect(run(ctx, "get", "kafka", "--cluster", cluster, "-o", "jsonpath={.addOns[0].state} {.addOns[0].available}").out).To(Equal("Blocked True"))
			Expect(run(ctx, "tree", "kafka", "--cluster", cluster).out).To(ContainSubstring("available, blocked (ParametersInvalid)"))
		})
	})

	Describe("why", func() {
		It("follows the dependencies to the root cause, and prints the command to run", func(ctx context.Context) {
			define(ctx, "shop", requires("kafka"))
			define(ctx, "kafka", requires("zookeeper"))
			define(ctx, "zookeeper")
			cluster := newCluster(ctx, nil)
			lacks := func(name string) []metav1.Condition {
				message := "Required addon '" + name + "' is not installed or not available."
				return []metav1.Condition{
					{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonRequiredDependencyNotSatisfied, Message: message},
					{Type: addonv1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonRequiredDependencyNotSatisfied, Message: message},
				}
			}
			enable(ctx, cluster, "shop", lacks("kafka")...)
			enable(ctx, cluster, "kafka", lacks("zookeeper")...)

			why := run(ctx, "why", "shop", "--cluster", cluster)
			Expect(why.err).NotTo(HaveOccurred())
			Expect(why.out).To(Equal(`Add-on shop is not available on cluster ` + cluster + ` because required dependencies are not satisfied. ` +
				`It requires zookeeper (shop -> kafka -> zookeeper), which is not installed: enable it.

  kubectl addon enable zookeeper --cluster ` + cluster + `
`))
			Expect(run(ctx, "enable", "zookeeper", "--cluster", cluster).err).NotTo(HaveOccurred())
			Expect(run(ctx, "why", "zookeeper", "--cluster", cluster).out).To(ContainSubstring("has not reported its availability"))
		})

		It("names the cluster on which a rollout has failed that has not reached this one", func(ctx context.Context) {
			condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
				return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
			}
			failed, other, waiting := newCluster(ctx, nil), newCluster(ctx, nil), newCluster(ctx, nil)
			define(ctx, "stall")
			enable(ctx, failed, "stall", condition(addonv1alpha1.ConditionConfigured, metav1.ConditionTrue, "ConfigurationsConfigured", ""),
				condition(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "upgrade" failed: no more disks`))
			enable(ctx, other, "stall", available, condition(addonv1alpha1.ConditionConfigured, metav1.ConditionTrue, "ConfigurationsConfigured", ""),
				condition(addonv1alpha1.ConditionManifestApplied, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""))
			enable(ctx, waiting, "stall", available, condition(addonv1alpha1.ConditionConfigured, metav1.ConditionFalse, "ConfigurationsNotConfigured", ""),
				condition(addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForConfiguration, "not rolled out"))
			Expect(run(ctx, "why", "stall", "--cluster", waiting).out).To(Equal(`Add-on stall is available on cluster ` + waiting + ` and has no dependencies. ` +
				`The rollout of stall has not reached cluster ` + waiting + `, because it has failed on ` + failed +
				` (plan "upgrade" failed: no more disks). Fix the cause there to continue the rollout.

  kubectl addon why stall --cluster ` + failed + `
`))
		})

		It("names rollouts whose occupied slots wait for each other, with a command that lets one of them continue", func(ctx context.Context) {
			condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
				return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
			}
			configured := condition(addonv1alpha1.ConditionConfigured, metav1.ConditionTrue, "ConfigurationsConfigured", "")
			queued := []metav1.Condition{available, condition(addonv1alpha1.ConditionConfigured, metav1.ConditionFalse, "ConfigurationsNotConfigured", ""),
				condition(addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForConfiguration, "not rolled out")}
			waits := func(message string) []metav1.Condition {
				return []metav1.Condition{available, configured,
					condition(addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForDependencies, message)}
			}
			clusters := []string{newCluster(ctx, nil), newCluster(ctx, nil)}
			slices.Sort(clusters) // in the order of a progressive rollout
			first, second := clusters[0], clusters[1]
			define(ctx, "mill")
			define(ctx, "oven", requires("mill"))
			for name, strategy := range map[string]clusterv1alpha1.RolloutStrategy{
				"mill": {Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)}},
				"oven": {Type: clusterv1alpha1.ProgressivePerGroup},
			} {
				definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
				Expect(environment.Edit(ctx, hub, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
					d.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{{
						PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "everywhere"}, RolloutStrategy: strategy,
					}}}
				})).To(Succeed())
			}
			enable(ctx, first, "mill", waits("waiting to change to mill-3.0.0: oven runs, oven-1.0.0 requires mill <3, and mill-3.0.0 has version 3.0.0; "+
				"change oven to a version that accepts mill 3.0.0, or disable it")...)
			enable(ctx, first, "oven", queued...)
			enable(ctx, second, "mill", queued...)
			enable(ctx, second, "oven", waits("waiting to change to oven-3.0.0: oven-3.0.0 requires mill >=2, which runs version 1.0.0; "+
				"change mill to a version that satisfies >=2")...)

			deadlock := `The rollouts of mill and oven wait for each other, so they do not continue. mill occupies its slot on ` + first +
				`, where it waits for a change of oven that has not been rolled out there. oven occupies its slot on ` + second +
				`, where it waits for a change of mill that has not been rolled out there. Raise maxConcurrency of mill to 2, so that its change reaches cluster ` + second + "."
			const patch = `[{"op":"add","path":"/spec/installStrategy/placements/0/rolloutStrategy/progressive/maxConcurrency","value":2}]`
			const command = `kubectl patch clustermanagementaddon mill --type=json --patch='` + patch + "'"
			for _, cluster := range clusters {
				for _, name := range []string{"mill", "oven"} {
					why := run(ctx, "why", name, "--cluster", cluster)
					Expect(why.err).NotTo(HaveOccurred())
					Expect(why.out).To(And(ContainSubstring(deadlock), ContainSubstring("\n  "+command+"\n")), name+" on "+cluster)
					Expect(why.out).NotTo(ContainSubstring("addon upgrade"), "a Placement decides")
				}
			}
			Expect(run(ctx, "why", "mill", "--cluster", strings.Join(clusters, ",")).out).To(And(
				ContainSubstring("Add-on mill is available on 2 of 2 clusters."), ContainSubstring(deadlock), ContainSubstring(command)))
			Expect(run(ctx, "why", "oven", "--all-clusters", "-o", "jsonpath={.groups[0].example.deadlocks[0].rollouts[*].addOn}").out).To(Equal("mill oven"))

			By("a mandatory group, after which free slots are used only once all its changes have ended")
			mill := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "mill"}}
			withGroups := func(groups string) {
				GinkgoHelper()
				Expect(hub.Patch(ctx, mill, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/installStrategy/placements/0/rolloutStrategy/progressive","value":`+groups+`}]`)))).To(Succeed())
			}
			withGroups(`{"maxConcurrency":2,"mandatoryDecisionGroups":[{"groupName":"canary"}]}`)
			Expect(run(ctx, "why", "mill", "--cluster", second).out).To(And(
				ContainSubstring("The rollouts of mill and oven wait for each other"), ContainSubstring("Change the rollout strategy of mill, so that its change reaches cluster "+second+"."),
				ContainSubstring("\n  kubectl edit clustermanagementaddon mill\n")))
			withGroups(`{"maxConcurrency":1}`)

			By("the command letting the rollout reach the other cluster")
			Expect(hub.Patch(ctx, mill, client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
			Expect(mill.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency.IntValue()).To(Equal(2))
			reached := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: second, Name: "mill"}}
			Expect(environment.EditStatus(ctx, hub, reached, func(a *addonv1alpha1.ManagedClusterAddOn) {
				meta.SetStatusCondition(&a.Status.Conditions, configured)
				meta.RemoveStatusCondition(&a.Status.Conditions, addonv1alpha1.ConditionResolved)
			})).To(Succeed())
			Expect(run(ctx, "why", "oven", "--cluster", first).out).To(And(
				ContainSubstring("The rollout of oven has not reached cluster "+first+" yet: it is in progress on "+second), Not(ContainSubstring("wait for each other"))))
		})

		It("names the reporter of the availability if no dependency is missing any more", func(ctx context.Context) {
			define(ctx, "shop", requires("kafka"))
			define(ctx, "kafka")
			cluster := newNamespace(ctx)
			enable(ctx, cluster, "kafka", available)
			enable(ctx, cluster, "shop", metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonRequiredDependencyNotSatisfied,
			})
			why := func(mode upstream.HealthCheckMode) string {
				shop := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
				Expect(environment.EditStatus(ctx, hub, shop, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.HealthCheck.Mode = mode })).To(Succeed())
				return run(ctx, "why", "shop", "--cluster", cluster).out
			}
			Expect(why(upstream.HealthCheckModeCustomized)).To(ContainSubstring("The availability of shop is reported by its own controller"))
			Expect(why(upstream.HealthCheckModeLease)).To(And(
				ContainSubstring("The availability of shop is reported by OCM's klusterlet on cluster "+cluster+" within 30 s"),
				ContainSubstring("based on lease open-cluster-management-agent-addon/shop"),
			))
		})

		It("lets no agent write to the user's terminal", func(ctx context.Context) {
			define(ctx, "shop")
			cluster := newNamespace(ctx)
			hostile := broken
			hostile.Message = "\x1b[2J\rAdd-on shop is available"
			enable(ctx, cluster, "shop", hostile)
			for _, command := range [][]string{{"why"}, {"plan", "status"}} {
				got := run(ctx, append(command, "shop", "--cluster", cluster)...)
				Expect(got.err).NotTo(HaveOccurred())
				Expect(got.out).To(ContainSubstring(`^[[2J\rAdd-on shop is available`))
				Expect(got.out).NotTo(ContainSubstring("\x1b"))
			}
		})

		It("names what there is instead of what does not exist", func(ctx context.Context) {
			cluster := newNamespace(ctx)
			enable(ctx, cluster, "lonely", available)
			Expect(run(ctx, "why", "lonely", "--cluster", cluster).out).To(Equal(
				"Add-on lonely is available on cluster " + cluster + " and has no dependencies. Nothing to do.\n"))
			unknown := run(ctx, "why", "shop", "--cluster", cluster)
			Expect(unknown.err).To(MatchError(
				`add-on "shop" not found; add-ons of cluster "` + cluster + `": lonely; ClusterManagementAddOns: none`))
			Expect(unknown.code).To(Equal(cli.ExitFailure))
			Expect(run(ctx, "why", "shop").code).To(Equal(cli.ExitUsage))
		})
	})

	Describe("dependents", func() {
		It("shows who would break, by way of whom, and on which clusters, however many add-ons there are", func(ctx context.Context) {
			define(ctx, "ledger")
			define(ctx, "bank", requires("ledger"))
			define(ctx, "shop", requires("bank"))
			define(ctx, "audit", uses("ledger", ""))
			// More add-ons than fit on a page of the hub, sorted before the others.
			crowd := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a-crowd"}}
			Expect(hub.Create(ctx, crowd)).To(Succeed())
			var group errgroup.Group
			group.SetLimit(20)
			for i := range 1001 {
				group.Go(func() error {
					return hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{
						ObjectMeta: metav1.ObjectMeta{Namespace: crowd.Name, Name: fmt.Sprintf("a-%04d", i)},
					})
				})
			}
			Expect(group.Wait()).To(Succeed())
			cluster := newNamespace(ctx)
			for _, name := range []string{"ledger", "bank", "shop"} {
				enable(ctx, cluster, name, available)
			}

			dependents := run(ctx, "dependents", "ledger")
			Expect(dependents.err).NotTo(HaveOccurred())
			Expect(dependents.code).To(Equal(cli.ExitOK))
			Expect(dependents.out).To(Equal(`ADD-ON   TYPE       THROUGH   EFFECT                CLUSTERS
bank     Required   -         becomes unavailable   1 (` + cluster + `)
shop     Required   bank      becomes unavailable   1 (` + cluster + `)
audit    Optional   -         becomes degraded      0
`))
			Expect(run(ctx, "dependents", "shop", "-o", "wide").out).To(Equal("No add-on depends on shop.\n"))
		})

		It("names what there is instead of what does not exist", func(ctx context.Context) {
			define(ctx, "bank", requires("missing"))
			unknown := run(ctx, "dependents", "shop")
			Expect(unknown.err).To(MatchError(`ClusterManagementAddOn "shop" not found, and no other one depends on it; ClusterManagementAddOns: bank`))
			Expect(unknown.code).To(Equal(cli.ExitFailure))
			Expect(run(ctx, "dependents", "missing").out).To(ContainSubstring("bank     Required   -         becomes unavailable   0"))
			Expect(run(ctx, "dependents").code).To(Equal(cli.ExitUsage))
		})
	})
})
