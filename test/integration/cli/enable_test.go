package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The specs act as addon-manager and the agents.
var _ = Describe("add-ons", func() {
	// define creates a definition, which runs by the plans of an OperatorVersion if one exists.
	define := func(ctx context.Context, name, namespace, version string, requires ...string) {
		GinkgoHelper()
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		for _, other := range requires {
			definition.Spec.Dependencies = append(definition.Spec.Dependencies, addonv1alpha1.AddonDependency{Name: other})
		}
		if version != "" {
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
				{
					ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
					DefaultConfig:       &upstream.ConfigReferent{Namespace: namespace, Name: version},
				},
				{ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}},
			}
		}
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
	}
	enabled := func(ctx context.Context, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
		GinkgoHelper()
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, addOn)).To(Succeed())
		return addOn
	}
	available := func(ctx context.Context, cluster, name string) {
		GinkgoHelper()
		works := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Works"}
		Expect(environment.EditStatus(ctx, hub, enabled(ctx, cluster, name), func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, works)
		})).To(Succeed())
	}
	release := func(ctx context.Context, cluster, name string) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(hub.Delete(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}))).To(Succeed())
	}

	Describe("enable", func() {
		It("creates an add-on on each selected cluster, once", func(ctx SpecContext) {
			define(ctx, "graphs", "", "")
			eu := map[string]string{"region": "eu"}
			first, second, third := newCluster(ctx, eu), newCluster(ctx, eu), newCluster(ctx, nil)
			got := run(ctx, "enable", "graphs", "--selector", "region=eu", "-n", "charts")
			Expect(got.err).NotTo(HaveOccurred())
			const kind = "managedclusteraddon.addon.open-cluster-management.io/graphs"
			Expect(got.out).To(And(ContainSubstring(kind+" enabled on "+first+"\n"), ContainSubstring(kind+" enabled on "+second+"\n")))
			Expect(enabled(ctx, first, "graphs").Spec.InstallNamespace).To(Equal("charts"))
			Expect(enabled(ctx, first, "graphs").ManagedFields).To(ContainElement(HaveField("Manager", "kubectl-addon")))

			all := run(ctx, "enable", "graphs", "--cluster", first+","+third)
			Expect(all.err).NotTo(HaveOccurred())
			Expect(all.out).To(And(ContainSubstring(kind+" unchanged on "+first+"\n"), ContainSubstring(kind+" enabled on "+third+"\n")))

			moved := run(ctx, "enable", "graphs", "--cluster", first+","+second, "--namespace", "elsewhere")
			Expect(moved.code).To(Equal(cli.ExitFailure))
			Expect(moved.err).To(MatchError(MatchRegexp(`^add-on "graphs" is already enabled on cluster .*\(also on (` + first + "|" + second + `)\)$`)))
		})

		It("enables required add-ons too, and waits until all are available", func(ctx SpecContext) {
			define(ctx, "ledger", "", "")
			define(ctx, "bank", "", "", "ledger")
			define(ctx, "till", "", "", "bank")
			cluster := newCluster(ctx, nil)
			alone := run(ctx, "enable", "till", "--cluster", cluster)
			Expect(alone.err).NotTo(HaveOccurred())
			Expect(alone.errOut).To(Equal("Warning: on cluster " + cluster +
				": till is waiting for required add-ons: Required bank (NotInstalled); enable missing ones with --with-dependencies\n"))

			progress := gbytes.NewBuffer()
			done := beginTo(ctx, progress, "enable", "till", "--cluster", cluster, "--with-dependencies", "--wait")
			for _, name := range []string{"ledger", "bank", "till"} {
				Eventually(func() error {
					return hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, &addonv1alpha1.ManagedClusterAddOn{})
				}).Should(Succeed())
				Consistently(done).ShouldNot(Receive())
				available(ctx, cluster, name)
				if name == "bank" {
					Eventually(progress).Should(gbytes.Say("bank on " + cluster + ": available\n"))
				}
			}
			var got result
			Eventually(done).Should(Receive(&got))
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.out).To(HavePrefix("managedclusteraddon.addon.open-cluster-management.io/ledger enabled on " + cluster + "\n" +
				"managedclusteraddon.addon.open-cluster-management.io/bank enabled on " + cluster + "\n" +
				"managedclusteraddon.addon.open-cluster-management.io/till unchanged on " + cluster + "\n"))
			Expect(got.out).To(HaveSuffix("managedclusteraddon.addon.open-cluster-management.io/till available on " + cluster + "\n"))
		})

		It("names the pending add-ons after its timeout", func(ctx SpecContext) {
			define(ctx, "slow", "", "")
			cluster := newCluster(ctx, nil)
			late := run(ctx, "enable", "slow", "--cluster", cluster, "--wait", "--timeout", "3s")
			Expect(late.code).To(Equal(cli.ExitTimeout))
			Expect(late.err).To(MatchError(ContainSubstring("add-ons are still not available after 3s: slow on " + cluster + ": Available Unknown: not reported yet")))
		})

		Context("while the add-on is being removed", func() {
			// removing creates an add-on that is being removed from a new cluster, until it is freed.
			removing := func(ctx context.Context, name string) *addonv1alpha1.ManagedClusterAddOn {
				GinkgoHelper()
				addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
					Namespace: newCluster(ctx, nil), Name: name, Finalizers: []string{"example.com/held"},
				}}
				Expect(hub.Create(ctx, addOn, client.FieldOwner("guard"))).To(Succeed())
				Expect(hub.Delete(ctx, addOn)).To(Succeed())
				DeferCleanup(func(ctx context.Context) {
					none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
					Expect(client.IgnoreNotFound(hub.Patch(ctx, addOn, none))).To(Succeed())
				})
				return addOn
			}
			free := func(ctx context.Context, object client.Object) {
				GinkgoHelper()
				patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"finalizers":null}}`, object.GetUID())
				Expect(hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
			}
			// again waits until the add-on of that name is a new one.
			again := func(ctx context.Context, removed *addonv1alpha1.ManagedClusterAddOn) {
				GinkgoHelper()
				Eventually(func(g Gomega) {
					current := &addonv1alpha1.ManagedClusterAddOn{}
					g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(removed), current)).To(Succeed())
					g.Expect(current.UID).NotTo(Equal(removed.UID))
				}).WithContext(ctx).Should(Succeed())
			}
			const kind = "managedclusteraddon.addon.open-cluster-management.io/"

			It("waits until it is gone, and enables it again, on each cluster", func(ctx SpecContext) {
				define(ctx, "tide", "", "")
				first, second, third := removing(ctx, "tide"), removing(ctx, "tide"), newCluster(ctx, nil)
				progress := gbytes.NewBuffer()
				done := beginTo(ctx, progress, "enable", "tide", "--cluster", first.Namespace+","+second.Namespace+","+third, "-n", "sea")
				Eventually(func() error {
					return hub.Get(ctx, client.ObjectKey{Namespace: third, Name: "tide"}, &addonv1alpha1.ManagedClusterAddOn{})
				}).Should(Succeed(), "it waits only where it has to")
				Eventually(progress).Should(gbytes.Say(`Warning: on 2 clusters \(.*\): tide is being removed, and is enabled again once it is gone\n`))
				Eventually(progress).Should(gbytes.Say("waiting for tide on .*: ManagedClusterAddOn tide is held by finalizers: example.com/held \\(set by field manager guard\\): run 'kubectl addon why tide --cluster "))

				free(ctx, second)
				again(ctx, second)
				Expect(enabled(ctx, second.Namespace, "tide").Spec.InstallNamespace).To(Equal("sea"))
				Eventually(progress).Should(gbytes.Say("tide on " + second.Namespace + ": enabled\n"))
				Consistently(done).ShouldNot(Receive())
				Expect(enabled(ctx, first.Namespace, "tide").UID).To(Equal(first.UID))

				free(ctx, first)
				var got result
				Eventually(done).Should(Receive(&got))
				Expect(got.err).NotTo(HaveOccurred())
				Expect(got.out).To(Equal(kind + "tide enabled on " + third + "\n" +
					kind + "tide enabled on " + second.Namespace + "\n" + kind + "tide enabled on " + first.Namespace + "\n"))
				again(ctx, first)
			})

			It("waits for the plan-based one's Instance, and until all are available", func(ctx SpecContext) {
				addOn := removing(ctx, "shop")
				cluster := addOn.Namespace
				Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
				define(ctx, "shop", cluster, "shop-1.10-1.2.0")
				instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
					Namespace: cluster, Name: "shop", Finalizers: []string{kudo.Finalizer},
				}}
				owner := metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
				instance.OwnerReferences = []metav1.OwnerReference{*owner}
				instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: cluster, Name: "shop-1.10-1.2.0"}
				Expect(hub.Create(ctx, instance)).To(Succeed())
				Expect(hub.Delete(ctx, instance)).To(Succeed())

				Expect(run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=3", "--dry-run").out).To(ContainSubstring(
					`'kubectl addon enable shop --cluster ` + cluster + `' waits until it is gone and enables it again`))
				wrong := run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZ=3")
				Expect(wrong.err).To(MatchError(ContainSubstring("did you mean SIZE?")), "it does not wait for a change that cannot work")

				progress := gbytes.NewBuffer()
				done := beginTo(ctx, progress, "enable", "shop", "--cluster", cluster, "-p", "SIZE=3", "--wait")
				Eventually(progress).Should(gbytes.Say(
					"waiting for shop on " + cluster + ": the agent of cluster " + cluster + " has not started to remove Instance shop\n"))
				free(ctx, addOn)
				Consistently(done).ShouldNot(Receive(), "its Instance is not gone")
				free(ctx, instance)
				again(ctx, addOn)
				Expect(enabled(ctx, cluster, "shop").Spec.Configs).To(HaveLen(1))
				Eventually(progress).Should(gbytes.Say("shop on " + cluster + ": Available Unknown: not reported yet\n"))
				Consistently(done).ShouldNot(Receive())
				available(ctx, cluster, "shop")
				var got result
				Eventually(done).Should(Receive(&got))
				Expect(got.err).NotTo(HaveOccurred())
				Expect(got.out).To(Equal("addondeploymentconfig.addon.open-cluster-management.io/shop-parameters created on " + cluster +
					"\n" + kind + "shop enabled on " + cluster + "\n" + kind + "shop available on " + cluster + "\n"))
			})

			It("waits for required ones too, with --with-dependencies", func(ctx SpecContext) {
				define(ctx, "moon", "", "")
				define(ctx, "ebb", "", "", "moon")
				moon := removing(ctx, "moon")
				alone := run(ctx, "enable", "ebb", "--cluster", moon.Namespace)
				Expect(alone.err).NotTo(HaveOccurred())
				Expect(alone.errOut).To(ContainSubstring("Required moon (Deleting)"))
				done := begin(ctx, "enable", "ebb", "--cluster", moon.Namespace, "--with-dependencies")
				Consistently(done).ShouldNot(Receive())
				free(ctx, moon)
				var got result
				Eventually(done).Should(Receive(&got))
				Expect(got.err).NotTo(HaveOccurred())
				Expect(got.out).To(Equal(kind + "moon enabled on " + moon.Namespace + "\n" +
					kind + "ebb unchanged on " + moon.Namespace + "\n"))
				again(ctx, moon)
			})

			It("names what remains after its timeout", func(ctx SpecContext) {
				define(ctx, "rock", "", "")
				held, other := removing(ctx, "rock"), newCluster(ctx, nil)
				late := run(ctx, "enable", "rock", "--cluster", held.Namespace+","+other, "--timeout", "3s")
				Expect(late.code).To(Equal(cli.ExitTimeout))
				Expect(late.err).To(MatchError(`add-on "rock" is not enabled on cluster ` + held.Namespace + `: the removal of ` + kind +
					`rock is still in progress after 3s: ManagedClusterAddOn rock is held by finalizers: example.com/held (set by field manager guard): ` +
					`run 'kubectl addon why rock --cluster ` + held.Namespace + `' (see 'kubectl addon uninstall --help' for --release)`))
				Expect(late.out).To(Equal(kind + "rock enabled on " + other + "\n"))
				Expect(enabled(ctx, held.Namespace, "rock").UID).To(Equal(held.UID))
			})
		})

		It("stores parameters in the config that the add-on refers to, and refuses those that the hub would refuse", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			wrong := run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZ=3")
			Expect(wrong.err).To(MatchError(ContainSubstring(`add-on "shop" on cluster ` + cluster + `: parameter "SIZ": not defined: did you mean SIZE?`)))
			Expect(wrong.errOut).NotTo(ContainSubstring("SIZ"), "it is not a variable that is ignored")
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "COLOUR=red").err).To(MatchError(ContainSubstring(
				`add-on "shop" on cluster ` + cluster + `: parameter "COLOUR": not defined: the operator has SIZE`)))
			Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop"}, &addonv1alpha1.ManagedClusterAddOn{}))).To(BeTrue())

			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=3").err).NotTo(HaveOccurred())
			Expect(enabled(ctx, cluster, "shop").Spec.Configs).To(Equal([]upstream.AddOnConfig{{
				ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs},
				ConfigReferent:      upstream.ConfigReferent{Namespace: cluster, Name: "shop-parameters"},
			}}))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=4").out).To(Equal(
				"addondeploymentconfig.addon.open-cluster-management.io/shop-parameters configured on " + cluster + "\n" +
					"managedclusteraddon.addon.open-cluster-management.io/shop unchanged on " + cluster + "\n"))
			config := &addonv1alpha1.AddOnDeploymentConfig{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop-parameters"}, config)).To(Succeed())
			Expect(config.Spec.CustomizedVariables).To(Equal([]upstream.CustomizedVariable{{Name: "SIZE", Value: "4"}}))
		})

		It("shows the plans and objects with --dry-run, and writes nothing", func(ctx SpecContext) {
			first, second := newCluster(ctx, nil), newCluster(ctx, nil)
			if second < first {
				first, second = second, first
			}
			Expect(run(ctx, "package", "push", packageDir(configMap+"data: {size: n{{ .Params.SIZE }}}\n"), "-n", first).err).NotTo(HaveOccurred())
			define(ctx, "ground", "", "")
			define(ctx, "shop", first, "shop-1.10-1.2.0", "ground")
			shown := run(ctx, "enable", "shop", "--cluster", first, "-n", "market", "--with-dependencies", "-p", "SIZE=3", "--dry-run", "-o", "wide")
			Expect(shown.err).NotTo(HaveOccurred())
			Expect(shown.errOut).To(BeEmpty())
			const kind = "managedclusteraddon.addon.open-cluster-management.io/"
			Expect(shown.out).To(And(HavePrefix("cluster "+first+": add-on ground would be created\n  writes on the hub: "+kind+"ground\n  no plan runs\n\n"+
				"cluster "+first+": Instance shop would be created, shop-1.10-1.2.0\n"+
				"  writes on the hub: addondeploymentconfig.addon.open-cluster-management.io/shop-parameters, "+kind+"shop\n"+
				"  plan deploy runs: no plan has run yet\n    main, app: task app (Apply)\n      create     ConfigMap app\n    main, app: task done (Dummy)\n"),
				ContainSubstring("+  size: n3\n")))
			alone := run(ctx, "enable", "shop", "--cluster", first, "--dry-run")
			Expect(alone.out).To(ContainSubstring("  warning: shop is waiting for required add-ons: Required ground (NotInstalled); enable missing ones with --with-dependencies\n"))
			both := run(ctx, "enable", "ground", "--cluster", first+","+second, "--dry-run", "-o", "jsonpath={.changes[*].clusters} {.changes[*].addOn} {.changes[*].write}")
			Expect(both.out).To(Equal(`["` + first + `","` + second + `"] ground created`))
			for _, cluster := range []string{first, second} {
				var addOns addonv1alpha1.ManagedClusterAddOnList
				Expect(hub.List(ctx, &addOns, client.InNamespace(cluster))).To(Succeed())
				Expect(addOns.Items).To(BeEmpty())
			}
		})

		It("refuses an add-on whose plan would fail, unless it is forced", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap+"data: {size: {{ .Params.SIZE }}}\n"), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			const failure = `task "app": template "app.yaml", line 4: the value of parameter "SIZE" changes the structure of the rendered YAML`
			refused := run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=3, more: 4")
			Expect(refused.code).To(Equal(cli.ExitFailure))
			Expect(refused.err).To(MatchError(And(HavePrefix("cluster "+cluster+`: a plan of Instance "shop" would fail: `+failure),
				HaveSuffix("; fix the cause, or use --force to make the change anyway"))))
			Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop"}, &addonv1alpha1.ManagedClusterAddOn{}))).To(BeTrue())
			shown := run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=3, more: 4", "--dry-run")
			Expect(shown.out).To(ContainSubstring("      fails: " + strings.TrimPrefix(failure, `task "app": `)))
			Expect(shown.err).To(MatchError("the change would fail on cluster " + cluster + "; nothing was written"))

			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=3, more: 4", "--force").err).NotTo(HaveOccurred())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).err).NotTo(HaveOccurred(), "nothing is written")
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=5, more: 4").err).To(MatchError(ContainSubstring("would fail")))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=five").err).NotTo(HaveOccurred())
		})

		It("refuses an add-on with a field that the kind of an object lacks, unless --validate accepts it", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap+"dat: {size: '{{ .Params.SIZE }}'}\n"), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).err).To(MatchError(ContainSubstring(
				`a plan of Instance "shop" would fail: task "app": ConfigMap app: unknown field "dat": did you mean data?`)))
			Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop"}, &addonv1alpha1.ManagedClusterAddOn{}))).To(BeTrue())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "--validate=false").err).NotTo(HaveOccurred())
		})

		It("warns of a namespace in which nothing is installed", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			const warning = "shop: addon-manager and addon-agent refuse namespace \"kube-system\" unless their flags --allow-namespaces list it: use another namespace\n"
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "kube-system", "--dry-run").out).To(ContainSubstring("  warning: " + warning))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "kube-system").errOut).To(Equal("Warning: on cluster " + cluster + ": " + warning))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).errOut).To(BeEmpty(), "it is there")
		})

		It("reports once that the hub refuses a namespace in which nothing is installed", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			lock(ctx, "kube-system", cluster)
			refused := run(ctx, "enable", "shop", "--cluster", cluster, "-n", "kube-system")
			Expect(refused.err).To(MatchError(ContainSubstring("nothing is installed in kube-system")))
			Expect(refused.errOut).To(BeEmpty())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "kube-public").errOut).To(ContainSubstring("refuse namespace"), "the hub accepts it")
		})

		It("writes nothing where the hub would refuse a part of it, and shows the same with --dry-run", func(ctx SpecContext) {
			first, second := newCluster(ctx, nil), newCluster(ctx, nil)
			packages := newNamespace(ctx)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", packages).err).NotTo(HaveOccurred())
			define(ctx, "ground", "", "")
			define(ctx, "shop", packages, "shop-1.10-1.2.0", "ground")
			lock(ctx, "vault", first)
			command := []string{"enable", "shop", "--cluster", first + "," + second, "--with-dependencies", "-n", "vault", "-p", "SIZE=3"}
			shown := run(ctx, append(command, "--dry-run")...)
			Expect(shown.err).To(MatchError(MatchRegexp(`^the change would fail on 2 clusters \(.*\); nothing was written$`)))
			Expect(shown.out).To(And(ContainSubstring(": refused: creating "), ContainSubstring("nothing is installed in vault"), Not(ContainSubstring("would be created"))))
			refused := run(ctx, command...)
			Expect(refused.code).To(Equal(cli.ExitFailure))
			Expect(refused.err).To(MatchError(MatchRegexp(`^creating .*/shop: .*nothing is installed in vault \(also on (` + first + "|" + second + `)\)$`)))
			for _, cluster := range []string{first, second} {
				for _, list := range []client.ObjectList{&addonv1alpha1.ManagedClusterAddOnList{}, &addonv1alpha1.AddOnDeploymentConfigList{}} {
					Expect(hub.List(ctx, list, client.InNamespace(cluster))).To(Succeed())
					Expect(meta.LenList(list)).To(BeZero())
				}
			}
			Expect(refused.out).To(BeEmpty())
		})

		It("names the parameters that an earlier installation has left, and whether they apply", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "market", "-p", "SIZE=3").errOut).To(BeEmpty())
			config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop-parameters"}}
			Expect(environment.Edit(ctx, hub, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables = append(c.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: "COLOUR", Value: "red"})
			})).To(Succeed())
			disable := `'kubectl delete addondeploymentconfig shop-parameters -n ` + cluster + "'"
			Expect(run(ctx, "uninstall", "shop", "--cluster", cluster, "--dry-run").out).To(ContainSubstring("  warning: its parameters stay in AddOnDeploymentConfig shop-parameters: "))
			Expect(run(ctx, "disable", "shop", "--cluster", cluster, "--yes").errOut).To(ContainSubstring(
				"Warning: on cluster " + cluster + ": its parameters stay in AddOnDeploymentConfig shop-parameters: to delete it, run " + disable + "\n"))

			unused := "AddOnDeploymentConfig shop-parameters of an earlier installation is not used (it sets SIZE=3, COLOUR=red): -p refers to it again, with all its " +
				"parameters unless --reset is set; " + disable + " deletes it\n"
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "market", "--dry-run").out).To(ContainSubstring("  warning: shop: " + unused))
			again := run(ctx, "enable", "shop", "--cluster", cluster, "-n", "market")
			Expect(again.err).NotTo(HaveOccurred())
			Expect(again.errOut).To(Equal("Warning: on cluster " + cluster + ": shop: " + unused))
			Expect(enabled(ctx, cluster, "shop").Spec.Configs).To(BeEmpty())

			const too = "these parameters apply too, because AddOnDeploymentConfig shop-parameters of an earlier installation sets them: COLOUR=red; --reset resets " +
				"those that are not given\n"
			Expect(run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=4", "--dry-run").out).To(ContainSubstring("  warning: " + too))
			const reset = "these parameters of an earlier installation are reset: COLOUR=red\n"
			Expect(run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=4", "--reset", "--dry-run").out).To(ContainSubstring("  warning: " + reset))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=4").errOut).To(ContainSubstring("shop: " + too))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=5").errOut).NotTo(ContainSubstring("too"), "it refers to it now")
			sets := func() []upstream.CustomizedVariable {
				Expect(hub.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
				return config.Spec.CustomizedVariables
			}
			Expect(sets()).To(ConsistOf(HaveField("Value", "5"), HaveField("Value", "red")))
			Expect(run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=6", "--reset").err).NotTo(HaveOccurred())
			Expect(sets()).To(ConsistOf(upstream.CustomizedVariable{Name: "SIZE", Value: "6"}))
			Expect(run(ctx, "update", "shop", "--cluster", cluster, "--reset").err).NotTo(HaveOccurred())
			Expect(sets()).To(BeEmpty())

			By("resetting those of an earlier installation")
			Expect(environment.Edit(ctx, hub, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "COLOUR", Value: "red"}}
			})).To(Succeed())
			Expect(run(ctx, "disable", "shop", "--cluster", cluster, "--yes").err).NotTo(HaveOccurred())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "market", "--reset").code).To(Equal(cli.ExitUsage))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "market", "--reset", "-p", "SIZE=7").errOut).To(HaveSuffix("shop: " + reset))
			Expect(sets()).To(ConsistOf(upstream.CustomizedVariable{Name: "SIZE", Value: "7"}))
		})

		It("names the namespace that OCM sets if none is given", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap+"data: {where: '{{ .Namespace }}'}\n"), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			const warning = `shop: it is installed in namespace "open-cluster-management-agent-addon", OCM's default, which holds credentials of other add-ons for ` +
				"the hub: to use another one, set --namespace\n"
			shown := run(ctx, "enable", "shop", "--cluster", cluster, "--dry-run", "-o", "wide")
			Expect(shown.out).To(And(ContainSubstring("  warning: "+warning), ContainSubstring("+  where: open-cluster-management-agent-addon\n")))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).errOut).To(Equal("Warning: on cluster " + cluster + ": " + warning))
			Expect(enabled(ctx, cluster, "shop").Spec.InstallNamespace).To(Equal("open-cluster-management-agent-addon"))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).errOut).To(BeEmpty(), "it is there")
		})

		It("enables an add-on for users who may not read what its plans depend on", func(ctx SpecContext) {
			cluster, packages := newCluster(ctx, nil), newNamespace(ctx)
			Expect(run(ctx, "package", "push", packageDir("a: b\n"), "-n", packages).err).NotTo(HaveOccurred())
			define(ctx, "shop", packages, "shop-1.10-1.2.0")
			user := "enables-in-" + cluster
			allow(ctx, cluster, user, rbacv1.PolicyRule{
				APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "create", "patch"},
			})
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"clustermanagementaddons"}, Verbs: []string{"list"}},
				{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "list"}},
			}}
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}
			for _, object := range []client.Object{role, binding} {
				Expect(hub.Create(ctx, object)).To(Succeed())
				DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, object)).To(Succeed()) })
			}
			shown := run(ctx, "enable", "shop", "--cluster", cluster, "--dry-run", "--as", user)
			Expect(shown.err).NotTo(HaveOccurred())
			Expect(shown.out).To(And(HavePrefix("cluster "+cluster+": add-on shop would be created\n"), ContainSubstring("  the plans are unknown: reading OperatorVersion "+
				packages+"/shop-1.10-1.2.0: "), ContainSubstring("is forbidden")))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "--as", user).err).NotTo(HaveOccurred(), "the failure is not proven")
		})

		It("does not enable an add-on whose configuration belongs to another cluster", func(ctx SpecContext) {
			cluster, other := newCluster(ctx, nil), newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			Expect(environment.Edit(ctx, hub, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
				d.Spec.SupportedConfigs[1].DefaultConfig = &upstream.ConfigReferent{Namespace: other, Name: "sizes"}
			})).To(Succeed())
			refusal := `add-on "shop" cannot run on cluster ` + cluster + `: ConfigurationInvalid: AddOnDeploymentConfig ` + other +
				`/sizes cannot be used on managed cluster "` + cluster + `"`
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).err).To(MatchError(ContainSubstring(refusal)))
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-p", "SIZE=3").err).To(MatchError(ContainSubstring(refusal)))
			Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop"}, &addonv1alpha1.ManagedClusterAddOn{}))).To(BeTrue())
		})

		It("warns of a configuration in a namespace that addon-manager may not share, until it does", func(ctx SpecContext) {
			cluster, private := newCluster(ctx, nil), newNamespace(ctx)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: private, Name: "sizes"}}
			Expect(hub.Create(ctx, config)).To(Succeed())
			shop := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
			shop.Spec.Configs = []upstream.AddOnConfig{{
				ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs},
				ConfigReferent:      upstream.ConfigReferent{Namespace: private, Name: "sizes"},
			}}
			Expect(hub.Create(ctx, shop)).To(Succeed())
			warning := "unless its namespace is shared already: AddOnDeploymentConfig " + private + `/sizes cannot be used on managed cluster "` + cluster + `"`
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "--dry-run").out).To(ContainSubstring(warning))
			Expect(environment.EditStatus(ctx, hub, shop, func(a *addonv1alpha1.ManagedClusterAddOn) {
				meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
					Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionTrue, Reason: "Resolved",
				})
			})).To(Succeed())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "--dry-run").out).NotTo(ContainSubstring(warning))
		})

		It("warns of variables that are ignored, and of a namespace that the add-on does not move to", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			Expect(run(ctx, "enable", "shop", "--cluster", cluster, "-n", "market", "-p", "SIZE=3").err).NotTo(HaveOccurred())
			shop := enabled(ctx, cluster, "shop")
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop", OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(shop, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")),
			}}}
			instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: cluster, Name: "shop-1.10-1.2.0"}
			instance.Spec.Parameters, instance.Spec.InstallNamespace = map[string]string{"SIZE": "3"}, "market"
			Expect(hub.Create(ctx, instance)).To(Succeed())
			config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop-parameters"}}
			Expect(environment.Edit(ctx, hub, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables = append(c.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: "COLOUR", Value: "red"})
			})).To(Succeed())
			Expect(environment.Edit(ctx, hub, shop, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "fair" })).To(Succeed())

			const ignored = `variables that OperatorVersion "shop-1.10-1.2.0" does not define are ignored: COLOUR`
			const stays = `the add-on stays in namespace "market" of the managed cluster: to move it to "fair", disable it, and enable it again after its removal`
			again := run(ctx, "enable", "shop", "--cluster", cluster, "-n", "fair")
			Expect(again.err).NotTo(HaveOccurred())
			Expect(again.errOut).To(And(ContainSubstring("shop: "+ignored), ContainSubstring("shop: "+stays)))
			preview := run(ctx, "update", "shop", "--cluster", cluster, "-p", "SIZE=4", "--dry-run")
			Expect(preview.err).NotTo(HaveOccurred(), preview.out)
			Expect(preview.out + preview.errOut).To(And(ContainSubstring(ignored), ContainSubstring(stays)))

			By("a variable that is a misspelt parameter, unless another version defines it")
			Expect(environment.Edit(ctx, hub, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "SIZES", Value: "3"}}
			})).To(Succeed())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).err).To(MatchError(ContainSubstring("did you mean SIZE?")))
			version := &kudo.OperatorVersion{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "shop-1.10-1.2.0"}, version)).To(Succeed())
			version.ObjectMeta, version.Spec.Version = metav1.ObjectMeta{Namespace: cluster, Name: "shop-1.10-1.3.0"}, "1.3.0"
			version.Spec.Parameters = append(version.Spec.Parameters, kudo.Parameter{Name: "SIZES", Default: new("1")})
			Expect(hub.Create(ctx, version)).To(Succeed())
			explained := run(ctx, "enable", "shop", "--cluster", cluster)
			Expect(explained.err).NotTo(HaveOccurred())
			Expect(explained.errOut).To(ContainSubstring("are ignored: SIZES"))
		})

		It("refuses a name that an Instance has already", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
			define(ctx, "shop", cluster, "shop-1.10-1.2.0")
			own := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
			own.Spec.OperatorVersion = corev1.ObjectReference{Namespace: cluster, Name: "shop-1.10-1.2.0"}
			Expect(hub.Create(ctx, own)).To(Succeed())
			Expect(run(ctx, "enable", "shop", "--cluster", cluster).err).To(MatchError(ContainSubstring(`add-on "shop" cannot run on cluster ` + cluster +
				`: NameCollision: Instance ` + cluster + `/shop exists and does not belong to the add-on`)))
			Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(own), &addonv1alpha1.ManagedClusterAddOn{}))).To(BeTrue())
		})

		It("refuses an unknown add-on, and lists the existing ones", func(ctx SpecContext) {
			define(ctx, "charts", "", "")
			cluster := newCluster(ctx, nil)
			unknown := run(ctx, "enable", "chart", "--cluster", cluster)
			Expect(unknown.err).To(MatchError(`ClusterManagementAddOn "chart" not found (did you mean charts?); available add-ons: charts`))
			Expect(unknown.code).To(Equal(cli.ExitFailure))
			Expect(run(ctx, "enable", "charts", "--cluster", cluster+",nowhere").err).To(MatchError(ContainSubstring(`managed cluster "nowhere" not found`)))
			Expect(run(ctx, "enable", "charts", "--selector", "region=none").err).To(MatchError(ContainSubstring("no managed cluster has labels region=none")))
			define(ctx, "packaged", "addon-packages", "packaged-1")
			Expect(run(ctx, "enable", "packaged", "--cluster", cluster).err).To(MatchError(ContainSubstring(
				`add-on "packaged" cannot run on cluster ` + cluster + `: OperatorVersionNotFound: OperatorVersion addon-packages/packaged-1 does not exist`)))
		})
	})

	Describe("disable", func() {
		It("removes an add-on from the clusters that have it, unless others require it", func(ctx SpecContext) {
			define(ctx, "base", "", "")
			define(ctx, "upper", "", "", "base")
			first, second := newCluster(ctx, nil), newCluster(ctx, nil)
			Expect(run(ctx, "enable", "base", "--cluster", first+","+second).err).NotTo(HaveOccurred())
			Expect(run(ctx, "enable", "upper", "--cluster", first).err).NotTo(HaveOccurred())

			unasked := run(ctx, "disable", "base", "--cluster", first)
			Expect(unasked.err).To(MatchError(ContainSubstring("cannot prompt for confirmation without a terminal")))
			Expect(unasked.errOut).To(Equal("Warning: on cluster " + first + ": without base, add-on upper becomes unavailable\n"))
			Expect(run(ctx, "disable", "base", "--cluster", first, "--yes").err).To(MatchError(ContainSubstring("is required by other add-ons on cluster")))
			Expect(enabled(ctx, first, "base").DeletionTimestamp).To(BeNil())
			Expect(run(ctx, "disable", "upper", "--cluster", second, "--yes").err).To(MatchError(
				`add-on "upper" is not enabled on cluster ` + second + `; enabled add-ons: base`))

			gone := run(ctx, "disable", "upper", "--all-clusters", "--yes")
			Expect(gone.err).NotTo(HaveOccurred())
			Expect(gone.out).To(Equal("managedclusteraddon.addon.open-cluster-management.io/upper deleted from " + first + "\n"))
			Expect(run(ctx, "disable", "base", "--cluster", first+","+second, "--yes").err).NotTo(HaveOccurred())
			Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: second, Name: "base"}, &addonv1alpha1.ManagedClusterAddOn{}))).To(BeTrue())
		})

		It("waits for the removal, and names the finalizers", func(ctx SpecContext) {
			define(ctx, "sticky", "", "")
			cluster := newCluster(ctx, nil)
			held := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "sticky", Finalizers: []string{"example.com/held"}}}
			Expect(hub.Create(ctx, held, client.FieldOwner("guard"))).To(Succeed())
			late := run(ctx, "disable", "sticky", "--cluster", cluster, "--yes", "--timeout", "3s")
			Expect(late.code).To(Equal(cli.ExitTimeout))
			Expect(late.err).To(MatchError(ContainSubstring("ManagedClusterAddOn sticky is held by finalizers: example.com/held (set by field manager guard): run ")))
			why := run(ctx, "why", "sticky", "--cluster", cluster)
			Expect(why.err).NotTo(HaveOccurred())
			Expect(why.out).To(And(ContainSubstring("is waiting for finalizers example.com/held (set by field manager guard). Only the controllers that set the finalizers"),
				ContainSubstring("\n  kubectl edit managedclusteraddon sticky --namespace "+cluster+"\n")))
			// The lists of a whole fleet keep nothing else of the managed fields.
			Expect(run(ctx, "why", "sticky", "--all-clusters").out).To(ContainSubstring("(set by field manager guard)"))
			done := begin(ctx, "disable", "sticky", "--cluster", cluster, "--force", "--yes")
			Consistently(done).ShouldNot(Receive())
			Expect(hub.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
			var gone result
			Eventually(done).Should(Receive(&gone))
			Expect(gone.err).NotTo(HaveOccurred())
		})
	})

	Describe("get and fleet", func() {
		It("show the status of add-ons on all clusters, or on selected ones", func(ctx SpecContext) {
			define(ctx, "maps", "", "")
			atlas := map[string]string{"atlas": "yes"}
			first, second := newCluster(ctx, atlas), newCluster(ctx, atlas)
			Expect(run(ctx, "enable", "maps", "--selector", "atlas=yes").err).NotTo(HaveOccurred())
			available(ctx, first, "maps")
			got := run(ctx, "get", "maps", "-o", "jsonpath={range .addOns[*]}{.cluster} {.available} {.reason}{\"\\n\"}{end}")
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.out).To(And(ContainSubstring(first+" True Works\n"), ContainSubstring(second+"  NotReported\n")))
			Expect(run(ctx, "get", "--cluster", second, "-o", "name").out).To(Equal("managedclusteraddon.addon.open-cluster-management.io/maps\n"))
			Expect(run(ctx, "get", "map", "--selector", "atlas=yes").err).To(MatchError(ContainSubstring(`add-on "map" (did you mean maps?) is not enabled on the selected clusters`)))

			fleet := run(ctx, "fleet", "--selector", "atlas=yes")
			Expect(fleet.err).NotTo(HaveOccurred())
			Expect(fleet.out).To(And(
				HavePrefix("2 managed clusters, 1 add-on: 1 of 2 are available, 1 unknown\n"),
				ContainSubstring("NotReported   unknown   1 (maps)   1 ("+second+")\n"),
				ContainSubstring("✓   1 ("+first+")\n"), HaveSuffix("kubectl addon why maps --cluster "+second+"\n"),
			))
			release(ctx, first, "maps")
			Expect(run(ctx, "fleet").out).To(ContainSubstring("·"))
		})

		It("show Instances that belong to no add-on", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			instance := func(name string, owner ...metav1.OwnerReference) *kudo.Instance {
				GinkgoHelper()
				instance := &kudo.Instance{
					ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, OwnerReferences: owner},
					Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: name + "-1.0.0"}},
				}
				Expect(hub.Create(ctx, instance)).To(Succeed())
				return instance
			}
			parent := instance("queue")
			instance("queue.base", *metav1.NewControllerRef(parent, kudo.GroupVersion.WithKind("Instance")))
			failed := instance("store")
			failed.Status.Conditions = []metav1.Condition{{
				Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonPlanFailed, LastTransitionTime: metav1.Now(),
			}}
			Expect(hub.Status().Update(ctx, failed)).To(Succeed())
			got := run(ctx, "get", "--cluster", cluster)
			Expect(got.err).NotTo(HaveOccurred())
			Expect(strings.Fields(got.out)).To(HaveExactElements(
				"CLUSTER", "INSTANCE", "VERSION", "STATE", "READY", "REASON", "AGE",
				cluster, "queue", "queue-1.0.0", "unknown", "Unknown", "NotReported", HaveSuffix("s"),
				cluster, "store", "store-1.0.0", "not", "available", "False", "PlanFailed", HaveSuffix("s"),
			))
			Expect(run(ctx, "get", "--cluster", cluster, "-o", "name").out).To(Equal("instance.kudo.dev/queue\ninstance.kudo.dev/store\n"))

			define(ctx, "globe", "", "")
			Expect(run(ctx, "enable", "globe", "--cluster", cluster).err).NotTo(HaveOccurred())
			globe := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "globe"}}
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(globe), globe)).To(Succeed())
			instance("globe", *metav1.NewControllerRef(globe, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")))
			listed := run(ctx, "get", "--cluster", cluster, "-o", "jsonpath={.addOns[*].addOn} {.instances[*].instance}")
			Expect(listed.out).To(Equal("globe queue store"))
			Expect(run(ctx, "get", "store", "-o", "jsonpath={.instances[*].cluster}").out).To(Equal(cluster))

			fleet := run(ctx, "fleet", "--cluster", cluster)
			Expect(fleet.err).NotTo(HaveOccurred())
			Expect(fleet.out).To(And(
				HavePrefix("1 managed cluster, 1 add-on, 2 Instances: 0 of 3 are available, 1 not available, 2 unknown\n"),
				MatchRegexp(`PlanFailed +not available +1 \(instance/store\)`),
				HaveSuffix("kubectl addon plan status store --cluster "+cluster+"\n"),
			))
			file := filepath.Join(GinkgoT().TempDir(), "archive.tar.gz")
			Expect(run(ctx, "diagnose", "--cluster", cluster, "-o", file).err).NotTo(HaveOccurred())
			Expect(unpack(file)["summary.txt"]).To(ContainSubstring("instance/store"))
		})

		It("show add-ons to users who may not read Instances, with a warning", func(ctx SpecContext) {
			cluster := newCluster(ctx, nil)
			define(ctx, "plain", "", "")
			Expect(run(ctx, "enable", "plain", "--cluster", cluster).err).NotTo(HaveOccurred())
			user := "reader-" + cluster
			allow(ctx, cluster, user, rbacv1.PolicyRule{
				APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get", "list"},
			})
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"clustermanagementaddons"}, Verbs: []string{"list"}},
				{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "list"}},
			}}
			Expect(hub.Create(ctx, role)).To(Succeed())
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}
			Expect(hub.Create(ctx, binding)).To(Succeed())
			DeferCleanup(func(ctx context.Context) {
				Expect(hub.Delete(ctx, binding)).To(Succeed())
				Expect(hub.Delete(ctx, role)).To(Succeed())
			})
			got := run(ctx, "get", "--cluster", cluster, "--as", user, "-o", "name")
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.out).To(Equal("managedclusteraddon.addon.open-cluster-management.io/plain\n"))
			Expect(got.errOut).To(HavePrefix(`Warning: Instances are not shown: listing the Instances of cluster "` + cluster + `": `))
		})
	})

	It("refuses parameters that are longer than an AddOnDeploymentConfig may hold", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "long"}}
		config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "TEXT", Value: strings.Repeat("ä", 1024)}}
		Expect(hub.Create(ctx, config)).To(Succeed())
		config.Spec.CustomizedVariables[0].Value += "a"
		Expect(hub.Update(ctx, config)).To(MatchError(ContainSubstring("Too long")))

		Expect(run(ctx, "package", "push", packageDir(configMap), "-n", cluster).err).NotTo(HaveOccurred())
		define(ctx, "shop", cluster, "shop-1.10-1.2.0")
		enable := []string{"enable", "shop", "--cluster", cluster, "-n", "market", "-p", "SIZE=" + strings.Repeat("ä", 1025)}
		problem := ContainSubstring(`add-on "shop" on cluster ` + cluster + `: parameter "SIZE": its value has 1025 characters, and an AddOnDeploymentConfig holds at most 1024: ` +
			"store it under this key in a ConfigMap with label kudo.dev/configuration=true, and name that in spec.configs of the add-on " +
			"(group \"\", resource configmaps)")
		Expect(run(ctx, enable...).err).To(MatchError(problem))
		shown := run(ctx, append(enable, "--dry-run")...)
		Expect(shown.out).To(problem)
		Expect(shown.code).To(Equal(cli.ExitFailure))
	})
})
