package selector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/expression"
)

func byLabel(requirements ...metav1.LabelSelectorRequirement) *addonv1alpha1.ClusterSelector {
	return &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchExpressions: requirements}}
}

func byClaim(requirements ...metav1.LabelSelectorRequirement) *addonv1alpha1.ClusterSelector {
	return &addonv1alpha1.ClusterSelector{ClaimSelector: &addonv1alpha1.ClusterClaimSelector{MatchExpressions: requirements}}
}

func byExpression(expressions ...string) *addonv1alpha1.ClusterSelector {
	return &addonv1alpha1.ClusterSelector{CelSelector: &addonv1alpha1.ClusterCelSelector{CelExpressions: expressions}}
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

var cluster1 = &clusterv1.ManagedCluster{
	ObjectMeta: metav1.ObjectMeta{Name: "cluster1", Labels: map[string]string{
		"env": "prod", "gpu": "true", "feature.open-cluster-management.io/addon-kafka": "available",
	}, Annotations: map[string]string{"note": "x"}},
	Status: clusterv1.ManagedClusterStatus{
		ClusterClaims: []clusterv1.ManagedClusterClaim{
			{Name: "region.example.com", Value: "eu"}, {Name: "platform", Value: "https://example.com/a b"},
		},
		Version: clusterv1.ManagedClusterVersion{Kubernetes: "v1.37.2"},
	},
}

func TestMatches(t *testing.T) {
	for name, tc := range map[string]struct {
		selector *addonv1alpha1.ClusterSelector
		want     bool
	}{
		"no selector":            {nil, true},
		"an empty selector":      {&addonv1alpha1.ClusterSelector{}, true},
		"an empty labelSelector": {byLabel(), true},
		"a label": {&addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"env": "prod"}}}, true},
		"another value of a label": {byLabel(requirement("env", metav1.LabelSelectorOpIn, "dev", "test")), false},
		"a label that is missing":  {byLabel(requirement("zone", metav1.LabelSelectorOpExists)), false},
		"a label that must not be": {byLabel(requirement("zone", metav1.LabelSelectorOpDoesNotExist)), true},
		"a label that OCM sets for an add-on is not seen": {
			byLabel(requirement("feature.open-cluster-management.io/addon-kafka", metav1.LabelSelectorOpExists)), false,
		},
		"a claim":                  {byClaim(requirement("region.example.com", metav1.LabelSelectorOpIn, "eu", "us")), true},
		"another value of a claim": {byClaim(requirement("region.example.com", metav1.LabelSelectorOpNotIn, "eu")), false},
		"a claim that is no label": {byClaim(requirement("env", metav1.LabelSelectorOpExists)), false},
		"an invalid selector":      {byLabel(requirement("env", "Like", "prod")), false},

		"an expression over a label":                 {byExpression(`managedCluster.metadata.labels["env"] == "prod"`), true},
		"an expression over a label that is missing": {byExpression(`managedCluster.metadata.labels["zone"] == "a"`), false},
		"an expression that asks before":             {byExpression(`!has(managedCluster.metadata.labels.zone)`), true},
		"an expression over the name":                {byExpression(`managedCluster.metadata.name.startsWith("cluster")`), true},
		"an expression over claims": {
			byExpression(`managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value.contains("example.com"))`), true,
		},
		"an expression over the version": {
			byExpression(`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.36.0"))`), true,
		},
		"a version that is too old": {
			byExpression(`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.38.0"))`), false,
		},
		"what expressions do not see":           {byExpression(`has(managedCluster.metadata.annotations)`), false},
		"two expressions of which one is false": {byExpression("true", "false"), false},
		"no bool":                               {byExpression(`managedCluster.metadata.labels["gpu"]`), false},
		"an invalid expression":                 {byExpression("managedCluster.metadata."), false},
		"an expression that is too expensive": {byExpression(
			`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, ` +
				`[0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, a + b + c + d + e >= 0)))))`), false},

		"all parts hold": {&addonv1alpha1.ClusterSelector{
			LabelSelector: byLabel(requirement("gpu", metav1.LabelSelectorOpExists)).LabelSelector,
			ClaimSelector: byClaim(requirement("region.example.com", metav1.LabelSelectorOpExists)).ClaimSelector,
			CelSelector:   byExpression("true").CelSelector,
		}, true},
		"one part of three does not hold": {&addonv1alpha1.ClusterSelector{
			LabelSelector: byLabel(requirement("gpu", metav1.LabelSelectorOpExists)).LabelSelector,
			ClaimSelector: byClaim(requirement("zone", metav1.LabelSelectorOpExists)).ClaimSelector,
			CelSelector:   byExpression("true").CelSelector,
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Matches(tc.selector, ClusterOf(cluster1)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		selector *addonv1alpha1.ClusterSelector
		want     string
	}{
		"no selector":         {nil, ""},
		"a valid selector":    {byExpression("true"), ""},
		"an unknown operator": {byLabel(requirement("env", "Like", "prod")), `labelSelector: "Like" is not a valid label selector operator`},
		"In without values": {byClaim(requirement("region", metav1.LabelSelectorOpIn)),
			`claimSelector: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty`},
		"a syntax error": {byExpression("true", "managedCluster."),
			`celSelector.celExpressions[1]: line 1, column 16: Syntax error: no viable alternative at input '.'`},
		"a variable that does not exist": {byExpression("cluster.name == 'a'"),
			`celSelector.celExpressions[0]: line 1, column 1: undeclared reference to 'cluster'; the only variable is managedCluster`},
		"a function that reads other objects": {byExpression("managedCluster.scores('cpu').size() > 0"),
			`celSelector.celExpressions[0]: line 1, column 22: function "scores" is not available`},
		"an expression that doubles a list": {byExpression(`[['a']].map(x, x + x).size() > 0`),
			"celSelector.celExpressions[0]: line 1, column 12: function \"map\" is not available"},
		"an expression that adds": {byExpression(`'a' + 'b' == 'ab'`),
			"celSelector.celExpressions[0]: line 1, column 5: function \"+\" is not available"},
		"an expression that builds a list": {byExpression(`['a'].map(x, x).size() > 0`),
			"celSelector.celExpressions[0]: line 1, column 10: function \"map\" is not available"},
		"an expression that formats a text": {byExpression(`'%s'.format(['a']) == 'a'`),
			"celSelector.celExpressions[0]: line 1, column 12: function \"format\" is not available"},
		"an expression that replaces a text": {byExpression(`'a'.replace('a', 'aaaa') == 'a'`),
			"celSelector.celExpressions[0]: line 1, column 12: function \"replace\" is not available"},
		"too many expressions":  {byExpression(slices.Repeat([]string{"true"}, 9)...), "celSelector: it has more than 8 expressions"},
		"too many requirements": {byClaim(slices.Repeat([]metav1.LabelSelectorRequirement{requirement("a", metav1.LabelSelectorOpExists)}, 17)...), "claimSelector: it has more than 16 requirements"},
		"another type":          {byExpression("'prod'"), "celSelector.celExpressions[0]: the expression returns string and not bool"},
		"a huge expression": {byExpression("'" + strings.Repeat("a", expression.MaxBytes) + "' == ''"),
			"celSelector.celExpressions[0]: the expression has 2056 bytes, more than the limit of 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Problem(tc.selector); got != tc.want && (tc.want == "" || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Hub, command and dashboard read the same, whatever a cluster claims, and whether it comes from a cache or not.
func TestClusterOfIsBounded(t *testing.T) {
	huge := cluster1.DeepCopy()
	huge.Status.Version.Kubernetes = strings.Repeat("1", 1<<20)
	for i := range 200 {
		huge.Status.ClusterClaims = append(huge.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("c%03d", i), Value: "x"})
		huge.Labels[fmt.Sprintf("l%03d", i)] = "x"
	}
	found := ClusterOf(huge)
	if len(found.Labels) != 64 || len(found.Claims) != 64 || len(found.KubernetesVersion) > 64 {
		t.Errorf("%d labels, %d claims and a version of %d bytes", len(found.Labels), len(found.Claims), len(found.KubernetesVersion))
	}
	Trim(huge)
	if diff := cmp.Diff(found, ClusterOf(huge)); diff != "" {
		t.Errorf("from a cache (-direct +cached):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	selector := byLabel(requirement("env", metav1.LabelSelectorOpIn, "prod", "test"))
	selector.ClaimSelector = byClaim(requirement("region", metav1.LabelSelectorOpExists)).ClaimSelector
	selector.CelSelector = byExpression("true\n || false").CelSelector
	if got, want := Text(selector), "env in (prod,test), claim region, CEL true || false"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Text(nil) + Text(&addonv1alpha1.ClusterSelector{}); got != "" {
		t.Errorf("got %q for no selector", got)
	}
}
