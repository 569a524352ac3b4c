package read

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestAddOnsWithoutInstances(t *testing.T) {
	supports := func(group, resource string) *addonv1alpha1.ClusterManagementAddOn {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "mesh"}}
		definition.Spec.SupportedConfigs = append(definition.Spec.SupportedConfigs, upstream.ConfigMeta{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: group, Resource: resource},
		})
		return definition
	}
	const see = "run 'kubectl addon why mesh --cluster c1'"
	for sentence, test := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		want       string
	}{
		"one that runs a package": {supports(kudo.GroupVersion.Group, "operatorversions"), `add-on "mesh" has no Instance on cluster "c1" yet, and therefore no plans: ` + see},
		"one that does not":       {supports("addon.open-cluster-management.io", "addondeploymentconfigs"), `add-on "mesh" is not plan-based: it has no Instance, and therefore no plans: ` + see},
		"one whose definition does not exist, or may not be read": {nil, `add-on "mesh" has no Instance on cluster "c1" yet, and therefore no plans: ` + see},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := withoutInstance(client.ObjectKey{Namespace: "c1", Name: "mesh"}, test.definition); got.Error() != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
