package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of the resource definition.
const (
	maxRules      = 500
	maxNamespaces = 100
)

// Problem is a mistake in declared permissions.
type Problem struct {
	// Field is the path of the rule, such as permissions.rules[0].verbs.
	Field, Message string
	// Warning is true if the API server accepts the permissions.
	Warning bool
}

// Problems returns what is wrong with declared permissions: rules that the API server rejects or that never match.
func Problems(permissions *kudo.Permissions) []Problem {
	if permissions == nil {
		return nil
	}
	problems := checkRules("permissions.rules", permissions.Rules, true)
	problems = append(problems, checkRules("permissions.clusterRules", permissions.ClusterRules, false)...)
	if len(permissions.Namespaces) > maxNamespaces {
		problems = append(problems, Problem{Field: "permissions.namespaces",
			Message: fmt.Sprintf("has %d namespaces, more than the limit of %d: use clusterRules", len(permissions.Namespaces), maxNamespaces)})
		return problems
	}
	seen := map[string]bool{}
	for i, n := range permissions.Namespaces {
		field := fmt.Sprintf("permissions.namespaces[%d]", i)
		switch invalid := validation.IsDNS1123Label(n.Name); {
		case n.Name == "":
			problems = append(problems, Problem{Field: field, Message: "the namespace has no name"})
		case len(invalid) > 0:
			problems = append(problems, Problem{Field: field + ".name", Message: fmt.Sprintf("namespace %s is not valid: %s", text.Quote(n.Name), invalid[0])})
		case seen[n.Name]:
			problems = append(problems, Problem{Field: field + ".name",
				Message: fmt.Sprintf("namespace %s is listed twice: put its rules in one entry", text.Quote(n.Name))})
		case len(n.Rules) == 0:
			problems = append(problems, Problem{Field: field, Message: fmt.Sprintf("namespace %s has no rules: remove it", text.Quote(n.Name))})
		}
		seen[n.Name] = true
		problems = append(problems, checkRules(field+".rules", n.Rules, true)...)
	}
	return problems
}

func checkRules(field string, rules []rbacv1.PolicyRule, namespaced bool) []Problem {
	if len(rules) > maxRules {
		return []Problem{{Field: field, Message: fmt.Sprintf("has %d rules, more than the limit of %d: combine rules", len(rules), maxRules)}}
	}
	var problems []Problem
	for i, rule := range rules {
		at := fmt.Sprintf("%s[%d]", field, i)
		for _, problem := range checkRule(rule, namespaced) {
			problem.Field = strings.TrimSuffix(at+"."+problem.Field, ".")
			problems = append(problems, problem)
		}
	}
	return problems
}

// checkRule checks one rule as the API server does (ValidatePolicyRule in k8s.io/kubernetes), and for lists with empty names.
func checkRule(rule rbacv1.PolicyRule, namespaced bool) []Problem {
	var problems []Problem
	wrong := func(field, format string, args ...any) {
		problems = append(problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if len(rule.Verbs) == 0 {
		wrong("", "the rule has no verbs: list them, such as create and patch")
	}
	urls, resources := len(rule.NonResourceURLs) > 0, len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0
	switch {
	case urls && namespaced:
		wrong("nonResourceURLs", "apply to the whole cluster: move the rule to clusterRules")
	case urls && resources:
		wrong("nonResourceURLs", "a rule is for resources or for nonResourceURLs, not both: split it")
	case urls:
	case len(rule.APIGroups) == 0:
		wrong("", `the rule has no apiGroups: list them; the core group is ""`)
	case len(rule.Resources) == 0:
		wrong("", "the rule has no resources: list them in the plural, such as configmaps")
	}
	problems = append(problems, checkNames(rule)...)
	if powers := powersOf(rule, !namespaced); len(powers) > 0 {
		problems = append(problems, Problem{Field: "", Warning: true,
			Message: fmt.Sprintf("%s: agents refuse this unless they run with %s", powers, powers.Flag())})
	}
	return problems
}

// checkNames returns the problems about names that never match: empty ones, kinds in place of resources, and created objects by name.
func checkNames(rule rbacv1.PolicyRule) []Problem {
	var problems []Problem
	for _, list := range []struct {
		name  string
		items []string
	}{{"verbs", rule.Verbs}, {"resources", rule.Resources}, {"nonResourceURLs", rule.NonResourceURLs}} {
		if slices.Contains(list.items, "") {
			problems = append(problems, Problem{Field: list.name, Message: "must not contain an empty name"})
		}
	}
	for _, resource := range rule.Resources {
		if strings.ToLower(resource) != resource {
			problems = append(problems, Problem{Field: "resources",
				Message: fmt.Sprintf("resource %s is not valid: use the lower-case plural, such as configmaps", text.Quote(resource))})
		}
	}
	if len(rule.ResourceNames) > 0 && slices.Contains(rule.Verbs, "create") {
		problems = append(problems, Problem{Field: "resourceNames", Warning: true,
			Message: "verb create never matches a rule with resourceNames: put it in a rule without them"})
	}
	return problems
}
