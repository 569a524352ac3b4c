package stack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// stackOf returns a stack from lines such as "shop: kafka", each installed on cluster c.
func stackOf(lines ...string) Objects {
	var all []Resolved
	for _, line := range lines {
		d := definition(line)
		a := Resolved{Version: types.NamespacedName{Namespace: "packages", Name: d.Name + "-1"}}
		a.Name.Value, a.Clusters = d.Name, []Text{{Value: "c"}}
		for _, need := range d.Spec.Dependencies {
			a.Dependencies = append(a.Dependencies, Dependency{AddonDependency: need})
		}
		all = append(all, a)
	}
	return ObjectsOf("shop", "packages", all)
}

func TestObjectsAreWrittenInTheOrderOfDependencies(t *testing.T) {
	var names []string
	for _, d := range stackOf("shop: kafka, cache?", "kafka: zookeeper", "web", "zookeeper", "cache").Definitions {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "zookeeper kafka cache shop web" {
		t.Errorf("got %s", got)
	}
}

func TestLongParametersAreInAConfigMap(t *testing.T) {
	a := Resolved{Version: types.NamespacedName{Namespace: "packages", Name: "web-1"}}
	a.Name.Value = "web"
	a.Parameters = []Parameter{{Name: "SHORT", Value: strings.Repeat("é", 1024)}, {Name: "LONG", Value: strings.Repeat("é", 1025)}}
	objects := ObjectsOf("shop", "packages", []Resolved{a})
	if len(objects.Values) != 1 || len(objects.Values[0].Data) != 1 || objects.Values[0].Data["LONG"] == "" || objects.Values[0].Labels["kudo.dev/configuration"] != "true" {
		t.Fatalf("got %v", objects.Values)
	}
	if variables := objects.Configs[0].Spec.CustomizedVariables; len(variables) != 1 || variables[0].Name != "SHORT" {
		t.Errorf("got %v", variables)
	}
	supported := objects.Definitions[0].Spec.SupportedConfigs
	if len(supported) != 3 || supported[2].Resource != "configmaps" || supported[2].DefaultConfig.Name != "web-parameters" {
		t.Errorf("got %v", supported)
	}
	if _, marked := objects.Configs[0].Labels["kudo.dev/configuration"]; marked {
		t.Error("the labels of objects are shared")
	}
	a.Parameters = a.Parameters[:1]
	if objects = ObjectsOf("shop", "packages", []Resolved{a}); len(objects.Values) != 0 || len(objects.Definitions[0].Spec.SupportedConfigs) != 2 {
		t.Errorf("got %v", objects)
	}
}

func TestPrune(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "packages", Name: name} }
	on := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "c", Name: name} }
	placed := definition("web")
	placed.Spec.InstallStrategy.Type = "Placements"
	for sentence, test := range map[string]struct {
		marked   Marked
		wanted   Objects
		versions []types.NamespacedName
		want     []string
	}{
		"nothing": {},
		"all is wanted": {
			marked: Marked{AddOns: []types.NamespacedName{on("web")}, Definitions: Definitions{"web": definition("web")},
				Configs: []types.NamespacedName{key("web-parameters")}, Versions: []types.NamespacedName{key("web-1")}},
			wanted: stackOf("web"), versions: []types.NamespacedName{key("web-1")},
		},
		"an add-on that is enabled": {
			marked: Marked{AddOns: []types.NamespacedName{on("web")}, Definitions: Definitions{"web": definition("web")}, Enabled: map[string][]string{"web": {"c"}},
				Configs: []types.NamespacedName{key("web-parameters")}, Versions: []types.NamespacedName{key("web-1")}, InUse: map[types.NamespacedName]bool{key("web-1"): true}},
			want: []string{
				"delete ManagedClusterAddOn c/web", "keep ClusterManagementAddOn /web: web is enabled on c",
				"keep AddOnDeploymentConfig packages/web-parameters: its ClusterManagementAddOn exists", "keep OperatorVersion packages/web-1: it is in use",
			},
		},
		"an add-on that no cluster has": {
			marked: Marked{Definitions: Definitions{"web": definition("web")}, Configs: []types.NamespacedName{key("web-parameters")}, Versions: []types.NamespacedName{key("web-1")}},
			want:   []string{"delete ClusterManagementAddOn /web", "delete AddOnDeploymentConfig packages/web-parameters", "delete OperatorVersion packages/web-1"},
		},
		"a cluster": {
			marked: Marked{AddOns: []types.NamespacedName{on("web"), {Namespace: "d", Name: "web"}}, Definitions: Definitions{"web": definition("web")}},
			wanted: stackOf("web"), want: []string{"delete ManagedClusterAddOn d/web"},
		},
		"an add-on of placements": {
			marked: Marked{Definitions: Definitions{"web": placed}, Enabled: map[string][]string{"web": {"d", "c"}}},
			want:   []string{"withdraw ClusterManagementAddOn /web: web is enabled on c, d"},
		},
		"a ConfigMap of an add-on that has no long parameter any more": {
			marked: Marked{Definitions: Definitions{"web": definition("web")}, Values: []types.NamespacedName{key("web-parameters")}}, wanted: stackOf("web"),
			want: []string{"delete ConfigMap packages/web-parameters"},
		},
		"a package of an add-on that stays": {
			marked: Marked{Definitions: Definitions{"web": definition("web")}, Enabled: map[string][]string{"web": {"c"}},
				Versions: []types.NamespacedName{{Namespace: "addon-packages", Name: "web-1.0.0"}}},
			want: []string{"keep ClusterManagementAddOn /web: web is enabled on c", "keep OperatorVersion addon-packages/web-1.0.0: it is in use"},
		},
		"dependents first, on clusters": {
			marked: Marked{Definitions: Definitions{"a": definition("a"), "b": definition("b: a")}, AddOns: []types.NamespacedName{on("a"), on("b")}},
			wanted: Objects{Definitions: []*addonv1alpha1.ClusterManagementAddOn{definition("a"), definition("b")}},
			want:   []string{"delete ManagedClusterAddOn c/b", "delete ManagedClusterAddOn c/a"},
		},
		"dependents first": {
			marked: Marked{Definitions: Definitions{"a": definition("a"), "b": definition("b: a"), "c": definition("c: b")}},
			want:   []string{"delete ClusterManagementAddOn /c", "delete ClusterManagementAddOn /b", "delete ClusterManagementAddOn /a"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, p := range Prune(test.marked, test.wanted, test.versions) {
				line := fmt.Sprintf("%s %s %s", p.Action, p.Kind, p.NamespacedName)
				if p.Reason != "" {
					line += ": " + p.Reason
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsOfDependenciesAreAtTheirPlaces(t *testing.T) {
	s, problems := Parse(head + "  addOns:\n  - {name: a, package: a, requires: [b], optional: [c]}\n")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	addOns := []Resolved{{Entry: s.AddOns[0]}}
	definitions := ObjectsOf("shop", "packages", addOns).Definitions
	refused, warnings := DependencyProblems(addOns, definitions, Definitions{"c": &addonv1alpha1.ClusterManagementAddOn{}})
	if len(refused) != 1 || refused[0].Place != (Place{6, 38}) || len(warnings) > 0 {
		t.Errorf("got %v, %v", refused, warnings)
	}
	_, warnings = DependencyProblems(addOns, definitions, nil)
	if len(warnings) != 1 || warnings[0].Place != (Place{6, 53}) {
		t.Errorf("got %v", warnings)
	}
}
