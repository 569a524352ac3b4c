package plans

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("root-1.0.0")) }, ready},
			{"update", set("VALUE", "two"), ready},
			{"on", set("SIDE", "true"), ready},
			{"off", set("SIDE", "false"), ready},
			{"upgrade", move("root-2.0.0"), ready},
			{"remove", remove, gone},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster[:3],
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
