package plans

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// tree is the life of three levels of Instances: a root with a child that has a child, and another child that a parameter enables.
func tree() scenario {
	return scenario{
		name: "tree",
		prepare: func(ctx context.Context, w *world) error {
			return w.push(ctx, branch("leaf", "1.0.0"), branch("side", "1.0.0"), branch("trunk", "1.0.0", child("leaf-1.0.0", "")),
				branch("trunk", "2.0.0", child("leaf-1.0.0", "")),
				branch("root", "1.0.0", child("trunk-1.0.0", ""), child("side-1.0.0", "SIDE")),
				branch("root", "2.0.0", child("trunk-2.0.0", ""), child("side-1.0.0", "SIDE")))
		},
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("root-1.0.0")) }, treeHas("one", 3)},
			{"update", set("VALUE", "two"), treeHas("two", 3)},
			{"on", set("SIDE", "true"), treeHas("two", 4)},
			{"off", set("SIDE", "false"), treeHas("two", 3)},
			{"upgrade", move("root-2.0.0"), treeHas("two", 3)},
			{"remove", remove, expectGone},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster[:3],
	}
}

// treeHas returns a check that the root is ready, and that so many Instances have applied the value.
func treeHas(value string, instances int) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if err := ready(ctx, r); err != nil {
			return err
		}
		configs := &corev1.ConfigMapList{}
		if err := r.managed.List(ctx, configs, client.InNamespace(r.name), client.HasLabels{kudo.LabelHeritage}); err != nil {
			return err
		}
		for _, config := range configs.Items {
			if config.Data["value"] != value {
				return fmt.Errorf("ConfigMap %s has value %q, want %q", config.Name, config.Data["value"], value)
			}
		}
		if len(configs.Items) != instances {
			return fmt.Errorf("%d Instances have applied their ConfigMap, want %d", len(configs.Items), instances)
		}
		return nil
	}
}

// branch returns an OperatorVersion that applies a ConfigMap with its parameters after its children, which get its parameter VALUE.
func branch(operator, version string, children ...kudo.Task) *kudo.OperatorVersion {
	plan := serial("config")
	for i := range children {
		step := kudo.Step{Name: children[i].Name, Tasks: []string{children[i].Name}}
		plan.Phases[0].Steps = append(plan.Phases[0].Steps[:i:i], append([]kudo.Step{step}, plan.Phases[0].Steps[i:]...)...)
	}
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: operator + "-" + version, Namespace: packages},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: operator}, Version: version,
			Parameters: []kudo.Parameter{
				{Name: "VALUE", Default: ptr.To("one")}, {Name: "SIDE", Type: kudo.BooleanType, Default: ptr.To("false")},
			},
			Templates: map[string]string{
				"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-config\"}\ndata: {value: \"{{ .Params.VALUE }}\"}\n",
				"child.yaml":  "VALUE: {{ .Params.VALUE | quote }}\n",
			},
			Tasks: append(children, task("config", kudo.TaskApply, "config.yaml")),
			Plans: map[string]kudo.Plan{"deploy": plan},
		},
	}
}

// child returns a task for a child of an exact version, enabled by a parameter if one is named.
func child(version, enabling string) kudo.Task {
	operator, _, _ := strings.Cut(version, "-")
	return kudo.Task{Name: operator, Kind: kudo.TaskKudoOperator, Spec: kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{
		Package: operator, OperatorVersionName: version, ParameterFile: "child.yaml", EnablingParameter: enabling,
	}}}
}
