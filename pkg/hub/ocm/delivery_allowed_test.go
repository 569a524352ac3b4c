package ocm

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestConfigsThatMayConfigureTheAgent(t *testing.T) {
	configs := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}
	versions := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	referent := func(namespace, name string) upstream.ConfigReferent {
		return upstream.ConfigReferent{Namespace: namespace, Name: name}
	}
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	byDefault := referent("system", "default")
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: configs, DefaultConfig: &byDefault}}
	definition.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: []upstream.AddOnConfig{
		{ConfigGroupResource: configs, ConfigReferent: referent("system", "placed")},
		{ConfigGroupResource: configs, ConfigReferent: referent("cluster1", "placed")},
		{ConfigGroupResource: versions, ConfigReferent: referent("system", "version")},
	}}}
	for name, test := range map[string]struct {
		config     string
		definition *addonv1alpha1.ClusterManagementAddOn
		patterns   string
		want       bool
	}{
		"the default":                                 {"system/default", definition, "", true},
		"that of a placement":                         {"system/placed", definition, "", true},
		"another one beside them":                     {"system/other", definition, "", false},
		"one in the cluster's namespace":              {"cluster1/placed", definition, "", false},
		"one in the cluster's namespace, by pattern":  {"cluster1/placed", definition, "cluster1/placed", true},
		"an object of another kind":                   {"system/version", definition, "", false},
		"without a definition":                        {"system/default", nil, "", false},
		"without a definition, by pattern":            {"system/default", nil, "a/b,system/*", true},
		"a pattern of all clusters":                   {"cluster1/agent", nil, "*/agent", true},
		"a pattern that matches the start only":       {"cluster1/agent-2", nil, "*/agent", false},
		"a wildcard, which does not match the slash":  {"system/a", nil, "s*/b", false},
		"a namespace that starts like an allowed one": {"system-2/a", nil, "system/*", false},
	} {
		t.Run(name, func(t *testing.T) {
			patterns, err := ParseConfigs(test.patterns)
			if err != nil {
				t.Fatal(err)
			}
			var config types.NamespacedName
			config.Namespace, config.Name, _ = strings.Cut(test.config, "/")
			if got := isAllowed("cluster1", config, test.definition, patterns); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestConfigsThatAreNone(t *testing.T) {
	for _, list := range []string{"a", "/a", "a/", "a/b/c", "a/b,", "a/[", "*"} {
		if patterns, err := ParseConfigs(list); err == nil {
			t.Errorf("%q is parsed as %q", list, patterns)
		}
	}
}
