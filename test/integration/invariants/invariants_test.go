package invariants

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestOf(t *testing.T) {
	condition := func(t string) string {
		return `{"f:status":{"f:conditions":{"k:{\"type\":\"` + t + `\"}":{".":{},"f:status":{}}}}}`
	}
	silent := metav1.Condition{Type: "Available", Status: metav1.ConditionUnknown, Reason: "ManagedClusterLeaseUpdateStopped"}
	for name, tc := range map[string]struct {
		fields  map[string]string // by manager
		present metav1.Condition
		want    []string
	}{
		"the hub takes Available of a silent cluster, whose key the agent still holds": {
			fields: map[string]string{
				"addon-manager-lease":      condition("Available"),
				"addon-agent-availability": `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:type":{}}}}}`,
			},
			present: silent,
		},
		"the hub keeps the key of Available when the agent takes it back": {
			fields: map[string]string{
				"addon-manager-lease":      `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:type":{}}}}}`,
				"addon-agent-availability": `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:type":{},"f:status":{}}}}}`,
			},
			present: metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "Works"},
		},
		"the hub keeps the time of a transition that was within a second of the agent's": {
			fields: map[string]string{
				"addon-manager-lease":      `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{}}}}}`,
				"addon-agent-availability": `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{}}}}}`,
			},
			present: metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "Works"},
		},
		"the hub may not say of a silent cluster's add-on anything but that": {
			fields:  map[string]string{"addon-manager-lease": condition("Available")},
			present: metav1.Condition{Type: "Available", Status: metav1.ConditionUnknown, Reason: "NobodyKnows"},
			want: []string{`ManagedClusterAddOn c/a: addon-manager-lease holds .status.conditions[type="Available"].status, ` +
				`which is not its own`},
		},
		"a silent cluster's Available is not shared": {
			fields:  map[string]string{"addon-manager-lease": condition("Available"), "someone": condition("Available")},
			present: silent,
			want: []string{`ManagedClusterAddOn c/a: addon-manager-lease shares .status.conditions[type="Available"].status ` +
				`with addon-manager-lease, someone`},
		},
		"Degraded of an unreachable cluster does not depend on the lease": {
			fields:  map[string]string{"addon-manager-lease": condition("Degraded")},
			present: silent,
			want: []string{`ManagedClusterAddOn c/a: addon-manager-lease holds .status.conditions[type="Degraded"].status, ` +
				`which is not its own`},
		},
		"each writer with its own condition is well": {
			fields: map[string]string{
				"addon-manager-dependency": condition("Degraded"), "addon-agent-availability": condition("Available"),
				"someone": condition("Progressing"),
			},
		},
		"a condition of another writer's is a violation": {
			fields: map[string]string{"addon-manager-dependency": condition("Available")},
			want: []string{`ManagedClusterAddOn c/a: addon-manager-dependency holds .status.conditions[type="Available"].status, ` +
				`which is not its own`},
		},
		"a shared condition is a violation": {
			fields: map[string]string{"addon-manager-dependency": condition("Degraded"), "someone": condition("Degraded")},
			want: []string{`ManagedClusterAddOn c/a: addon-manager-dependency shares .status.conditions[type="Degraded"].status ` +
				`with addon-manager-dependency, someone`},
		},
		"a stranger holds the verdict that was kept in place of its own Degraded": {
			fields:  map[string]string{"addon-manager-dependency": condition("Degraded"), "someone": condition("Degraded")},
			present: metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "DependencyNotSatisfied"},
		},
		"another writer of Tandem's does not share the verdict": {
			fields:  map[string]string{"addon-manager-dependency": condition("Degraded"), "addon-agent-availability": condition("Degraded")},
			present: metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "DependencyNotSatisfied"},
			want: []string{
				`ManagedClusterAddOn c/a: addon-agent-availability holds .status.conditions[type="Degraded"].status, which is not its own`,
				`ManagedClusterAddOn c/a: addon-agent-availability shares .status.conditions[type="Degraded"].status ` +
					`with addon-manager-dependency, addon-agent-availability`,
				`ManagedClusterAddOn c/a: addon-manager-dependency shares .status.conditions[type="Degraded"].status ` +
					`with addon-manager-dependency, addon-agent-availability`,
			},
		},
		"an unknown field manager is a violation": {
			fields: map[string]string{"addon-manager": condition("Degraded")},
			want: []string{`ManagedClusterAddOn c/a: addon-manager holds .status.conditions[type="Degraded"].status, ` +
				`which is not its own`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "a"}}
			object.Status.Conditions = []metav1.Condition{tc.present}
			for _, manager := range []string{
				"addon-manager", "addon-manager-dependency", "addon-manager-lease", "addon-agent-availability", "someone",
			} {
				if fields, ok := tc.fields[manager]; ok {
					object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{
						Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
					})
				}
			}
			got, err := Of(addOn, object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
