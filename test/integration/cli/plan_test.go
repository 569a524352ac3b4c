package cli

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The specs act as addon-manager and the agent.
var _ = Describe("plans", func() {
	// report sets the progress of an execution's plan, as addon-manager and the agent do after observing all changes.
	report := func(ctx context.Context, instance *kudo.Instance, execution kudo.Execution, status kudo.ExecutionStatus, message string) {
		GinkgoHelper()
		Expect(environment.EditStatus(ctx, hub, instance, func(instance *kudo.Instance) {
			var version kudo.OperatorVersion
			key := client.ObjectKey{Namespace: instance.Namespace, Name: instance.Spec.OperatorVersion.Name}
			Expect(hub.Get(ctx, key, &version)).To(Succeed())
			execution.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID}
			execution.Parameters = instance.Spec.Parameters
			instance.Status.Execution, instance.Status.ObservedGeneration = &execution, instance.Generation
			meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, ObservedGeneration: instance.Generation,
			})
			if instance.Status.PlanStatus == nil {
				instance.Status.PlanStatus = map[string]kudo.PlanStatus{}
			}
			instance.Status.PlanStatus[execution.Plan] = kudo.PlanStatus{Name: execution.Plan, UID: execution.UID, Status: status, Message: message}
		})).To(Succeed())
	}
	install := func(ctx context.Context) *kudo.Instance {
		GinkgoHelper()
		cluster := newNamespace(ctx)
		Expect(run(ctx, "package", "push", packageDir("a: b\n"), "-n", cluster).err).NotTo(HaveOccurred())
		instance := &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"},
			Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: "shop-1.10-1.2.0"}},
		}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		return instance
	}
	deployed := func(ctx context.Context) *kudo.Instance {
		GinkgoHelper()
		instance := install(ctx)
		report(ctx, instance, kudo.Execution{UID: "first", Plan: "deploy"}, kudo.Complete, "")
		return instance
	}
	requestOf := func(ctx context.Context, instance *kudo.Instance) func() kudo.PlanExecution {
		return func() kudo.PlanExecution {
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			return instance.Spec.PlanExecution
		}
	}
	ended := func(done chan result) result {
		GinkgoHelper()
		var got result
		Eventually(done).Should(Receive(&got))
		return got
	}

	Describe("suspend and resume", func() {
		It("change the suspension, and nothing else", func(ctx SpecContext) {
			instance := deployed(ctx)
			before := instance.Spec.DeepCopy()
			at := []string{"shop", "--cluster", instance.Namespace}
			for _, step := range []struct {
				verb, want string
				suspended  bool
			}{{"suspend", "suspended", true}, {"suspend", "already suspended", true}, {"resume", "resumed", false}, {"resume", "not suspended", false}} {
				Expect(run(ctx, append([]string{step.verb}, at...)...).out).To(Equal("instance.kudo.dev/shop " + step.want + "\n"))
				Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
				before.Suspend = step.suspended
				Expect(instance.Spec).To(Equal(*before))
			}
			Expect(instance.Generation).To(BeEquivalentTo(3))
		})

		It("say what they cannot do", func(ctx SpecContext) {
			leaving := deployed(ctx)
			leaving.Finalizers = []string{"example.com/keep"}
			Expect(hub.Update(ctx, leaving)).To(Succeed())
			Expect(hub.Delete(ctx, leaving)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(hub.Get(ctx, client.ObjectKeyFromObject(leaving), leaving)).To(Succeed())
				leaving.Finalizers = nil
				Expect(hub.Update(ctx, leaving)).To(Succeed())
			})
			got := run(ctx, "suspend", "shop", "--cluster", leaving.Namespace)
			Expect(got.err).To(MatchError(ContainSubstring("is being removed: a removal cannot be suspended")))
			Expect(run(ctx, "resume", "none", "--cluster", leaving.Namespace).err).To(HaveOccurred())
			Expect(run(ctx, "suspend", "shop").code).To(Equal(cli.ExitUsage))
		})
	})

	Describe("run", func() {
		It("requests the plan with a new uid each time", func(ctx SpecContext) {
			instance := deployed(ctx)
			Expect(run(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace).out).To(Equal("instance.kudo.dev/shop plan backup requested\n"))
			first := requestOf(ctx, instance)()
			Expect(first).To(Equal(kudo.PlanExecution{PlanName: "backup", UID: first.UID}))
			Expect(first.UID).NotTo(BeEmpty())
			Expect(run(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace).err).NotTo(HaveOccurred())
			Expect(requestOf(ctx, instance)().UID).NotTo(Equal(first.UID))
			Expect(instance.ManagedFields).To(ContainElement(HaveField("Manager", "kubectl-addon")))
		})

		It("waits for the end of this execution, and shows its progress", func(ctx SpecContext) {
			instance := deployed(ctx)
			progress := gbytes.NewBuffer()
			done := beginTo(ctx, progress, "plan", "run", "shop", "backup", "--cluster", instance.Namespace, "--wait")
			Eventually(requestOf(ctx, instance)).Should(HaveField("PlanName", "backup"))
			request := instance.Spec.PlanExecution.UID
			Consistently(done).ShouldNot(Receive())
			report(ctx, instance, kudo.Execution{UID: request, Request: request, Plan: "backup"}, kudo.InProgress, "waiting for a tape")
			Eventually(progress).Should(gbytes.Say("waiting for a tape\n"))
			Consistently(done).ShouldNot(Receive())
			report(ctx, instance, kudo.Execution{UID: request, Request: request, Plan: "backup"}, kudo.Complete, "")
			got := ended(done)
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.out).To(Equal("instance.kudo.dev/shop plan backup requested\ninstance.kudo.dev/shop plan backup is complete\n"))
			place := "shop on " + instance.Namespace + ": plan \"backup\": "
			Expect(got.errOut).To(And(ContainSubstring(place+"IN_PROGRESS: waiting for a tape\n"), HaveSuffix(place+"COMPLETE\n")))
		})

		It("fails immediately when the plan fails", func(ctx SpecContext) {
			instance := deployed(ctx)
			done := begin(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace, "--wait")
			Eventually(requestOf(ctx, instance)).Should(HaveField("PlanName", "backup"))
			request := instance.Spec.PlanExecution.UID
			report(ctx, instance, kudo.Execution{UID: request, Request: request, Plan: "backup"}, kudo.FatalError, "no tape")
			got := ended(done)
			Expect(got.code).To(Equal(cli.ExitFailure))
			Expect(got.err).To(MatchError(ContainSubstring(`plan "backup" of Instance shop on cluster ` + instance.Namespace + ` failed: no tape; see 'kubectl addon plan status`)))
		})

		It("changes parameters, and runs a plan that they trigger only once", func(ctx SpecContext) {
			instance := deployed(ctx)
			done := begin(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace, "-p", "SIZE=3", "--wait")
			Eventually(func() map[string]string {
				requestOf(ctx, instance)()
				return instance.Spec.Parameters
			}).Should(Equal(map[string]string{"SIZE": "3"}))
			Expect(instance.Spec.PlanExecution).To(BeZero())
			Consistently(done).ShouldNot(Receive())
			report(ctx, instance, kudo.Execution{UID: "second", Plan: "backup"}, kudo.Complete, "")
			Expect(ended(done).out).To(HaveSuffix("instance.kudo.dev/shop plan backup is complete\n"))
		})

		It("lists the existing names for an unknown one", func(ctx SpecContext) {
			instance := deployed(ctx)
			unknown := run(ctx, "plan", "run", "shop", "backpu", "--cluster", instance.Namespace)
			Expect(unknown.err).To(MatchError(`OperatorVersion "shop-1.10-1.2.0" has no plan "backpu" (did you mean backup?); available plans: backup, deploy`))
			Expect(unknown.code).To(Equal(cli.ExitFailure))
			Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: "kafka"}})).To(Succeed())
			Expect(run(ctx, "plan", "run", "kafka", "deploy", "--cluster", instance.Namespace).err).To(MatchError(
				`add-on "kafka" has no Instance on cluster "` + instance.Namespace + `" yet, and therefore no plans: run 'kubectl addon why kafka --cluster ` + instance.Namespace + `'`))
			lease := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
			lease.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			Expect(hub.Create(ctx, lease)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, lease)).To(Succeed()) })
			Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: "plain"}})).To(Succeed())
			Expect(run(ctx, "plan", "run", "plain", "deploy", "--cluster", instance.Namespace).err).To(MatchError(
				`add-on "plain" is not plan-based: it has no Instance, and therefore no plans: run 'kubectl addon why plain --cluster ` + instance.Namespace + `'`))
			Expect(run(ctx, "plan", "history", "other", "--cluster", instance.Namespace).err).To(MatchError(MatchRegexp(`managed cluster ".*" not found`)))
		})
	})

	Describe("resume", func() {
		It("requests the failed plan without what is complete, unless nothing has failed", func(ctx SpecContext) {
			instance := deployed(ctx)
			none := run(ctx, "plan", "resume", "shop", "--cluster", instance.Namespace)
			Expect(none.err).To(MatchError(ContainSubstring(`nothing to resume: plan "deploy" of Instance "shop" on cluster "` + instance.Namespace + `" is complete`)))
			Expect(none.code).To(Equal(cli.ExitFailure))
			report(ctx, instance, kudo.Execution{UID: "failed", Plan: "backup"}, kudo.FatalError, "no tape")
			shown := run(ctx, "plan", "resume", "shop", "--cluster", instance.Namespace, "--dry-run")
			Expect(shown.err).NotTo(HaveOccurred())
			Expect(shown.out).To(HavePrefix("instance.kudo.dev/shop resume of plan backup requested (dry run)\n"))
			Expect(requestOf(ctx, instance)()).To(BeZero())
			Expect(run(ctx, "plan", "resume", "shop", "--cluster", instance.Namespace).err).NotTo(HaveOccurred())
			Expect(requestOf(ctx, instance)()).To(And(HaveField("PlanName", "backup"), HaveField("Resume", BeEquivalentTo("failed"))))
			first := instance.Spec.PlanExecution.UID
			Expect(run(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace).err).NotTo(HaveOccurred())
			Expect(requestOf(ctx, instance)()).To(And(HaveField("UID", Not(Equal(first))), HaveField("Resume", BeEmpty())))
		})
	})

	Describe("cancel", func() {
		It("ends the running plan, and nothing else", func(ctx SpecContext) {
			instance := deployed(ctx)
			Expect(run(ctx, "plan", "cancel", "shop", "--cluster", instance.Namespace).err).To(MatchError(ContainSubstring(`the last plan, "deploy", is COMPLETE`)))
			report(ctx, instance, kudo.Execution{UID: "second", Plan: "backup"}, kudo.InProgress, "")
			done := begin(ctx, "plan", "cancel", "shop", "--cluster", instance.Namespace)
			Eventually(requestOf(ctx, instance)).Should(Equal(kudo.PlanExecution{PlanName: "backup", UID: "second", Cancel: true}))
			Consistently(done).ShouldNot(Receive())
			report(ctx, instance, kudo.Execution{UID: "second", Plan: "backup"}, kudo.FatalError, "cancelled")
			got := ended(done)
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.out).To(Equal("instance.kudo.dev/shop plan backup cancelled\n"))

			By("waiting until the agent, which cancels immediately, has observed the complete change")
			report(ctx, instance, kudo.Execution{UID: "again", Plan: "backup"}, kudo.InProgress, "")
			done = begin(ctx, "plan", "cancel", "shop", "--cluster", instance.Namespace)
			Eventually(requestOf(ctx, instance)).Should(HaveField("UID", BeEquivalentTo("again")))
			Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
				ran := i.Status.PlanStatus["backup"]
				ran.Status = kudo.FatalError
				i.Status.PlanStatus["backup"] = ran
				Expect(i.Status.ObservedGeneration).To(BeNumerically("<", i.Generation))
			})).To(Succeed())
			Consistently(done).ShouldNot(Receive())
			report(ctx, instance, kudo.Execution{UID: "again", Plan: "backup"}, kudo.FatalError, "cancelled")
			Expect(ended(done).err).NotTo(HaveOccurred())

			By("withdrawing a queued request, and one that is not queued")
			report(ctx, instance, kudo.Execution{UID: "third", Plan: "deploy"}, kudo.InProgress, "")
			Expect(run(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace).out).To(HaveSuffix("It is queued until the running plan deploy ends.\n"))
			Expect(run(ctx, "plan", "cancel", "shop", "--cluster", instance.Namespace, "--wait=false").out).To(Equal(
				"instance.kudo.dev/shop plan backup no longer requested\ninstance.kudo.dev/shop plan deploy is being cancelled\n"))
			Expect(requestOf(ctx, instance)()).To(Equal(kudo.PlanExecution{PlanName: "deploy", UID: "third", Cancel: true}))
			report(ctx, instance, kudo.Execution{UID: "third", Plan: "deploy"}, kudo.FatalError, "cancelled")
			Expect(run(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace).err).NotTo(HaveOccurred())
			Expect(run(ctx, "plan", "cancel", "shop", "--cluster", instance.Namespace).out).To(Equal("instance.kudo.dev/shop plan backup no longer requested\n"))
			Expect(requestOf(ctx, instance)()).To(BeZero())

			By("running it again, which withdraws the request to cancel")
			Expect(run(ctx, "plan", "run", "shop", "backup", "--cluster", instance.Namespace).err).NotTo(HaveOccurred())
			Expect(requestOf(ctx, instance)()).To(And(HaveField("Cancel", false), HaveField("UID", Not(BeEquivalentTo("second")))))
		})
	})

	Describe("wait", func() {
		It("waits for an Instance that does not exist yet, and for its plans", func(ctx SpecContext) {
			cluster := newNamespace(ctx)
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"}}
			Expect(hub.Create(ctx, addOn)).To(Succeed())
			done := begin(ctx, "plan", "wait", "shop", "--cluster", cluster)
			Consistently(done).ShouldNot(Receive())
			Expect(run(ctx, "package", "push", packageDir("a: b\n"), "-n", cluster).err).NotTo(HaveOccurred())
			instance := &kudo.Instance{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "shop"},
				Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: "shop-1.10-1.2.0"}},
			}
			Expect(hub.Create(ctx, instance)).To(Succeed())
			report(ctx, instance, kudo.Execution{UID: "first", Plan: "deploy"}, kudo.Complete, "")
			got := ended(done)
			Expect(got.err).NotTo(HaveOccurred())
			Expect(got.out).To(Equal("instance.kudo.dev/shop plan deploy is complete\n"))
		})

		It("names the pending plan after its timeout", func(ctx SpecContext) {
			instance := install(ctx)
			report(ctx, instance, kudo.Execution{UID: "first", Plan: "deploy"}, kudo.InProgress, "")
			late := run(ctx, "plan", "wait", "shop", "--cluster", instance.Namespace, "--timeout", "3s")
			Expect(late.code).To(Equal(cli.ExitTimeout))
			Expect(late.err).To(MatchError(ContainSubstring("the plans of Instance shop on cluster " + instance.Namespace + " are still in progress after 3s")))
		})

		It("fails if no plan can run", func(ctx SpecContext) {
			instance := install(ctx)
			meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionFalse, Reason: kudo.ReasonParametersInvalid, Message: "SIZE is too big",
				ObservedGeneration: instance.Generation,
			})
			Expect(hub.Status().Update(ctx, instance)).To(Succeed())
			held := run(ctx, "plan", "wait", "shop", "--cluster", instance.Namespace)
			Expect(held.code).To(Equal(cli.ExitFailure))
			Expect(held.err).To(MatchError("Instance shop on cluster " + instance.Namespace + " cannot run: ParametersInvalid: SIZE is too big"))
		})
	})

	Describe("status --watch", func() {
		It("shows the status, then what changes, until the Instance is gone", func(ctx SpecContext) {
			instance := install(ctx)
			report(ctx, instance, kudo.Execution{UID: "first", Plan: "deploy"}, kudo.InProgress, "")
			out, done := gbytes.NewBuffer(), make(chan error, 1)
			go func() {
				defer GinkgoRecover()
				done <- runTo(ctx, out, GinkgoWriter, "plan", "status", "shop", "--cluster", instance.Namespace, "--watch")
			}()
			Eventually(out).Should(gbytes.Say(`Instance: +shop`))
			Eventually(out).Should(gbytes.Say(`Plan deploy .*IN_PROGRESS`))
			report(ctx, instance, kudo.Execution{UID: "first", Plan: "deploy"}, kudo.Complete, "")
			Eventually(out).Should(gbytes.Say(`plan "deploy": COMPLETE\n`))
			Expect(hub.Delete(ctx, instance)).To(Succeed())
			Eventually(out).Should(gbytes.Say("shop on " + instance.Namespace + " is gone\n"))
			Eventually(done).Should(Receive(BeNil()))
		})
	})
})
