package agent

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// intruder is a parameter's value that ends the object that a template inserts it into, adds another one, and takes all lines that follow as
// the text of a third.
const intruder = `100m
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME-intruder}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-rest}
data:
 rest: |1`

var _ = Describe("A parameter's value", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })

	It("cannot add objects to those of its package", func(ctx context.Context) {
		zookeeper, _ := pack.Load(os.DirFS("../../../examples/packages/zookeeper"))
		servers := zookeeper.Version.Templates["servers.yaml"]
		zookeeper.Version.Templates["servers.yaml"] = strings.ReplaceAll(servers, "{{ .Params.CPU | quote }}", "{{ .Params.CPU }}")
		Expect(zookeeper.Version.Templates["servers.yaml"]).NotTo(Equal(servers), "quoted, the value would be text")
		h := newInstance(ctx, zookeeper.Version, nil)
		h.edit(ctx, func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"CPU": strings.ReplaceAll(intruder, "NAME", h.name)}
		})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring(`phase "servers": step "servers": task "servers": template "servers.yaml", line 46: `+
				`the value of parameter "CPU" changes the structure of the rendered YAML`))))
		Expect(h.plan(ctx, "deploy").Message).NotTo(ContainSubstring("intruder"))
		Expect(h.there(ctx)).To(BeEmpty())
		Expect(h.inventoryOf(ctx)).To(BeEmpty())
		intruding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-intruder"}}
		Expect(client.IgnoreNotFound(managed.Get(ctx, client.ObjectKeyFromObject(intruding), intruding))).To(Succeed())
		Expect(intruding.UID).To(BeEmpty())

		By("running the plan with another value")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"CPU": "200m"} })
		Eventually(func() []string { return h.there(ctx) }).Should(ContainElement("ConfigMap " + h.namespace + "/" + h.name + "-config"))
	})

	DescribeTable("stops the plan before its first task", func(ctx context.Context, last kudo.Task, line string) {
		spec := configOnly()
		spec.Templates["last.yaml"] = "# A comment.\n" + line + "\n"
		spec.Templates["pod.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Params.VALUE }}\nspec:\n  volumes: [{name: v, emptyDir: {}}]\n" +
			"  initContainers:\n  - {name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}\n"
		spec.Tasks = append(spec.Tasks, last)
		spec.Plans = map[string]kudo.Plan{"deploy": serial("config", last.Name)}
		h := newInstance(ctx, spec, map[string]string{"VALUE": "x\nkind: Secret"})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring(`the value of parameter "VALUE" changes the structure of the rendered YAML`))))
		Expect(h.there(ctx)).To(BeEmpty())
	},
		Entry("in the objects of a later task", task("last", kudo.TaskApply, "last.yaml"),
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {\n  a: {{ .Params.VALUE }}}}"),
		Entry("in objects to delete", task("last", kudo.TaskDelete, "last.yaml"), "apiVersion: v1\nmetadata: {name: a}\ndata:\n  a: {{ .Params.VALUE }}"),
		Entry("in the parameter file of a child", childTask("last", "last.yaml"), "CPU: {{ .Params.VALUE }}"),
		Entry("in the pod of a Pipe task", pipeTask("last", "pod.yaml"), "{}"),
	)

	DescribeTable("of several lines stops the plan before its first task, if the template does not indent them", func(ctx context.Context, last kudo.Task) {
		spec := configOnly()
		spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "SETTINGS", Type: kudo.MapType, Default: ptr.To("{}")})
		spec.Templates["last.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {{ .Namespace }}\n  annotations:\n" +
			"    settings: |\n      {{ toYaml .Params.SETTINGS }}\n"
		spec.Templates["file.yaml"] = "CPU: |\n  {{ toYaml .Params.SETTINGS }}\n"
		spec.Templates["pod.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    settings: |\n      {{ toYaml .Params.SETTINGS }}\n" +
			"spec:\n  volumes: [{name: v, emptyDir: {}}]\n  initContainers:\n  - {name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}\n"
		spec.Tasks = append(spec.Tasks, last)
		spec.Plans = map[string]kudo.Plan{"deploy": serial("config", last.Name)}
		h := newInstance(ctx, spec, map[string]string{"SETTINGS": `{"a": "b", "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}`})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring(`the value of parameter "SETTINGS" changes the structure of the rendered YAML: indent all of its lines`))))
		Expect(h.there(ctx)).To(BeEmpty())
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
		Expect(client.IgnoreNotFound(managed.Get(ctx, client.ObjectKeyFromObject(role), role))).To(Succeed())
		Expect(role.Rules).To(BeEmpty())
	},
		Entry("in the objects of a task", task("last", kudo.TaskApply, "last.yaml")),
		Entry("in the parameter file of a child", childTask("last", "file.yaml")),
		Entry("in the pod of a Pipe task", pipeTask("last", "pod.yaml")),
	)

	Describe("that only the cleanup plan inserts", func() {
		cleaning := func() kudo.OperatorVersionSpec {
			spec := configOnly()
			spec.Templates["last.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: {{ .Params.VALUE }}\n"
			spec.Tasks = append(spec.Tasks, task("last", kudo.TaskApply, "last.yaml"))
			spec.Plans["cleanup"] = serial("last")
			return spec
		}
		const hostile = "x\nkind: Secret"
		const problem = `phase "main": step "last": task "last": template "last.yaml", line 5: the value of parameter "VALUE" changes the ` +
			`structure of the rendered YAML: use a value without YAML syntax and line breaks, or quote it in the template (quote, toYaml)`

		It("stops each earlier plan, so that a removal does not depend on it", func(ctx context.Context) {
			h := newInstance(ctx, cleaning(), map[string]string{"VALUE": hostile})
			h.resolve(ctx)
			Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
				HaveField("Message", `plan "cleanup", `+problem)))
			Expect(h.there(ctx)).To(BeEmpty())
			h.change(ctx, setParameter("VALUE", "x"))
			Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.Complete))
			h.finish(ctx)
		})

		It("holds a removal if an earlier release has started a plan with it, and the message names the fix", func(ctx context.Context) {
			h := newInstance(ctx, cleaning(), nil)
			h.resolve(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			stop() // it would run the plan again, without the value
			Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
			now := time.Now().UTC().Format(time.RFC3339)
			h.tamper(ctx, func(i *kudo.Instance) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, kudo.AnnotationHubDeleted, now) })
			h.tamperStatus(ctx, func(i *kudo.Instance) { i.Status.Execution.Parameters = map[string]string{"VALUE": hostile} })
			runAgent()
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonRemoving,
				`plan "cleanup" failed and will be retried: `+problem+
					`; if it cannot succeed, annotate the Instance on the hub with kudo.dev/skip-cleanup=true to remove its objects without the plan, `+
					`or run 'kubectl addon uninstall --release' to release the Instance and leave its objects`))
			Expect(h.there(ctx)).To(ContainElement("ConfigMap " + h.namespace + "/" + h.name + "-config"))
			h.force(ctx)
			h.release(ctx)
			Eventually(func() map[string]string { return h.mirror(ctx).Annotations }).Should(HaveKey(kudo.AnnotationOrphaned))
		})
	})

	It("may be YAML where the package says so", func(ctx context.Context) {
		spec := single("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-config\"}\ndata: {{ .Params.VALUE }}\n")
		spec.Parameters[0].Default, spec.Parameters[0].Structure = ptr.To(""), new(true)
		h := newInstance(ctx, spec, map[string]string{"VALUE": "{a: b, c: d}"})
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.Complete))
		Expect(h.object(ctx, "-config").Data).To(Equal(map[string]string{"a": "b", "c": "d"}))
	})
})

func childTask(name, file string) kudo.Task {
	t := task(name, kudo.TaskKudoOperator)
	t.Spec.Package, t.Spec.ParameterFile = "child", file
	return t
}

func pipeTask(name, pod string) kudo.Task {
	t := task(name, kudo.TaskPipe)
	t.Spec.Pod = pod
	t.Spec.Pipe = []kudo.PipeSpec{{File: "/v/a", Kind: "ConfigMap", Key: "a"}}
	return t
}
