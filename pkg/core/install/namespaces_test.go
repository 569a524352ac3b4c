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

// newPlacementDefinition returns a definition with the configs for a Placement.
func newPlacementDefinition(configs ...upstream.AddOnConfig) *addonv1alpha1.ClusterManagementAddOn {
	definition := newDefinition(nil, nil)
	definition.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: configs}}
	return definition
}

// cannotUse is the message about a config that add-ons of cluster1 must not use.
func cannotUse(name, namespace string) string {
	return "AddOnDeploymentConfig " + namespace + "/" + name + ` cannot be used on managed cluster "cluster1": copy it to namespace cluster1, ` +
		"or ask an administrator of the hub to share namespace " + namespace + " (flag --config-namespaces of addon-manager, or label " +
		"kudo.dev/shared-configs=true; namespaces of clusters cannot be shared)"
}

// hubNamespaces has two clusters, of which cluster2 is detached, and namespaces of every other kind.
func hubNamespaces() Namespaces {
	return Namespaces{Packages: packages, Configs: []string{"shared", "cluster2"}, Existing: map[string]Namespace{
		"cluster1": {Cluster: true}, "cluster2": {Cluster: true, Shared: true}, "shared": {}, "labelled": {Shared: true}, "private": {}, packages: {},
	}}
}

func TestConfigureRefusesConfigsThatTheClusterMustNotUse(t *testing.T) {
	version := referent(packages, "kafka-1.0.0")
	byOCM := func(addOn *addonv1alpha1.ManagedClusterAddOn, c upstream.AddOnConfig) *addonv1alpha1.ManagedClusterAddOn {
		addOn.Status.ConfigReferences = []upstream.ConfigReference{
			desiredBy(operatorVersions, version), desiredBy(c.ConfigGroupResource, c.ConfigReferent),
		}
		addOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: metav1.ConditionTrue}}
		return addOn
	}
	plain, private := newDefinition(&version, nil), inNamespace("private")
	placed := newPlacementDefinition(private)
	placed.Spec.SupportedConfigs = plain.Spec.SupportedConfigs
	rolling := newPlacementDefinition(inNamespace("cluster1"))
	rolling.Spec.SupportedConfigs = plain.Spec.SupportedConfigs
	rolling.Status.InstallProgressions = []upstream.InstallProgression{{ConfigReferences: []upstream.InstallConfigReference{
		{ConfigGroupResource: operatorVersions, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: private.ConfigReferent}},
		{ConfigGroupResource: deploymentConfigs, LastKnownGoodConfig: &upstream.ConfigSpecHash{ConfigReferent: referent("private", "good")}},
	}}}
	good := config(deploymentConfigs, referent("private", "good"))
	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		addOn      *addonv1alpha1.ManagedClusterAddOn
		refused    string
	}{
		"the cluster's own namespace":                              {plain, newAddOn(inNamespace("cluster1")), ""},
		"the packages' namespace":                                  {plain, newAddOn(inNamespace(packages)), ""},
		"a namespace that the flag shares":                         {plain, newAddOn(inNamespace("shared")), ""},
		"a namespace that its label shares":                        {plain, newAddOn(inNamespace("labelled")), ""},
		"a private namespace":                                      {plain, newAddOn(private), "private"},
		"a namespace that does not exist":                          {plain, newAddOn(inNamespace("missing")), "missing"},
		"a cluster's namespace that flag and label share":          {plain, newAddOn(inNamespace("cluster2")), "cluster2"},
		"a cluster's namespace, the definition's default":          {newDefinition(&version, new(referent("cluster2", "sizes"))), newAddOn(), "cluster2"},
		"a cluster's namespace, resolved by OCM":                   {plain, byOCM(newAddOn(), inNamespace("cluster2")), "cluster2"},
		"a cluster's namespace, beside the cluster's own":          {plain, newAddOn(inNamespace("cluster1"), inNamespace("cluster2")), "cluster2"},
		"a private namespace, the definition's default":            {newDefinition(&version, new(referent("private", "sizes"))), newAddOn(), ""},
		"that default, which the add-on names":                     {newDefinition(&version, new(referent("private", "sizes"))), newAddOn(private), ""},
		"another config beside that default":                       {newDefinition(&version, new(referent("private", "other"))), newAddOn(private), "private"},
		"a private namespace, in a status that anyone has written": {plain, byOCM(newAddOn(), private), "private"},
		"a private namespace, for a Placement":                     {placed, byOCM(newAddOn(), private), ""},
		"a private namespace, before a rollout":                    {rolling, byOCM(newAddOn(), good), ""},
		"a private namespace of another kind, before a rollout":    {rolling, byOCM(newAddOn(), private), "private"},
		"a Placement's, which the add-on of any cluster names":     {placed, byOCM(newAddOn(private), private), "private"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Configure(tc.definition, tc.addOn, hubNamespaces())
			var want []Problem
			if tc.refused != "" {
				want = []Problem{{"ConfigurationInvalid", cannotUse("sizes", tc.refused)}}
			}
			if diff := cmp.Diff(want, got.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigureDoubtsWhatAPreviewDoesNotKnow(t *testing.T) {
	version := referent(packages, "kafka-1.0.0")
	namespaces := hubNamespaces()
	namespaces.Lenient = true
	got := Configure(newDefinition(&version, nil), newAddOn(inNamespace("private"), inNamespace("shared"), inNamespace("cluster2")), namespaces)
	if diff := cmp.Diff([]string{cannotUse("sizes", "private")}, got.Doubts); diff != "" {
		t.Errorf("doubts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Problem{{"ConfigurationInvalid", cannotUse("sizes", "cluster2")}}, got.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNamespaceOf(t *testing.T) {
	const ocm, redHat, shared = "open-cluster-management.io/cluster-name", "cluster.open-cluster-management.io/managedCluster", "kudo.dev/shared-configs"
	for name, tc := range map[string]struct {
		labels, kept map[string]string
		want         Namespace
	}{
		"no labels":                     {nil, nil, Namespace{}},
		"other labels":                  {map[string]string{"a": "b"}, nil, Namespace{}},
		"OCM's":                         {map[string]string{ocm: "c", "a": "b"}, map[string]string{ocm: "c"}, Namespace{Cluster: true}},
		"OCM's without a value":         {map[string]string{ocm: ""}, map[string]string{ocm: ""}, Namespace{Cluster: true}},
		"Red Hat's":                     {map[string]string{redHat: "c"}, map[string]string{redHat: "c"}, Namespace{Cluster: true}},
		"shared":                        {map[string]string{shared: "true"}, map[string]string{shared: "true"}, Namespace{Shared: true}},
		"not shared":                    {map[string]string{shared: "false"}, map[string]string{shared: "false"}, Namespace{}},
		"a cluster's, and shared":       {map[string]string{ocm: "c", shared: "true"}, map[string]string{ocm: "c", shared: "true"}, Namespace{true, true}},
		"shared, with a value like yes": {map[string]string{shared: "yes"}, map[string]string{shared: "yes"}, Namespace{}},
	} {
		t.Run(name, func(t *testing.T) {
			kept := NamespaceLabels(tc.labels)
			if diff := cmp.Diff(tc.kept, kept); diff != "" {
				t.Errorf("kept labels (-want +got):\n%s", diff)
			}
			if got := [2]Namespace{NamespaceOf(tc.labels), NamespaceOf(kept)}; got != [2]Namespace{tc.want, tc.want} {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestConfigNamespaces(t *testing.T) {
	definition := newPlacementDefinition(inNamespace("cluster2"), inNamespace("shared"), inNamespace("cluster1"))
	addOn := newAddOn(inNamespace("shared"), config(operatorVersions, referent(packages, "x")), inNamespace(""))
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
	foreign, other := inNamespace("private"), config(upstream.ConfigGroupResource{Resource: "secrets"}, referent("cluster2", "x"))
	refusal := "ManagedClusterAddOn cluster1/kafka: spec.configs: "
	version := func(namespace string) string {
		return `OperatorVersion "x" is in namespace "` + namespace + `", which agents are not allowed to read: push it to ` + packages +
			", or to cluster1 for this cluster only"
	}
	var many []upstream.AddOnConfig
	for i := range problemLimit + 3 {
		many = append(many, config(deploymentConfigs, referent("private", fmt.Sprint(i))))
	}
	for name, tc := range map[string]struct {
		before, after *addonv1alpha1.ManagedClusterAddOn
		refused       string
	}{
		"no configs":                         {nil, newAddOn(), ""},
		"configs that the cluster may use":   {nil, newAddOn(inNamespace("cluster1"), inNamespace("shared"), inNamespace("")), ""},
		"a config that Tandem does not read": {nil, newAddOn(other), ""},
		"a config of another cluster":        {nil, newAddOn(inNamespace("cluster2")), refusal + cannotUse("sizes", "cluster2")},
		"a config that does not exist":       {nil, newAddOn(inNamespace("missing")), refusal + cannotUse("sizes", "missing")},
		"a private config":                   {nil, newAddOn(foreign), refusal + cannotUse("sizes", "private")},
		"the same twice":                     {nil, newAddOn(foreign, foreign), refusal + cannotUse("sizes", "private")},
		"the definition's default":           {nil, newAddOn(inNamespace("default")), ""},
		"an OperatorVersion of another":      {nil, newAddOn(config(operatorVersions, referent("cluster2", "x"))), refusal + version("cluster2")},
		"an OperatorVersion that is nowhere": {nil, newAddOn(config(operatorVersions, referent("missing", "x"))), refusal + version("missing")},
		"a ConfigMap of the cluster":         {nil, newAddOn(config(configMaps, referent("cluster1", "x"))), ""},
		"a ConfigMap for all":                {nil, newAddOn(config(configMaps, referent(packages, "x"))), ""},
		"a ConfigMap in a shared namespace": {nil, newAddOn(config(configMaps, referent("shared", "x"))), refusal +
			`ConfigMap shared/x cannot be used on managed cluster "cluster1": copy it to namespace cluster1, or to ` + packages + " for all clusters"},
		"an OperatorVersion for all":          {nil, newAddOn(config(operatorVersions, referent(packages, "x"))), ""},
		"a private config, added":             {newAddOn(inNamespace("shared")), newAddOn(inNamespace("shared"), foreign), refusal + cannotUse("sizes", "private")},
		"an existing reference":               {newAddOn(foreign), newAddOn(inNamespace("shared"), foreign), ""},
		"an existing reference, in new order": {newAddOn(foreign, inNamespace("shared")), newAddOn(inNamespace("shared"), foreign), ""},
		"more than fit into an answer":        {nil, newAddOn(many...), "and 3 more problems"},
	} {
		t.Run(name, func(t *testing.T) {
			err := AdmitAddOn(newDefinition(nil, new(referent("default", "sizes"))), tc.before, tc.after, hubNamespaces())
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
		"no configs":                        {nil, newDefinition(nil, nil), nil},
		"a shared default":                  {nil, newDefinition(nil, new(referent("shared", "sizes"))), nil},
		"a default of a cluster":            {nil, newDefinition(nil, &foreign), []string{sizes}},
		"a default version of a cluster":    {nil, newDefinition(&foreign, nil), []string{warning("OperatorVersion cluster2/sizes")}},
		"a Placement's config of a cluster": {nil, newPlacementDefinition(inNamespace("cluster2")), []string{sizes}},
		"a default that is added":           {newDefinition(nil, nil), newDefinition(nil, &foreign), []string{sizes}},
		"a default that exists":             {newDefinition(nil, &foreign), newDefinition(nil, &foreign), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.warnings, AdmitDefinition(tc.before, tc.after, hubNamespaces())); diff != "" {
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
