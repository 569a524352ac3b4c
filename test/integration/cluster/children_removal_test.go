package cluster

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("The removal of a tree of operators", func() {
	var g *grove
	plantEach(&g)
	names := []string{"aa", "aa.bb", "aa.bb.ee"}

	BeforeEach(func(ctx SpecContext) {
		g.push(ctx, "ee", "1.0.0")
		g.push(ctx, "bb", "1.0.0", child("ee"))
		g.push(ctx, "aa", "1.0.0", child("bb"))
	})

	// Kubernetes' garbage collector deletes everything too if the root is deleted in the foreground.
	It("is done from the top, even if everything is deleted at the same time", func(ctx SpecContext) {
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		seen := g.follow(ctx)
		g.holds(ctx, "aa", "tandem.test/hold")
		for _, name := range names {
			Expect(systemClient("generic-garbage-collector").Delete(ctx, g.onHub(ctx, name))).To(Succeed())
		}
		Eventually(func() string { return readyOf(g.onHub(ctx, "aa")) }).WithContext(ctx).Should(Equal(kudo.ReasonRemoving))
		Consistently(func(check Gomega) {
			for _, name := range names[1:] {
				check.Expect(g.config(ctx, name)).NotTo(BeNil(), "%s: its parent may need it", name)
				check.Expect(g.mirror(ctx, name).IsRemoving()).To(BeFalse(), name)
			}
		}).WithContext(ctx).Should(Succeed())

		g.holds(ctx, "aa")
		g.awaitGone(ctx, names...)
		upwards := slices.Clone(names)
		slices.Reverse(upwards)
		Eventually(seen.all(deleted)).WithContext(ctx).Should(Equal(upwards), "an Instance leaves the hub after those below it")
		Expect(seen.all(removed)()).To(Equal(names))
	})

	It("runs the parent's cleanup plan to its end before those of its children", func(ctx SpecContext) {
		cleaning := func(v *kudo.OperatorVersionSpec) {
			addGate(v)
			v.Tasks = append(v.Tasks, gate())
			v.Plans[kudo.CleanupPlan] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "gate", Tasks: []string{"gate"}}}}}}
		}
		g.pushWith(ctx, "ee", "1.1.0", cleaning)
		g.pushWith(ctx, "bb", "1.1.0", cleaning, child("ee"))
		g.pushWith(ctx, "aa", "1.1.0", cleaning, child("bb"))
		g.root(ctx, "aa", "aa-1.1.0", nil)
		g.settles(ctx, "aa")
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		for i, name := range names {
			g.awaitGate(ctx, name)
			Consistently(func(check Gomega) {
				for _, below := range names[i+1:] {
					check.Expect(g.config(ctx, below)).NotTo(BeNil(), below)
					check.Expect(g.onHub(ctx, below).Status.PlanStatus[kudo.CleanupPlan].Status).To(Equal(kudo.NeverRun), below)
				}
			}).WithContext(ctx).Should(Succeed())
			g.opens(ctx, strings.ReplaceAll(name, ".", "-")+"-gate")
		}
		g.awaitGone(ctx, names...)
		cleanups := func() []string {
			return slices.DeleteFunc(g.plans(ctx, names...), func(plan string) bool { return !strings.Contains(plan, `"cleanup"`) })
		}
		Eventually(cleanups).WithContext(ctx).Should(Equal([]string{
			`aa: plan "cleanup" is complete`, `aa.bb: plan "cleanup" is complete`, `aa.bb.ee: plan "cleanup" is complete`,
		}))
	})

	It("takes along what is still being deployed", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.1.0", func(v *kudo.OperatorVersionSpec) {
			v.Templates["config.yaml"] += "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Name }}-stuck}\nspec:\n" +
				"  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}\n"
		}, child("ee"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(ContainSubstring("aa-bb-stuck"))
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		g.awaitGone(ctx, names...)
		stuck := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "aa-bb-stuck"}}
		Expect(apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(stuck), stuck))).To(BeTrue())
	})

	It("may begin below if that is allowed, which is missed above until a plan runs there again", func(ctx SpecContext) {
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		before := g.onHub(ctx, "aa.bb").UID
		Expect(server.Delete(ctx, g.onHub(ctx, "aa.bb"))).To(MatchError(And(
			ContainSubstring(`is a child of Instance "aa"`), ContainSubstring("kubectl addon uninstall aa --cluster "+g.name))))
		Expect(server.Patch(ctx, g.onHub(ctx, "aa.bb"), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+kudo.AnnotationAllowDeletion+`":"true"}}}`)))).To(Succeed())
		Expect(server.Delete(ctx, g.onHub(ctx, "aa.bb"))).To(Succeed())
		g.awaitGone(ctx, "aa.bb", "aa.bb.ee")
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(
			Equal("Instance " + g.name + "/aa.bb: is missing"))

		g.runs(ctx, "aa", kudo.DeployPlan, "again")
		Eventually(func() types.UID { return g.executions(ctx, "aa")["aa"] }).WithContext(ctx).Should(BeEquivalentTo("again"))
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").UID).NotTo(Equal(before))
		Expect(g.config(ctx, "aa.bb.ee")).NotTo(BeNil())
	})

	It("is that of its add-on, which goes last, and speaks for all of it until then", func(ctx SpecContext) {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			DefaultConfig:       &upstream.ConfigReferent{Namespace: g.name, Name: "aa-1.0.0"},
		}}
		Expect(server.Create(ctx, definition)).To(Succeed())
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: g.name}}
		addOn.Spec.InstallNamespace = g.name
		Expect(server.Create(ctx, addOn)).To(Succeed())
		available := func(check Gomega) string {
			current := &addonv1alpha1.ManagedClusterAddOn{}
			check.Expect(server.Get(ctx, client.ObjectKeyFromObject(addOn), current)).To(Succeed())
			return state(current, addonv1alpha1.ConditionAvailable)
		}
		Eventually(available).WithContext(ctx).Should(Equal(works))
		ofAddOn := []string{g.name, g.name + ".bb", g.name + ".bb.ee"}
		Expect(g.onHub(ctx, ofAddOn[2]).Labels).To(HaveKeyWithValue(kudo.LabelRoot, g.name))

		lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: g.name + "-bb-ee"}}
		Expect(managed.Delete(ctx, lost)).To(Succeed())
		Eventually(available).WithContext(ctx).Should(HavePrefix("False"))
		g.runs(ctx, ofAddOn[2], kudo.DeployPlan, "mend")
		Eventually(available).WithContext(ctx).Should(Equal(works))

		seen := g.follow(ctx)
		Expect(server.Delete(ctx, addOn)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(server.Get(ctx, client.ObjectKeyFromObject(addOn), addOn))
		}).WithContext(ctx).Should(BeTrue())
		for _, name := range ofAddOn {
			Expect(g.onHub(ctx, name)).To(BeNil(), "the add-on goes last")
		}
		Eventually(seen.all(removed)).WithContext(ctx).Should(Equal(ofAddOn))
	})
})
