package terminal

import (
	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

func ThroughText(through []string) string {
	if len(through) == 0 {
		return "-"
	}
	return dependency.Way(through)
}

func EffectText(t addon.DependencyType) string {
	if t == addon.DependencyTypeOptional {
		return "is degraded"
	}
	return "stops being available"
}
