// Package selector decides which managed clusters a selector selects: by their labels, their cluster claims and CEL expressions, as those of
// OCM's Placements do. It is pure and touches no cluster.
package selector

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Problem describes why a selector is invalid, beginning with the path of the part; empty if it is valid. A nil selector is.
func Problem(s *addonv1alpha1.ClusterSelector) string {
	if s == nil {
		return ""
	}
	if _, err := labelSelector(s); err != nil {
		return fmt.Sprintf("labelSelector: %v", err)
	}
	if _, err := claimSelector(s); err != nil {
		return fmt.Sprintf("claimSelector: %v", err)
	}
	for i, expression := range expressionsOf(s) {
		if _, err := programs.of(expression); err != nil {
			return fmt.Sprintf("celSelector.celExpressions[%d]: %v", i, err)
		}
	}
	return ""
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
	for _, expression := range expressionsOf(s) {
		if !holds(expression, cluster) {
			return false
		}
	}
	return true
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
