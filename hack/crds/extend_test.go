package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// definition is a CustomResourceDefinition with one version whose spec has the given properties.
func definition(version, properties string) string {
	return `kind: CustomResourceDefinition
spec:
  scope: Cluster
  versions:
  - name: ` + version + `
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties: ` + properties + `
            type: object
        type: object
    served: true
`
}

func TestExtend(t *testing.T) {
	tests := map[string]struct {
		base, own string
		want      string
		wantErr   string
	}{
		"the field is added and everything else stands": {
			base: definition("v1alpha1", `{name: {type: string}}`),
			own:  definition("v1alpha1", `{name: {type: integer}, dependencies: {type: array}}`),
			want: definition("v1alpha1", `
              dependencies:
                type: array
              name:
                type: string`),
		},
		"OCM has adopted the field": {
			base:    definition("v1alpha1", `{dependencies: {type: array}}`),
			own:     definition("v1alpha1", `{dependencies: {type: array}}`),
			wantErr: "OCM's definition has a field spec.dependencies of its own",
		},
		"the type lost the field": {
			base:    definition("v1alpha1", `{name: {type: string}}`),
			own:     definition("v1alpha1", `{name: {type: string}}`),
			wantErr: "the generated definition has no field spec.dependencies",
		},
		"OCM dropped the version": {
			base:    definition("v1", `{name: {type: string}}`),
			own:     definition("v1alpha1", `{dependencies: {type: array}}`),
			wantErr: "OCM's definition: no schema of a spec in version v1alpha1",
		},
		"nothing was generated": {
			base:    definition("v1alpha1", `{name: {type: string}}`),
			own:     "",
			wantErr: "the generated definition: no schema of a spec in version v1alpha1",
		},
		"what was generated is no YAML": {
			base:    definition("v1alpha1", `{name: {type: string}}`),
			own:     "{",
			wantErr: "the generated definition: ",
		},
		"versions are no list": {
			base:    "spec: {versions: 1}",
			own:     "",
			wantErr: "OCM's definition: no schema of a spec in version v1alpha1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := extend([]byte(test.base), []byte(test.own))
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want %q", err, test.wantErr)
				}
			case err != nil:
				t.Fatal(err)
			default:
				if diff := cmp.Diff(strings.ReplaceAll(test.want, "properties: \n", "properties:\n"), string(got)); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
}

func FuzzExtend(f *testing.F) {
	own := []byte(definition("v1alpha1", `{dependencies: {type: array}}`))
	f.Add([]byte(definition("v1alpha1", `{name: {type: string}}`)))
	f.Add([]byte("spec: {versions: [{name: v1alpha1, schema: null}]}"))
	f.Fuzz(func(t *testing.T, base []byte) {
		result, err := extend(base, own)
		if err != nil {
			return
		}
		if _, err := extend(result, own); err == nil {
			t.Errorf("what was extended is extended again:\n%s", result)
		}
	})
}
