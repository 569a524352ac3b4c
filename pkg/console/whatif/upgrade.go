package whatif

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// Outcome is the result of an upgrade on a cluster.
type Outcome string

// The outcomes, worst first.
const (
	// Refused means that the upgrade is refused, or that a plan would fail.
	Refused Outcome = "Refused"
	// Waits means that the version before keeps running until something else has changed.
	Waits Outcome = "Waits"
	// NotKnown means that the user may not read what the outcome depends on.
	NotKnown Outcome = "Unknown"
	// Starts means that the version starts at once, or when OCM has rolled it out to the cluster.
	Starts Outcome = "Starts"
	// Changing means that the add-on has started to change to the version.
	Changing Outcome = "Changing"
	// Runs means that the add-on runs the version already.
	Runs Outcome = "Runs"
)

var outcomes = []Outcome{Refused, Waits, NotKnown, Starts, Changing, Runs}

// Effect is the effect of an upgrade on a dependent.
type Effect string

// The effects, worst first.
const (
	// HoldsBack means that the constraint of the dependent keeps the version from starting.
	HoldsBack Effect = "HoldsBack"
	// Unavailable and Degraded mean that the constraint of the dependent no longer holds.
	Unavailable Effect = "Unavailable"
	Degraded    Effect = "Degraded"
	// Met means that the constraint of the dependent holds, which it does not now.
	Met Effect = "Met"
)

var effects = []Effect{HoldsBack, Unavailable, Degraded, Met}

// Upgrade is an upgrade of an add-on on a cluster.
type Upgrade struct {
	Cluster
	AddOn string
	// To is the version to change to; nil if it is not known.
	To *kudo.OperatorVersion
	// Problem is why the upgrade is refused, and Unread why its outcome is not known.
	Problem, Unread string
	// Unsupported states which plans would wait for another version of Kubernetes.
	Unsupported []string
	// Warnings are those of the hub, and NotRead states what was not looked at.
	Warnings, NotRead []string
}

// UpgradeGroup is the effect of an upgrade on clusters on which it is the same.
type UpgradeGroup struct {
	Outcome  Outcome  `json:"outcome"`
	Clusters []string `json:"clusters"`
	// From is the OperatorVersion that was last installed completely, and To the one to change to.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Problem is why the upgrade is refused, or its outcome unknown; WaitsFor is what it waits for.
	Problem  string   `json:"problem,omitempty"`
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Requires lists the dependencies of which the version does not accept what runs.
	Requires   []RequirementRow `json:"requires,omitempty"`
	Dependents []ConstraintRow  `json:"dependents,omitempty"`
	Warnings   []string         `json:"warnings,omitempty"`
	NotRead    []string         `json:"notRead,omitempty"`
}

// RequirementRow is a dependency whose constraint does not hold.
type RequirementRow struct {
	AddOn  string                       `json:"addOn"`
	Type   addonv1alpha1.DependencyType `json:"type"`
	Reason string                       `json:"reason"`
}

// ConstraintRow is a dependent whose constraint begins or ceases to hold.
type ConstraintRow struct {
	RequirementRow
	Effect Effect `json:"effect"`
}

// Effect returns the effect of the upgrade on its cluster.
func (u Upgrade) Effect() UpgradeGroup {
	group := UpgradeGroup{Clusters: []string{u.Name}, From: fleet.ReportOf(u.instance()).Installed, NotRead: u.NotRead}
	if u.Problem != "" || u.Unread != "" || u.To == nil {
		group.Outcome, group.Problem = Refused, cmp.Or(u.Problem, u.Unread)
		if u.Problem == "" {
			group.Outcome = NotKnown
		}
		return group
	}
	group.To, group.Warnings = u.To.Name, u.Warnings
	group.WaitsFor = u.waits()
	group.Outcome = u.outcome(len(group.WaitsFor) > 0)
	if group.Outcome != Runs {
		group.Requires, group.Dependents = u.requirements(), u.dependents()
	}
	return group
}

// instance returns the Instance of the add-on; nil if it has none.
func (u Upgrade) instance() *kudo.Instance { return u.InstanceOf(u.AddOns[u.AddOn]) }

func (u Upgrade) outcome(waits bool) Outcome {
	instance := u.instance()
	switch {
	case waits:
		return Waits
	case !u.isNamed():
		return Starts
	case instance.Status.Whole == nil || instance.Status.Whole.OperatorVersion.Name != u.To.Name ||
		instance.Status.Whole.OperatorVersion.Namespace != u.To.Namespace:
		return Changing
	default:
		return Runs
	}
}

// isNamed reports whether the Instance of the add-on names the version already.
func (u Upgrade) isNamed() bool {
	instance := u.instance()
	return instance != nil && install.VersionOf(instance).Name == u.To.Name && install.VersionOf(instance).Namespace == u.To.Namespace
}

// waits lists what the version waits for.
func (u Upgrade) waits() []string {
	var waits []string
	if missing := u.Judge(u.AddOn).NotReady(); u.instance() == nil && len(missing) > 0 {
		waits = append(waits, "its first installation waits for required add-ons: "+dependency.Summary(missing))
	} else if !u.isNamed() {
		if reason := u.WaitReason(u.AddOn, dependency.ReleaseOf(u.To)); reason != "" {
			waits = append(waits, reason)
		}
	}
	return append(waits, u.Unsupported...)
}

// requirements lists the dependencies of which the version does not accept what runs.
func (u Upgrade) requirements() []RequirementRow {
	var rows []RequirementRow
	for _, j := range u.afterwards().Judge(u.AddOn) {
		if j.Cause == dependency.VersionMismatch {
			rows = append(rows, RequirementRow{AddOn: j.By, Type: j.Type, Reason: j.Mismatch})
		}
	}
	return rows
}

// dependents lists the dependents whose constraint on the add-on begins or ceases to hold.
func (u Upgrade) dependents() []ConstraintRow {
	before, after := available(u.Cluster.Cluster), u.afterwards()
	holding := map[string]bool{}
	for _, e := range u.exclusions() {
		holding[e.AddOn] = e.AddOn != u.AddOn
	}
	var rows []ConstraintRow
	for _, name := range u.AddOnNames() {
		if name == u.AddOn || !u.AddOns[name].DeletionTimestamp.IsZero() {
			continue
		}
		past := before.Judge(name)
		for i, now := range after.Judge(name) {
			row := ConstraintRow{RequirementRow{AddOn: name, Type: now.Type, Reason: now.Mismatch}, u.effectOn(past[i], now, holding[name])}
			if row.Effect == Met {
				row.Reason = past[i].Mismatch
			}
			if row.Effect != "" {
				rows = append(rows, row)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b ConstraintRow) int {
		return cmp.Compare(slices.Index(effects, a.Effect), slices.Index(effects, b.Effect))
	})
	return rows
}

// effectOn returns the effect on a dependency of a dependent, by the judgements before and after; empty if there is none. A dependent may hold back a first
// installation, whose version satisfies nothing before either.
func (u Upgrade) effectOn(past, now dependency.Judgement, holds bool) Effect {
	holds = holds && now.Cause == dependency.VersionMismatch && now.By == u.AddOn
	switch {
	case past.Satisfied == now.Satisfied && !holds:
		return ""
	case now.Satisfied:
		return Met
	case holds:
		return HoldsBack
	case now.Type == addonv1alpha1.DependencyTypeOptional:
		return Degraded
	default:
		return Unavailable
	}
}

// exclusions returns the constraints that keep the version from starting.
func (u Upgrade) exclusions() []dependency.Exclusion {
	if u.isNamed() {
		return nil
	}
	return dependency.Exclusions(u.AddOn, dependency.ReleaseOf(u.To), u.members())
}

// afterwards returns the cluster after the upgrade, with all add-ons available: only versions are compared.
func (u Upgrade) afterwards() fleet.Cluster {
	view := available(u.Cluster.Cluster)
	view.Instances = maps.Clone(view.Instances)
	if view.Instances == nil {
		view.Instances = map[string]*kudo.Instance{}
	}
	after := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: u.AddOn, Namespace: u.Name, OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(u.AddOns[u.AddOn], addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")),
	}}}
	after.Status.Whole = &kudo.WholeVersion{
		OperatorVersion: corev1.ObjectReference{Namespace: u.To.Namespace, Name: u.To.Name, UID: u.To.UID},
		Version:         u.To.Spec.Version, AppVersion: u.To.Spec.AppVersion, DependencyVersion: u.To.Spec.DependencyVersion, Dependencies: u.To.Spec.Dependencies,
	}
	view.Instances[u.AddOn] = after
	return view
}

// available returns the cluster with all its add-ons available, so that verdicts depend on what is installed and on versions only.
func available(view fleet.Cluster) fleet.Cluster {
	addOns := make(map[string]*addonv1alpha1.ManagedClusterAddOn, len(view.AddOns))
	for name, addOn := range view.AddOns {
		addOn = addOn.DeepCopy()
		meta.RemoveStatusCondition(&addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
		addOn.Status.Conditions = append(addOn.Status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonPlanComplete,
		})
		addOns[name] = addOn
	}
	view.AddOns = addOns
	return view
}
