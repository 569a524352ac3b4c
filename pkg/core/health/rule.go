package health

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/expression"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/text"
)

// language is CEL as the rules of packages use it: an expression reads one object, self.
var language = expression.Over("self")

// RuleProblem is why a rule of a package is not valid.
type RuleProblem struct {
	// Field is the name of the field, such as healthy.
	Field, Message string
}

// CheckRule returns why a rule is not valid; nothing if it is. Kubernetes' own kinds, and Instances, have rules of their own, and the messages of a Secret
// would show its data.
func CheckRule(rule *kudo.HealthRule) []RuleProblem {
	if why := kindProblem(schema.GroupKind{Group: rule.Group, Kind: rule.Kind}); why != "" {
		return []RuleProblem{{Field: "kind", Message: why}}
	}
	var problems []RuleProblem
	if rule.Healthy == "" {
		problems = append(problems, RuleProblem{Field: "healthy", Message: "the expression is missing"})
	}
	for _, e := range []struct {
		field, text string
		returns     expression.Type
	}{
		{"healthy", rule.Healthy, expression.Bool},
		{"failed", rule.Failed, expression.Bool},
		{"message", rule.Message, expression.String},
	} {
		if e.text == "" {
			continue
		}
		if err := language.Check(e.text, e.returns); err != nil {
			problems = append(problems, RuleProblem{Field: e.field, Message: err.Error()})
		}
	}
	return problems
}

// kindProblem returns why objects of a kind cannot be judged by a rule; empty if they can.
func kindProblem(kind schema.GroupKind) string {
	switch {
	case kind.Kind == "":
		return "the kind is missing"
	case kind == schema.GroupKind{Kind: "Secret"}:
		return "Secrets cannot be judged by expressions, because messages could show their data"
	case isBuiltIn(kind):
		return "the kind is one of Kubernetes' own: only custom kinds are judged by expressions"
	case judges[kind] != nil:
		return "the kind has a rule of its own: only other custom kinds are judged by expressions"
	default:
		return ""
	}
}

// isBuiltIn reports whether a kind is one of Kubernetes' own: the group of a custom one has a dot.
func isBuiltIn(kind schema.GroupKind) bool {
	known, _ := rights.IsBuiltIn(kind)
	return known || !strings.Contains(kind.Group, ".")
}

// RuleOf returns the rule for the kind of an object; nil if there is none.
func RuleOf(rules []kudo.HealthRule, obj *unstructured.Unstructured) *kudo.HealthRule {
	if len(rules) == 0 || obj == nil {
		return nil
	}
	kind := obj.GroupVersionKind().GroupKind()
	i := slices.IndexFunc(rules, func(r kudo.HealthRule) bool { return r.Group == kind.Group && r.Kind == kind.Kind })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

// ByRule judges an object by the rule of its kind. Like Of, it returns Progressing for an object that is being deleted, or whose
// status.observedGeneration is below its generation. The object is blocked if the rule is not valid, or if an expression fails.
func ByRule(obj *unstructured.Unstructured, rule *kudo.HealthRule) Result {
	if obj == nil || obj.Object == nil {
		return Of(obj)
	}
	f := &fields{object: obj.Object}
	v, isStale := generationOf(f, obj.GroupVersionKind().GroupKind())
	switch {
	case f.has("metadata", "deletionTimestamp"):
		v = progressingf("is being deleted")
	case !isStale:
		v = byRule(obj, rule)
	}
	v = f.check(v)
	return Result{Status: v.status, Message: text.OneLine(subject(obj) + ": " + v.message), Blocked: v.blocked}
}

func byRule(obj *unstructured.Unstructured, rule *kudo.HealthRule) verdict {
	if problems := CheckRule(rule); len(problems) > 0 {
		return faultyf(rule, problems[0].Field, problems[0].Message)
	}
	var missing *expression.MissingError
	if rule.Failed != "" {
		failed, err := language.Holds(rule.Failed, obj.Object)
		switch {
		case err != nil && !errors.As(err, &missing):
			return faultyf(rule, "failed", err.Error())
		case failed:
			return failedf("%s", explanation(obj, rule, "has failed"))
		}
	}
	healthy, err := language.Holds(rule.Healthy, obj.Object)
	switch {
	case errors.As(err, &missing):
		return progressingf("is not healthy yet: %s", truncate(explanation(obj, rule, missing.Error())))
	case err != nil:
		return faultyf(rule, "healthy", err.Error())
	case healthy:
		return healthyf("is healthy")
	default:
		return progressingf("is not healthy yet%s", prefixed(explanation(obj, rule, "")))
	}
}

// faultyf returns the verdict on an object whose rule cannot judge it. It names the field of the rule, and what to do.
func faultyf(rule *kudo.HealthRule, field, why string) verdict {
	v := unknownf("its health is not known: health of %s in the package: %s: %s; push a corrected version of the package",
		text.Quote(strings.TrimSuffix(rule.Kind+"."+rule.Group, ".")), field, truncate(why))
	v.blocked = true
	return v
}

// explanation returns the message of a rule for an object; otherwise if the rule has none, or it cannot be evaluated.
func explanation(obj *unstructured.Unstructured, rule *kudo.HealthRule, otherwise string) string {
	if rule.Message == "" {
		return otherwise
	}
	message, err := language.Text(rule.Message, obj.Object)
	if err != nil || message == "" {
		return otherwise
	}
	return truncate(message)
}

func prefixed(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
