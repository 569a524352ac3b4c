// Package invariants checks, by the managed fields of an API server, that every writer of Tandem writes only its own fields. Integration
// tests run it after every step.
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

// packageSource is a kind that package-controller writes the status of.
const packageSource = "PackageSource"

// The only exceptions to one writer per condition: while a cluster is silent the hub takes over condition Available, until the agent takes
// it back; and OCM's klusterlet may write it until the hub sets the health check mode of a new add-on. Fields that both have written with the
// same value remain the other's too: the condition's key, and the transition time if both are in the same second.
const (
	managerLease  = "addon-manager-lease"
	klusterlet    = "registration"
	available     = `.status.conditions[type="Available"]`
	availableKey  = available + ".type"
	availableTime = available + ".lastTransitionTime"
)

// The only exception to one condition per writer: the API server records the field owner before its policies run, so a foreign writer that
// sends its own Degraded owns the value that the policies restore, the hub's verdict.
const degraded = `.status.conditions[type="Degraded"]`

// allowed lists the fields, by prefix, that each field manager of Tandem may own on the hub, by kind. A manager with the prefix
// addon-manager or addon-agent that is not listed here may own none.
var allowed = map[string]map[string][]string{
	"addon-manager-dependency": {addOn: {`.status.conditions[type="Degraded"]`}},
	"addon-manager-resolved":   {addOn: {`.status.conditions[type="Resolved"]`, `.status.healthCheck`}},
	"addon-manager-automatic":  {addOn: {`.metadata.annotations`, `.spec.installNamespace`}}, // of add-ons that it creates, and its notes on their dependents
	"addon-manager-removal":    {addOn: {`.status.conditions[type="AddOnsRemaining"]`}},
	// OCM's addon-manager writes status.configReferences, and leaves their hashes to the add-on's own manager.
	"addon-manager-rollout": {addOn: {
		`.status.conditions[type="ManifestApplied"]`, `.status.supportedConfigs`, `.status.configReferences`,
	}},
	"addon-manager-delivery": {addOn: {`.metadata.finalizers`, `.status.conditions[type="AddOnsRemaining"]`}},
	"addon-manager-addon": {
		addOn: {`.metadata.finalizers`},
		instance: {
			`.metadata.ownerReferences`, `.metadata.annotations.kudo.dev/allow-deletion`,
			`.spec.operatorVersion`, `.spec.parameters`, `.spec.parametersFrom`, `.spec.imageRegistries`, `.spec.installNamespace`, `.spec.windows`, `.spec.healthyFor`,
			`.spec.onFailure`, `.spec.changedBy`,
		},
	},
	"addon-manager-instance": {
		instance: {
			`.metadata.finalizers`, `.spec.planExecution.uid`, `.spec.cluster`, `.spec.clusterWindows`, `.spec.suspendedBy`, `.spec.changedBy`,
			`.spec.requestedBy`, `.status.conditions[type="Resolved"]`,
		},
	},
	// On a child the data from its parent, on the parent the answers to its tasks.
	"addon-manager-children": {instance: {
		`.metadata.labels.kudo.dev/root`, `.metadata.ownerReferences`, `.metadata.annotations.kudo.dev/force-release`,
		`.metadata.annotations.kudo.dev/allow-deletion`, `.metadata.annotations.kudo.dev/operator-version-content`,
		`.spec.operatorVersion`, `.spec.parameters`, `.spec.parametersFrom`, `.spec.imageRegistries`, `.spec.installNamespace`, `.spec.serviceAccountName`,
		`.spec.planExecution`, `.spec.changedBy`,
		`.status.children`,
	}},
	"package-controller":       {packageSource: {`.status`}},
	"addon-agent-availability": {addOn: {`.status.conditions[type="Available"]`}},
	"addon-agent-report": {
		instance: {
			`.status.execution`, `.status.whole`, `.status.handledRequests`, `.status.planStatus`, `.status.inventory`, `.status.tasks`, `.status.history`,
			`.status.observedGeneration`, `.status.conditions[type="Ready"]`, `.status.conditions[type="Stalled"]`,
			`.status.conditions[type="LastRequestSucceeded"]`, `.status.conditions[type="Waiting"]`,
			`.status.conditions[type="Drifted"]`, `.status.drift`, `.status.former`, `.status.returned`, `.status.soak`, `.status.conditions[type="Soaked"]`, `.status.diagnosis`,
		},
	},
}

// Violations lists, for every ManagedClusterAddOn and Instance on the hub, the fields that a writer of Tandem owns although they are not
// its own, and the fields that it shares with another writer. It returns an error only if reading fails.
func Violations(ctx context.Context, hub client.Reader) ([]string, error) {
	ofAddOns, err := OfAddOns(ctx, hub)
	if err != nil {
		return nil, err
	}
	ofInstances, err := OfInstances(ctx, hub)
	return append(ofAddOns, ofInstances...), err
}

// OfAddOns lists the violations of ManagedClusterAddOns.
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

// OfInstances lists the violations of Instances.
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
		for _, problem := range problems(kind, object, field, accountable(object, field, managers)) {
			violations = append(violations, fmt.Sprintf("%s %s: %s", kind, client.ObjectKeyFromObject(object), problem))
		}
	}
	slices.Sort(violations)
	return violations, nil
}

// accountable returns the managers of a field without those allowed by an exception.
func accountable(object client.Object, field string, managers []string) []string {
	shared := len(managers) > 1
	return slices.DeleteFunc(managers, func(m string) bool {
		return (m == managerLease || m == klusterlet) && (field == availableKey || field == availableTime && shared) ||
			!isTandem(m) && strings.HasPrefix(field, degraded) && isVerdict(object)
	})
}

// problems returns the violations of a field owned by the managers.
func problems(kind string, object client.Object, field string, managers []string) []string {
	var problems []string
	for _, manager := range managers {
		if !isTandem(manager) {
			continue
		}
		own := slices.ContainsFunc(allowed[manager][kind], func(prefix string) bool { return strings.HasPrefix(field, prefix) })
		if !own && !(manager == managerLease && strings.HasPrefix(field, available) && silent(object)) {
			problems = append(problems, fmt.Sprintf("%s holds %s, which is not its own", manager, field))
		}
		if len(managers) > 1 {
			problems = append(problems, fmt.Sprintf("%s shares %s with %s", manager, field, strings.Join(managers, ", ")))
		}
	}
	return problems
}

// silent reports whether an add-on's Available is Unknown because its cluster's lease has expired.
func silent(object client.Object) bool {
	return anyCondition(object, func(c metav1.Condition) bool {
		return c.Type == addonv1alpha1.ConditionAvailable && c.Status == metav1.ConditionUnknown &&
			c.Reason == addonv1alpha1.ReasonClusterLeaseStopped
	})
}

// isVerdict reports whether an add-on's Degraded is a verdict on its dependencies.
func isVerdict(object client.Object) bool {
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
	return strings.HasPrefix(manager, "addon-manager") || strings.HasPrefix(manager, "addon-agent") || manager == "package-controller"
}
