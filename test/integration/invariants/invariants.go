// Package invariants checks, from the managed fields that an API server keeps, that every writer of Tandem writes its own fields
// and no others. Integration tests ask it after every step.
package invariants

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// The kinds that both hub and agent write.
const (
	addOn    = "ManagedClusterAddOn"
	instance = "Instance"
)

// The one exception to a writer for each condition: while a cluster is silent the hub takes condition Available over, until the agent
// takes it back. What both have applied with the same value the hub keeps then: the condition's key, and the time of a transition
// where both fell into one second.
const (
	managerLease  = "addon-manager-lease"
	available     = `.status.conditions[type="Available"]`
	availableKey  = available + ".type"
	availableTime = available + ".lastTransitionTime"
)

// The one exception to a condition for each writer: the API server notes whose a field is before its policies run, and so a stranger
// who sends a Degraded of its own holds what the policies keep in its place, the hub's verdict.
const degraded = `.status.conditions[type="Degraded"]`

// allowed are the fields, by prefix, that each field manager of Tandem may hold on the hub, by kind. A manager that begins with
// addon-manager or addon-agent and is not named here may hold none.
var allowed = map[string]map[string][]string{
	"addon-manager-dependency": {addOn: {`.status.conditions[type="Degraded"]`}},
	"addon-manager-resolved":   {addOn: {`.status.conditions[type="Resolved"]`, `.status.healthCheck`}},
	// OCM's addon-manager writes status.configReferences, and leaves the hashes in it to whoever runs the add-on.
	"addon-manager-rollout": {addOn: {
		`.status.conditions[type="ManifestApplied"]`, `.status.supportedConfigs`, `.status.configReferences`,
	}},
	"addon-manager-delivery": {addOn: {`.metadata.finalizers`, `.status.conditions[type="AddOnsRemaining"]`}},
	"addon-manager-addon": {
		addOn:    {`.metadata.finalizers`},
		instance: {`.metadata.ownerReferences`, `.spec.operatorVersion`, `.spec.parameters`, `.spec.installNamespace`},
	},
	"addon-manager-instance": {
		instance: {`.metadata.finalizers`, `.spec.planExecution.uid`, `.status.conditions[type="Resolved"]`},
	},
	// On a child what its parent says of it, on the parent the answers to its tasks.
	"addon-manager-children": {instance: {
		`.metadata.labels.kudo.dev/root`, `.metadata.ownerReferences`, `.metadata.annotations.kudo.dev/force-release`,
		`.spec.operatorVersion`, `.spec.parameters`, `.spec.installNamespace`, `.spec.serviceAccountName`, `.spec.planExecution`,
		`.status.children`,
	}},
	"addon-agent-availability": {addOn: {`.status.conditions[type="Available"]`}},
	"addon-agent-report": {
		instance: {
			`.status.execution`, `.status.planStatus`, `.status.inventory`, `.status.observedGeneration`, `.status.conditions[type="Ready"]`,
		},
	},
}

// Violations lists, for every ManagedClusterAddOn and Instance on the hub, the fields that a writer of Tandem holds although they
// are not its own, and those that it shares with another writer. Errors are those of reading.
func Violations(ctx context.Context, hub client.Reader) ([]string, error) {
	ofAddOns, err := OfAddOns(ctx, hub)
	if err != nil {
		return nil, err
	}
	ofInstances, err := OfInstances(ctx, hub)
	return append(ofAddOns, ofInstances...), err
}

// OfAddOns lists those of ManagedClusterAddOns alone.
func OfAddOns(ctx context.Context, hub client.Reader) ([]string, error) {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := hub.List(ctx, &addOns); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns: %w", err)
	}
	var violations []string
	for i := range addOns.Items {
		found, err := Of(addOn, &addOns.Items[i])
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	return violations, nil
}

// OfInstances lists those of Instances alone.
func OfInstances(ctx context.Context, hub client.Reader) ([]string, error) {
	var instances kudo.InstanceList
	if err := hub.List(ctx, &instances); err != nil {
		return nil, fmt.Errorf("listing Instances: %w", err)
	}
	var violations []string
	for i := range instances.Items {
		found, err := Of(instance, &instances.Items[i])
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	return violations, nil
}

// Of lists the violations of one object of that kind.
func Of(kind string, object client.Object) ([]string, error) {
	holders := map[string][]string{}
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.Raw)); err != nil {
			return nil, fmt.Errorf("reading the managed fields of %s %s: %w", kind, client.ObjectKeyFromObject(object), err)
		}
		fields.Leaves().Iterate(func(path fieldpath.Path) {
			field := path.String()
			if !slices.Contains(holders[field], entry.Manager) {
				holders[field] = append(holders[field], entry.Manager)
			}
		})
	}
	var violations []string
	for field, managers := range holders {
		for _, fault := range faults(kind, object, field, accountable(object, field, managers)) {
			violations = append(violations, fmt.Sprintf("%s %s: %s", kind, client.ObjectKeyFromObject(object), fault))
		}
	}
	slices.Sort(violations)
	return violations, nil
}

// accountable are the managers of a field but those that hold it by one of the exceptions.
func accountable(object client.Object, field string, managers []string) []string {
	shared := len(managers) > 1
	return slices.DeleteFunc(managers, func(m string) bool {
		return m == managerLease && (field == availableKey || field == availableTime && shared) ||
			!isTandem(m) && strings.HasPrefix(field, degraded) && judged(object)
	})
}

// faults says what is wrong about a field that managers hold.
func faults(kind string, object client.Object, field string, managers []string) []string {
	var faults []string
	for _, manager := range managers {
		if !isTandem(manager) {
			continue
		}
		own := slices.ContainsFunc(allowed[manager][kind], func(prefix string) bool { return strings.HasPrefix(field, prefix) })
		if !own && !(manager == managerLease && strings.HasPrefix(field, available) && silent(object)) {
			faults = append(faults, fmt.Sprintf("%s holds %s, which is not its own", manager, field))
		}
		if len(managers) > 1 {
			faults = append(faults, fmt.Sprintf("%s shares %s with %s", manager, field, strings.Join(managers, ", ")))
		}
	}
	return faults
}

// silent says whether an add-on's Available is Unknown for want of its cluster's lease.
func silent(object client.Object) bool {
	return anyCondition(object, func(c metav1.Condition) bool {
		return c.Type == addonv1alpha1.ConditionAvailable && c.Status == metav1.ConditionUnknown &&
			c.Reason == addonv1alpha1.ReasonClusterLeaseStopped
	})
}

// judged says whether an add-on's Degraded is a verdict over its dependencies.
func judged(object client.Object) bool {
	return anyCondition(object, func(c metav1.Condition) bool {
		return c.Type == addonv1alpha1.ConditionDegraded &&
			(c.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied || c.Reason == addonv1alpha1.ReasonDependencyNotSatisfied)
	})
}

func anyCondition(object client.Object, is func(metav1.Condition) bool) bool {
	addOn, ok := object.(*addonv1alpha1.ManagedClusterAddOn)
	return ok && slices.ContainsFunc(addOn.Status.Conditions, is)
}

func isTandem(manager string) bool {
	return strings.HasPrefix(manager, "addon-manager") || strings.HasPrefix(manager, "addon-agent")
}
