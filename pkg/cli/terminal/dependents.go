package terminal

import (
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// ThroughText returns the path of an indirect dependency, or "-" for a direct one.
func ThroughText(through []string) string {
	if len(through) == 0 {
		return "-"
	}
	return dependency.Way(through)
}

// EffectText returns the effect on a dependent when a dependency of that type is removed.
func EffectText(t addonv1alpha1.DependencyType) string {
	if t == addonv1alpha1.DependencyTypeOptional {
		return "becomes degraded"
	}
	return "becomes unavailable"
}
