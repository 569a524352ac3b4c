package agent

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// eachItem calls do for every item of a list.
func eachItem(list client.ObjectList, do func(client.Object)) error {
	return meta.EachListItem(list, func(o runtime.Object) error {
		do(o.(client.Object))
		return nil
	})
}

// serial returns a plan of one phase with serial steps, each with one task of the same name.
func serial(steps ...string) kudo.Plan {
	phase := kudo.Phase{Name: "main"}
	for _, step := range steps {
		phase.Steps = append(phase.Steps, kudo.Step{Name: step, Tasks: []string{step}})
	}
	return kudo.Plan{Phases: []kudo.Phase{phase}}
}

func task(name, kind string, resources ...string) kudo.Task {
	t := kudo.Task{Name: name, Kind: kind}
	t.Spec.Resources = resources
	return t
}

const configTemplate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-%s"}
data: {value: "{{ .Params.VALUE }}"}
`

const deploymentTemplate = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}-app"}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: app, image: app:1}]}
`

// standard returns a package with a ConfigMap, a Deployment to wait for, a feature to toggle, and plans for all events.
func standard() kudo.OperatorVersionSpec {
	toggle := task("feature", kudo.TaskToggle, "feature.yaml")
	toggle.Spec.Parameter = "FEATURE"
	return kudo.OperatorVersionSpec{
		Operator: corev1.ObjectReference{Kind: "Operator", Name: "app"},
		Version:  "1.0.0",
		Templates: map[string]string{
			"config.yaml":   fmt.Sprintf(configTemplate, "config"),
			"feature.yaml":  fmt.Sprintf(configTemplate, "feature"),
			"farewell.yaml": fmt.Sprintf(configTemplate, "farewell"),
			"app.yaml":      deploymentTemplate,
			"role.yaml":     "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: ClusterRole\nmetadata: {name: \"{{ .Namespace }}-{{ .Name }}\"}\n",
		},
		Tasks: []kudo.Task{
			task("config", kudo.TaskApply, "role.yaml", "config.yaml"),
			task("app", kudo.TaskApply, "app.yaml"),
			toggle,
			task("farewell", kudo.TaskApply, "farewell.yaml"),
		},
		Parameters: []kudo.Parameter{
			{Name: "VALUE", Default: ptr.To("one")},
			{Name: "REPLICAS", Type: kudo.IntegerType, Default: ptr.To("2"), ForcePodRestart: new(kudo.Flag(false))},
			{Name: "FEATURE", Type: kudo.BooleanType, Default: ptr.To("false"), Trigger: "feature"},
		},
		Plans: map[string]kudo.Plan{
			"deploy":  serial("config", "app", "feature"),
			"update":  serial("config", "app"),
			"feature": serial("feature"),
			"cleanup": serial("farewell"),
		},
	}
}

// configOnly returns a package with a single plan that completes without a controller.
func configOnly() kudo.OperatorVersionSpec {
	spec := standard()
	spec.Plans = map[string]kudo.Plan{"deploy": serial("config")}
	return spec
}

// hubPart acts as the hub's controllers for one Instance.
type hubPart struct {
	name, namespace string
}

// makeAgentNamespace creates the agent's namespace if it does not exist.
func makeAgentNamespace(ctx context.Context) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}
	Expect(client.IgnoreAlreadyExists(managed.Create(ctx, namespace))).To(Succeed())
}

// push creates an OperatorVersion on the hub.
func push(ctx context.Context, name string, spec kudo.OperatorVersionSpec) {
	GinkgoHelper()
	Expect(hub.Create(ctx, &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: packages},
		Spec:       spec,
	})).To(Succeed())
}

// writesOf returns the writes of an agent on the managed cluster and on the hub that are about the Instance: objects in its install namespace
// or with its permissions, and the Instance on the hub.
func (h *hubPart) writesOf(toManaged, toHub *environment.Writes) []string {
	written := toManaged.Of(h.namespace)
	if toHub != nil {
		written = append(written, toHub.Of("/instances/"+h.name)...)
	}
	return written
}

// made counts the Instances, to give each a unique name.
var made int

// newInstance creates an OperatorVersion and an unresolved Instance of it on the hub, with an install namespace of its own on the managed
// cluster.
func newInstance(ctx context.Context, spec kudo.OperatorVersionSpec, parameters map[string]string) *hubPart {
	GinkgoHelper()
	made++
	h := &hubPart{name: fmt.Sprintf("app-%d", made), namespace: fmt.Sprintf("apps-%d", made)}
	h.make(ctx, spec, parameters)
	return h
}

// bear creates the child that a task of the current execution requests, and acknowledges it.
func (h *hubPart) bear(ctx context.Context, task string, spec kudo.OperatorVersionSpec) *hubPart {
	GinkgoHelper()
	child := &hubPart{name: h.name + "." + task, namespace: h.namespace}
	child.make(ctx, spec, nil)
	child.resolve(ctx)
	born := child.get(ctx)
	h.report(ctx, func(parent *kudo.Instance) {
		parent.Status.Children = append(parent.Status.Children, kudo.ChildStatus{
			Task: task, Execution: parent.Status.Execution.UID, State: kudo.ChildApplied,
			Instance: born.Name, UID: born.UID, Generation: born.Generation,
		})
	})
	return child
}

// make creates the OperatorVersion and the Instance.
func (h *hubPart) make(ctx context.Context, spec kudo.OperatorVersionSpec, parameters map[string]string) {
	GinkgoHelper()
	push(ctx, h.name+"-1.0.0", spec)
	Expect(hub.Create(ctx, &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: clusterName, Finalizers: []string{kudo.Finalizer}},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: packages, Name: h.name + "-1.0.0"},
			Parameters:       parameters,
			InstallNamespace: h.namespace,
		},
	})).To(Succeed())
}

// get returns the Instance on the hub, or nil if it does not exist.
func (h *hubPart) get(ctx context.Context) *kudo.Instance {
	GinkgoHelper()
	instance := h.onHub()
	if err := hub.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return nil
	}
	return instance
}

// onHub and onCluster return the Instance on either cluster, to be read.
func (h *hubPart) onHub() *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: h.name}}
}

func (h *hubPart) onCluster() *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name}}
}

// edit changes the Instance on the hub, and report its status; tamper and tamperStatus change the mirror. An agent may write concurrently.
func (h *hubPart) edit(ctx context.Context, change func(*kudo.Instance)) {
	GinkgoHelper()
	Expect(environment.Edit(ctx, hub, h.onHub(), change)).To(Succeed())
}

func (h *hubPart) report(ctx context.Context, change func(*kudo.Instance)) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, hub, h.onHub(), change)).To(Succeed())
}

func (h *hubPart) tamper(ctx context.Context, change func(*kudo.Instance)) {
	GinkgoHelper()
	Expect(environment.Edit(ctx, managed, h.onCluster(), change)).To(Succeed())
}

func (h *hubPart) tamperStatus(ctx context.Context, change func(*kudo.Instance)) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, managed, h.onCluster(), change)).To(Succeed())
}

// loseMirror deletes the mirror while no agent is running.
func (h *hubPart) loseMirror(ctx context.Context) {
	GinkgoHelper()
	Expect(removeFinalizers(ctx, h.onCluster())).To(Succeed())
	Expect(managed.Delete(ctx, h.onCluster())).To(Succeed())
}

// resolve sets condition Resolved for the current generation.
func (h *hubPart) resolve(ctx context.Context) {
	GinkgoHelper()
	h.report(ctx, func(i *kudo.Instance) {
		meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionResolved,
			Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, ObservedGeneration: i.Generation})
	})
}

// change edits the spec and resolves the Instance.
func (h *hubPart) change(ctx context.Context, edit func(*kudo.InstanceSpec)) {
	GinkgoHelper()
	h.edit(ctx, func(i *kudo.Instance) { edit(&i.Spec) })
	h.resolve(ctx)
}

// finish deletes the Instance and, once the agent reports its removal, releases it as the hub does.
func (h *hubPart) finish(ctx context.Context) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(hub.Delete(ctx, h.get(ctx)))).To(Succeed())
	Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
	h.release(ctx)
}

func (h *hubPart) release(ctx context.Context) {
	GinkgoHelper()
	h.edit(ctx, func(i *kudo.Instance) { controllerutil.RemoveFinalizer(i, kudo.Finalizer) })
}

// ready returns condition Ready on the hub, empty if there is none.
func (h *hubPart) ready(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	instance := h.get(ctx)
	if instance == nil {
		return metav1.Condition{}
	}
	if condition := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// lastRequest returns condition LastRequestSucceeded of the Instance on the hub; the zero value if there is none.
func (h *hubPart) lastRequest(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	return ptr.Deref(meta.FindStatusCondition(h.get(ctx).Status.Conditions, kudo.ConditionLastRequestSucceeded), metav1.Condition{})
}

// plan returns the status of a plan on the hub.
func (h *hubPart) plan(ctx context.Context, name string) kudo.PlanStatus {
	GinkgoHelper()
	return h.get(ctx).Status.PlanStatus[name]
}

// step returns the status of a step of plan deploy's first phase on the hub; empty if the plan has no phase there yet.
func (h *hubPart) step(ctx context.Context, number int) kudo.ExecutionStatus {
	GinkgoHelper()
	phases := h.plan(ctx, "deploy").Phases
	if len(phases) == 0 {
		return ""
	}
	return phases[0].Steps[number].Status
}

// completes waits until a plan of that name is complete, in another execution than the given one.
func (h *hubPart) completes(ctx context.Context, name string, before kudo.PlanStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := h.plan(ctx, name)
		g.Expect(status.UID).NotTo(Equal(before.UID))
		g.Expect(status.Status).To(Equal(kudo.Complete), "%s", status.Message)
		g.Expect(h.ready(ctx).Status).To(Equal(metav1.ConditionTrue), "%s", h.ready(ctx).Message)
	}).Should(Succeed())
}

// local reads an object of the Instance on the managed cluster; it returns false if there is none.
func (h *hubPart) local(ctx context.Context, suffix string, into client.Object) bool {
	GinkgoHelper()
	err := managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: h.name + suffix}, into)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// config returns the content of one of the Instance's ConfigMaps; empty if it does not exist.
func (h *hubPart) config(ctx context.Context, suffix string) string {
	GinkgoHelper()
	config := &corev1.ConfigMap{}
	if !h.local(ctx, suffix, config) {
		return ""
	}
	return config.Data["value"]
}

// mirror returns the Instance's mirror, or nil.
func (h *hubPart) mirror(ctx context.Context) *kudo.Instance {
	GinkgoHelper()
	instance := h.onCluster()
	if !h.local(ctx, "", instance) {
		return nil
	}
	return instance
}

// versions returns the mirrored OperatorVersions in the Instance's namespace.
func (h *hubPart) versions(ctx context.Context) []string {
	GinkgoHelper()
	list := &kudo.OperatorVersionList{}
	Expect(managed.List(ctx, list, client.InNamespace(h.namespace))).To(Succeed())
	var names []string
	for _, v := range list.Items {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}

// versionsToDrop returns the signed OperatorVersions in namespaces where no Instance of the hub and no orphaned one is left.
func versionsToDrop(ctx context.Context) []string {
	GinkgoHelper()
	wanted, mirrors, versions := &kudo.InstanceList{}, &kudo.InstanceList{}, &kudo.OperatorVersionList{}
	Expect(hub.List(ctx, wanted)).To(Succeed())
	Expect(managed.List(ctx, mirrors)).To(Succeed())
	Expect(managed.List(ctx, versions)).To(Succeed())
	used := map[string]bool{}
	for i := range wanted.Items {
		used[wanted.Items[i].TargetNamespace()] = true
	}
	for i := range mirrors.Items {
		used[mirrors.Items[i].Namespace] = used[mirrors.Items[i].Namespace] || metav1.HasAnnotation(mirrors.Items[i].ObjectMeta, kudo.AnnotationOrphaned)
	}
	var names []string
	signed := signer(ctx)
	for i := range versions.Items {
		if !used[versions.Items[i].Namespace] && signed.IsSigned(&versions.Items[i]) {
			names = append(names, versions.Items[i].Name)
		}
	}
	return names
}

// rollOut acts as the Deployment controller: it makes the Deployment healthy in its current generation.
func (h *hubPart) rollOut(ctx context.Context) {
	GinkgoHelper()
	h.rollOutDeployment(ctx, "-app")
}

// rollOutDeployment is rollOut for a Deployment whose name has another suffix.
func (h *hubPart) rollOutDeployment(ctx context.Context, suffix string) {
	GinkgoHelper()
	app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: render.InstanceName(h.name) + suffix}}
	Eventually(func() error {
		return environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) {
			n := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			}
		})
	}).Should(Succeed())
}
