package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
)

// loopTime is how long another writer repeats its changes.
const loopTime = 2 * time.Minute

// contested are the objects that another writer changes, each with its change and the field that it changes.
var contested = []struct{ apiVersion, kind, resource, manifest, change, field string }{
	{"v1", "ConfigMap", "configmaps", "data: {mode: safe}", `{"data":{"mode":"round %d"}}`, "/data/mode"},
	{"v1", "Secret", "secrets", "stringData: {mode: safe}", `{"stringData":{"mode":"round %d"}}`, "/data/mode"},
	{"v1", "Service", "services", "spec: {selector: {app: web}, ports: [{port: 80}]}", `{"spec":{"selector":{"app":"round-%d"}}}`, "/spec/selector"},
	{
		"apps/v1", "Deployment", "deployments",
		"spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}",
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"evil:%d"}]}}}}`, "/spec/template/spec/containers/web/image",
	},
	{
		"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies",
		"spec: {podSelector: {matchLabels: {app: web}}}", `{"spec":{"podSelector":{"matchLabels":{"app":"round-%d"}}}}`, "/spec/podSelector",
	},
}

// guardedPackage returns a package with the contested objects.
func guardedPackage() *kudo.OperatorVersion {
	version := shopPackage("1.0.0")
	version.Name, version.Spec.Operator.Name, version.Spec.Parameters = "guarded-1.0.0", "guarded", nil
	var objects []string
	for _, c := range contested {
		objects = append(objects, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: guarded}\n%s\n", c.apiVersion, c.kind, c.manifest))
	}
	version.Spec.Templates["web.yaml"] = strings.Join(objects, "---\n")
	return version
}

var _ = Describe("Another writer that repeats its changes of five kinds for two minutes", onSandbox("it reads audit logs"), func() {
	It("is named, is answered ever more rarely, and loses once it stops", func(ctx SpecContext) {
		box := startSandbox(ctx, 1)
		hub := hubClient(box.Hub().Config())
		cluster, err := client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "guarded"}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: "guarded-1.0.0"}
		instance.Spec.Drift = &kudo.DriftPolicy{Mode: kudo.DriftRepair}
		instance.Spec.InstallNamespace = "guarded"
		Expect(hub.Create(ctx, guardedPackage())).To(Succeed())
		Expect(hub.Create(ctx, instance)).To(Succeed())
		conditions := func(ctx context.Context) []metav1.Condition {
			GinkgoHelper()
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			return instance.Status.Conditions
		}
		Eventually(func() bool { return meta.IsStatusConditionTrue(conditions(ctx), kudo.ConditionReady) }).WithPolling(interval).Should(BeTrue())
		deployed := instance.Status.PlanStatus[kudo.DeployPlan]

		started, rounds := time.Now(), 0
		var named []kudo.DriftedObject
		Consistently(func(g Gomega) {
			rounds++
			for _, c := range contested {
				patch := client.RawPatch("application/strategic-merge-patch+json", fmt.Appendf(nil, c.change, rounds))
				g.Expect(cluster.Patch(ctx, contestedObject(c.apiVersion, c.kind), patch, client.FieldOwner("intruder"))).To(Succeed())
			}
			if conditions(ctx); len(instance.Status.Drift) == len(contested) {
				named = instance.Status.Drift
			}
		}).WithContext(ctx).WithTimeout(loopTime).WithPolling(interval).Should(Succeed())
		ended := time.Now()
		Expect(named).To(HaveEach(And(HaveField("Repairs", BeNumerically(">=", 2)),
			HaveField("Fields", ContainElement(HaveField("Managers", Equal([]string{"intruder"})))))))
		for _, c := range contested {
			Expect(named).To(ContainElement(And(HaveField("Kind", c.kind), HaveField("Fields", ContainElement(HaveField("Path", c.field))))))
		}

		By("being stopped")
		Eventually(func() *metav1.Condition { return meta.FindStatusCondition(conditions(ctx), kudo.ConditionDrifted) }).
			WithTimeout(2 * timeout).WithPolling(interval).Should(HaveField("Status", metav1.ConditionFalse))
		for _, c := range contested {
			object := contestedObject(c.apiVersion, c.kind)
			Expect(cluster.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			encoded, err := object.MarshalJSON()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(encoded)).NotTo(Or(ContainSubstring("round"), ContainSubstring("evil")), c.kind)
		}
		Eventually(func() bool { return meta.IsStatusConditionTrue(conditions(ctx), kudo.ConditionReady) }).WithPolling(interval).Should(BeTrue())
		Expect(instance.Status.PlanStatus[kudo.DeployPlan]).To(Equal(deployed), "no plan ran")

		By("counting the writes")
		repairs, others := writesOfAgent(box, started, ended)
		GinkgoWriter.Printf("%d rounds of changes, repairs %v, other writes %v\n", rounds, repairs, others)
		Expect(rounds).To(BeNumerically(">", 100))
		for _, c := range contested {
			// After 0, 5, 10, 20, 40 and 80 seconds, of which the last one may not be reached.
			Expect(repairs[c.resource]).To(And(BeNumerically(">=", 3), BeNumerically("<=", 6)), c.kind)
		}
		total := 0
		for _, n := range others {
			total += n
		}
		Expect(total).To(BeNumerically("<=", 2*len(contested)*int(loopTime/(5*time.Second))), "one comparison of each object in five seconds")
	}, SpecTimeout(10*time.Minute))
})

func contestedObject(apiVersion, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetNamespace("guarded")
	object.SetName("guarded")
	return object
}

// writesOfAgent counts the writes of the agent on its cluster during a time: repairs of the contested objects by resource, and other requests, among them dry
// runs, by verb, resource and whether they are dry runs.
func writesOfAgent(box *sandbox.Sandbox, from, to time.Time) (repairs, others map[string]int) {
	GinkgoHelper()
	repairs, others = map[string]int{}, map[string]int{}
	resources := map[string]bool{}
	for _, c := range contested {
		resources[c.resource] = true
	}
	for _, e := range entriesOf(box.Cluster("cluster1").AuditLog()) {
		if e.User.Username != "system:serviceaccount:tandem-system:addon-agent" || e.RequestTime().Before(from) || e.RequestTime().After(to) {
			continue
		}
		isDryRun := strings.Contains(e.RequestURI, "dryRun=")
		if e.ObjectRef.Namespace == "guarded" && resources[e.ObjectRef.Resource] && !isDryRun {
			repairs[e.ObjectRef.Resource]++
			continue
		}
		others[fmt.Sprintf("%s %s dry run %t", e.Verb, e.ObjectRef.Resource, isDryRun)]++
	}
	return repairs, others
}
