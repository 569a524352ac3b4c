package stack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// definition returns an add-on from a line such as "shop: kafka, monitoring?", with a question mark after what is optional.
func definition(line string) *addonv1alpha1.ClusterManagementAddOn {
	name, rest, _ := strings.Cut(line, ":")
	a := AddOn{Name: name, Version: types.NamespacedName{Namespace: "addon-packages", Name: name + "-1.0.0"}}
	for need := range strings.SplitSeq(rest, ",") {
		need = strings.TrimSpace(need)
		if need == "" {
			continue
		}
		need, optional := strings.CutSuffix(need, "?")
		need, constraint, _ := strings.Cut(need, "@")
		d := addonv1alpha1.AddonDependency{Name: need, Type: addonv1alpha1.DependencyTypeRequired, Version: constraint}
		if optional {
			d.Type = addonv1alpha1.DependencyTypeOptional
		}
		a.Dependencies = append(a.Dependencies, d)
	}
	return a.Definition()
}

func TestCheckDependencies(t *testing.T) {
	for sentence, test := range map[string]struct {
		existing, written, refused, warnings []string
	}{
		"nothing to check":              {written: []string{"shop"}},
		"one that exists":               {existing: []string{"kafka"}, written: []string{"shop: kafka"}},
		"one that is written too":       {written: []string{"shop: kafka", "kafka"}},
		"one that is similar":           {existing: []string{"kafka"}, written: []string{"shop: kafke"}, refused: []string{`shop[0]: required add-on "kafke" does not exist (did you mean kafka?)`}},
		"one that is nowhere":           {written: []string{"shop: kafka"}, refused: []string{`shop[0]: required add-on "kafka" does not exist: create it first ('kubectl addon create'), or make the dependency optional`}},
		"one with a constraint":         {existing: []string{"kafka"}, written: []string{"shop: kafka@>=3.8 <5"}},
		"one with no such constraint":   {existing: []string{"kafka"}, written: []string{"shop: kafka@new"}, refused: []string{`shop[0]: add-on "kafka" has version "new", which is not a constraint such as >=3.8 <5: improper constraint: "new"`}},
		"an optional one that is not":   {written: []string{"shop: kafka?"}, warnings: []string{`shop[0]: ClusterManagementAddOn "kafka" does not exist yet`}},
		"an add-on itself":              {written: []string{"shop: shop"}, refused: []string{`shop[0]: add-on "shop" depends on itself: remove the entry`}},
		"one twice":                     {existing: []string{"kafka"}, written: []string{"shop: kafka, kafka?"}, refused: []string{`shop[1]: add-on "kafka" is listed twice: remove one of the entries`}},
		"a cycle over one that exists":  {existing: []string{"kafka: shop"}, written: []string{"shop: kafka"}, refused: []string{"shop[0]: circular dependency: shop -> kafka -> shop: remove the entry, or another dependency of this cycle"}},
		"a cycle is named once":         {written: []string{"a: b", "b: c", "c: a"}, refused: []string{"a[0]: circular dependency: a -> b -> c -> a: remove the entry, or another dependency of this cycle"}},
		"two cycles are both named":     {written: []string{"a: b, c", "b: a", "c: a"}, refused: []string{"a[0]: circular dependency: a -> b -> a: remove the entry, or another dependency of this cycle", "a[1]: circular dependency: a -> c -> a: remove the entry, or another dependency of this cycle"}},
		"a write that breaks the cycle": {existing: []string{"kafka: shop", "shop: kafka"}, written: []string{"shop:"}},
		"a cycle that it leads to only": {existing: []string{"a: b", "b: a"}, written: []string{"shop: a"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			existing := Definitions{}
			for _, line := range test.existing {
				d := definition(line)
				existing[d.Name] = d
			}
			var written []*addonv1alpha1.ClusterManagementAddOn
			for _, line := range test.written {
				written = append(written, definition(line))
			}
			before := len(existing)
			refused, warnings := CheckDependencies(written, existing)
			if diff := cmp.Diff(test.refused, shown(refused)); diff != "" {
				t.Errorf("refused: %s", diff)
			}
			if diff := cmp.Diff(test.warnings, shown(warnings)); diff != "" {
				t.Errorf("warnings: %s", diff)
			}
			if len(existing) != before {
				t.Error("the argument was changed")
			}
		})
	}
}

func shown(findings []Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s[%d]: %s", f.AddOn, f.Index, f.Message))
	}
	return lines
}
