// Package rights decides which permissions an Instance has on the managed cluster, checks the permissions that a package declares, and works
// out those that its objects require. It is pure and touches no cluster.
package rights

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// User returns the name of the user as which the agent acts for an Instance that has its own permissions. Roles and bindings of the Instance
// have the same name.
func User(namespace, name string) string { return "tandem:instance:" + namespace + ":" + name }

// Group is the group of all these users. It has no permissions; a FlowSchema in the agent's manifests selects it.
const Group = "tandem:instances"

// Grant holds the rules of one Role, or of a ClusterRole if the namespace is empty.
type Grant struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Grants returns the permissions of an Instance in that namespace, one Grant for each namespace, sorted. Permissions without rules have none.
func Grants(permissions *kudo.Permissions, namespace string) []Grant {
	if permissions == nil {
		return nil
	}
	grants := []Grant{{Rules: permissions.ClusterRules}, {Namespace: namespace, Rules: permissions.Rules}}
	for _, other := range permissions.Namespaces {
		if i := slices.IndexFunc(grants, func(g Grant) bool { return g.Namespace == other.Name }); i >= 0 {
			grants[i].Rules = union(grants[i].Rules, other.Rules)
			continue
		}
		grants = append(grants, Grant{Namespace: other.Name, Rules: other.Rules})
	}
	grants = slices.DeleteFunc(grants, func(g Grant) bool { return len(g.Rules) == 0 })
	slices.SortFunc(grants, func(a, b Grant) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return grants
}

// Union returns the permissions of both versions during an upgrade. Without permissions in the version that runs, there are none; the
// version before it may lack them.
func Union(running, before *kudo.Permissions) *kudo.Permissions {
	if running == nil || before == nil {
		return running
	}
	all := &kudo.Permissions{
		Rules:        union(running.Rules, before.Rules),
		ClusterRules: union(running.ClusterRules, before.ClusterRules),
		Namespaces:   slices.Clone(running.Namespaces),
	}
	for _, other := range before.Namespaces {
		i := slices.IndexFunc(all.Namespaces, func(n kudo.NamespacePermissions) bool { return n.Name == other.Name })
		if i < 0 {
			all.Namespaces = append(all.Namespaces, other)
			continue
		}
		all.Namespaces[i].Rules = union(all.Namespaces[i].Rules, other.Rules)
	}
	return all
}

// union returns all rules of both lists, each once.
func union(rules, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	all := slices.Clone(rules)
	for _, rule := range more {
		if !slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) }) {
			all = append(all, rule)
		}
	}
	return all
}
