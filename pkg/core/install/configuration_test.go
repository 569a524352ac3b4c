package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const packages = kudo.DefaultPackagesNamespace

func referent(namespace, name string) upstream.ConfigReferent {
	return upstream.ConfigReferent{Namespace: namespace, Name: name}
}

// newDefinition returns a definition whose supported configs have these defaults; nil supports the resource without a default.
func newDefinition(version, config *upstream.ConfigReferent) *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{ConfigGroupResource: deploymentConfigs, DefaultConfig: config},
		{ConfigGroupResource: operatorVersions, DefaultConfig: version},
	}
	return definition
}

// newAddOn returns an add-on on cluster1 with its own configs.
func newAddOn(configs ...upstream.AddOnConfig) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka", UID: "add-on", Generation: 3},
	}
	addOn.Spec.Configs = configs
	return addOn
}

func config(resource upstream.ConfigGroupResource, r upstream.ConfigReferent) upstream.AddOnConfig {
	return upstream.AddOnConfig{ConfigGroupResource: resource, ConfigReferent: r}
}

func desiredBy(resource upstream.ConfigGroupResource, r upstream.ConfigReferent) upstream.ConfigReference {
	return upstream.ConfigReference{ConfigGroupResource: resource, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: r}}
}

func TestRunsByPlans(t *testing.T) {
	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		want       bool
	}{
		"it supports OperatorVersions":   {newDefinition(nil, nil), true},
		"it is gone":                     {nil, false},
		"it supports nothing":            {&addonv1alpha1.ClusterManagementAddOn{}, false},
		"it supports other configs only": {supportingOther(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsPlanManaged(tc.definition); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func supportingOther() *addonv1alpha1.ClusterManagementAddOn {
	definition := newDefinition(nil, nil)
	definition.Spec.SupportedConfigs[1].Group = "example.com"
	return definition
}

func TestConfigure(t *testing.T) {
	own, shared := referent("cluster1", "kafka-2.0.0"), referent(packages, "kafka-1.0.0")
	a, b := referent("cluster1", "a"), referent("cluster1", "b")
	key := func(r upstream.ConfigReferent) types.NamespacedName { return types.NamespacedName(r) }
	marked := func(definition *addonv1alpha1.ClusterManagementAddOn) *addonv1alpha1.ClusterManagementAddOn {
		definition.Status.InstallProgressions = []upstream.InstallProgression{{}}
		return definition
	}
	byOCM := func(configured metav1.ConditionStatus, references ...upstream.ConfigReference) *addonv1alpha1.ManagedClusterAddOn {
		addOn := newAddOn(config(operatorVersions, own))
		addOn.Status.ConfigReferences = references
		if configured != "" {
			addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: configured}}
		}
		return addOn
	}
	waiting := []string{"WaitingForConfiguration"}

	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		addOn      *addonv1alpha1.ManagedClusterAddOn
		version    types.NamespacedName
		configs    []types.NamespacedName
		configMaps []types.NamespacedName
		reasons    []string
	}{
		"ConfigMaps of the cluster and of the packages' namespace count, the add-on's own before the definition's": {
			definition: supporting(newDefinition(&shared, nil), configMaps, referent(packages, "defaults")),
			addOn:      newAddOn(config(configMaps, b), config(configMaps, referent(packages, "c"))),
			version:    key(shared), configMaps: []types.NamespacedName{key(b), {Namespace: packages, Name: "c"}},
		},
		"the definition's ConfigMap holds where the add-on names none": {
			definition: supporting(newDefinition(&shared, nil), configMaps, referent(packages, "defaults")), addOn: newAddOn(config(deploymentConfigs, a)),
			version: key(shared), configs: []types.NamespacedName{key(a)}, configMaps: []types.NamespacedName{{Namespace: packages, Name: "defaults"}},
		},
		"ConfigMaps elsewhere are invalid, even if the definition names them": {
			definition: supporting(newDefinition(&shared, nil), configMaps, referent("kube-system", "x")), addOn: newAddOn(),
			version: key(shared), configMaps: []types.NamespacedName{{Namespace: "kube-system", Name: "x"}}, reasons: []string{"ConfigurationInvalid"},
		},
		"a ConfigMap without a namespace is invalid": {
			definition: newDefinition(&shared, nil), addOn: newAddOn(config(configMaps, upstream.ConfigReferent{Name: "x"})),
			version: key(shared), configMaps: []types.NamespacedName{{Name: "x"}}, reasons: []string{"ConfigurationInvalid"},
		},
		"the definition's defaults hold where the add-on names nothing": {
			definition: newDefinition(&shared, &a), addOn: newAddOn(), version: key(shared), configs: []types.NamespacedName{key(a)},
		},
		"the add-on's own configs win, each resource by itself": {
			definition: newDefinition(&shared, &a), addOn: newAddOn(config(operatorVersions, own)),
			version: key(own), configs: []types.NamespacedName{key(a)},
		},
		"several AddOnDeploymentConfigs keep their order": {
			definition: newDefinition(&shared, nil), addOn: newAddOn(config(deploymentConfigs, b), config(deploymentConfigs, a)),
			version: key(shared), configs: []types.NamespacedName{key(b), key(a)},
		},
		"no OperatorVersion at all is invalid": {
			definition: newDefinition(nil, nil), addOn: newAddOn(), reasons: []string{"ConfigurationInvalid"},
		},
		"two OperatorVersions are invalid": {
			definition: newDefinition(nil, nil), addOn: newAddOn(config(operatorVersions, own), config(operatorVersions, shared)),
			reasons: []string{"ConfigurationInvalid"},
		},
		"an OperatorVersion of another cluster's is invalid": {
			definition: newDefinition(&upstream.ConfigReferent{Namespace: "cluster2", Name: "x"}, nil), addOn: newAddOn(),
			version: types.NamespacedName{Namespace: "cluster2", Name: "x"}, reasons: []string{"ConfigurationInvalid"},
		},
		"configs without a namespace are invalid, and both are named": {
			definition: newDefinition(&upstream.ConfigReferent{Name: "x"}, &upstream.ConfigReferent{Name: "y"}), addOn: newAddOn(),
			version: types.NamespacedName{Name: "x"}, configs: []types.NamespacedName{{Name: "y"}},
			reasons: []string{"ConfigurationInvalid", "ConfigurationInvalid"},
		},
		"OCM: its result holds once it is configured": {
			definition: newDefinition(nil, &b),
			addOn:      byOCM("True", desiredBy(deploymentConfigs, a), desiredBy(operatorVersions, shared)),
			version:    key(shared), configs: []types.NamespacedName{key(a)},
		},
		"OCM: a result that is not configured yet is waited for": {
			definition: newDefinition(nil, nil), addOn: byOCM("False", desiredBy(operatorVersions, shared)), reasons: waiting,
		},
		"OCM: references without the condition are waited for": {
			definition: newDefinition(nil, nil), addOn: byOCM("", desiredBy(operatorVersions, shared)), reasons: waiting,
		},
		"OCM: the condition alone is a mark": {
			definition: newDefinition(&shared, nil), addOn: byOCM("Unknown"), reasons: waiting,
		},
		"OCM: its work on the definition is a mark": {
			definition: marked(newDefinition(&shared, nil)), addOn: newAddOn(), reasons: waiting,
		},
		"OCM: nothing is guessed where it has resolved no OperatorVersion": {
			definition: newDefinition(&shared, nil), addOn: byOCM("True"), reasons: []string{"ConfigurationInvalid"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Configure(tc.definition, tc.addOn, Namespaces{Packages: packages})
			if diff := cmp.Diff(tc.version, got.OperatorVersion); diff != "" {
				t.Errorf("OperatorVersion (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.configs, got.DeploymentConfigs); diff != "" {
				t.Errorf("AddOnDeploymentConfigs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.configMaps, got.ConfigMaps); diff != "" {
				t.Errorf("ConfigMaps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.reasons, reasonsOf(got.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%v", diff, got.Problems)
			}
		})
	}
}

// supporting returns the definition with a default config of another resource.
func supporting(
	definition *addonv1alpha1.ClusterManagementAddOn, resource upstream.ConfigGroupResource, r upstream.ConfigReferent,
) *addonv1alpha1.ClusterManagementAddOn {
	definition.Spec.SupportedConfigs = append(definition.Spec.SupportedConfigs, upstream.ConfigMeta{ConfigGroupResource: resource, DefaultConfig: &r})
	return definition
}

func TestConfigureSaysWhatItWaitsFor(t *testing.T) {
	for reason, want := range map[string]string{
		"ConfigurationsNotConfigured": "the rollout of the last change waits for other clusters before it reaches this one: " +
			`see status.installProgressions of ClusterManagementAddOn "kafka"`,
		"Resolving": "OCM's addon-manager has not resolved the add-on's configuration yet: see condition Configured",
	} {
		addOn := newAddOn()
		addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: metav1.ConditionFalse, Reason: reason}}
		if got := Configure(newDefinition(nil, nil), addOn, Namespaces{}).Problems; len(got) != 1 || got[0].Message != want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestVersionInUse(t *testing.T) {
	own, shared := referent("cluster1", "own"), referent(packages, "shared")
	byOCM := func(configured metav1.ConditionStatus, references ...upstream.ConfigReference) *addonv1alpha1.ManagedClusterAddOn {
		addOn := newAddOn()
		addOn.Status.ConfigReferences = references
		addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: configured}}
		return addOn
	}
	for name, tc := range map[string]struct {
		addOn *addonv1alpha1.ManagedClusterAddOn
		want  upstream.ConfigReferent
	}{
		"without OCM, the definition's default":              {newAddOn(), shared},
		"without OCM, the add-on's own":                      {newAddOn(config(operatorVersions, own)), own},
		"what OCM has rolled out":                            {byOCM("True", desiredBy(operatorVersions, own)), own},
		"what the cluster has, until a rollout reaches it":   {byOCM("False", desiredBy(operatorVersions, own)), own},
		"none before the rollout of the first configuration": {addOn: byOCM("False")},
		"none of two": {addOn: byOCM("True", desiredBy(operatorVersions, own), desiredBy(operatorVersions, shared))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := VersionInUse(newDefinition(&shared, nil), tc.addOn); got != types.NamespacedName(tc.want) {
				t.Errorf("got %s, want %s", got, types.NamespacedName(tc.want))
			}
		})
	}
}

func TestConfigureRequiresTheHashesThatOCMRollsOut(t *testing.T) {
	own, rolledOut := desiredBy(deploymentConfigs, referent("cluster1", "own")), desiredBy(deploymentConfigs, referent("hub", "all"))
	version := desiredBy(operatorVersions, referent(packages, "kafka-1.0.0"))
	own.DesiredConfig.SpecHash, rolledOut.DesiredConfig.SpecHash = "1", "2"
	addOn := newAddOn(config(deploymentConfigs, own.DesiredConfig.ConfigReferent))
	addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: metav1.ConditionTrue}}
	addOn.Status.ConfigReferences = []upstream.ConfigReference{own, rolledOut, version}
	want := map[Reference]string{{deploymentConfigs.Resource, types.NamespacedName(rolledOut.DesiredConfig.ConfigReferent)}: "2"}
	if diff := cmp.Diff(want, Configure(newDefinition(nil, nil), addOn, Namespaces{Packages: packages}).Hashes); diff != "" {
		t.Errorf("hashes, without that of a config that the add-on itself names (-want +got):\n%s", diff)
	}
}

func reasonsOf(problems []Problem) []string {
	var reasons []string
	for _, o := range problems {
		reasons = append(reasons, o.Reason)
	}
	return reasons
}

func TestReferences(t *testing.T) {
	shared, a, b := referent(packages, "kafka-1.0.0"), referent("cluster1", "a"), referent("cluster1", "b")
	addOn := newAddOn(config(deploymentConfigs, a))
	addOn.Status.ConfigReferences = []upstream.ConfigReference{desiredBy(deploymentConfigs, b), {ConfigGroupResource: deploymentConfigs}}
	want := []Reference{
		{"operatorversions", types.NamespacedName(shared)},
		{"addondeploymentconfigs", types.NamespacedName(a)},
		{"addondeploymentconfigs", types.NamespacedName(b)},
	}
	if diff := cmp.Diff(want, References(newDefinition(&shared, nil), addOn)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	placed := newDefinition(nil, nil)
	placed.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: []upstream.AddOnConfig{config(deploymentConfigs, a)}}}
	if diff := cmp.Diff(want[1:2], References(placed, nil)); diff != "" {
		t.Errorf("references of placements (-want +got):\n%s", diff)
	}
	if got := References(nil, nil); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}
