package stack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestDefinition(t *testing.T) {
	all := AddOn{
		Name: "shop", Version: types.NamespacedName{Namespace: "addon-packages", Name: "shop-1.0.0"},
		Config: &types.NamespacedName{Namespace: "addon-packages", Name: "shop-parameters"},
		Dependencies: []addonv1alpha1.AddonDependency{
			{Name: "kafka", Type: addonv1alpha1.DependencyTypeRequired, Message: "Orders cannot be taken."},
			{Name: "monitoring", Type: addonv1alpha1.DependencyTypeOptional},
		},
		Placements: []types.NamespacedName{{Namespace: "default", Name: "all"}},
	}
	for sentence, test := range map[string]struct {
		addOn    AddOn
		annotate bool
		want     string
	}{
		"as little as possible": {addOn: AddOn{Name: "web", Version: types.NamespacedName{Namespace: "addon-packages", Name: "web-1.0.0"}}, want: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: web
spec:
  supportedConfigs:
  - defaultConfig:
      name: web-1.0.0
      namespace: addon-packages
    group: kudo.dev
    resource: operatorversions
  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
`},
		"all of it": {addOn: all, want: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: shop
spec:
  dependencies:
  - message: Orders cannot be taken.
    name: kafka
    type: Required
  - name: monitoring
    type: Optional
  installStrategy:
    placements:
    - name: all
      namespace: default
      rolloutStrategy: {}
    type: Placements
  supportedConfigs:
  - defaultConfig:
      name: shop-1.0.0
      namespace: addon-packages
    group: kudo.dev
    resource: operatorversions
  - defaultConfig:
      name: shop-parameters
      namespace: addon-packages
    group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
`},
		"on a hub with OCM's resource definitions": {annotate: true, addOn: AddOn{Name: "shop", Version: all.Version, Dependencies: all.Dependencies[:1]}, want: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  annotations:
    addon.open-cluster-management.io/dependencies: '[{"name":"kafka","type":"Required","message":"Orders
      cannot be taken."}]'
  name: shop
spec:
  supportedConfigs:
  - defaultConfig:
      name: shop-1.0.0
      namespace: addon-packages
    group: kudo.dev
    resource: operatorversions
  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
`},
	} {
		t.Run(sentence, func(t *testing.T) {
			definition := test.addOn.Definition()
			if test.annotate {
				var err error
				if definition, err = Annotated(definition); err != nil {
					t.Fatal(err)
				}
			}
			object, err := Manifest(definition)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
