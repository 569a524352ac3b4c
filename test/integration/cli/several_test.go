package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The specs act as addon-manager and the agents.
var _ = Describe("several clusters", func() {
	report := func(ctx context.Context, instance *kudo.Instance, execution kudo.Execution, status kudo.ExecutionStatus) {
		GinkgoHelper()
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			var version kudo.OperatorVersion
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: i.Spec.OperatorVersion.Name}, &version)).To(Succeed())
			execution.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID}
			i.Status.Execution, i.Status.ObservedGeneration = &execution, i.Generation
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, ObservedGeneration: i.Generation,
			})
			message := ""
			if status == kudo.FatalError {
				message = "no tape"
			}
			i.Status.PlanStatus = map[string]kudo.PlanStatus{execution.Plan: {Name: execution.Plan, UID: execution.UID, Status: status, Message: message}}
		})).To(Succeed())
	}
	// fleetOf creates three clusters with the label: the first two have an Instance whose plan deploy has that status.
	fleetOf := func(ctx context.Context, label string, statuses ...kudo.ExecutionStatus) ([]string, []*kudo.Instance) {
		GinkgoHelper()
		var clusters []string
		for range 3 {
			clusters = append(clusters, newCluster(ctx, map[string]string{"several": label}))
		}
		slices.Sort(clusters)
		var instances []*kudo.Instance
		for i, status := range statuses {
			Expect(run(ctx, "package", "push", packageDir("a: b\n"), "-n", clusters[i]).err).NotTo(HaveOccurred())
			instance := &kudo.Instance{
				ObjectMeta: metav1.ObjectMeta{Namespace: clusters[i], Name: "shop"},
				Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: "shop-1.10-1.2.0"}},
			}
			Expect(hub.Create(ctx, instance)).To(Succeed())
			report(ctx, instance, kudo.Execution{UID: "first", Plan: "deploy"}, status)
			instances = append(instances, instance)
		}
		return clusters, instances
	}
	requestOf := func(ctx context.Context, instance *kudo.Instance) func() kudo.PlanExecution {
		return func() kudo.PlanExecution {
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			return instance.Spec.PlanExecution
		}
	}

	It("run a plan, and are waited for together", func(ctx SpecContext) {
		clusters, instances := fleetOf(ctx, "run", kudo.Complete, kudo.Complete)
		done := begin(ctx, "plan", "run", "shop", "backup", "-l", "several=run", "--wait")
		for i, instance := range instances {
			Eventually(requestOf(ctx, instance)).Should(HaveField("PlanName", "backup"))
			uid := instance.Spec.PlanExecution.UID
			report(ctx, instance, kudo.Execution{UID: uid, Request: uid, Plan: "backup"}, []kudo.ExecutionStatus{kudo.Complete, kudo.FatalError}[i])
		}
		var got result
		Eventually(done).Should(Receive(&got))
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.err).To(MatchError(ContainSubstring(`plan "backup" of Instance shop on cluster ` + clusters[1] + ` failed: no tape`)))
		Expect(got.err).NotTo(MatchError(ContainSubstring(clusters[0])))
		Expect(got.out).To(Equal("instance.kudo.dev/shop plan backup requested on " + clusters[0] + "\n" +
			"instance.kudo.dev/shop plan backup requested on " + clusters[1] + "\n" +
			"instance.kudo.dev/shop plan backup is complete on " + clusters[0] + "\n"))

		By("naming a cluster that does not have it")
		named := run(ctx, "plan", "run", "shop", "backup", "--cluster", clusters[0]+","+clusters[2])
		Expect(named.err).To(MatchError(ContainSubstring(`cluster "` + clusters[2] + `" has no Instance or add-on "shop"`)))
		Expect(named.out).To(Equal("instance.kudo.dev/shop plan backup requested on " + clusters[0] + "\n"))
		Expect(run(ctx, "plan", "run", "other", "backup", "-l", "several=run").err).To(
			MatchError(`none of the 3 selected clusters has an Instance or add-on "other"`))
	})

	It("run a plan only where it has failed", func(ctx SpecContext) {
		clusters, instances := fleetOf(ctx, "failed", kudo.FatalError, kudo.Complete)
		status := run(ctx, "plan", "status", "shop", "--failed", "-l", "several=failed")
		Expect(status.err).NotTo(HaveOccurred())
		Expect(status.out).To(And(ContainSubstring(clusters[0]), Not(ContainSubstring(clusters[1]))))
		got := run(ctx, "plan", "run", "shop", "deploy", "--failed", "-l", "several=failed")
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.out).To(Equal("instance.kudo.dev/shop plan deploy requested\n"))
		Expect(requestOf(ctx, instances[0])()).To(HaveField("PlanName", "deploy"))
		Expect(requestOf(ctx, instances[1])()).To(BeZero())
		Expect(run(ctx, "plan", "run", "shop", "backup", "--failed", "-l", "several=failed").out).To(
			Equal("No plan backup of shop has failed on the selected clusters.\n"))
		Expect(run(ctx, "plan", "status", "shop", "--failed", "--cluster", clusters[1]).out).To(Equal("No plan of shop has failed on the selected clusters.\n"))
	})

	It("cancel the plans that run, and skip all others", func(ctx SpecContext) {
		clusters, instances := fleetOf(ctx, "cancel", kudo.InProgress, kudo.Complete)
		done := begin(ctx, "plan", "cancel", "shop", "-l", "several=cancel")
		Eventually(requestOf(ctx, instances[0])).Should(Equal(kudo.PlanExecution{PlanName: "deploy", UID: "first", Cancel: true}))
		Consistently(done).ShouldNot(Receive())
		report(ctx, instances[0], kudo.Execution{UID: "first", Plan: "deploy"}, kudo.FatalError)
		var got result
		Eventually(done).Should(Receive(&got))
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.out).To(Equal("instance.kudo.dev/shop plan deploy cancelled on " + clusters[0] + "\n"))
		Expect(requestOf(ctx, instances[1])()).To(BeZero())
		Expect(run(ctx, "plan", "cancel", "shop", "-l", "several=cancel").err).To(MatchError(`no plan of "shop" is running on the selected clusters`))
		Expect(run(ctx, "plan", "cancel", "shop", "--cluster", strings.Join(clusters[:2], ",")).err).To(
			MatchError(ContainSubstring(`no plan of Instance "shop" on cluster "` + clusters[1] + `" is running`)))
	})

	It("are waited for, and show their status", func(ctx SpecContext) {
		clusters, instances := fleetOf(ctx, "wait", kudo.Complete, kudo.InProgress)
		done := begin(ctx, "plan", "wait", "shop", "-l", "several=wait")
		Consistently(done).ShouldNot(Receive())
		report(ctx, instances[1], kudo.Execution{UID: "first", Plan: "deploy"}, kudo.Complete)
		var got result
		Eventually(done).Should(Receive(&got))
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.out).To(Equal("instance.kudo.dev/shop plan deploy is complete on " + clusters[0] + "\n" +
			"instance.kudo.dev/shop plan deploy is complete on " + clusters[1] + "\n"))
		status := run(ctx, "plan", "status", "shop", "-l", "several=wait")
		Expect(status.err).NotTo(HaveOccurred())
		Expect(strings.Split(status.out, "\n\n")).To(HaveLen(4))
		Expect(run(ctx, "plan", "status", "shop", "-l", "several=wait", "-o", "jsonpath={.statuses[*].cluster}").out).To(Equal(strings.Join(clusters[:2], " ")))
	})

	It("are watched until the plans on all of them have ended", func(ctx SpecContext) {
		clusters, instances := fleetOf(ctx, "watch", kudo.Complete, kudo.InProgress)
		out, ended := gbytes.NewBuffer(), make(chan error, 1)
		watch := func(ctx context.Context, args ...string) {
			go func() {
				ended <- runTo(ctx, out, io.Discard, append([]string{"plan", "status", "shop", "--watch"}, args...)...)
			}()
		}
		step := func(status kudo.ExecutionStatus, message string) {
			GinkgoHelper()
			Expect(environment.EditStatus(ctx, hub, instances[1], func(i *kudo.Instance) {
				i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {
					Name: "deploy", UID: "first", Status: kudo.InProgress,
					Phases: []kudo.PhaseStatus{{Name: "main", Status: kudo.InProgress, Steps: []kudo.StepStatus{{Name: "app", Status: status, Message: message}}}},
				}}
			})).To(Succeed())
		}
		watch(ctx, "-l", "several=watch")
		Eventually(out).Should(gbytes.Say("shop on " + clusters[0] + `: plan "deploy": COMPLETE`))
		Eventually(out).Should(gbytes.Say("shop on " + clusters[1] + `: plan "deploy": IN_PROGRESS`))
		step(kudo.InProgress, "2 of 3 pods\x1b[1m")
		Eventually(out).Should(gbytes.Say("shop on " + clusters[1] + `: plan "deploy": phase "main": step "app": IN_PROGRESS: 2 of 3 pods\^\[\[1m` + "\n"))
		step(kudo.Complete, "")
		Eventually(out).Should(gbytes.Say("shop on " + clusters[1] + `: plan "deploy": phase "main": step "app": COMPLETE` + "\n"))
		Consistently(ended).ShouldNot(Receive())
		report(ctx, instances[1], kudo.Execution{UID: "first", Plan: "deploy"}, kudo.FatalError)
		var err error
		Eventually(ended).Should(Receive(&err))
		Expect(cli.ExitCode(err)).To(Equal(cli.ExitFailure))
		Expect(err).To(MatchError(HavePrefix(`plan "deploy" of Instance shop on cluster ` + clusters[1] + " failed: no tape; see ")))
		Expect(out).To(gbytes.Say("shop on " + clusters[1] + `: plan "deploy": FATAL_ERROR: no tape` + "\n"))

		By("ending immediately if all have ended")
		report(ctx, instances[1], kudo.Execution{UID: "second", Plan: "deploy"}, kudo.Complete)
		got := run(ctx, "plan", "status", "shop", "--cluster", strings.Join(clusters[:2], ","), "-w")
		Expect(got.err).NotTo(HaveOccurred())
		Expect(strings.Count(got.out, "\n")).To(Equal(2))
		Expect(got.out).To(Equal("shop on " + clusters[0] + ": plan \"deploy\": COMPLETE\nshop on " + clusters[1] + ": plan \"deploy\": COMPLETE\n"))

		By("naming a cluster that has neither, after the others have ended")
		named := run(ctx, "plan", "status", "shop", "--cluster", clusters[0]+","+clusters[2], "-w")
		Expect(named.code).To(Equal(cli.ExitFailure))
		Expect(named.err).To(MatchError(ContainSubstring(`cluster "` + clusters[2] + `" has no Instance or add-on "shop"`)))
		Expect(named.out).To(HavePrefix("shop on " + clusters[0]))

		By("being interrupted, while an add-on waits for its Instance")
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusters[2], Name: "shop"}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		interrupted, interrupt := context.WithCancel(ctx)
		watch(interrupted, "-l", "several=watch")
		Eventually(out).Should(gbytes.Say("shop on " + clusters[2] + ": addon-manager has not processed the add-on yet\n"))
		Consistently(ended).ShouldNot(Receive())
		interrupt()
		Eventually(ended).Should(Receive(&err))
		Expect(cli.ExitCode(err)).To(Equal(cli.ExitInterrupted))
		Expect(err).To(MatchError("interrupted; the operation continues on the hub and its clusters: plans are still in progress on " + clusters[2]))

		By("seeing Instances and add-ons that are gone")
		report(ctx, instances[1], kudo.Execution{UID: "third", Plan: "deploy"}, kudo.InProgress)
		watch(ctx, "-l", "several=watch")
		Eventually(out).Should(gbytes.Say("shop on " + clusters[2] + ": addon-manager"))
		Expect(hub.Delete(ctx, addOn)).To(Succeed())
		Eventually(out).Should(gbytes.Say("shop on " + clusters[2] + ": gone\n"))
		Expect(hub.Delete(ctx, instances[1])).To(Succeed())
		Eventually(ended).Should(Receive(MatchError("shop on " + clusters[1] + " was deleted before its plans ended")))
	})

	It("share trees, and are grouped by the root cause of a problem", func(ctx SpecContext) {
		clusters, _ := fleetOf(ctx, "why")
		for i, cluster := range clusters[:2] {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "several"}}
			Expect(hub.Create(ctx, addOn)).To(Succeed())
			Expect(environment.EditStatus(ctx, hub, addOn, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
				meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
					Type: addonv1alpha1.ConditionAvailable, Status: []metav1.ConditionStatus{"True", "False"}[i], Reason: "Probed", Message: "it is probed",
				})
			})).To(Succeed())
		}
		why := run(ctx, "why", "several", "-l", "several=why")
		Expect(why.err).NotTo(HaveOccurred())
		Expect(why.out).To(HavePrefix("Add-on several is available on 1 of 2 clusters.\n\n" +
			"Cluster " + clusters[1] + ": not available: Probed\n  Add-on several is not available on cluster " + clusters[1] + ": Probed: it is probed."))
		Expect(run(ctx, "why", "several", "-l", "several=why", "-o", "jsonpath={.groups[*].clusters[*]}").out).To(Equal(clusters[1] + " " + clusters[0]))
		tree := run(ctx, "tree", "several", "-l", "several=why")
		Expect(tree.err).NotTo(HaveOccurred())
		Expect(tree.out).To(And(ContainSubstring("Cluster "+clusters[0]+":\nADD-ON "), ContainSubstring("Cluster "+clusters[1]+":\nADD-ON "),
			Not(ContainSubstring(clusters[2]))))
		Expect(run(ctx, "tree", "-l", "several=why").out).To(ContainSubstring("Cluster " + clusters[2] + ":\nNo add-ons are installed.\n"))
		Expect(run(ctx, "why", "other", "-l", "several=why").err).To(MatchError(`add-on "other" is not enabled on the selected clusters, and no ` +
			`ClusterManagementAddOn has that name; enabled add-ons: several`))
	})
})
