package e2e

import (
	"context"
	"fmt"
	"slices"
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

// target is an object that another writer changes, with the change and the field that it changes.
type target struct{ apiVersion, kind, resource, manifest, change, field string }

// contested are the objects that another writer changes.
var contested = []target{
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
		seen := requestsOfAgent(box, started, ended)
		GinkgoWriter.Printf("%d rounds of changes; %v\n", rounds, seen)
		Expect(rounds).To(BeNumerically(">", 30))
		for _, c := range contested {
			// After 0, 5, 10, 20, 40 and 80 seconds, of which the last one may not be reached.
			Expect(seen[c.resource+" repaired"]).To(And(BeNumerically(">=", 3), BeNumerically("<=", 6)), c.kind)
			Expect(seen[c.resource+" in conflict"]).To(BeNumerically("<=", 30), "%s: one a second until the repair succeeds", c.kind)
			Expect(seen[c.resource+" compared"]).To(BeNumerically("<=", 2*loopTime/(5*time.Second)), "%s: every five seconds, and before each repair", c.kind)
		}
		Expect(seen["statuses"]).To(BeNumerically("<=", 3*loopTime/(2*time.Second)), "messages of health every two seconds, and each comparison's result")
		Expect(seen["events"]).To(BeNumerically("<=", 8*len(contested)))
		Expect(seen).NotTo(HaveKey("others"))
		reports := 0
		for _, e := range entriesOf(box.Hub().AuditLog()) {
			if e.ObjectRef.Resource != "leases" && e.RequestTime().After(started) && e.RequestTime().Before(ended) {
				reports++
			}
		}
		Expect(reports).To(BeNumerically("<=", loopTime/time.Second), "on the hub, by all programs")
	}, SpecTimeout(10*time.Minute))
})

func contestedObject(apiVersion, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetNamespace("guarded")
	object.SetName("guarded")
	return object
}

// requestsOfAgent counts the agent's requests to write on its cluster during a time: repairs of the contested objects, repairs that other writers have
// anticipated, dry runs, statuses and events.
func requestsOfAgent(box *sandbox.Sandbox, from, to time.Time) map[string]int {
	GinkgoHelper()
	isContested := func(resource string) bool {
		return slices.ContainsFunc(contested, func(c target) bool { return c.resource == resource })
	}
	seen := map[string]int{}
	for _, e := range entriesOf(box.Cluster("cluster1").AuditLog()) {
		if e.User.Username != "system:serviceaccount:tandem-system:addon-agent" || e.RequestTime().Before(from) || e.RequestTime().After(to) {
			continue
		}
		resource := e.ObjectRef.Resource
		switch isContested := e.ObjectRef.Namespace == "guarded" && isContested(resource); {
		case isContested && strings.Contains(e.RequestURI, "dryRun="):
			seen[resource+" compared"]++
		case isContested && e.IsSuccess():
			seen[resource+" repaired"]++
		case isContested && e.Conflicts():
			seen[resource+" in conflict"]++
		case e.Is("instances", "status"):
			seen["statuses"]++
		case e.Is("events", ""):
			seen["events"]++
		default:
			seen["others"]++
			GinkgoWriter.Println(e.String())
		}
	}
	return seen
}
