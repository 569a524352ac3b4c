package whatif

import (
	"cmp"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// KubernetesRow is an add-on, or an Instance, with one effect, and the clusters with that effect.
type KubernetesRow struct {
	// AddOn is empty for an Instance that belongs to no add-on. Instance is set for those, and for children of an add-on.
	AddOn    string           `json:"addOn,omitempty"`
	Instance string           `json:"instance,omitempty"`
	Effect   KubernetesEffect `json:"effect"`
	// OperatorVersion is the one that the effect is about.
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// DependsOn and Type are the dependency that the effect is about.
	DependsOn string                       `json:"dependsOn,omitempty"`
	Type      addonv1alpha1.DependencyType `json:"type,omitempty"`
	Reason    string                       `json:"reason"`
	Clusters  []string                     `json:"clusters"`
}

// KubernetesEffect is an effect of a version of Kubernetes.
type KubernetesEffect string

// The effects, worst first.
const (
	// BecomesUnavailable and BecomesDegraded: a dependency that is not satisfied begins to apply, or a required add-on becomes unavailable.
	BecomesUnavailable KubernetesEffect = "Unavailable"
	NotSupported       KubernetesEffect = "NotSupported" // what runs continues, and no plan starts
	BecomesDegraded    KubernetesEffect = "Degraded"
	VersionWaits       KubernetesEffect = "VersionWaits" // a version that would start now does not start any more
	Applies            KubernetesEffect = "Applies"      // a dependency begins to apply, and is satisfied
	NoLongerApplies    KubernetesEffect = "NoLongerApplies"
	Supported          KubernetesEffect = "Supported"
	VersionStarts      KubernetesEffect = "VersionStarts" // a version, an installation or a plan that waits now starts
)

var kubernetesEffects = []KubernetesEffect{
	BecomesUnavailable, NotSupported, BecomesDegraded, VersionWaits, Applies, NoLongerApplies, Supported, VersionStarts,
}

var kubernetesTexts = map[KubernetesEffect]string{
	BecomesUnavailable: "becomes unavailable", NotSupported: "becomes unsupported", BecomesDegraded: "becomes degraded", VersionWaits: "new version waits",
	Applies: "dependency applies", NoLongerApplies: "dependency no longer applies", Supported: "becomes supported", VersionStarts: "waiting change starts",
}

// Text returns the effect in words.
func (e KubernetesEffect) Text() string { return kubernetesTexts[e] }

// compareRows orders rows, the worst effect first.
func compareRows(a, b KubernetesRow) int {
	return cmp.Or(
		cmp.Compare(slices.Index(kubernetesEffects, a.Effect), slices.Index(kubernetesEffects, b.Effect)),
		-cmp.Compare(len(a.Clusters), len(b.Clusters)),
		cmp.Compare(a.AddOn, b.AddOn), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.DependsOn, b.DependsOn), cmp.Compare(a.Reason, b.Reason),
		slices.Compare(a.Clusters, b.Clusters),
	)
}
