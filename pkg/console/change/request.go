package change

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Request patches the request into the spec of this Instance. It fails if the Instance was re-created under the same name, and preserves
// concurrent changes to other fields and parameters.
func Request(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec) error {
	before, after := instance.Spec.ParametersFrom, wanted.ParametersFrom
	if slices.Equal(before, after) {
		return request(ctx, c, instance, wanted, map[string]any{"uid": instance.UID})
	}
	latest := instance.DeepCopy()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // a merge patch replaces the whole list of references
		wanted.ParametersFrom = rebase(before, after, latest.Spec.ParametersFrom)
		err := request(ctx, c, instance, wanted, map[string]any{"uid": instance.UID, "resourceVersion": latest.ResourceVersion})
		if apierrors.IsConflict(err) {
			if read := c.Get(ctx, client.ObjectKeyFromObject(instance), latest); read != nil {
				return fmt.Errorf("reading Instance %q of cluster %q: %w", instance.Name, instance.Namespace, read)
			}
		}
		return err
	})
}

// rebase returns the current references with the changes from before to after.
func rebase(before, after, current []kudo.ParameterFrom) []kudo.ParameterFrom {
	next := slices.Clone(current)
	for _, from := range before {
		if !slices.Contains(after, from) {
			next = slices.DeleteFunc(next, func(f kudo.ParameterFrom) bool { return f.Name == from.Name })
		}
	}
	for _, from := range after {
		if !slices.Contains(before, from) {
			next = append(slices.DeleteFunc(next, func(f kudo.ParameterFrom) bool { return f.Name == from.Name }), from)
		}
	}
	return next
}

// RequestUnchanged is Request for an Instance of which nothing but the status has changed since it was read; otherwise it returns a conflict.
func RequestUnchanged(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec) error {
	return ifUnchanged(ctx, c, instance, func(resourceVersion string) error {
		return request(ctx, c, instance, wanted, map[string]any{"uid": instance.UID, "resourceVersion": resourceVersion})
	})
}

func request(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec, metadata map[string]any) error {
	spec := map[string]any{}
	if asked := wanted.PlanExecution; asked != instance.Spec.PlanExecution {
		spec["planExecution"] = execution(asked)
	}
	if wanted.Suspend != instance.Spec.Suspend {
		spec["suspend"] = wanted.Suspend
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
	return checkStored(instance, wanted)
}

// checkStored returns an error if the API server has dropped a field of the request from the Instance that it has answered with.
func checkStored(instance *kudo.Instance, wanted kudo.InstanceSpec) error {
	problem := ""
	switch asked, stored := wanted.PlanExecution, instance.Spec.PlanExecution; {
	case wanted.Suspend && !instance.Spec.Suspend:
		problem = fmt.Sprintf("Instance %q is not suspended", instance.Name)
	case asked.Resume != "" && stored.UID == asked.UID && stored.Resume == "":
		problem = fmt.Sprintf("the whole plan %q of Instance %q runs", asked.PlanName, instance.Name)
	default:
		return nil
	}
	return fmt.Errorf("cluster %s: %s: CustomResourceDefinition instances.kudo.dev on the hub is older than this program; apply crds/ of this version",
		instance.Namespace, problem)
}

// execution returns the merge patch of a request for a plan, or nil for none.
func execution(asked kudo.PlanExecution) any {
	if asked.PlanName == "" {
		return nil
	}
	values := map[string]any{"planName": asked.PlanName, "uid": asked.UID, "cancel": nil, "status": nil, "resume": nil}
	if asked.Resume != "" {
		values["resume"] = asked.Resume
	}
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
