package cluster

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// updates is the state of condition Available of an add-on that a plan updates.
const updates = "True Updating"

// runs makes a ClusterManagementAddOn run a version.
func runs(definition *addonv1alpha1.ClusterManagementAddOn, version *kudo.OperatorVersion) {
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
	}}
}

// define creates a ClusterManagementAddOn, whose name begins with that of the cluster.
func (g *grove) define(ctx context.Context, name string, version *kudo.OperatorVersion, needs ...string) *addonv1alpha1.ClusterManagementAddOn {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: g.name + "-" + name}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	for _, need := range needs {
		definition.Spec.Dependencies = append(definition.Spec.Dependencies, addonv1alpha1.AddonDependency{Name: g.name + "-" + need})
	}
	runs(definition, version)
	Expect(server.Create(ctx, definition)).To(Succeed())
	return definition
}

// enable enables an add-on on the cluster.
func (g *grove) enable(ctx context.Context, name string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: g.name + "-" + name}}
	addOn.Spec.InstallNamespace = g.name
	Expect(server.Create(ctx, addOn)).To(Succeed())
	return addOn
}

var _ = Describe("An add-on that others require", func() {
	var g *grove
	plantEach(&g)

	It("does not disturb them while it is updated, and is installed before them only when that is complete", func(ctx SpecContext) {
		old := g.push(ctx, "base", "1.0.0")
		base := g.define(ctx, "base", old)
		app := g.push(ctx, "app", "1.0.0")
		g.define(ctx, "shop", app, "base")
		g.define(ctx, "late", app, "base")
		watched := watchIn(ctx, g.name)
		required, shop := g.enable(ctx, "base"), g.enable(ctx, "shop")
		Eventually(watched.currentState(required)).WithContext(ctx).Should(Equal(works))
		Eventually(watched.currentState(shop)).WithContext(ctx).Should(Equal(works))

		By("a new version of it, whose plan takes a while")
		newer := g.pushWith(ctx, "base", "2.0.0", addGate, gate())
		installed := watchIn(ctx, g.name)
		Expect(environment.Edit(ctx, server, base, func(d *addonv1alpha1.ClusterManagementAddOn) { runs(d, newer) })).To(Succeed())
		Eventually(installed.currentState(required)).WithContext(ctx).Should(Equal(updates))

		By("an add-on that is enabled in the meantime")
		late := g.enable(ctx, "late")
		Eventually(func() string {
			Expect(server.Get(ctx, client.ObjectKeyFromObject(late), late)).To(Succeed())
			return state(late, addonv1alpha1.ConditionResolved)
		}).WithContext(ctx).Should(Equal("False " + addonv1alpha1.ReasonWaitingForDependencies))
		Consistently(func() *kudo.Instance { return g.onHub(ctx, late.Name) }).WithContext(ctx).Should(BeNil())

		By("the end of the plan")
		g.opens(ctx, required.Name+"-gate")
		Eventually(installed.currentState(required)).WithContext(ctx).Should(Equal(works))
		Eventually(installed.currentState(late)).WithContext(ctx).Should(Equal(works))
		Expect(installed.states(required)).To(Equal([]string{works, updates, works}))
		Expect(installed.states(shop)).To(Equal([]string{works}))
		Expect(installed.verdicts(shop)).To(Equal([]string{""}))
		Expect(installed.verdicts(late)).To(Equal([]string{""}))
	})
})
