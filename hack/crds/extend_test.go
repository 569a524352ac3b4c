package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// definition returns a CustomResourceDefinition whose spec has the given properties in every version. The first version is the storage
// version.
func definition(properties string, versions ...string) string {
	text := `kind: CustomResourceDefinition
spec:
  scope: Cluster
  versions:
`
	for i, version := range versions {
		text += `  - name: ` + version + `
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties: ` + properties + `
            type: object
        type: object
    served: true
    storage: ` + map[bool]string{true: "true", false: "false"}[i == 0] + `
`
	}
	return text
}

func TestChange(t *testing.T) {
	const converted = `
metadata:
  labels:
    app.kubernetes.io/part-of: tandem
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: addon-manager
          namespace: tandem-system
          path: /convert
          port: 443
      conversionReviewVersions:
      - v1
  scope:`
	base := definition(`{name: {type: string}}`, versions...)
	own := definition(`{name: {type: integer}, dependencies: {type: array}}`, versions...)
	tests := map[string]struct {
		base, own string
		want      string
		wantErr   string
	}{
		"without dependencies, the definition is converted and everything else stands": {
			base: base,
			want: definition(`
              name:
                type: string`, versions...),
		},
		"dependencies are added to every version": {
			base: base,
			own:  own,
			want: definition(`
              dependencies:
                type: array
              name:
                type: string`, versions...),
		},
		"OCM has adopted the field": {
			base:    own,
			own:     own,
			wantErr: "OCM's definition already has a field spec.dependencies in version v1alpha1",
		},
		"the type lost the field": {
			base:    base,
			own:     base,
			wantErr: "the generated definition has no field spec.dependencies in version v1alpha1",
		},
		"OCM dropped a version": {
			base:    definition(`{name: {type: string}}`, "v1beta1"),
			own:     own,
			wantErr: `OCM's definition: versions ["v1beta1"], want ["v1alpha1" "v1beta1"]`,
		},
		"OCM has another version": {
			base:    definition(`{name: {type: string}}`, "v1alpha1", "v1beta1", "v1"),
			wantErr: `versions ["v1" "v1alpha1" "v1beta1"], want ["v1alpha1" "v1beta1"]`,
		},
		"OCM stores the other version": {
			base:    definition(`{name: {type: string}}`, "v1beta1", "v1alpha1"),
			wantErr: "version v1alpha1 is not the storage version",
		},
		"a version has no spec": {
			base:    "spec: {versions: [{name: v1alpha1, schema: null}]}",
			wantErr: "no schema of a spec in version v1alpha1",
		},
		"nothing was generated": {
			base:    base,
			own:     "{}",
			wantErr: "the generated definition: versions []",
		},
		"what OCM has is no YAML": {
			base:    "{",
			wantErr: "yaml",
		},
		"versions are no list": {
			base:    "spec: {versions: 1}",
			wantErr: "versions []",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			own, err := parse([]byte(test.own))
			if err != nil {
				t.Fatal(err)
			}
			got, err := change([]byte(test.base), own)
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want %q", err, test.wantErr)
				}
			case err != nil:
				t.Fatal(err)
			default:
				want := strings.ReplaceAll(test.want, "properties: \n", "properties:\n")
				want = strings.Replace(want, "\nspec:\n  scope:", converted, 1)
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
}

func FuzzChange(f *testing.F) {
	own, err := parse([]byte(definition(`{dependencies: {type: array}}`, versions...)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(definition(`{name: {type: string}}`, versions...)))
	f.Add([]byte("spec: {versions: [{name: v1alpha1, schema: null}]}"))
	f.Fuzz(func(t *testing.T, base []byte) {
		result, err := change(base, own)
		if err != nil {
			return
		}
		if _, err := change(result, own); err == nil {
			t.Errorf("what was extended is extended again:\n%s", result)
		}
		if again, err := change(result, nil); err != nil || string(again) != string(result) {
			t.Errorf("converting is not idempotent: %v\n%s", err, result)
		}
	})
}
