package change

import (
	"testing"

	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestAddOnsFollowTheDefaultUnlessTheyHaveTheirOwnVersion(t *testing.T) {
	referent := func(name string) upstream.ConfigReferent {
		return upstream.ConfigReferent{Namespace: "packages", Name: name}
	}
	config := func(name string) upstream.AddOnConfig {
		return upstream.AddOnConfig{ConfigGroupResource: versionResource, ConfigReferent: referent(name)}
	}
	resolved := func(name string) []upstream.ConfigReference {
		return []upstream.ConfigReference{{
			ConfigGroupResource: versionResource, ConfigReferent: referent(name), DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: referent(name)},
		}}
	}
	for name, test := range map[string]struct {
		own      []upstream.AddOnConfig
		resolved []upstream.ConfigReference
		placed   []upstream.AddOnConfig
		want     string
	}{
		"without OCM":                          {},
		"with its own version":                 {own: []upstream.AddOnConfig{config("kafka-2")}, want: "kafka-2"},
		"with the default version as its own":  {own: []upstream.AddOnConfig{config("kafka-1")}, want: "kafka-1"},
		"with OCM":                             {resolved: resolved("kafka-1")},
		"with a Placement":                     {resolved: resolved("kafka-2"), placed: []upstream.AddOnConfig{config("kafka-2")}, want: "kafka-2"},
		"with a Placement of the same version": {resolved: resolved("kafka-1"), placed: []upstream.AddOnConfig{config("kafka-1")}, want: "kafka-1"},
		"with a Placement of other clusters":   {resolved: resolved("kafka-1"), placed: []upstream.AddOnConfig{config("kafka-2")}},
	} {
		t.Run(name, func(t *testing.T) {
			definition, addOn := &addonv1alpha1.ClusterManagementAddOn{}, &addonv1alpha1.ManagedClusterAddOn{}
			byDefault := referent("kafka-1")
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: versionResource, DefaultConfig: &byDefault}}
			definition.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: test.placed}}
			addOn.Spec.Configs, addOn.Status.ConfigReferences = test.own, test.resolved
			if got := ownVersion(definition, addOn); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
