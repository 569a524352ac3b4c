package invariants

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestOfConditionAvailable(t *testing.T) {
	const (
		key    = `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{"f:type":{}}}}}`
		status = `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{"f:type":{},"f:status":{}}}}}`
		agent  = "addon-agent-availability"
	)
	for name, tc := range map[string]struct {
		managers map[string]string
		want     []string
	}{
		"the agent alone": {managers: map[string]string{agent: status}},
		"the key that the klusterlet keeps, which wrote the condition before the health check mode was set": {
			managers: map[string]string{agent: status, "registration": key},
		},
		"a klusterlet that still writes it": {
			managers: map[string]string{agent: status, "registration": status},
			want:     []string{`ManagedClusterAddOn c/a: addon-agent-availability shares .status.conditions[type="Available"].status with `},
		},
		"another writer that keeps the key": {
			managers: map[string]string{agent: status, "kubectl": key},
			want:     []string{`ManagedClusterAddOn c/a: addon-agent-availability shares .status.conditions[type="Available"].type with `},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "a"}}
			for manager, fields := range tc.managers {
				object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: manager, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
				})
			}
			got, err := Of(addOn, object)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if i < len(tc.want) && len(got[i]) > len(tc.want[i]) {
					got[i] = got[i][:len(tc.want[i])] // the managers are in any order
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
