package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// defineParameters makes the add-on's OperatorVersion define these parameters.
func defineParameters(names ...string) func(*AddOn) {
	return func(a *AddOn) { a.Version = versionOf("kafka", "kafka-1.0.0", names...) }
}

func versionOf(operator, name string, parameters ...string) *kudo.OperatorVersion {
	v := version()
	v.Name, v.Spec.Operator.Name, v.Spec.Parameters = name, operator, nil
	for _, p := range parameters {
		v.Spec.Parameters = append(v.Spec.Parameters, kudo.Parameter{Name: p})
	}
	return v
}

func TestDoubts(t *testing.T) {
	for name, tc := range map[string]struct {
		addOn AddOn
		want  []string // VARIABLE meant as PARAMETER in CONFIG, CONFIG
	}{
		"no configuration":               {addOn: addOn()},
		"only defined variables":         {addOn: addOn(variables("a", "", "TEXT", "x"))},
		"a variable close to no other":   {addOn: addOn(variables("a", "", "TYPO", "x"))},
		"a missing letter":               {addOn().with(defineParameters("BROKERS")), nil},
		"a misspelt parameter":           {addOn(variables("a", "", "BROKRS", "5")).with(defineParameters("BROKERS", "TOPICS")), []string{"BROKRS meant as BROKERS in a"}},
		"another case":                   {addOn(variables("a", "", "brokers", "5")).with(defineParameters("BROKERS")), []string{"brokers meant as BROKERS in a"}},
		"set elsewhere in the same way":  {addOn: addOn(variables("a", "", "BROKRS", "5", "BROKERS", "3")).with(defineParameters("BROKERS"))},
		"set by another config":          {addOn: addOn(variables("a", "", "BROKRS", "5"), variables("b", "", "BROKERS", "3")).with(defineParameters("BROKERS"))},
		"the closest one is set already": {addOn(variables("a", "", "COUNTS", "5", "COUNT", "3")).with(defineParameters("COUNT", "COUNTER")), []string{"COUNTS meant as COUNTER in a"}},
		"in two configs":                 {addOn(variables("a", "", "BROKRS", "5"), variables("b", "", "BROKRS", "3")).with(defineParameters("BROKERS")), []string{"BROKRS meant as BROKERS in a, b"}},
		"several, sorted": {
			addOn(variables("a", "", "TOPIKS", "5", "BROKRS", "3")).with(defineParameters("BROKERS", "TOPICS")),
			[]string{"BROKRS meant as BROKERS in a", "TOPIKS meant as TOPICS in a"},
		},
		"a parameter that no variable can have the name of": {addOn: addOn(variables("a", "", "LOG", "5")).with(defineParameters("LOG.LEVEL", "log-s"))},
		"no OperatorVersion": {addOn: addOn(variables("a", "", "COUNTS", "5")).with(func(a *AddOn) { a.Version = nil })},
		"a missing config":   {addOn: addOn(variables("a", "", "COUNTS", "5")).with(func(a *AddOn) { a.DeploymentConfigs = nil })},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range tc.addOn.Doubts() {
				var configs []string
				for _, config := range d.Configs {
					configs = append(configs, config.Name)
				}
				got = append(got, fmt.Sprintf("%s meant as %s in %s", d.Variable, d.Meant, strings.Join(configs, ", ")))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("doubts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOthersDefine(t *testing.T) {
	shared := referent("cluster1", "a")
	// using returns the definition of another add-on that runs the version, with the config as its default.
	using := func(name string, version string) addonv1alpha1.ClusterManagementAddOn {
		d := newDefinition(new(referent(packages, version)), &shared)
		d.Name = name
		return *d
	}
	plain := func(name string, config *upstream.ConfigReferent) addonv1alpha1.ClusterManagementAddOn {
		d := newDefinition(nil, config)
		d.Name, d.Spec.SupportedConfigs = name, d.Spec.SupportedConfigs[:1]
		return *d
	}
	on := func(name string, configs ...upstream.AddOnConfig) addonv1alpha1.ManagedClusterAddOn {
		a := newAddOn(configs...)
		a.Name = name
		return *a
	}
	placed := func(d addonv1alpha1.ClusterManagementAddOn) addonv1alpha1.ClusterManagementAddOn {
		d.Spec.SupportedConfigs[0].DefaultConfig = nil
		d.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: []upstream.AddOnConfig{config(deploymentConfigs, shared)}}}
		return d
	}
	byStatus := func(a addonv1alpha1.ManagedClusterAddOn) addonv1alpha1.ManagedClusterAddOn {
		a.Status.ConfigReferences = []upstream.ConfigReference{desiredBy(deploymentConfigs, shared)}
		return a
	}
	type definitions = []addonv1alpha1.ClusterManagementAddOn
	type addOns = []addonv1alpha1.ManagedClusterAddOn
	own := *versionOf("kafka", "kafka-1.0.0", "BROKERS")

	for name, tc := range map[string]struct {
		versions []kudo.OperatorVersion
		Others
		want bool
	}{
		"nothing else exists": {},
		"another version of the operator defines it": {
			versions: []kudo.OperatorVersion{*versionOf("kafka", "kafka-2.0.0", "BROKRS")}, want: true,
		},
		"another version of the operator defines others": {versions: []kudo.OperatorVersion{*versionOf("kafka", "kafka-2.0.0", "TOPICS")}},
		"a version of another operator defines it, which no add-on with the config runs": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0", "BROKRS")},
			Others:   Others{Definitions: definitions{plain("other", new(referent("cluster1", "b")))}},
		},
		"another add-on with the config defines it": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0", "BROKRS")},
			Others:   Others{Definitions: definitions{using("shop", "shop-1.0.0")}}, want: true,
		},
		"another add-on with the config, by a Placement, defines it": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0", "BROKRS")},
			Others:   Others{Definitions: definitions{placed(using("shop", "shop-1.0.0"))}}, want: true,
		},
		"another version of that add-on's operator defines it": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0"), *versionOf("shop", "shop-2.0.0", "BROKRS")},
			Others:   Others{Definitions: definitions{using("shop", "shop-1.0.0")}}, want: true,
		},
		"another add-on with the config does not define it": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0", "BROKERS")},
			Others:   Others{Definitions: definitions{using("shop", "shop-1.0.0")}},
		},
		"the OperatorVersion of another add-on with the config does not exist": {
			Others: Others{Definitions: definitions{using("shop", "shop-1.0.0")}}, want: true,
		},
		"another add-on with the config is not plan-based": {
			Others: Others{Definitions: definitions{plain("other", &shared)}}, want: true,
		},
		"another add-on is not plan-based and has another config": {
			Others: Others{Definitions: definitions{plain("other", new(referent("cluster1", "b")))}},
		},
		"another add-on has the config on one cluster, and defines it": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0", "BROKRS")},
			Others: Others{
				Definitions: definitions{placed(using("shop", "shop-1.0.0"))}, AddOns: addOns{on("shop", config(deploymentConfigs, shared))},
			}, want: true,
		},
		"another add-on has the config and the version on one cluster": {
			versions: []kudo.OperatorVersion{*versionOf("shop", "shop-1.0.0", "BROKRS")},
			Others: Others{
				Definitions: definitions{func() addonv1alpha1.ClusterManagementAddOn { d := newDefinition(nil, nil); d.Name = "shop"; return *d }()},
				AddOns:      addOns{on("shop", config(deploymentConfigs, shared), config(operatorVersions, referent(packages, "shop-1.0.0")))},
			}, want: true,
		},
		"another add-on with the config has no definition": {
			Others: Others{AddOns: addOns{on("shop", config(deploymentConfigs, shared))}}, want: true,
		},
		"what only the status names follows from a spec": {
			Others: Others{AddOns: addOns{byStatus(on("shop"))}},
		},
		"the add-on itself does not count": {
			Others: Others{Definitions: definitions{using("kafka", "kafka-1.0.0")}, AddOns: addOns{on("kafka", config(deploymentConfigs, shared))}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := addOn(variables("a", "", "BROKRS", "5")).with(func(a *AddOn) { a.Version = &own })
			tc.Others.Versions = append(tc.versions, own)
			got := tc.Others.Define("kafka", "kafka", a.Doubts())
			if diff := cmp.Diff(map[string]bool{"BROKRS": tc.want}, got); diff != "" {
				t.Errorf("defined elsewhere (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMisspeltVariablesAreBounded(t *testing.T) {
	var names, pairs []string
	for i := range problemLimit + 3 {
		names, pairs = append(names, fmt.Sprintf("PARAMETER_%c%[1]c%[1]c%[1]c", 'A'+i)), append(pairs, fmt.Sprintf("PARAMETER_%c%[1]c%[1]c", 'A'+i), "x")
	}
	got := Decide(addOn(variables("a", "", pairs...)).with(defineParameters(names...)))
	lines := strings.Split(got.Resolved.Message, "\n")
	if len(lines) != problemLimit+1 || lines[problemLimit] != "and 3 more misspelt variables" {
		t.Errorf("got %d lines, the last one is %q", len(lines), lines[len(lines)-1])
	}
}

func TestIgnoredVariablesAreBounded(t *testing.T) {
	var pairs []string
	for i := range problemLimit + 3 {
		pairs = append(pairs, strings.Repeat(string(rune('a'+i)), 9), "x")
	}
	if got := Decide(addOn(variables("a", "", pairs...))).Remarks; len(got) != 1 || !strings.HasSuffix(got[0], ", jjjjjjjjj and 3 more") {
		t.Errorf("got %q", got)
	}
}

func TestRemarks(t *testing.T) {
	condition := func(status metav1.ConditionStatus, message string) *metav1.Condition {
		return &metav1.Condition{Type: "Resolved", Status: status, Message: message}
	}
	for name, tc := range map[string]struct {
		resolved *metav1.Condition
		want     []string
	}{
		"no condition": {},
		"none":         {condition("True", "OperatorVersion a/b"), []string{}},
		"two":          {condition("True", "OperatorVersion a/b\none\ntwo"), []string{"one", "two"}},
		"those of a False one are part of its problem": {condition("False", "a\nb"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Remarks(tc.resolved)); diff != "" {
				t.Errorf("remarks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheInstallNamespaceThatIsRequested(t *testing.T) {
	for name, tc := range map[string]struct {
		requested, config, runs string
		want                    bool
	}{
		"the same":                       {requested: "data", runs: "data"},
		"another one":                    {requested: "other", runs: "data", want: true},
		"none":                           {runs: "data"},
		"OCM's default":                  {requested: DefaultInstallNamespace, runs: "data"},
		"another one than OCM's default": {requested: "other", runs: DefaultInstallNamespace, want: true},
		"another one, by the config":     {requested: "data", config: "other", runs: "data", want: true},
		"the same one, by the config":    {requested: "other", config: "data", runs: "data"},
		"the namespace of the cluster":   {requested: "cluster1", runs: ""},
		"another one than the namespace of the cluster": {requested: "other", runs: "", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := addOn(variables("a", tc.config)).with(func(a *AddOn) {
				a.ManagedAddOn.Spec.InstallNamespace = tc.requested
				a.Instances = []kudo.Instance{own("Resolved", 7, installedIn(tc.runs))}
			})
			if got := Decide(a); (len(got.Remarks) > 0) != tc.want || got.Resolved.Status != metav1.ConditionTrue ||
				got.Instance.Spec.InstallNamespace != tc.runs {
				t.Errorf("got %+v with remarks %q", got.Resolved, got.Remarks)
			}
		})
	}
	if got := Decide(addOn()).Remarks; len(got) > 0 {
		t.Errorf("there is no Instance yet, and got %q", got)
	}
}
