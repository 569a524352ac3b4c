package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Healthy reports whether the Instance is Ready and resolved, or does not exist.
func Healthy(i *kudo.Instance) bool {
	return i == nil || meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionReady) &&
		meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionResolved)
}

// Outcome returns the resulting state of an Instance and its mirror, without uids, generations and the traces of executions, and without
// objects that only manually requested plans have applied. desired and started are the OperatorVersions of its spec and of its last
// execution.
func Outcome(i, mirror *kudo.Instance, desired, started *kudo.OperatorVersion) map[string]any {
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	var inventory []string
	for _, entry := range mirror.Status.Inventory {
		if !entry.Manual {
			inventory = append(inventory, fmt.Sprintf("%s %s pending=%v", entry.Task, entry.String(), entry.Pending))
		}
	}
	slices.Sort(inventory)
	return map[string]any{
		"version": desired.Name, "parameters": effective(desired, i), "started with": effective(started, i), "inventory": inventory,
		"ready": fmt.Sprint(ready.Status, ready.Reason, ready.Message), "owed": len(mirror.Status.Execution.Owed),
		"whole": mirror.Status.Whole.OperatorVersion.Name,
	}
}

// Manual returns the objects of a mirror that only manually requested plans have applied.
func Manual(mirror *kudo.Instance) map[kudo.InventoryEntry]bool {
	manual := map[kudo.InventoryEntry]bool{}
	for _, entry := range mirror.Status.Inventory {
		if entry.Manual {
			manual[plan.Identity(entry)] = true
		}
	}
	return manual
}

// effective returns the effective parameters of an Instance.
func effective(version *kudo.OperatorVersion, i *kudo.Instance) map[string]string {
	values := map[string]string{}
	for _, p := range version.Spec.Parameters {
		values[p.Name] = parameter.InForce(&p, i.Spec.Parameters)
	}
	return values
}

// Bare returns the content of an object without the traces of executions.
func Bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	b := o.DeepCopy()
	b.SetUID("")
	b.SetGeneration(0)
	annotations := b.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return strings.HasPrefix(name, "kudo.dev/") })
	b.SetAnnotations(annotations)
	unstructured.RemoveNestedField(b.Object, "status", "observedGeneration")
	unstructured.RemoveNestedField(b.Object, "spec", "template", "metadata", "annotations", kudo.AnnotationExecution)
	return b
}
