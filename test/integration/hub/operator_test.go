package hub

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("Operators that depend on operators", func() {
	var (
		f       fleet
		cluster string
		user    client.Client
		heard   *warnings
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		user, heard = newUser()
	})
	// named replaces <aa>, <bb> and <cc> by the spec's own names of operators.
	named := func(text string) string {
		return strings.NewReplacer("<aa>", f.nameOf("aa"), "<bb>", f.nameOf("bb"), "<cc>", f.nameOf("cc")).Replace(text)
	}
	// bringing returns a version with a child of each of those operators, optionally in a version: bb@1.0.0.
	bringing := func(operator, version string, children ...string) *kudo.OperatorVersion {
		v := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf(operator) + "-" + version}}
		v.Spec.Operator = corev1.ObjectReference{Name: f.nameOf(operator)}
		v.Spec.Version = version
		step := kudo.Step{Name: "children"}
		for _, child := range children {
			task := kudo.Task{Name: child, Kind: kudo.TaskKudoOperator}
			operator, version, _ := strings.Cut(child, "@")
			task.Spec.Package, task.Spec.OperatorVersion = f.nameOf(operator), version
			v.Spec.Tasks = append(v.Spec.Tasks, task)
			step.Tasks = append(step.Tasks, child)
		}
		v.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{Name: "children", Steps: []kudo.Step{step}}}}}
		return v
	}
	push := func(ctx context.Context, versions ...*kudo.OperatorVersion) {
		GinkgoHelper()
		for _, version := range versions {
			Expect(user.Create(ctx, version)).To(Succeed())
		}
	}
	instanceOf := func(ctx context.Context, name string, version *kudo.OperatorVersion) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
		Expect(user.Create(ctx, instance)).To(Succeed())
		return instance
	}

	Describe("without admission", func() {
		BeforeEach(runWithoutWebhooks)

		It("are resolved once the whole tree is there, and no more when a part of it goes", func(ctx SpecContext) {
			aa, bb, cc := bringing("aa", "1.0.0", "bb"), bringing("bb", "1.0.0", "cc@1.0.0"), bringing("cc", "1.0.0")
			push(ctx, aa)
			instance := instanceOf(ctx, "aa", aa)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(HaveField("Reason", "ChildVersionNotFound"),
				HaveField("Message", HavePrefix(named("<aa>-1.0.0 -> <bb>: ")))))

			push(ctx, bb)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(HaveField("Reason", "ChildVersionNotFound"),
				HaveField("Message", HavePrefix(named("<aa>-1.0.0 -> <bb>-1.0.0 -> <cc>-1.0.0: ")))))
			Expect(get(ctx, instance).Finalizers).To(BeEmpty(), "nothing was started")

			push(ctx, cc)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))

			Expect(user.Delete(ctx, cc)).To(Succeed())
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Reason", "ChildVersionNotFound"))
		})

		It("are stopped with a message that names the cycle, and run once that is broken", func(ctx SpecContext) {
			aa, bb, cc := bringing("aa", "1.0.0", "bb"), bringing("bb", "1.0.0", "cc"), bringing("cc", "1.0.0", "aa")
			push(ctx, aa, bb, cc)
			instance := instanceOf(ctx, "aa", aa)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(And(HaveField("Status", "False"),
				HaveField("Reason", "CircularOperators"),
				HaveField("Message", HavePrefix(named("circular dependency: <aa>-1.0.0 -> <bb>-1.0.0 -> <cc>-1.0.0 -> <aa>-1.0.0: ")))))
			Expect(get(ctx, instance).Finalizers).To(BeEmpty(), "nothing was started")

			By("pushing a higher version, which the task means from then on")
			push(ctx, bringing("cc", "1.1.0"))
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		})

		It("are not run where a child could not have its name", func(ctx SpecContext) {
			aa, bb := bringing("aa", "1.0.0", "bb"), bringing("bb", "1.0.0")
			push(ctx, aa, bb)
			fits := 63 - len("."+f.nameOf("bb"))
			long, short := strings.Repeat("a", fits+1), strings.Repeat("a", fits)
			Eventually(resolvedOf(instanceOf(ctx, short, aa))).WithContext(ctx).Should(HaveField("Status", "True"))
			Eventually(resolvedOf(instanceOf(ctx, long, aa))).WithContext(ctx).Should(And(HaveField("Reason", "ChildrenInvalid"),
				HaveField("Message", And(ContainSubstring("has 64 characters"), ContainSubstring("another instanceName")))))
		})

		It("finds children's versions in the namespace of their parent's version only", func(ctx SpecContext) {
			aa, bb := bringing("aa", "1.0.0", "bb"), bringing("bb", "1.0.0")
			aa.Namespace = cluster
			push(ctx, aa, bb)
			instance := instanceOf(ctx, "aa", aa)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Reason", "ChildVersionNotFound"))
			beside := bringing("bb", "1.0.0")
			beside.Namespace = cluster
			push(ctx, beside)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		})
	})

	Describe("with admission", func() {
		BeforeEach(func(ctx SpecContext) { awaitWebhooks(ctx) })

		It("may be pushed in any order, with a warning of what is missing", func(ctx SpecContext) {
			said := heard.of(func() { push(ctx, bringing("aa", "1.0.0", "bb")) })
			Expect(said).To(ConsistOf(HavePrefix(named("the operator cannot run yet: <aa>-1.0.0 -> <bb>: "))))
			Expect(heard.of(func() { push(ctx, bringing("bb", "1.0.0")) })).To(BeEmpty())
			Expect(heard.of(func() { push(ctx, bringing("aa", "1.1.0", "bb")) })).To(BeEmpty())
		})

		It("are rejected if a version closes a cycle, even if the version is only selected from then on", func(ctx SpecContext) {
			push(ctx, bringing("aa", "1.0.0", "bb"), bringing("bb", "1.0.0", "cc"), bringing("cc", "1.0.0"))
			closing := bringing("cc", "1.1.0", "aa")
			for _, options := range [][]client.CreateOption{{client.DryRunAll}, nil} {
				err := user.Create(ctx, closing.DeepCopy(), options...)
				Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
				Expect(err).To(MatchError(ContainSubstring(named(
					"circular dependency: <cc>-1.1.0 -> <aa>-1.0.0 -> <bb>-1.0.0 -> <cc>-1.1.0"))))
			}
			Expect(user.Create(ctx, bringing("cc", "1.1.0", "aa@0.9.0"))).To(Succeed(), "another version is none of the cycle")
		})

		It("are refused where two children would have the same name", func(ctx SpecContext) {
			push(ctx, bringing("bb", "1.0.0"), bringing("bb", "2.0.0"))
			Expect(user.Create(ctx, bringing("aa", "1.0.0", "bb", "bb@1.0.0"))).To(MatchError(ContainSubstring(named(
				`create children whose names both end in "<bb>" on the managed cluster`))))
		})

		It("warns of an Instance whose tree is not complete", func(ctx SpecContext) {
			aa := bringing("aa", "1.0.0", "bb")
			push(ctx, aa)
			said := heard.of(func() { instanceOf(ctx, "aa", aa) })
			Expect(said).To(ContainElement(HavePrefix("the Instance cannot run yet: ")))
		})
	})
})
