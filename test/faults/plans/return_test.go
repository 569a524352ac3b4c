package plans

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// returning is the life of an Instance whose upgrade fails at its last step: it returns to the former version, tries the other one again on request, and
// stays with it once the cause is corrected.
func returning() scenario {
	return scenario{
		name:    "return",
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, gadgets("1.0.0"), fragile()) },
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("gadgets-1.0.0")) }, ready},
			{"upgrade", edit(func(i *kudo.Instance) {
				i.Spec.OperatorVersion.Name, i.Spec.OnFailure = "gadgets-3.0.0", kudo.FailureReturn
				i.Spec.Parameters = map[string]string{"VALUE": "two"}
			}), expectReturned},
			{"again", func(ctx context.Context, r *run) error {
				return edit(func(i *kudo.Instance) {
					i.Spec.PlanExecution = kudo.PlanExecution{PlanName: i.Status.Returned.Plan, UID: "again", Resume: i.Status.Returned.Execution}
				})(ctx, r)
			}, func(ctx context.Context, r *run) error {
				if err := expectReturned(ctx, r); err != nil {
					return err
				}
				if i, err := r.onHub(ctx); err != nil || i.Status.Returned.Execution != "again" {
					return fmt.Errorf("the request is not executed: %v", err)
				}
				return nil
			}},
			{"correct", set("PORT", "80"), func(ctx context.Context, r *run) error {
				if err := ready(ctx, r); err != nil {
					return err
				}
				if i, err := r.onHub(ctx); err != nil || i.Status.Returned != nil || i.Status.Former != nil {
					return fmt.Errorf("the return is still in force: %v", err)
				}
				return nil
			}},
			{"remove", remove, expectGone},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster,
	}
}

// fragile returns a version of the package whose plans fail at their last step until parameter PORT is a port. Their message is short: a long one is cut
// where the length of the run's name decides.
func fragile() *kudo.OperatorVersion {
	version := gadgets("3.0.0")
	spec := &version.Spec
	spec.Returnable = true
	spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "PORT", Default: ptr.To("0")})
	spec.Templates["fragile.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Name }}-fragile\"}\nspec: {ports: [{port: {{ .Params.PORT }}, targetPort: web}]}\n"
	spec.Tasks = append(spec.Tasks, task("fragile", kudo.TaskApply, "fragile.yaml"))
	spec.Plans["upgrade"] = serial("base", "kind", "gadget", "app", "fragile")
	return version
}

// onHub returns the Instance on the hub.
func (r *run) onHub(ctx context.Context) (*kudo.Instance, error) {
	i := &kudo.Instance{}
	return i, r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.name}, i)
}

// expectReturned checks that the Instance runs its first version again, with its value.
func expectReturned(ctx context.Context, r *run) error {
	i, err := r.onHub(ctx)
	if err != nil {
		return err
	}
	is := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	if is == nil || is.Reason != kudo.ReasonReturned || is.ObservedGeneration != i.Generation || i.Status.Former != nil {
		return fmt.Errorf("condition Ready is %+v, want reason %s", is, kudo.ReasonReturned)
	}
	config := r.base()
	if err := r.managed.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil || config.Data["value"] != "one" {
		return fmt.Errorf("the object has %q, want the former value: %v", config.Data["value"], err)
	}
	surplus := &corev1.ConfigMap{}
	if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: r.name + "-base.3"}, surplus); err == nil {
		return fmt.Errorf("an object of the other version is still there")
	}
	return nil
}
