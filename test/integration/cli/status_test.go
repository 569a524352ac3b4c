package cli

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
)

var _ = Describe("plan status", func() {
	newInstance := func(ctx context.Context, cluster, name, version string) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
			Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: version}},
		}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		return instance
	}

	It("shows what runs, why it waits, and the shape of plans that never ran", func(ctx context.Context) {
		cluster := newNamespace(ctx)
		Expect(run(ctx, "package", "push", packageDir("a: b\n"), "-n", cluster).err).NotTo(HaveOccurred())
		instance := newInstance(ctx, cluster, "shop", "shop-1.10-1.2.0")
		instance.Status.Execution = &kudo.Execution{UID: "1", Plan: "deploy"}
		instance.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.InProgress, Phases: []kudo.PhaseStatus{{
			Name: "main", Status: kudo.InProgress, Steps: []kudo.StepStatus{{
				Name: "app", Status: kudo.InProgress, Tasks: []kudo.TaskStatus{{Name: "app", Status: kudo.InProgress, Message: "Pod x: not ready"}},
			}},
		}}}}
		Expect(hub.Status().Update(ctx, instance)).To(Succeed())

		status := run(ctx, "plan", "status", "shop", "--cluster", cluster)
		Expect(status.err).NotTo(HaveOccurred())
		Expect(status.out).To(Equal(`Instance:         shop (cluster ` + cluster + `)
OperatorVersion:  shop-1.10-1.2.0
Last plan:        deploy
Resolved:         Unknown: not reported yet; if this takes longer than a few seconds, check that addon-manager is running on the hub
Ready:            Unknown: not reported yet

shop (operator shop, version 1.2.0)
├── Plan backup (serial strategy) [NEVER_RUN]
└── Plan deploy (serial strategy) [IN_PROGRESS]
    └── Phase main (serial strategy) [IN_PROGRESS]
        └── Step app [IN_PROGRESS]
            └── Task app [IN_PROGRESS]: Pod x: not ready
`))
	})

	It("shows the children and theirs where it is asked for them", func(ctx context.Context) {
		cluster := newNamespace(ctx)
		Expect(run(ctx, "package", "push", packageDir("a: b\n"), "-n", cluster).err).NotTo(HaveOccurred())
		parent := newInstance(ctx, cluster, "aa", "shop-1.10-1.2.0")
		for _, name := range []string{"aa.bb", "aa.bb.ee"} {
			child := newInstance(ctx, cluster, name, "shop-1.10-1.2.0")
			child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, kudo.GroupVersion.WithKind("Instance"))}
			Expect(hub.Update(ctx, child)).To(Succeed())
			parent = child
		}
		newInstance(ctx, cluster, "aa.other", "shop-1.10-1.2.0")
		status := run(ctx, "plan", "status", "aa", "--cluster", cluster, "--tree")
		Expect(status.err).NotTo(HaveOccurred())
		Expect(status.out).To(And(
			HaveSuffix("\n└── Instance aa.bb (operator shop, version 1.2.0), Resolved unknown\n"+
				"    └── Instance aa.bb.ee (operator shop, version 1.2.0), Resolved unknown\n"),
			Not(ContainSubstring("aa.other"))))
		Expect(run(ctx, "plan", "status", "aa", "--cluster", cluster).out).NotTo(ContainSubstring("aa.bb"))
	})

	It("says what an add-on without an Instance waits for", func(ctx context.Context) {
		cluster := newNamespace(ctx)
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka"}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		addOn.Status.Conditions = []metav1.Condition{{
			Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonWaitingForDependencies,
			Message: "waits for zookeeper", LastTransitionTime: metav1.Now(),
		}}
		Expect(hub.Status().Update(ctx, addOn)).To(Succeed())

		status := run(ctx, "plan", "status", "kafka", "--cluster", cluster)
		Expect(status.err).NotTo(HaveOccurred())
		Expect(status.code).To(Equal(cli.ExitOK))
		Expect(status.out).To(HavePrefix("Add-on:           kafka (cluster " + cluster + "), no Instance yet\n"))
		Expect(status.out).To(HaveSuffix("Resolved:         False (WaitingForDependencies): waits for zookeeper\n"))
	})

	It("names what there is instead of something that does not exist", func(ctx context.Context) {
		cluster := newNamespace(ctx)
		none := run(ctx, "plan", "status", "shop", "--cluster", cluster)
		Expect(none.err).To(MatchError(`managed cluster "` + cluster + `" not found; managed clusters: none`))
		Expect(none.code).To(Equal(cli.ExitFailure))
		soon, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		Expect(run(soon, "ui", "--cluster", cluster, "--no-browser").err).To(MatchError(none.err))

		registered := &unstructured.Unstructured{}
		registered.SetAPIVersion("cluster.open-cluster-management.io/v1")
		registered.SetKind("ManagedCluster")
		registered.SetName(cluster)
		Expect(hub.Create(ctx, registered)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, registered)).To(Succeed()) })
		newInstance(ctx, cluster, "kafka", "kafka-1")
		newInstance(ctx, cluster, "a", "a-1")
		others := run(ctx, "plan", "status", "shop", "--cluster", cluster)
		Expect(others.err).To(MatchError(
			`cluster "` + cluster + `" has no Instance or add-on "shop"; Instances: a, kafka; add-ons: none`))
	})

	It("shows what it can where the OperatorVersion cannot be read", func(ctx context.Context) {
		cluster := newNamespace(ctx)
		newInstance(ctx, cluster, "kafka", "kafka-1")
		status := run(ctx, "plan", "status", "kafka", "--cluster", cluster)
		Expect(status.err).NotTo(HaveOccurred())
		Expect(status.out).To(ContainSubstring(`reading OperatorVersion "kafka-1": operatorversions.kudo.dev "kafka-1" not found`))
	})
})
