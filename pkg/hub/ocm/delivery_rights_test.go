package ocm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariablesRestrictAndNeverExtend(t *testing.T) {
	declared, account := []string{"--rights=declared"}, []string{"--default-service-account=a"}
	for name, test := range map[string]struct {
		base      []string
		variables map[string]string
		want      []string
		problem   string
	}{
		"none":                       {},
		"stricter than all agents":   {variables: map[string]string{"Rights": "declared"}, want: declared},
		"as strict as all agents":    {base: declared, variables: map[string]string{"Rights": "declared"}},
		"as all agents by default":   {variables: map[string]string{"Rights": "any"}},
		"less strict":                {base: declared, variables: map[string]string{"Rights": "any"}, problem: "can restrict permissions, not extend them"},
		"a word that is unknown":     {variables: map[string]string{"Rights": "none"}, problem: `variable Rights is "none": must be declared or any`},
		"an account":                 {variables: map[string]string{"DefaultServiceAccount": "a"}, want: account},
		"the account of all agents":  {base: account, variables: map[string]string{"DefaultServiceAccount": "a"}},
		"another account":            {base: account, variables: map[string]string{"DefaultServiceAccount": "x/b"}, problem: "can restrict permissions, not extend them"},
		"an account that is no name": {variables: map[string]string{"DefaultServiceAccount": "a --rights=any"}, problem: "must be NAME or NAMESPACE/NAME"},
		"too many names":             {variables: map[string]string{"DefaultServiceAccount": "a/b/c"}, problem: "must be NAME or NAMESPACE/NAME"},
		"both":                       {variables: map[string]string{"Rights": "declared", "DefaultServiceAccount": "a"}, want: append(declared, account...)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rightsArguments(test.base, test.variables)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("the error is %v, want %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
