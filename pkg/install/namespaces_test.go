package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// inNamespace returns a config in the namespace.
func inNamespace(namespace string) upstream.AddOnConfig {
	return config(deploymentConfigs, referent(namespace, "sizes"))
}

// placing returns a definition with the configs for a Placement.
func placing(configs ...upstream.AddOnConfig) *addonv1alpha1.ClusterManagementAddOn {
	definition := supporting(nil, nil)
	definition.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: configs}}
	return definition
}

const belongs = `belongs to managed cluster "cluster2" and cannot be used on another cluster: copy it to namespace cluster1, or to one that ` +
	`belongs to no cluster`

func TestConfigureRefusesConfigsOfOtherClusters(t *testing.T) {
	version := referent(packages, "kafka-1.0.0")
	byOCM := func(c upstream.AddOnConfig) *addonv1alpha1.ManagedClusterAddOn {
		addOn := enabled()
		addOn.Status.ConfigReferences = []upstream.ConfigReference{
			desiredBy(operatorVersions, version), desiredBy(c.ConfigGroupResource, c.ConfigReferent),
		}
		addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: metav1.ConditionTrue}}
		return addOn
	}
	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		addOn      *addonv1alpha1.ManagedClusterAddOn
		problem    string
	}{
		"the cluster's own namespace":                           {supporting(&version, nil), enabled(inNamespace("cluster1")), ""},
		"a namespace that belongs to no cluster":                {supporting(&version, nil), enabled(inNamespace("shared")), ""},
		"the packages' namespace":                               {supporting(&version, nil), enabled(inNamespace(packages)), ""},
		"another cluster's namespace, named by the add-on":      {supporting(&version, nil), enabled(inNamespace("cluster2")), belongs},
		"another cluster's namespace, the definition's default": {supporting(&version, new(referent("cluster2", "sizes"))), enabled(), belongs},
		"another cluster's namespace, resolved by OCM":          {supporting(&version, nil), byOCM(inNamespace("cluster2")), belongs},
		"another cluster's namespace, beside the cluster's own": {
			supporting(&version, nil), enabled(inNamespace("cluster1"), inNamespace("cluster2")), belongs,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := map[string]bool{"cluster1": true, "cluster2": true}
			got := Configure(tc.definition, tc.addOn, Namespaces{Packages: packages, Clusters: clusters})
			var want []Problem
			if tc.problem != "" {
				want = []Problem{{"ConfigurationInvalid", "AddOnDeploymentConfig cluster2/sizes " + tc.problem}}
			}
			if diff := cmp.Diff(want, got.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigNamespaces(t *testing.T) {
	definition := placing(inNamespace("cluster2"), inNamespace("shared"), inNamespace("cluster1"))
	addOn := enabled(inNamespace("shared"), config(operatorVersions, referent(packages, "x")), inNamespace(""))
	addOn.Status.ConfigReferences = []upstream.ConfigReference{desiredBy(deploymentConfigs, referent("resolved", "a"))}
	want := []string{packages, "cluster2", "resolved", "shared"}
	if diff := cmp.Diff(want, ConfigNamespaces(definition, addOn)); diff != "" {
		t.Errorf("of both (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cluster1", "cluster2", "shared"}, ConfigNamespaces(definition, nil)); diff != "" {
		t.Errorf("of a definition (-want +got):\n%s", diff)
	}
}

func TestAdmitAddOn(t *testing.T) {
	foreign, other := inNamespace("cluster2"), config(upstream.ConfigGroupResource{Resource: "configmaps"}, referent("cluster2", "x"))
	refusal := "ManagedClusterAddOn cluster1/kafka: spec.configs: "
	var many []upstream.AddOnConfig
	for i := range problemLimit + 3 {
		many = append(many, config(deploymentConfigs, referent("cluster2", fmt.Sprint(i))))
	}
	for name, tc := range map[string]struct {
		before, after *addonv1alpha1.ManagedClusterAddOn
		refused       string
	}{
		"no configs":                          {nil, enabled(), ""},
		"configs that the cluster may use":    {nil, enabled(inNamespace("cluster1"), inNamespace("shared"), inNamespace("")), ""},
		"a config that Tandem does not read":  {nil, enabled(other), ""},
		"a config of another cluster":         {nil, enabled(foreign), refusal + "AddOnDeploymentConfig cluster2/sizes " + belongs},
		"the same twice":                      {nil, enabled(foreign, foreign), refusal + "AddOnDeploymentConfig cluster2/sizes " + belongs},
		"an OperatorVersion of another":       {nil, enabled(config(operatorVersions, referent("cluster2", "x"))), refusal + "OperatorVersion cluster2/x " + belongs},
		"a config of another cluster, added":  {enabled(inNamespace("shared")), enabled(inNamespace("shared"), foreign), refusal + "AddOnDeploymentConfig cluster2/sizes " + belongs},
		"an existing reference":               {enabled(foreign), enabled(inNamespace("shared"), foreign), ""},
		"an existing reference, in new order": {enabled(foreign, inNamespace("shared")), enabled(inNamespace("shared"), foreign), ""},
		"more than fit into an answer":        {nil, enabled(many...), "and 3 more problems"},
	} {
		t.Run(name, func(t *testing.T) {
			err := AdmitAddOn(tc.before, tc.after, map[string]bool{"cluster1": true, "cluster2": true})
			switch {
			case (err != nil) != (tc.refused != ""):
				t.Errorf("got %v, want %q", err, tc.refused)
			case err != nil && !strings.Contains(err.Error(), tc.refused):
				t.Errorf("got %q, want %q", err, tc.refused)
			case err != nil && strings.Count(err.Error(), "AddOnDeploymentConfig") > problemLimit:
				t.Errorf("got more than %d problems: %v", problemLimit, err)
			}
		})
	}
}

func TestAdmitDefinition(t *testing.T) {
	warning := func(what string) string {
		return what + ` belongs to managed cluster "cluster2", and the add-on is invalid on every other cluster that gets it: ` +
			"move it to a namespace that belongs to no cluster"
	}
	foreign := referent("cluster2", "sizes")
	sizes := warning("AddOnDeploymentConfig cluster2/sizes")
	for name, tc := range map[string]struct {
		before, after *addonv1alpha1.ClusterManagementAddOn
		warnings      []string
	}{
		"no configs":                        {nil, supporting(nil, nil), nil},
		"a shared default":                  {nil, supporting(nil, new(referent("shared", "sizes"))), nil},
		"a default of a cluster":            {nil, supporting(nil, &foreign), []string{sizes}},
		"a default version of a cluster":    {nil, supporting(&foreign, nil), []string{warning("OperatorVersion cluster2/sizes")}},
		"a Placement's config of a cluster": {nil, placing(inNamespace("cluster2")), []string{sizes}},
		"a default that is added":           {supporting(nil, nil), supporting(nil, &foreign), []string{sizes}},
		"a default that exists":             {supporting(nil, &foreign), supporting(nil, &foreign), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.warnings, AdmitDefinition(tc.before, tc.after, map[string]bool{"cluster2": true})); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayRead(t *testing.T) {
	for namespace, want := range map[string]bool{"cluster1": true, packages: true, "cluster2": false, "": false} {
		if got := MayRead("cluster1", namespace, packages); got != want {
			t.Errorf("namespace %q: got %v", namespace, got)
		}
	}
}
