package terminal

import (
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

func ThroughText(through []string) string {
	if len(through) == 0 {
		return "-"
	}
	return dependency.Way(through)
}

func EffectText(t addonv1alpha1.DependencyType) string {
	if t == addonv1alpha1.DependencyTypeOptional {
		return "is degraded"
	}
	return "stops being available"
}
