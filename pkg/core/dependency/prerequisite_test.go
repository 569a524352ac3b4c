package dependency

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestPrerequisites(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  []string
	}{
		"an undefined add-on has none":                      {},
		"an add-on that needs nothing has none":             {lines: []string{"shop:"}},
		"a chain begins with its end":                       {lines: []string{"shop: kafka", "kafka: zookeeper"}, want: []string{"zookeeper", "kafka"}},
		"a shared dependency is listed once, before both":   {lines: []string{"shop: a b", "a: base", "b: base"}, want: []string{"base", "a", "b"}},
		"a direct and indirect dependency precedes both":    {lines: []string{"shop: a base", "a: base"}, want: []string{"base", "a"}},
		"what is Optional is none, and leads to none":       {lines: []string{"shop: a? b", "a: c", "b: d?"}, want: []string{"b"}},
		"what is not defined is one":                        {lines: []string{"shop: kafka"}, want: []string{"kafka"}},
		"a cycle is followed once":                          {lines: []string{"shop: a", "a: b", "b: a"}, want: []string{"b", "a"}},
		"a cycle through the add-on itself does not add it": {lines: []string{"shop: a", "a: shop"}, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			declared, asked := graph(tc.lines...), map[string]int{}
			got := Prerequisites("shop", func(name string) []addonv1alpha1.AddonDependency {
				asked[name]++
				return declared[name]
			})
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for name, times := range asked {
				if times > 1 {
					t.Errorf("%s was asked about %d times", name, times)
				}
			}
		})
	}
}
