package plans

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// lifecycle is the life of one Instance of a package with a feature to toggle, a definition with a custom resource, a cluster-scoped object,
// objects that only one of its versions has, and a cleanup plan.
func lifecycle() scenario {
	return scenario{
		name:    "lifecycle",
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, gadgets("1.0.0"), gadgets("2.0.0")) },
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("gadgets-1.0.0")) }, ready},
			{"update", set("VALUE", "two"), ready},
			{"on", set("FEATURE", "true"), ready},
			{"off", set("FEATURE", "false"), ready},
			{"upgrade", move("gadgets-2.0.0"), ready},
			{"downgrade", move("gadgets-1.0.0"), ready},
			{"remove", remove, expectGone},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster,
	}
}

// onCluster are the kinds that the packages apply, and the mirrors.
var onCluster = []kind{
	kudo.GroupVersion.WithKind("Instance"), kudo.GroupVersion.WithKind("OperatorVersion"),
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "faults.test", Version: "v1", Kind: "Gadget"}, {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
}

// push stores packages on the hub.
func (w *world) push(ctx context.Context, versions ...*kudo.OperatorVersion) error {
	for _, version := range versions {
		if err := w.hub.Create(ctx, version); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// gadgets returns a version of the package. The names of its objects contain their step.
func gadgets(version string) *kudo.OperatorVersion {
	config := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-" + name + "\"}\ndata: {value: \"{{ .Params.VALUE }}\"}\n"
	}
	feature := task("feature", kudo.TaskToggle, "feature.yaml")
	feature.Spec.Parameter = "FEATURE"
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets-" + version, Namespace: packages},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "gadgets"}, Version: version,
			Parameters: []kudo.Parameter{
				{Name: "VALUE", Default: ptr.To("one")},
				{Name: "FEATURE", Type: kudo.BooleanType, Default: ptr.To("false"), Trigger: "feature"},
			},
			Templates: map[string]string{
				"base.yaml": config("base"), "only.yaml": config("base." + version[:1]), "feature.yaml": config("feature"), "last.yaml": config("last"),
				"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{{ .Name }}-base\"}\n",
				"kind.yaml": gadgetDefinition, "gadget.yaml": gadgetObject, "app.yaml": appTemplate,
			},
			Tasks: []kudo.Task{
				task("base", kudo.TaskApply, "base.yaml", "only.yaml", "role.yaml"), task("kind", kudo.TaskApply, "kind.yaml"),
				task("gadget", kudo.TaskApply, "gadget.yaml"), task("app", kudo.TaskApply, "app.yaml"), feature,
				task("last", kudo.TaskApply, "last.yaml"),
			},
			Plans: map[string]kudo.Plan{
				"deploy":  serial("base", "kind", "gadget", "app", "feature"),
				"update":  serial("base", "gadget", "app"),
				"upgrade": serial("base", "kind", "gadget", "app"),
				"feature": serial("feature"),
				"cleanup": serial("last"),
			},
		},
	}
}

const gadgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.faults.test}
spec:
  group: faults.test
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const gadgetObject = `apiVersion: faults.test/v1
kind: Gadget
metadata: {name: "{{ .Name }}-gadget"}
spec: {value: "{{ .Params.VALUE }}"}
`

const appTemplate = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}-app"}
spec:
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: main, image: "app:{{ .Params.VALUE }}"}]}
`

func task(name, kind string, resources ...string) kudo.Task {
	return kudo.Task{Name: name, Kind: kind, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: resources}}}
}

// serial returns a plan with a step for each task, of the same name.
func serial(tasks ...string) kudo.Plan {
	phase := kudo.Phase{Name: "main"}
	for _, name := range tasks {
		phase.Steps = append(phase.Steps, kudo.Step{Name: name, Tasks: []string{name}})
	}
	return kudo.Plan{Phases: []kudo.Phase{phase}}
}

// instance returns the Instance of the run.
func (r *run) instance(version string) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: r.name},
		Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: version}, InstallNamespace: r.name,
		},
	}
}

// set returns an action that sets a parameter.
func set(parameter, value string) func(context.Context, *run) error {
	return edit(func(i *kudo.Instance) {
		if i.Spec.Parameters == nil {
			i.Spec.Parameters = map[string]string{}
		}
		i.Spec.Parameters[parameter] = value
	})
}

// move returns an action that changes the version.
func move(version string) func(context.Context, *run) error {
	return edit(func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = version })
}

func edit(change func(*kudo.Instance)) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error { return environment.Edit(ctx, r.hub, r.instance(""), change) }
}

func remove(ctx context.Context, r *run) error { return r.hub.Delete(ctx, r.instance("")) }

// ready returns an error unless the hub and the cluster show that the Instance has its desired state.
func ready(ctx context.Context, r *run) error {
	return r.readyAs(ctx, r.name)
}

func (r *run) readyAs(ctx context.Context, name string) error {
	i := &kudo.Instance{}
	if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, i); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != i.Generation {
		return fmt.Errorf("generation %d is not ready: %+v", i.Generation, i.Status.Conditions)
	}
	if x := i.Status.Execution; x == nil || x.OperatorVersion.Name != i.Spec.OperatorVersion.Name || !maps.Equal(x.Parameters, i.Spec.Parameters) {
		return fmt.Errorf("it was started with %+v, want %+v", x, i.Spec)
	}
	return nil
}

// expectGone returns an error unless the Instance exists neither on the hub nor on the cluster.
func expectGone(ctx context.Context, r *run) error { return r.absent(ctx, r.name) }

// absent returns an error unless an Instance exists neither on the hub nor on the cluster.
func (r *run) absent(ctx context.Context, name string) error {
	for server, key := range map[string]client.ObjectKey{
		"hub": {Namespace: cluster, Name: name}, "cluster": {Namespace: r.name, Name: name},
	} {
		if err := r.absentOn(ctx, server, key); err != nil {
			return err
		}
	}
	return nil
}

// absentOn returns an error unless an Instance does not exist on an API server.
func (r *run) absentOn(ctx context.Context, server string, key client.ObjectKey) error {
	i := &kudo.Instance{}
	if err := r.clients()[server].Get(ctx, key, i); err != nil {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("Instance %s still exists on the %s: %+v", key.Name, server, i.Status.Conditions)
}
