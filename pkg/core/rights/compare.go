package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Missing is a permission that a package needs and does not declare.
type Missing struct {
	// Task needs the permission; if it is empty, the value of Parameter is read from a Secret.
	Task, Parameter string
	// Right is the permission, such as `verbs create and patch on configmaps`.
	Right string
}

// FindMissing returns the needed permissions that are not declared, those of parameters first, and then by task.
func (n *Needs) FindMissing(declared *kudo.Permissions) []Missing {
	type place struct {
		task, what, where string
	}
	verbs := map[place][]string{}
	for at, tasks := range n.tasks {
		for a, task := range tasks {
			if !grants(declared, at, a) {
				p := place{task, a.describe(), at.describe()}
				verbs[p] = append(verbs[p], a.verb)
			}
		}
	}
	var missing []Missing
	for p, list := range verbs {
		slices.Sort(list)
		missing = append(missing, Missing{Task: p.task, Right: fmt.Sprintf("%s on %s%s", strings.Join(list, ", "), p.what, p.where)})
	}
	if !readsSecrets(declared) {
		for _, name := range n.references {
			missing = append(missing, Missing{Parameter: name, Right: "get on secrets"})
		}
	}
	slices.SortStableFunc(missing, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Right, b.Right)) })
	return missing
}

// Excess returns the declared rules, by field, with what no task needs. It returns nothing if not everything is known.
func (n *Needs) Excess(declared *kudo.Permissions) map[string]string {
	if declared == nil || len(n.unknown) > 0 {
		return nil
	}
	excess := map[string]string{}
	n.excessOf(excess, "permissions.rules", scope{}, declared.Rules)
	n.excessOf(excess, "permissions.clusterRules", scope{cluster: true}, declared.ClusterRules)
	for i, other := range declared.Namespaces {
		n.excessOf(excess, fmt.Sprintf("permissions.namespaces[%d].rules", i), scope{namespace: other.Name}, other.Rules)
	}
	return excess
}

// maxExcess is the maximum number of permissions that a message lists.
const maxExcess = 5

func (n *Needs) excessOf(excess map[string]string, field string, at scope, rules []rbacv1.PolicyRule) {
	for i, rule := range rules {
		var idle []string
		for _, a := range atoms(rule) {
			if !n.uses(at, a) {
				idle = append(idle, a.verb+" on "+a.describe())
			}
		}
		if len(idle) > 0 {
			excess[fmt.Sprintf("%s[%d]", field, i)] = text.List(idle, maxExcess)
		}
	}
}

// uses reports whether any need is covered by a declared permission. Rules for the whole cluster cover needs in namespaces.
func (n *Needs) uses(at scope, declared atom) bool {
	for where, tasks := range n.tasks {
		if where != at && !at.cluster {
			continue
		}
		for a := range tasks {
			if declared.covers(a) {
				return true
			}
		}
	}
	if declared == readLog { // messages about a container that ended quote the last line of its log
		return true
	}
	get := getSecret
	get.name = declared.name
	return len(n.references) > 0 && at.namespace == "" && declared.covers(get)
}

// grants reports whether declared permissions include a permission.
func grants(declared *kudo.Permissions, at scope, a atom) bool {
	if declared == nil {
		return false
	}
	if isIncluded(declared.ClusterRules, a) {
		return true
	}
	if at.cluster {
		return false
	}
	if at.namespace == "" {
		return isIncluded(declared.Rules, a)
	}
	return slices.ContainsFunc(declared.Namespaces, func(n kudo.NamespacePermissions) bool {
		return n.Name == at.namespace && isIncluded(n.Rules, a)
	})
}

func isIncluded(rules []rbacv1.PolicyRule, a atom) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		if !has(r.Verbs, a.verb) {
			return false
		}
		if a.url != "" {
			return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return coversURL(url, a.url) })
		}
		return has(r.APIGroups, a.group) && slices.ContainsFunc(r.Resources, func(name string) bool { return coversResource(name, a.resource) }) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name))
	})
}

// readsSecrets reports whether declared permissions let the plans of an Instance get any Secret in its namespace.
func readsSecrets(declared *kudo.Permissions) bool {
	return declared != nil && slices.ContainsFunc(slices.Concat(declared.Rules, declared.ClusterRules), func(r rbacv1.PolicyRule) bool {
		return isIncluded([]rbacv1.PolicyRule{{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources}}, getSecret)
	})
}

// covers reports whether a permission includes another one.
func (a atom) covers(other atom) bool {
	if a.verb != rbacv1.VerbAll && a.verb != other.verb {
		return false
	}
	if a.url != "" || other.url != "" {
		return coversURL(a.url, other.url)
	}
	return (a.group == rbacv1.APIGroupAll || a.group == other.group) && coversResource(a.resource, other.resource) &&
		(a.name == "" || a.name == other.name)
}

// has reports whether a list includes a name, also by the wildcard.
func has(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}

// coversResource compares resources as RBAC does: * is every resource, and */status the subresource of every one.
func coversResource(declared, name string) bool {
	_, subresource, is := strings.Cut(name, "/")
	return declared == name || declared == rbacv1.ResourceAll || is && declared == "*/"+subresource
}

// coversURL compares paths as RBAC does: a trailing * is a prefix.
func coversURL(declared, url string) bool {
	prefix, wild := strings.CutSuffix(declared, "*")
	return declared != "" && (declared == url || wild && strings.HasPrefix(url, prefix))
}

// describe names what a permission is for: pods/exec, deployments.apps.
func (a atom) describe() string {
	switch {
	case a.url != "":
		return a.url
	case a.name != "":
		return strings.TrimSuffix(a.resource+"."+a.group, ".") + " " + text.Quote(a.name)
	default:
		return strings.TrimSuffix(a.resource+"."+a.group, ".")
	}
}

func (s scope) describe() string {
	switch {
	case s.cluster:
		return " in clusterRules"
	case s.namespace != "":
		return " in namespace " + text.Quote(s.namespace)
	default:
		return ""
	}
}
