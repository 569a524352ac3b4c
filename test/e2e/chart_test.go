package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/census"
)

// depot is the name of a package with a chart, of its add-on, and of its namespace on cluster1.
const depot = "depot"

// gate is a label of nodes that hook migrate of the second version waits for.
const gate = "depot.example.com/open"

var _ = Describe("An add-on that is a chart", Label(quick), Ordered, func() {
	var (
		f       *fleet
		hub     client.Client
		cluster client.WithWatch
		ran     func() []string // the hooks that have run since the last call
	)

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		hub = hubClient(f.hub)
		scheme := runtime.NewScheme()
		Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
		Expect(kudo.AddToScheme(scheme)).To(Succeed())
		var err error
		cluster, err = client.NewWithWatch(f.clusters["cluster1"], client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		ran = countHooks(ctx, cluster)
		DeferCleanup(func(ctx context.Context) { // what the add-on leaves
			definition := &unstructured.Unstructured{}
			definition.SetAPIVersion("apiextensions.k8s.io/v1")
			definition.SetKind("CustomResourceDefinition")
			definition.SetName("depots.depot.example.com")
			Expect(client.IgnoreNotFound(cluster.Delete(ctx, definition))).To(Succeed())
			Expect(client.IgnoreNotFound(cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: depot}}))).To(Succeed())
			labelNodes(ctx, cluster, "null")
		})
		for _, version := range []string{"1.0.0", "2.0.0"} {
			pushed := must(f.addon(ctx, "package", "push", depotPackage(version)))
			Expect(pushed).To(ContainSubstring("operatorversion.kudo.dev/depot-" + version + " created"))
			DeferCleanup(func(ctx context.Context) {
				stored := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: "depot-" + version}}
				Expect(client.IgnoreNotFound(hub.Delete(ctx, stored))).To(Succeed())
			})
		}
		create(ctx, hub, definitionOf(depot, "depot-1.0.0"))
	})

	// expect checks the objects of the chart: the value and release in its ConfigMap, and the versions of its kind.
	expect := func(ctx context.Context, value, release, served string) {
		GinkgoHelper()
		config, token := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		Expect(cluster.Get(ctx, client.ObjectKey{Namespace: depot, Name: depot}, config)).To(Succeed())
		Expect(cluster.Get(ctx, client.ObjectKey{Namespace: depot, Name: "depot-token"}, token)).To(Succeed())
		Expect(config.Data).To(And(HaveKeyWithValue("value", value), HaveKeyWithValue("release", release)))
		Expect(config.Data["token"]).To(Equal(token.Data["token"]), "the chart is rendered once in an execution")
		resource := &unstructured.Unstructured{}
		resource.SetAPIVersion("depot.example.com/" + served)
		resource.SetKind("Depot")
		Expect(cluster.Get(ctx, client.ObjectKey{Namespace: depot, Name: depot}, resource)).To(Succeed())
		Expect(resource.Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("value", value)))
	}

	It("is installed with its definitions and hooks", func(ctx SpecContext) {
		must(f.addon(ctx, "enable", depot, "--cluster", "cluster1", "--namespace", depot, "--wait", "--timeout", "2m"))
		expect(ctx, "one", "false 1", "v1")
		Expect(ran()).To(Equal([]string{"pre-install migrate", "post-install seed"}))
	})

	It("is changed by a parameter, which runs the hooks of an upgrade", func(ctx SpecContext) {
		must(f.addon(ctx, "update", depot, "--cluster", "cluster1", "-p", "VALUE=two", "--wait", "--timeout", "2m"))
		expect(ctx, "two", "true 2", "v1")
		Expect(ran()).To(Equal([]string{"pre-upgrade migrate", "post-upgrade seed"}))
	})

	It("is upgraded with another version of its definition and a changed hook, while the hub does not respond", func(ctx SpecContext) {
		must(f.addon(ctx, "upgrade", depot, "--cluster", "cluster1", "--operator-version", "2.0.0"))
		migrate := client.ObjectKey{Namespace: depot, Name: "depot-migrate"}
		Eventually(func(g Gomega) {
			job := &batchv1.Job{}
			g.Expect(cluster.Get(ctx, migrate, job)).To(Succeed())
			g.Expect(job.Spec.Template.Spec.NodeSelector).To(HaveKey(gate))
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		if f.box != nil {
			signal(ctx, f.box, "hub", "kube-apiserver", syscall.SIGSTOP)
			DeferCleanup(func(ctx context.Context) { signal(ctx, f.box, "hub", "kube-apiserver", syscall.SIGCONT) })
		}
		labelNodes(ctx, cluster, `"true"`)
		Eventually(func(g Gomega) {
			mirror := &kudo.Instance{}
			g.Expect(cluster.Get(ctx, client.ObjectKey{Namespace: depot, Name: depot}, mirror)).To(Succeed())
			g.Expect(mirror.Status.Execution.OperatorVersion.Name).To(HavePrefix("depot-2.0.0"))
			deploy := mirror.Status.PlanStatus[kudo.DeployPlan]
			g.Expect(deploy.Status).To(Equal(kudo.Complete), deploy.Message)
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		expect(ctx, "two", "true 3", "v2")
		Expect(ran()).To(Equal([]string{"pre-upgrade migrate", "post-upgrade seed"}))
		if f.box != nil {
			signal(ctx, f.box, "hub", "kube-apiserver", syscall.SIGCONT)
		}
		Eventually(f.addon).WithContext(ctx).WithArguments("plan", "wait", depot, "--cluster", "cluster1", "--timeout", "1m").
			WithTimeout(timeout).WithPolling(interval).Should(Or(ContainSubstring("COMPLETE"), ContainSubstring("plan deploy is complete")))
		Expect(ran()).To(BeEmpty())
	})

	It("fails with a hook, says why, and recovers by a parameter", func(ctx SpecContext) {
		_, err := f.addon(ctx, "update", depot, "--cluster", "cluster1", "-p", "VALUE=three", "-p", "HELD=true", "--wait", "--timeout", "2m")
		Expect(err).To(MatchError(ContainSubstring("hook pre-upgrade: Job depot/depot-migrate: ")))
		Eventually(f.addon).WithContext(ctx).WithArguments("why", depot, "--cluster", "cluster1").WithTimeout(timeout).WithPolling(interval).
			Should(ContainSubstring("hook pre-upgrade: Job depot/depot-migrate: "))
		expect(ctx, "two", "true 3", "v2")
		Expect(ran()).To(Equal([]string{"pre-upgrade migrate"}))
		must(f.addon(ctx, "update", depot, "--cluster", "cluster1", "-p", "HELD=false", "--wait", "--timeout", "2m"))
		expect(ctx, "three", "true 5", "v2")
		Expect(ran()).To(Equal([]string{"pre-upgrade migrate", "post-upgrade seed"}))
	})

	It("is downgraded to the version without the new version of its definition", func(ctx SpecContext) {
		must(f.addon(ctx, "upgrade", depot, "--cluster", "cluster1", "--operator-version", "1.0.0", "--wait", "--timeout", "2m"))
		expect(ctx, "three", "true 6", "v1")
		Expect(ran()).To(Equal([]string{"pre-upgrade migrate", "post-upgrade seed"}))
	})

	It("is removed with its last hook, and leaves its definition, its volume claims, and what it keeps", func(ctx SpecContext) {
		must(f.addon(ctx, "disable", depot, "--cluster", "cluster1", "--yes", "--timeout", "2m"))
		Expect(ran()).To(Equal([]string{"pre-delete bye"}))
		Eventually(func() ([]string, error) { return census.OfTandem(ctx, f.clusters["cluster1"]) }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(BeEmpty())
		for kind, version := range map[string]string{"ConfigMap": "v1", "Job": "batch/v1", "Depot": "depot.example.com/v1", "PersistentVolumeClaim": "v1"} {
			list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind + "List"}}
			Expect(cluster.List(ctx, list, client.InNamespace(depot))).To(Succeed())
			var names []string
			for _, o := range list.Items {
				if o.Name != "kube-root-ca.crt" {
					names = append(names, o.Name)
				}
			}
			left := map[string][]string{"ConfigMap": {"depot-kept"}, "PersistentVolumeClaim": {"data-depot-0"}}
			Expect(names).To(Equal(left[kind]), kind)
		}
	})
})

// countHooks watches the Jobs of the add-on until the specs end, and returns a function that returns those that were created since its last call: as
// what hook, and which.
func countHooks(ctx context.Context, cluster client.WithWatch) func() []string {
	GinkgoHelper()
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	jobs, err := cluster.Watch(watched, &batchv1.JobList{}, client.InNamespace(depot))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(jobs.Stop)
	var (
		mutex sync.Mutex
		seen  = map[types.UID]bool{}
		ran   []string
	)
	go func() {
		for event := range jobs.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			mutex.Lock()
			if ok && !seen[job.UID] {
				seen[job.UID] = true
				ran = append(ran, job.Annotations[kudo.AnnotationHook]+" "+strings.TrimPrefix(job.Name, depot+"-"))
			}
			mutex.Unlock()
		}
	}()
	return func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		last := slices.Clone(ran)
		ran = nil
		return last
	}
}

// labelNodes sets the label that a hook waits for on all nodes, to a value in JSON.
func labelNodes(ctx context.Context, cluster client.Client, value string) {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(cluster.List(ctx, nodes)).To(Succeed())
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, gate, value))
	for i := range nodes.Items {
		Expect(cluster.Patch(ctx, &nodes.Items[i], patch)).To(Or(Succeed(), MatchError(apierrors.IsNotFound, "not found")))
	}
}

// depotPackage writes a version of the package to a folder, and returns it. The second version has another version of the definition, in which its
// custom resource is, and another hook.
func depotPackage(version string) string {
	GinkgoHelper()
	definition, served, migrate := depotDefinition+depotServed, "v1", hookOf("migrate", `"pre-install,pre-upgrade"`, "ttlSecondsAfterFinished: 0", "")
	if version == "2.0.0" {
		definition += strings.NewReplacer("v1", "v2", "storage: true", "storage: false").Replace(depotServed)
		served, migrate = "v2", hookOf("migrate", `"pre-install,pre-upgrade"`, "backoffLimit: 0", gate+`: "true"`)
	}
	folder := filepath.Join(GinkgoT().TempDir(), depot)
	for name, text := range map[string]string{
		"operator.yaml":                "apiVersion: kudo.dev/v1beta1\nname: depot\noperatorVersion: " + version + "\n" + depotOperator,
		"params.yaml":                  depotParameters,
		"templates/values.yaml":        "value: {{ .Params.VALUE | quote }}\nheld: {{ .Params.HELD }}\n",
		"chart/Chart.yaml":             "apiVersion: v2\nname: depot\nversion: " + version + "\n",
		"chart/crds/depots.yaml":       definition,
		"chart/templates/depot.yaml":   "apiVersion: depot.example.com/" + served + depotObjects,
		"chart/templates/migrate.yaml": migrate,
		"chart/templates/seed.yaml": hookOf("seed", `"post-install,post-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"`,
			"backoffLimit: 0", ""),
		"chart/templates/bye.yaml": hookOf("bye", "pre-delete", "backoffLimit: 0", ""),
	} {
		file := filepath.Join(folder, name)
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	}
	return folder
}

const depotOperator = `kubernetesVersion: 1.25.0
tasks:
- {name: depot, kind: Helm, spec: {chart: chart, valuesFile: values.yaml}}
plans:
  deploy:
    strategy: serial
    phases:
    - {name: main, strategy: serial, steps: [{name: depot, tasks: [depot]}]}
`

const depotParameters = `apiVersion: kudo.dev/v1beta1
parameters:
- {name: VALUE, description: What it stores, default: one}
- {name: HELD, description: Whether its migration finds no node, type: boolean, default: false}
`

const depotDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: depots.depot.example.com}
spec:
  group: depot.example.com
  scope: Namespaced
  names: {kind: Depot, listKind: DepotList, plural: depots, singular: depot}
  versions:
`

const depotServed = `  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// depotObjects follow the version of the custom resource. The token is the same in a hook and in a manifest if the chart is rendered once.
const depotObjects = `
kind: Depot
metadata: {name: depot}
spec: {value: {{ .Values.value | quote }}}
{{- $token := randAlphaNum 20 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: depot-token, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
data: {token: {{ $token }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: depot}
data: {token: {{ $token }}, value: {{ .Values.value | quote }}, release: "{{ .Release.IsUpgrade }} {{ .Release.Revision }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: depot-kept, annotations: {helm.sh/resource-policy: keep}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: depot}
spec:
  serviceName: depot
  selector: {matchLabels: {app: depot}}
  template:
    metadata: {labels: {app: depot}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: main, image: "` + container + `", command: [sleep, "100000"], volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}
`

// hookOf returns a hook that is a Job, with a field of its spec, and a label of the nodes on which it runs. If the value held is true, there is no such
// node, and the Job fails.
func hookOf(name, events, field, node string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: depot-%[1]s, annotations: {helm.sh/hook: %[2]s}}
spec:
  %[3]s
  {{- if .Values.held }}
  activeDeadlineSeconds: 2
  {{- end }}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      nodeSelector: { {{- if .Values.held }}depot.example.com/none: "true"{{ else }}%[4]s{{ end -}} }
      containers: [{name: main, image: %[5]q, command: ["true"]}]
`, name, events, field, node, container)
}
