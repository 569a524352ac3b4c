package agent

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// planTimeout is long enough for a busy machine to complete a plan whose objects are healthy.
const planTimeout = 5 * time.Second

// timeoutPackage returns a package whose plan deploy has these steps, and times out.
func timeoutPackage(steps ...string) kudo.OperatorVersionSpec {
	spec := standard()
	deploy := serial(steps...)
	deploy.Timeout = &metav1.Duration{Duration: planTimeout}
	spec.Plans = map[string]kudo.Plan{"deploy": deploy}
	return spec
}

// retriesSoon makes an agent start owed plans again after a second, and after ten minutes at most.
func retriesSoon(o *agent.Options) { o.PlanRetryDelay = time.Second }

// makeNamespace creates the install namespace, and fill an object in it.
func (h *hubPart) makeNamespace(ctx context.Context, fill ...client.Object) {
	GinkgoHelper()
	Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
	for _, object := range fill {
		object.SetNamespace(h.namespace)
		Expect(managed.Create(ctx, object)).To(Succeed())
	}
}

// exhaust creates a quota that allows no ConfigMap, or nothing of other kinds, and waits until it does.
func (h *hubPart) exhaust(ctx context.Context, kinds ...corev1.ResourceName) *corev1.ResourceQuota {
	GinkgoHelper()
	none := corev1.ResourceList{"count/configmaps": resource.MustParse("0")}
	for _, kind := range kinds {
		none[kind] = resource.MustParse("0")
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	h.makeNamespace(ctx, quota)
	Expect(environment.EditStatus(ctx, managed, quota, func(q *corev1.ResourceQuota) {
		q.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	})).To(Succeed())
	Eventually(func() error { return h.tryConfig(ctx) }).Should(MatchError(ContainSubstring("exceeded quota")))
	return quota
}

// tryConfig returns the answer of the API server to a ConfigMap, without creating it.
func (h *hubPart) tryConfig(ctx context.Context) error {
	return managed.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: h.namespace}}, client.DryRunAll)
}

// deny creates a policy that denies all ConfigMaps in the install namespace, and waits until it does.
func (h *hubPart) deny(ctx context.Context) (policy, binding client.Object) {
	GinkgoHelper()
	h.makeNamespace(ctx)
	policy = &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: h.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no ConfigMaps here"}},
		},
	}
	binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: h.namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		Expect(managed.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(managed.Delete(ctx, object))).To(Succeed()) })
	}
	Eventually(func() error { return h.tryConfig(ctx) }).Should(MatchError(ContainSubstring("no ConfigMaps here")))
	return policy, binding
}

// retry returns the owed plan deploy on the hub; the zero value if it is not owed.
func (h *hubPart) retry(ctx context.Context) kudo.OwedPlan {
	GinkgoHelper()
	if last := h.get(ctx).Status.Execution; last != nil && len(last.Owed) > 0 {
		return last.Owed[0]
	}
	return kudo.OwedPlan{}
}

// postpone lets the failed plan wait for ten minutes, as after many retries, while no agent runs.
func (h *hubPart) postpone(ctx context.Context) {
	GinkgoHelper()
	h.tamperStatus(ctx, func(i *kudo.Instance) {
		owed := &i.Status.Execution.Owed[0]
		owed.Retries, owed.RetryTime = 20, &metav1.Time{Time: time.Now().Add(10 * time.Minute)}
	})
}

var _ = Describe("An owed plan", func() {
	var (
		h    *hubPart
		stop func()
	)
	BeforeEach(func() { stop = runAgentWith(agentOnHub, agentLocally, retriesSoon) })
	AfterEach(func(ctx context.Context) {
		h.finish(ctx)
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
	})
	willBeRetried := func(ctx context.Context, why string) {
		GinkgoHelper()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonPlanFailed, fmt.Sprintf("plan \"deploy\" failed and will be retried: timed out after %s: %s", planTimeout, why)))
	}

	It("that timed out because of a quota starts again by itself, and completes once the quota is gone", func(ctx context.Context) {
		h = newInstance(ctx, timeoutPackage("config"), nil)
		quota := h.exhaust(ctx)
		h.resolve(ctx)
		willBeRetried(ctx, `phase "main": step "config": task "config": applying ConfigMap`)
		first := h.plan(ctx, "deploy").UID
		Eventually(func() types.UID { return h.plan(ctx, "deploy").UID }).ShouldNot(Equal(first))
		Eventually(func() kudo.OwedPlan { return h.retry(ctx) }).Should(
			And(HaveField("Retries", BeNumerically(">", 0)), HaveField("RetryTime", Not(BeNil()))))
		stop()

		Expect(managed.Delete(ctx, quota)).To(Succeed())
		stop = runAgentWith(agentOnHub, agentLocally, retriesSoon)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.get(ctx).Status.Execution.Owed).To(BeEmpty())
		Expect(h.get(ctx).Status.HandledRequests).To(BeEmpty(), "no person requested it")
	})

	It("that an admission policy denies is retried, and completes once the policy is gone", func(ctx context.Context) {
		h = newInstance(ctx, configOnly(), nil)
		policy, binding := h.deny(ctx)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanError,
			fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%[1]s' denied request: no ConfigMaps here", h.namespace)))
		Expect(managed.Delete(ctx, binding)).To(Succeed())
		Expect(managed.Delete(ctx, policy)).To(Succeed())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
	})

	It("that waits for its retry writes nothing, and starts early once the object that it waited for is healthy", func(ctx context.Context) {
		h = newInstance(ctx, timeoutPackage("config", "app"), nil)
		h.resolve(ctx)
		willBeRetried(ctx, `phase "main": step "app": task "app": Deployment`)
		stop()
		hubServer.AwaitWrites()
		h.postpone(ctx)

		stop = runAgentWith(agentOnHub, agentLocally, retriesSoon)
		Eventually(func() kudo.OwedPlan { return h.retry(ctx) }).Should(HaveField("Retries", BeEquivalentTo(20)))
		stop()
		onHub, toHub := environment.RecordWrites(agentOnHub)
		locally, toManaged := environment.RecordWrites(agentLocally)
		stop = runAgentWith(onHub, locally, retriesSoon)
		Consistently(func() []string { return h.writesOf(toManaged, toHub) }).Should(BeEmpty())

		app := &appsv1.Deployment{}
		Expect(h.local(ctx, "-app", app)).To(BeTrue())
		template := app.Spec.Template
		Eventually(func() kudo.ExecutionStatus { // the new execution changes an annotation, and so the generation of the Deployment
			h.rollOut(ctx)
			return h.plan(ctx, "deploy").Status
		}).Should(Equal(kudo.Complete))
		Expect(h.local(ctx, "-app", app)).To(BeTrue())
		Expect(app.Spec.Template).To(Equal(template), "no pod restarts")
	})

	It("whose Job failed does not start again", func(ctx context.Context) {
		spec := timeoutPackage("job")
		spec.Templates["job.yaml"] = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: \"{{ .Name }}-job\"}\n" +
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a:1}]}}}\n"
		spec.Tasks = append(spec.Tasks, task("job", kudo.TaskApply, "job.yaml"))
		deploy := spec.Plans["deploy"]
		deploy.Timeout = &metav1.Duration{Duration: time.Hour}
		spec.Plans["deploy"] = deploy
		h = newInstance(ctx, spec, nil)
		h.resolve(ctx)
		job := &batchv1.Job{}
		Eventually(func() bool { return h.local(ctx, "-job", job) }).Should(BeTrue())
		Expect(environment.EditStatus(ctx, managed, job, func(j *batchv1.Job) {
			now := metav1.Now()
			failing := batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now}
			failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: now}
			j.Status.StartTime, j.Status.Conditions = &now, []batchv1.JobCondition{failing, failed}
		})).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "deploy" failed: `))
		failed := h.plan(ctx, "deploy").UID
		Consistently(func() types.UID { return h.plan(ctx, "deploy").UID }).WithTimeout(4 * time.Second).Should(Equal(failed))
		Expect(h.retry(ctx).RetryTime).To(BeNil())
	})

	It("of a parent starts again after that of its child has timed out, and both complete", func(ctx context.Context) {
		spec := configOnly()
		spec.Tasks = append(spec.Tasks, task("child", kudo.TaskKudoOperator))
		spec.Plans["deploy"] = serial("child")
		h = newInstance(ctx, spec, nil)
		quota := h.exhaust(ctx)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.step(ctx, 0) }).Should(Equal(kudo.InProgress))
		child := h.bear(ctx, "child", timeoutPackage("config"))
		DeferCleanup(child.finish)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			`plan "deploy" failed and will be retried: phase "main": step "child": task "child": Instance `+h.namespace+"/"+child.name))
		first := h.plan(ctx, "deploy").UID

		Expect(managed.Delete(ctx, quota)).To(Succeed())
		child.completes(ctx, "deploy", kudo.PlanStatus{})
		Eventually(func() types.UID { return h.plan(ctx, "deploy").UID }).ShouldNot(Equal(first))
		h.report(ctx, func(parent *kudo.Instance) { parent.Status.Children[0].Execution = parent.Status.Execution.UID })
		h.completes(ctx, "deploy", kudo.PlanStatus{})
	})
})

var _ = Describe("An Instance whose install namespace is being deleted", func() {
	It("says so, and is installed once the namespace is gone", func(ctx context.Context) {
		DeferCleanup(runAgent())
		h := newInstance(ctx, configOnly(), nil)
		h.makeNamespace(ctx)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
		Expect(managed.Delete(ctx, namespace)).To(Succeed())
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonNotMirrored, fmt.Sprintf("namespace %q is being deleted on the managed cluster, where "+
				"'kubectl describe namespace %[1]s' shows what its deletion waits for; the plans run once it is gone", h.namespace)))
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		namespace.Spec.Finalizers = nil
		Expect(managed.SubResource("finalize").Update(ctx, namespace)).To(Succeed())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})
})
