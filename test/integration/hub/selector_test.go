package hub

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// withLabel selects clusters with a label.
func withLabel(name string) *addonv1alpha1.ClusterSelector {
	return &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: "true"}}}
}

// withClaim selects clusters with a claim, and withExpression by a CEL expression.
func withClaim(name, value string) *addonv1alpha1.ClusterSelector {
	return &addonv1alpha1.ClusterSelector{ClaimSelector: &addonv1alpha1.ClusterClaimSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: name, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}},
	}}
}

func withExpression(expression string) *addonv1alpha1.ClusterSelector {
	return &addonv1alpha1.ClusterSelector{CelSelector: &addonv1alpha1.ClusterCelSelector{CelExpressions: []string{expression}}}
}

var _ = Describe("A dependency on some clusters", func() {
	var (
		f              fleet
		plain, special string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		plain, special = f.cluster(ctx, "plain"), f.cluster(ctx, "special")
	})
	AfterEach(func(ctx SpecContext) { f.writesNothing(ctx, special) })

	DescribeTable("exists where its selector selects the cluster, and as soon as it does", func(
		ctx SpecContext, clusters *addonv1alpha1.ClusterSelector, become func(ctx context.Context, cluster string),
	) {
		become(ctx, special)
		f.define(ctx, "a", f.withNeeds(need{Name: "b", Clusters: clusters}, need{Name: "c"}))
		onPlain, onSpecial := f.enable(ctx, plain, "a"), f.enable(ctx, special, "a")
		expectDegraded(ctx, onSpecial, f.requiredUnmet("b", "c"))
		expectDegraded(ctx, onPlain, f.requiredUnmet("c"))
		By("the other cluster becomes one of these, and this one is none any more")
		become(ctx, plain)
		expectDegraded(ctx, onPlain, f.requiredUnmet("b", "c"))
		describeCluster(ctx, special, map[string]string{"gpu": "false"}, "v1.36.0", claim("region", "us"))
		expectDegraded(ctx, onSpecial, f.requiredUnmet("c"))
		f.install(ctx, plain, "b")
		expectDegraded(ctx, onPlain, f.requiredUnmet("c"))
	},
		Entry("by a label", withLabel("gpu"), func(ctx context.Context, cluster string) {
			describeCluster(ctx, cluster, map[string]string{"gpu": "true"}, "v1.36.0")
		}),
		Entry("by a claim", withClaim("region", "eu"), func(ctx context.Context, cluster string) {
			describeCluster(ctx, cluster, nil, "v1.36.0", claim("region", "eu"))
		}),
		Entry("by an expression over the version", withExpression(`semver(managedCluster.status.version.kubernetes, true).minor() >= 37`),
			func(ctx context.Context, cluster string) { describeCluster(ctx, cluster, nil, "v1.37.2") }),
	)

	It("does not wait for what OCM says about add-ons in labels of the cluster", func(ctx SpecContext) {
		feature := "feature.open-cluster-management.io/addon-" + f.nameOf("b")
		f.define(ctx, "a", f.withNeeds(need{Name: "b", Clusters: withLabel(feature)}, need{Name: "c", Clusters: withLabel("gpu")}))
		a := f.enable(ctx, special, "a")
		describeCluster(ctx, special, map[string]string{feature: "true", "gpu": "true"}, "v1.37.2")
		expectDegraded(ctx, a, f.requiredUnmet("c"))
	})

	It("delays the first installation of a package only there, until the label is gone", func(ctx SpecContext) {
		describeCluster(ctx, special, map[string]string{"gpu": "true"}, "v1.37.2")
		f.define(ctx, "a", both(runs(f.push(ctx, "a", packages)), f.withNeeds(need{Name: "b", Clusters: withLabel("gpu")})))
		onPlain, onSpecial := f.enable(ctx, plain, "a"), f.enable(ctx, special, "a")
		Eventually(exists(instanceOf(onPlain))).WithContext(ctx).Should(BeTrue())
		Eventually(conditionOf(onSpecial, "Resolved")).WithContext(ctx).Should(And(
			HaveField("Reason", "WaitingForDependencies"), HaveField("Message", ContainSubstring(f.nameOf("b")))))
		Consistently(exists(instanceOf(onSpecial))).WithContext(ctx).Should(BeFalse())
		describeCluster(ctx, special, nil, "v1.37.2")
		Eventually(resolvedOf(instanceOf(onSpecial))).WithContext(ctx).Should(HaveField("Status", "True"))
		expectDegraded(ctx, onSpecial, none)
	})

	It("is part of a cycle only there", func(ctx SpecContext) {
		describeCluster(ctx, special, map[string]string{"gpu": "true"}, "v1.37.2")
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		f.define(ctx, "b", f.withNeeds(need{Name: "a", Clusters: withLabel("gpu")}))
		for _, cluster := range []string{plain, special} {
			f.install(ctx, cluster, "a")
			f.install(ctx, cluster, "b")
		}
		of := func(cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
			return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf(name)}}
		}
		circular := func(first, second string) seen {
			return unmet("RequiredDependencyNotSatisfied", fmt.Sprintf("circular dependency: %s -> %s -> %[1]s", f.nameOf(first), f.nameOf(second)))
		}
		expectDegraded(ctx, of(special, "a"), circular("a", "b"))
		expectDegraded(ctx, of(special, "b"), circular("b", "a"))
		staysDegraded(ctx, of(plain, "a"), none)
		By("the label moves, and the cycle with it")
		describeCluster(ctx, plain, map[string]string{"gpu": "true"}, "v1.37.2")
		describeCluster(ctx, special, nil, "v1.37.2")
		expectDegraded(ctx, of(plain, "a"), circular("a", "b"))
		expectDegraded(ctx, of(plain, "b"), circular("b", "a"))
		expectDegraded(ctx, of(special, "b"), none)
		report(ctx, of(special, "b"), metav1.ConditionTrue, "Works") // the verdict has made it unavailable
		expectDegraded(ctx, of(special, "a"), none)
	})
})

var _ = Describe("A dependency with alternatives", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	AfterEach(func(ctx SpecContext) { f.writesNothing(ctx, cluster) })
	noneOf := func() seen {
		return unmet("RequiredDependencyNotSatisfied", fmt.Sprintf("Required addon '%s' is not installed or not available; "+
			"alternative '%s' is not installed or not available; alternative '%s' is not installed or not available. No queue",
			f.nameOf("b"), f.nameOf("c"), f.nameOf("d")))
	}

	It("is satisfied by any of them, and follows them as they come and go", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b", Alternatives: []string{"c", "d"}, Message: "No queue"}))
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, noneOf())
		c := f.install(ctx, cluster, "c")
		expectDegraded(ctx, a, none)
		By("the one that is named takes over")
		f.install(ctx, cluster, "b")
		Expect(server.Delete(ctx, c)).To(Succeed())
		staysDegraded(ctx, a, none)
		By("it fails, and the last alternative comes")
		report(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("b")}}, metav1.ConditionFalse, "Broken")
		expectDegraded(ctx, a, noneOf())
		f.install(ctx, cluster, "d")
		expectDegraded(ctx, a, none)
	})

	It("compares the version of each", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b", Alternatives: []string{"c"}, Version: ">=2"}))
		f.define(ctx, "b", labelled("1.0.0"))
		c := f.define(ctx, "c", labelled("1.5.0"))
		a := f.enable(ctx, cluster, "a")
		f.install(ctx, cluster, "b")
		f.install(ctx, cluster, "c")
		expectDegraded(ctx, a, unmet("RequiredDependencyNotSatisfied", fmt.Sprintf("Required addon '%s' runs version 1.0.0, which does not satisfy >=2; "+
			"alternative '%s' runs version 1.5.0, which does not satisfy >=2.", f.nameOf("b"), f.nameOf("c"))))
		edit(ctx, c, labelled("2.0.0"))
		expectDegraded(ctx, a, none)
	})
})
