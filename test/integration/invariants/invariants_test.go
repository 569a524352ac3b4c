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
	for name, tc := range map[string]struct {
		fields map[string]string // by manager
		want   []string
	}{
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
		"a field manager that nobody knows is a violation": {
			fields: map[string]string{"addon-manager": condition("Degraded")},
			want: []string{`ManagedClusterAddOn c/a: addon-manager holds .status.conditions[type="Degraded"].status, ` +
				`which is not its own`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "a"}}
			for _, manager := range []string{"addon-manager", "addon-manager-dependency", "addon-agent-availability", "someone"} {
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
