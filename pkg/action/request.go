package action

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Request patches the request into the spec of this Instance. It fails if the Instance was re-created under the same name, and preserves
// concurrent changes to other fields.
func Request(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec) error {
	return request(ctx, c, instance, wanted, map[string]any{"uid": instance.UID})
}

// RequestUnchanged is Request for an Instance that has not changed since it was read; otherwise it returns a conflict.
func RequestUnchanged(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec) error {
	return request(ctx, c, instance, wanted, map[string]any{"uid": instance.UID, "resourceVersion": instance.ResourceVersion})
}

func request(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec, metadata map[string]any) error {
	spec := map[string]any{}
	if asked := wanted.PlanExecution; asked != instance.Spec.PlanExecution {
		spec["planExecution"] = execution(asked)
	}
	if changed := changedValues(instance.Spec.Parameters, wanted.Parameters); len(changed) > 0 {
		spec["parameters"] = changed
	}
	if !slices.Equal(wanted.ParametersFrom, instance.Spec.ParametersFrom) {
		spec["parametersFrom"] = wanted.ParametersFrom
	}
	if runs := wanted.OperatorVersion; runs != instance.Spec.OperatorVersion {
		spec["operatorVersion"] = map[string]any{"namespace": runs.Namespace, "name": runs.Name}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	if err = c.Patch(ctx, instance, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing Instance %q of cluster %q: %w", instance.Name, instance.Namespace, err)
	}
	return nil
}

// execution returns the merge patch of a request for a plan, or nil for none.
func execution(asked kudo.PlanExecution) any {
	if asked.PlanName == "" {
		return nil
	}
	values := map[string]any{"planName": asked.PlanName, "uid": asked.UID, "cancel": nil, "status": nil}
	if asked.Cancel {
		values["cancel"] = true
	}
	return values
}

// changedValues returns the merge patch of two maps, with nil for removed keys.
func changedValues(before, after map[string]string) map[string]any {
	changed := map[string]any{}
	for name, value := range after {
		if current, given := before[name]; !given || current != value {
			changed[name] = value
		}
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			changed[name] = nil
		}
	}
	return changed
}
