// Package selector decides which managed clusters a selector selects: by their labels, their cluster claims and CEL expressions, as those of
// OCM's Placements do. It is pure and touches no cluster.
package selector

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/expression"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Problem describes why a selector is invalid, beginning with the path of the part; empty if it is valid. A nil selector is.
func Problem(s *addonv1alpha1.ClusterSelector) string {
	if s == nil {
		return ""
	}
	if problem := sizeProblem(s); problem != "" {
		return problem
	}
	if _, err := labelSelector(s); err != nil {
		return fmt.Sprintf("labelSelector: %v", err)
	}
	if _, err := claimSelector(s); err != nil {
		return fmt.Sprintf("claimSelector: %v", err)
	}
	for i, text := range expressionsOf(s) {
		if err := language.Check(text, expression.Bool); err != nil {
			return fmt.Sprintf("celSelector.celExpressions[%d]: %v", i, err)
		}
	}
	return ""
}

// The limits of the CRD, which an annotation does not pass.
const (
	maxRequirements = 16
	maxExpressions  = 8
)

// sizeProblem describes why a selector is too large; empty if it is not.
func sizeProblem(s *addonv1alpha1.ClusterSelector) string {
	switch {
	case s.LabelSelector != nil && len(s.LabelSelector.MatchLabels)+len(s.LabelSelector.MatchExpressions) > maxRequirements:
		return fmt.Sprintf("labelSelector: it has more than %d requirements", maxRequirements)
	case s.ClaimSelector != nil && len(s.ClaimSelector.MatchExpressions) > maxRequirements:
		return fmt.Sprintf("claimSelector: it has more than %d requirements", maxRequirements)
	case len(expressionsOf(s)) > maxExpressions:
		return fmt.Sprintf("celSelector: it has more than %d expressions", maxExpressions)
	default:
		return ""
	}
}

// SelectsAll reports whether a selector selects every cluster: it is nil or empty.
func SelectsAll(s *addonv1alpha1.ClusterSelector) bool {
	if s == nil {
		return true
	}
	byLabel, err := labelSelector(s)
	if err != nil || !byLabel.Empty() {
		return false
	}
	byClaim, err := claimSelector(s)
	return err == nil && byClaim.Empty() && len(expressionsOf(s)) == 0
}

// Matches reports whether a selector selects a cluster. A nil selector selects every cluster; one that is invalid, and one with an expression that
// fails on the cluster, selects none.
func Matches(s *addonv1alpha1.ClusterSelector, cluster Cluster) bool {
	if s == nil {
		return true
	}
	byLabel, err := labelSelector(s)
	if err != nil || !byLabel.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	byClaim, err := claimSelector(s)
	if err != nil || !byClaim.Matches(labels.Set(cluster.Claims)) {
		return false
	}
	expressions := expressionsOf(s)
	if len(expressions) == 0 {
		return true
	}
	object := objectOf(cluster)
	return !slices.ContainsFunc(expressions, func(expression string) bool { return !holds(expression, object) })
}

// Text returns a selector on one line: "env=prod, claim region in (eu,us), CEL managedCluster.metadata.name != 'a'".
func Text(s *addonv1alpha1.ClusterSelector) string {
	if s == nil {
		return ""
	}
	var parts []string
	if byLabel, err := labelSelector(s); err == nil && !byLabel.Empty() {
		parts = append(parts, byLabel.String())
	}
	if byClaim, err := claimSelector(s); err == nil && !byClaim.Empty() {
		parts = append(parts, "claim "+byClaim.String())
	}
	for _, expression := range expressionsOf(s) {
		parts = append(parts, "CEL "+text.Truncate(strings.Join(strings.Fields(expression), " "), maxShownExpression))
	}
	return strings.Join(parts, ", ")
}

// maxShownExpression limits the part of an expression that Text shows, in bytes.
const maxShownExpression = 120

func labelSelector(s *addonv1alpha1.ClusterSelector) (labels.Selector, error) {
	if s.LabelSelector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s.LabelSelector)
}

func claimSelector(s *addonv1alpha1.ClusterSelector) (labels.Selector, error) {
	if s.ClaimSelector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: s.ClaimSelector.MatchExpressions})
}

func expressionsOf(s *addonv1alpha1.ClusterSelector) []string {
	if s.CelSelector == nil {
		return nil
	}
	return s.CelSelector.CelExpressions
}
