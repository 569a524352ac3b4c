package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("An OperatorVersion as KUDO accepts it", func() {
	var (
		f       fleet
		cluster string
		user    client.Client
		pushed  *kudo.OperatorVersion
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		user, _ = newUser()
		awaitWebhooks(ctx)
		pushed = f.pushPlans(ctx, "toy", packages, kudo.UpgradePlan)
	})
	// another creates a changed version of the pushed one.
	another := func(ctx context.Context, name string, change func(*kudo.OperatorVersionSpec)) *kudo.OperatorVersion {
		GinkgoHelper()
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: name}, Spec: *pushed.Spec.DeepCopy()}
		change(&version.Spec)
		Expect(user.Create(ctx, version)).To(Succeed())
		return version
	}
	running := func(version *kudo.OperatorVersion) *kudo.Instance {
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		return instance
	}

	DescribeTable("is admitted and runs", func(ctx SpecContext, name string, change func(*kudo.OperatorVersionSpec)) {
		instance := running(another(ctx, f.nameOf(name)+"-2.0.0", change))
		Expect(user.Create(ctx, instance)).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
	},
		Entry("without an operator", "bare", func(spec *kudo.OperatorVersionSpec) {
			spec.Operator, spec.Version = corev1.ObjectReference{}, "2.0.0"
		}),
		Entry("with an operator's name that is no object's", "capital", func(spec *kudo.OperatorVersionSpec) {
			spec.Operator.Name, spec.Version = "Toy_Box", "2.0.0"
		}),
	)

	It("is a child by its own name if it names no operator", func(ctx SpecContext) {
		another(ctx, f.nameOf("child")+"-2.0.0", func(spec *kudo.OperatorVersionSpec) {
			spec.Operator, spec.Version = corev1.ObjectReference{}, "2.0.0"
		})
		parent := another(ctx, f.nameOf("parent"), func(spec *kudo.OperatorVersionSpec) {
			spec.Operator = corev1.ObjectReference{}
			spec.Tasks[0].Kind = kudo.TaskKudoOperator
			spec.Tasks[0].Spec = kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{Package: f.nameOf("child"), InstanceName: "child"}}
			spec.Templates, spec.Parameters = nil, nil
		})
		instance := running(parent)
		Expect(user.Create(ctx, instance)).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
	})

	It("may lack plan deploy, and is then only for an upgrade", func(ctx SpecContext) {
		upgrade := another(ctx, f.nameOf("toy")+"-2.0.0", func(spec *kudo.OperatorVersionSpec) {
			delete(spec.Plans, kudo.DeployPlan)
			spec.Version = "2.0.0"
		})
		needsDeploy := "OperatorVersion addon-packages/" + upgrade.Name + " has no plan deploy, which the first installation runs"
		Expect(user.Create(ctx, running(upgrade))).To(MatchError(ContainSubstring(needsDeploy)))

		instance := running(pushed)
		Expect(user.Create(ctx, instance)).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		take := func(i *kudo.Instance) error {
			before := i.DeepCopy()
			i.Spec.OperatorVersion.Name = upgrade.Name
			return user.Patch(ctx, i, client.MergeFrom(before))
		}
		Expect(take(get(ctx, instance))).To(MatchError(ContainSubstring(needsDeploy)), "plan deploy of the first version is not complete")

		By("upgrading to it once plan deploy is complete")
		deployed := get(ctx, instance)
		before := deployed.DeepCopy()
		reference := corev1.ObjectReference{Namespace: pushed.Namespace, Name: pushed.Name, UID: pushed.UID}
		deployed.Status.Execution = &kudo.Execution{UID: "x", Plan: kudo.DeployPlan, OperatorVersion: reference}
		deployed.Status.Whole = &kudo.WholeVersion{OperatorVersion: reference, Version: "1.0.0"}
		Expect(server.Status().Patch(ctx, deployed, client.MergeFrom(before))).To(Succeed())
		Eventually(func() error { return take(get(ctx, instance)) }).Should(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
	})

	It("without plan deploy is reported by condition Resolved without admission, until the Instance is deployed", func(ctx SpecContext) {
		runWithoutWebhooks()
		upgrade := another(ctx, f.nameOf("toy")+"-2.0.0", func(spec *kudo.OperatorVersionSpec) {
			delete(spec.Plans, kudo.DeployPlan)
			spec.Version = "2.0.0"
		})
		instance := running(upgrade)
		Expect(user.Create(ctx, instance)).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(HaveField("Status", "False"), HaveField("Reason", "PlanMissing"),
			HaveField("Message", ContainSubstring("has no plan deploy, which the first installation runs"))))

		deployed := get(ctx, instance)
		before := deployed.DeepCopy()
		reference := corev1.ObjectReference{Namespace: pushed.Namespace, Name: pushed.Name, UID: pushed.UID}
		deployed.Status.Execution = &kudo.Execution{UID: "x", Plan: kudo.DeployPlan, OperatorVersion: reference}
		deployed.Status.Whole = &kudo.WholeVersion{OperatorVersion: reference, Version: "1.0.0"}
		Expect(server.Status().Patch(ctx, deployed, client.MergeFrom(before))).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
	})
})
