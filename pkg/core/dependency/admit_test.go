package dependency

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestAdmit(t *testing.T) {
	const (
		inField      = `ClusterManagementAddOn "kafka": spec.dependencies`
		annotationOf = "annotation addon.open-cluster-management.io/dependencies"
		inAnnotation = `ClusterManagementAddOn "kafka": ` + annotationOf
		wayOut       = ": remove the entry, or another dependency of this cycle"
		cycleB       = "circular dependency: kafka -> b -> kafka" + wayOut
		cycleC       = "circular dependency: kafka -> c -> d -> kafka" + wayOut
	)
	byField := func(needs ...addonv1alpha1.AddonDependency) *addonv1alpha1.ClusterManagementAddOn {
		return definition(nil, needs...)
	}
	byAnnotation := func(text string, needs ...addonv1alpha1.AddonDependency) *addonv1alpha1.ClusterManagementAddOn {
		return definition(&text, needs...)
	}
	need := func(name string) addonv1alpha1.AddonDependency {
		return addonv1alpha1.AddonDependency{Name: name, Type: required}
	}
	// The dependencies of the other add-ons. b, c and d lead back to kafka.
	others := graph("a:", "b: kafka", "c: d", "d: kafka?", "e: b", "f:")

	for name, tc := range map[string]struct {
		old, new *addonv1alpha1.ClusterManagementAddOn
		warnings []string
		errors   []string
	}{
		"no dependencies": {new: byField()},
		"dependencies on what exists, by the field":      {new: byField(need("a"))},
		"dependencies on what exists, by the annotation": {new: byAnnotation(`[{"name":"a"}]`)},

		"a dependency on itself, by the field": {
			new: byField(need("a"), need("kafka")), errors: []string{inField + `[1]: "kafka" depends on itself: remove the entry`},
		},
		"a dependency on itself, by the annotation": {
			new: byAnnotation(`[{"name":"kafka"}]`), errors: []string{inAnnotation + `[0]: "kafka" depends on itself: remove the entry`},
		},
		"a name twice, by the field": {
			new: byField(need("a"), need("a")), errors: []string{inField + `[1]: "a" is listed twice: remove one of the entries`},
		},
		"a name twice, by the annotation": {
			new:    byAnnotation(`[{"name":"a"},{"name":"a"}]`),
			errors: []string{inAnnotation + `[1]: "a" is listed twice: remove one of the entries`},
		},
		"a constraint on versions": {new: byField(addonv1alpha1.AddonDependency{Name: "a", Type: required, Version: ">=3.8 <5"})},
		"no constraint, by the field": {
			new:    byField(addonv1alpha1.AddonDependency{Name: "a", Type: required, Version: "new"}),
			errors: []string{inField + `[0]: "a" has version "new", which is not a constraint such as >=3.8 <5: improper constraint: "new"`},
		},
		"no constraint, by the annotation": {
			new:    byAnnotation(`[{"name":"a","version":">=new"}]`),
			errors: []string{inAnnotation + `[0]: "a" has version ">=new", which is not a constraint such as >=3.8 <5: improper constraint: ">=new"`},
		},
		"an unknown type, by the field": {
			new:    byField(addonv1alpha1.AddonDependency{Name: "a", Type: "Nice"}),
			errors: []string{inField + `[0]: "a" has type "Nice": must be Required or Optional`},
		},
		"an unknown type, by the annotation": {
			new:    byAnnotation(`[{"name":"a","type":"Nice"}]`),
			errors: []string{inAnnotation + `[0]: "a" has type "Nice": must be Required or Optional`},
		},
		"an entry without a name": {
			new: byField(need("")), errors: []string{inField + `[0]: name is required: set it to the name of a ClusterManagementAddOn`},
		},
		"a name that no add-on can have": {
			new: byField(need("A_b")), errors: []string{inField + `[0]: "A_b" cannot be the name of a ClusterManagementAddOn: ` +
				`names consist of lowercase letters, digits, '-' and '.'`},
		},
		"a malformed annotation": {
			new: byAnnotation(`[{"name"`), errors: []string{inAnnotation + `: invalid JSON: unexpected end of JSON input`},
		},
		"a cycle, by the field":      {new: byField(need("a"), need("b")), errors: []string{inField + `[1]: ` + cycleB}},
		"a cycle, by the annotation": {new: byAnnotation(`[{"name":"c"}]`), errors: []string{inAnnotation + `[0]: ` + cycleC}},
		"a cycle by an Optional dependency": {
			new:    byField(addonv1alpha1.AddonDependency{Name: "b", Type: optional}),
			errors: []string{inField + `[0]: ` + cycleB},
		},
		"everything that is wrong is named": {
			new:    byField(need("b"), need("c"), need("kafka"), need("a"), need("a")),
			errors: []string{inField + `[4]: "a" is listed twice: remove one of the entries`, inField + `[0]: ` + cycleB, inField + `[1]: ` + cycleC, inField + `[2]: "kafka" depends on itself: remove the entry`},
		},

		"alternatives": {new: byField(oneOf("a", "f"))},
		"an alternative that does not exist yet": {
			new: byField(oneOf("a", "later")), warnings: []string{`spec.dependencies[0]: ClusterManagementAddOn "later" does not exist yet`},
		},
		"an alternative that no add-on can be": {
			new: byField(oneOf("a", "B_c")), errors: []string{inField + `[0]: "B_c" cannot be the name of a ClusterManagementAddOn: ` +
				`names consist of lowercase letters, digits, '-' and '.'`},
		},
		"an alternative that is listed twice": {
			new: byField(oneOf("a", "f", "f")), errors: []string{inField + `[0]: "f" is listed twice among the alternatives of "a": remove one of them`},
		},
		"an alternative that is the add-on that is named": {
			new: byField(oneOf("a", "a")), errors: []string{inField + `[0]: "a" is listed twice among the alternatives of "a": remove one of them`},
		},
		"an alternative without a name": {
			new:    byAnnotation(`[{"name":"a","alternatives":[""]}]`),
			errors: []string{inAnnotation + `[0]: "a" has an alternative without a name: set it to the name of a ClusterManagementAddOn, or remove it`},
		},
		"too many alternatives": {
			new:    byAnnotation(`[{"name":"a","alternatives":["e1","e2","e3","e4","e5","e6","e7","e8","e9"]}]`),
			errors: []string{inAnnotation + `[0]: "a" has more than 8 alternatives`},
			warnings: []string{
				annotationOf + `[0]: ClusterManagementAddOn "e1" does not exist yet`, annotationOf + `[0]: ClusterManagementAddOn "e2" does not exist yet`,
				annotationOf + `[0]: ClusterManagementAddOn "e3" does not exist yet`, annotationOf + `[0]: ClusterManagementAddOn "e4" does not exist yet`,
				annotationOf + `[0]: ClusterManagementAddOn "e5" does not exist yet`, annotationOf + `[0]: ClusterManagementAddOn "e6" does not exist yet`,
				annotationOf + `[0]: ClusterManagementAddOn "e7" does not exist yet`, annotationOf + `[0]: ClusterManagementAddOn "e8" does not exist yet`,
				annotationOf + `[0]: ClusterManagementAddOn "e9" does not exist yet`,
			},
		},
		"a cycle over an alternative": {new: byField(oneOf("a", "b")), errors: []string{inField + `[0]: ` + cycleB}},
		"an add-on that is its own alternative": {
			new: byField(oneOf("a", "kafka")), errors: []string{inField + `[0]: "kafka" depends on itself: remove the entry`},
		},
		"an alternative that leads back, as the dependency did before": {
			old: byField(need("b")), new: byField(oneOf("a", "b")), warnings: []string{"spec.dependencies[0]: " + cycleB},
		},
		"a cycle on some clusters": {
			new:      byField(where("gpu", need("b"))),
			warnings: []string{"spec.dependencies[0]: on clusters that match every selector in it, " + cycleB},
		},
		"a cycle on some clusters becomes one on all": {
			old: byField(where("gpu", need("b"))), new: byField(need("b")), errors: []string{inField + `[0]: ` + cycleB},
		},
		"a cycle of an empty selector, which selects all clusters": {
			new: byAnnotation(`[{"name":"b","clusters":{}}]`), errors: []string{inAnnotation + `[0]: ` + cycleB},
		},
		"a dependency on itself on some clusters": {
			new: byField(where("gpu", need("kafka"))), errors: []string{inField + `[0]: "kafka" depends on itself: remove the entry`},
		},
		"a selector that is not valid": {
			new: byAnnotation(`[{"name":"a","clusters":{"celSelector":{"celExpressions":["managedCluster.name ="]}}}]`),
			errors: []string{inAnnotation + `[0]: "a" has clusters that are not valid: celSelector.celExpressions[0]: ` +
				`line 1, column 21: Syntax error: token recognition error at: '='`},
		},
		"too many selectors": {
			new:    byAnnotation("[" + strings.TrimSuffix(strings.Repeat(`{"name":"f","clusters":{}},`, 33), ",") + "]"),
			errors: []string{inAnnotation + ": 33 dependencies have clusters, more than 32"},
		},
		"a selector with an unknown field": {
			new:    byAnnotation(`[{"name":"a","clusters":{"labels":{"gpu":"true"}}}]`),
			errors: []string{inAnnotation + `: invalid JSON: unknown field "[0].clusters.labels"`},
		},

		"the annotation beside the field is not used": {
			new: byAnnotation(`[{"name":"b"}]`, need("a")),
			warnings: []string{
				annotationOf + " is ignored because spec.dependencies is set: remove one of them",
			},
		},
		"a dependency that may come later": {
			new:      byAnnotation(`[{"name":"later"}]`),
			warnings: []string{annotationOf + `[0]: ClusterManagementAddOn "later" does not exist yet`},
		},

		"a write that keeps an existing cycle is allowed": {old: byField(need("b")), new: byField(need("b"))},
		"a write that leaves a malformed annotation as it is passes": {
			old: byAnnotation("{"), new: byAnnotation("{"),
		},
		"a write that changes a malformed annotation into another one is refused": {
			old: byAnnotation("[{"), new: byAnnotation(`[{"name":`),
			errors: []string{inAnnotation + `: invalid JSON: unexpected end of JSON input`},
		},
		"one of two cycles is broken, with a warning about the other": {
			old: byField(need("b"), need("c")), new: byField(need("c")), warnings: []string{"spec.dependencies[0]: " + cycleC},
		},
		"a cycle is broken and another one added": {
			old: byField(need("b")), new: byField(need("c")), errors: []string{inField + `[0]: ` + cycleC},
		},
		"the type of a circular dependency may change": {
			old: byField(need("b")), new: byField(addonv1alpha1.AddonDependency{Name: "b", Type: optional}),
			warnings: []string{"spec.dependencies[0]: " + cycleB},
		},
		"a cycle moves from the field to the annotation": {
			old: byField(need("b")), new: byAnnotation(`[{"name":"b"}]`), warnings: []string{annotationOf + "[0]: " + cycleB},
		},
		"one of two malformed entries is mended": {
			old:      byAnnotation(`[{"name":"a"},{"name":"a"},{"name":"e","type":"x"}]`),
			new:      byAnnotation(`[{"name":"a"},{"name":"e","type":"x"}]`),
			warnings: []string{annotationOf + `[1]: "e" has type "x": must be Required or Optional`, annotationOf + "[1]: circular dependency: kafka -> e -> b -> kafka" + wayOut},
		},
		"a third entry of a name that was listed twice is rejected": {
			old:      byAnnotation(`[{"name":"a"},{"name":"a"}]`),
			new:      byAnnotation(`[{"name":"a"},{"name":"a"},{"name":"a"}]`),
			warnings: []string{annotationOf + `[1]: "a" is listed twice: remove one of the entries`},
			errors:   []string{inAnnotation + `[2]: "a" is listed twice: remove one of the entries`},
		},
		"removing the field makes the annotation effective": {
			old: byAnnotation(`[{"name":"b"}]`, need("a")), new: byAnnotation(`[{"name":"b"}]`),
			errors: []string{inAnnotation + `[0]: ` + cycleB},
		},
		"an annotation that is removed": {old: byAnnotation("{"), new: byField()},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tc.old, tc.new, others)
			warnings, err := Admit(tc.old, tc.new, in(others))
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			var got []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.errors, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if after := fmt.Sprint(tc.old, tc.new, others); before != after {
				t.Errorf("input was changed: %s\n%s", before, after)
			}
		})
	}
}

func TestFindRemoved(t *testing.T) {
	const inAnnotation = "annotation addon.open-cluster-management.io/dependencies"
	annotated := func(text string, needs ...string) *addonv1alpha1.ClusterManagementAddOn {
		return definition(&text, requiredDependencies(needs...)...)
	}
	field := func(needs ...string) *addonv1alpha1.ClusterManagementAddOn {
		return definition(nil, requiredDependencies(needs...)...)
	}
	for name, tc := range map[string]struct {
		old, new *addonv1alpha1.ClusterManagementAddOn
		want     []string
		where    string
	}{
		"a creation":                           {nil, field(), nil, ""},
		"there were none":                      {field(), field(), nil, ""},
		"the annotation is dropped":            {annotated(`[{"name":"a"},{"name":"b","type":"Optional"}]`), field(), []string{"a", "b"}, inAnnotation},
		"the annotation becomes empty":         {annotated(`[{"name":"a"}]`), annotated(`[]`), []string{"a"}, inAnnotation},
		"the field is dropped":                 {field("a", "b"), field(), []string{"a", "b"}, "spec.dependencies"},
		"the field takes over":                 {annotated(`[{"name":"a"}]`), field("a"), nil, ""},
		"the field takes over with other ones": {annotated(`[{"name":"a"}]`), field("b"), nil, ""},
		"the annotation takes over":            {field("a"), annotated(`[{"name":"a"}]`), nil, ""},
		"the annotation beside the field":      {annotated(`[{"name":"a"}]`, "b"), field("b"), nil, ""},
		"the field over the annotation":        {annotated(`[{"name":"a"}]`, "b"), annotated(`[{"name":"a"}]`), nil, ""},
		"both":                                 {annotated(`[{"name":"a"}]`, "b"), field(), []string{"b"}, "spec.dependencies"},
		"one of two":                           {field("a", "b"), field("a"), nil, ""},
		"a malformed annotation is dropped":    {annotated(`{`), field(), nil, ""},
		"the annotation becomes malformed":     {annotated(`[{"name":"a"}]`), annotated(`{`), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			needs, where := FindRemoved(tc.old, tc.new)
			var got []string
			for _, need := range needs {
				got = append(got, need.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if len(got) > 0 && where != tc.where {
				t.Errorf("got %q, want %q", where, tc.where)
			}
		})
	}
}

// requiredDependencies returns required dependencies.
func requiredDependencies(names ...string) []addonv1alpha1.AddonDependency {
	var needs []addonv1alpha1.AddonDependency
	for _, name := range names {
		needs = append(needs, addonv1alpha1.AddonDependency{Name: name, Type: required})
	}
	return needs
}

func TestAdmitDistinguishesProblemsByType(t *testing.T) {
	text := `[{"name":"kafka"},{"name":"a"},{"name":"a"}]`
	_, err := Admit(nil, definition(&text), in(graph("a:")))
	var malformed *MalformedError
	var circular *CircularError
	if !errors.As(err, &malformed) || !errors.As(err, &circular) {
		t.Errorf("%v is not both malformed and circular", err)
	}
	if diff := cmp.Diff([]string{"kafka", "kafka"}, circular.Cycle); diff != "" {
		t.Errorf("cycle (-want +got):\n%s", diff)
	}
}

func TestAdmitNamesTenFaultsAtMost(t *testing.T) {
	var needs []addonv1alpha1.AddonDependency
	for range 13 {
		needs = append(needs, addonv1alpha1.AddonDependency{Name: "a"})
	}
	_, err := Admit(nil, definition(nil, needs...), in(graph("a:")))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 11 || lines[10] != "2 more problems" {
		t.Errorf("got %d lines: %v", len(lines), err)
	}
}

func TestNeeds(t *testing.T) {
	malformed := "{"
	if needs := Needs(nil); needs != nil {
		t.Errorf("without a definition: %v, want nil", needs)
	}
	for name, d := range map[string]*addonv1alpha1.ClusterManagementAddOn{
		"nothing declared": definition(nil), "malformed": definition(&malformed),
	} {
		if needs := Needs(d); needs == nil || len(needs) != 0 {
			t.Errorf("%s: %#v, want none but not nil", name, needs)
		}
	}
}
