package bindings

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

var (
	instance = types.NamespacedName{Namespace: "ns", Name: "app"}
	grants   = []rights.Grant{
		{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}, {Namespace: "ns", Rules: []rbacv1.PolicyRule{{Verbs: []string{"create"}}}},
	}
)

func all() []client.Object {
	return append(objects(instance, grants[0]), objects(instance, grants[1])...)
}

func TestEveryObjectIsPairedWithItself(t *testing.T) {
	existing := all()
	for _, want := range all() {
		var have client.Object
		have, existing = take(existing, want)
		if have == nil {
			t.Fatalf("%s is not found", describe(want))
		}
		if same, _ := compare(have, want); !same {
			t.Errorf("%s is paired with %s", describe(want), describe(have))
		}
	}
	if len(existing) > 0 {
		t.Errorf("%d objects are left", len(existing))
	}
	if have, _ := take(nil, all()[0]); have != nil {
		t.Errorf("nothing is paired with %s", describe(have))
	}
}

func TestObjectsDifferInWhatTheyGrant(t *testing.T) {
	for name, test := range map[string]struct {
		change            func(client.Object)
		same, correctable bool
	}{
		"nothing":      {func(client.Object) {}, true, true},
		"other labels": {func(o client.Object) { o.SetLabels(nil) }, true, true},
		"more": {func(o client.Object) {
			switch o := o.(type) {
			case *rbacv1.Role:
				o.Rules = append(o.Rules, rbacv1.PolicyRule{Verbs: []string{"*"}})
			case *rbacv1.ClusterRole:
				o.Rules = nil
			case *rbacv1.RoleBinding:
				o.Subjects = append(o.Subjects, rbacv1.Subject{Name: "other"})
			case *rbacv1.ClusterRoleBinding:
				o.Subjects = nil
			}
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			for i, have := range all() {
				test.change(have)
				if same, correctable := compare(have, all()[i]); same != test.same || correctable != test.correctable {
					t.Errorf("%s: same %t, correctable %t", describe(have), same, correctable)
				}
			}
		})
	}
	for _, want := range all() {
		if same, correctable := compare(nil, want); same || !correctable {
			t.Errorf("a missing %s: same %t, correctable %t", describe(want), same, correctable)
		}
	}
	role, aggregated := objects(instance, grants[0])[0], objects(instance, grants[0])[0].(*rbacv1.ClusterRole)
	aggregated.AggregationRule = &rbacv1.AggregationRule{}
	binding, foreign := objects(instance, grants[1])[1], objects(instance, grants[1])[1].(*rbacv1.RoleBinding)
	foreign.RoleRef.Name = "cluster-admin"
	for have, want := range map[client.Object]client.Object{aggregated: role, foreign: binding} {
		if same, correctable := compare(have, want); same || correctable {
			t.Errorf("%s: same %t, correctable %t", describe(have), same, correctable)
		}
	}
}
