package dependency

import (
	"errors"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func definition(annotation *string, field ...addonv1alpha1.AddonDependency) *addonv1alpha1.ClusterManagementAddOn {
	d := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
	d.Spec.Dependencies = field
	if annotation != nil {
		d.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: *annotation}
	}
	return d
}

func TestDeclaredBy(t *testing.T) {
	text := func(s string) *string { return &s }
	need := func(name string, t addonv1alpha1.DependencyType, message string) addonv1alpha1.AddonDependency {
		return addonv1alpha1.AddonDependency{Name: name, Type: t, Message: message}
	}
	const where = "annotation addon.open-cluster-management.io/dependencies"

	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		want       []addonv1alpha1.AddonDependency
		wantError  string
	}{
		"nothing declared is no dependencies": {
			definition: definition(nil), want: []addonv1alpha1.AddonDependency{},
		},
		"the field is taken in its order, and its type defaults to Required": {
			definition: definition(nil, need("zookeeper", "", "m"), need("monitoring", "Optional", "")),
			want:       []addonv1alpha1.AddonDependency{need("zookeeper", "Required", "m"), need("monitoring", "Optional", "")},
		},
		"the annotation is taken where there is no field": {
			definition: definition(text(`[{"name":"zookeeper"},{"name":"monitoring","type":"Optional","message":"no graphs"}]`)),
			want:       []addonv1alpha1.AddonDependency{need("zookeeper", "Required", ""), need("monitoring", "Optional", "no graphs")},
		},
		"the field wins over the annotation, even over a malformed one": {
			definition: definition(text(`{`), need("zookeeper", "", "")),
			want:       []addonv1alpha1.AddonDependency{need("zookeeper", "Required", "")},
		},
		"an empty list in the annotation is no dependencies": {
			definition: definition(text(` [] `)), want: []addonv1alpha1.AddonDependency{},
		},
		"an annotation that is no JSON is malformed": {
			definition: definition(text(`[{"name"`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `: invalid JSON: unexpected end of JSON input`,
		},
		"an empty annotation is malformed, not no dependencies": {
			definition: definition(text("")),
			wantError: `ClusterManagementAddOn "kafka": ` + where + `: must be a JSON array such as ` +
				`[{"name":"other-addon","type":"Required"}]; remove the annotation if there are no dependencies`,
		},
		"null in the annotation is malformed, not no dependencies": {
			definition: definition(text("null")),
			wantError: `ClusterManagementAddOn "kafka": ` + where + `: must be a JSON array such as ` +
				`[{"name":"other-addon","type":"Required"}]; remove the annotation if there are no dependencies`,
		},
		"an unknown field in the annotation is malformed": {
			definition: definition(text(`[{"name":"a","kind":"Optional"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `: invalid JSON: unknown field "[0].kind"`,
		},
		"a field in other letters is an unknown one": {
			definition: definition(text(`[{"Name":"a"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `: invalid JSON: unknown field "[0].Name"`,
		},
		"a field given twice is malformed": {
			definition: definition(text(`[{"name":"a","name":"b"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `: invalid JSON: duplicate field "[0].name"`,
		},
		"an unknown type is malformed": {
			definition: definition(text(`[{"name":"a"},{"name":"b","type":"required"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `[1]: "b" has type "required": must be Required or Optional`,
		},
		"a policy of removal is declared in the annotation, too": {
			definition: definition(text(`[{"name":"a","removal":"Protect"},{"name":"b","type":"Optional","removal":"Warn"}]`)),
			want: []addonv1alpha1.AddonDependency{
				{Name: "a", Type: addonv1alpha1.DependencyTypeRequired, Removal: addonv1alpha1.RemovalProtect},
				{Name: "b", Type: addonv1alpha1.DependencyTypeOptional, Removal: addonv1alpha1.RemovalWarn},
			},
		},
		"an unknown policy of removal is malformed": {
			definition: definition(text(`[{"name":"a","removal":"protect"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `[0]: "a" has removal "protect": must be Warn or Protect`,
		},
		"an Optional dependency protects nothing": {
			definition: definition(text(`[{"name":"a","type":"Optional","removal":"Protect"}]`)),
			wantError: `ClusterManagementAddOn "kafka": ` + where + `[0]: "a" is Optional, and only Required dependencies can have removal Protect: ` +
				`change one of them`,
		},
		"an entry without name is malformed": {
			definition: definition(text(`[{"type":"Required"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `[0]: name is required: set it to the name of a ClusterManagementAddOn`,
		},
		"a name twice is malformed": {
			definition: definition(text(`[{"name":"a"},{"name":"a","type":"Optional"}]`)),
			wantError:  `ClusterManagementAddOn "kafka": ` + where + `[1]: "a" is listed twice: remove one of the entries`,
		},
		"a dependency on itself is not malformed: it is reported as a cycle": {
			definition: definition(text(`[{"name":"kafka"}]`)),
			want:       []addonv1alpha1.AddonDependency{need("kafka", "Required", "")},
		},
		"the field is held to the same rules": {
			definition: definition(nil, need("a", "", ""), need("a", "Optional", "")),
			wantError:  `ClusterManagementAddOn "kafka": spec.dependencies[1]: "a" is listed twice: remove one of the entries`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.definition.DeepCopy()
			got, err := DeclaredBy(tc.definition)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dependencies (-want +got):\n%s", diff)
			}
			text := ""
			if err != nil {
				text = err.Error()
				var malformed *MalformedError
				if !errors.As(err, &malformed) {
					t.Errorf("error is a %T, want *MalformedError", err)
				}
			}
			if diff := cmp.Diff(tc.wantError, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.definition); diff != "" {
				t.Errorf("input was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func FuzzDeclared(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `[{"name":"a"}]`, `[{"name":"a","type":"Optional","message":"m"}]`, `[{"name":"a"},{"name":"a"}]`,
		`[{"name":"kafka"}]`, `[{"name":"b"}]`, `[null]`, `[[]]`, `[{"name":1}]`, `[{"name":"a"}] x`, "[{\"name\":\"\xff\"}]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		needs, err := DeclaredBy(definition(&text))
		_, refused := Admit(nil, definition(&text), in(graph("a:", "b: kafka")))
		if err != nil && refused == nil || !utf8.ValidString(fmt.Sprint(refused)) {
			t.Fatalf("Declared says %v, Admit %v", err, refused)
		}
		if _, refused := Admit(definition(&text), definition(&text), in(nil)); refused != nil {
			t.Fatalf("a write that changes nothing is refused: %v", refused)
		}
		if err != nil {
			var malformed *MalformedError
			if !errors.As(err, &malformed) || needs != nil {
				t.Fatalf("got %v with error %T %v", needs, err, err)
			}
			return
		}
		names := map[string]bool{}
		for _, need := range needs {
			if need.Name == "" || names[need.Name] {
				t.Errorf("accepted the name %q of %v", need.Name, needs)
			}
			if need.Type != addonv1alpha1.DependencyTypeRequired && need.Type != addonv1alpha1.DependencyTypeOptional {
				t.Errorf("accepted the type %q", need.Type)
			}
			names[need.Name] = true
		}
	})
}
