package dependency

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Enabled is an add-on on a cluster, with what addon-manager has noted there about the dependencies with install Auto.
type Enabled struct {
	UID      types.UID
	Deleting bool
	// Needs are the dependencies that the add-on has on the cluster.
	Needs []addonv1alpha1.AddonDependency
	// Named are the add-ons that it could depend on, also on other clusters. Malformed is true if these are not known.
	Named     []string
	Malformed bool
	// With lists the dependencies that were enabled together with the add-on (AnnotationInstalledWith).
	With []string
	// For lists the dependents for which addon-manager has enabled it (AnnotationInstalledFor); empty if another user has enabled it.
	For []Asker
	// Cycles holds the dependencies of the add-on that are on a cycle.
	Cycles map[string][]string
}

// EnabledOf returns the state of a ManagedClusterAddOn that has these dependencies on its cluster, without cycles. The definition is nil if there is none.
func EnabledOf(addOn metav1.Object, definition *addonv1alpha1.ClusterManagementAddOn, needs []addonv1alpha1.AddonDependency) Enabled {
	var declared []addonv1alpha1.AddonDependency
	var problem error
	if definition != nil {
		declared, problem = DeclaredBy(definition)
	}
	return Enabled{
		UID: addOn.GetUID(), Deleting: addOn.GetDeletionTimestamp() != nil, Needs: needs, Named: CandidatesOf(declared), Malformed: problem != nil,
		With: ParseNames(addOn.GetAnnotations()[addonv1alpha1.AnnotationInstalledWith]),
		For:  ParseAskers(addOn.GetAnnotations()[addonv1alpha1.AnnotationInstalledFor]),
	}
}

// Asker is a dependent for which addon-manager has enabled an add-on.
type Asker struct {
	Name string
	UID  types.UID
}

// Automatic is what addon-manager changes on a cluster because of the dependencies with install Auto. All lists are sorted.
type Automatic struct {
	// Enable holds the add-ons to enable, with the dependents that ask for them.
	Enable map[string][]Asker
	// For holds the next AnnotationInstalledFor of add-ons that addon-manager has enabled, and With the next AnnotationInstalledWith of dependents.
	For  map[string][]Asker
	With map[string][]string
	// Disable lists the add-ons that addon-manager has enabled and that no add-on asks for or could depend on any more.
	Disable []string
}

// IsEmpty reports whether nothing changes.
func (a Automatic) IsEmpty() bool { return len(a.Enable)+len(a.For)+len(a.With)+len(a.Disable) == 0 }

// AutomaticOf returns what addon-manager changes on a cluster. on holds the add-ons of the cluster by name, and missing the state of those that are
// needed and not there.
//
// What is enabled stays while another add-on on the cluster names it, whatever its selectors select, or has a malformed declaration.
//
// An add-on is enabled if neither it nor an alternative is there, in whatever state. It is disabled once every dependent that asked for it is deleted:
// one that exists asks for it even if its declaration has changed, so that a label that flaps uninstalls nothing.
func AutomaticOf(on map[string]Enabled, missing map[string]Seen) Automatic {
	next := Automatic{Enable: map[string][]Asker{}, For: map[string][]Asker{}, With: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if !on[name].Deleting {
			next.serve(name, on, missing)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if on[name].isUnneeded(name, on) {
			next.Disable = append(next.Disable, name)
		}
	}
	return next
}

// serve adds what the dependencies of an add-on ask for.
func (a *Automatic) serve(name string, on map[string]Enabled, missing map[string]Seen) {
	addOn := on[name]
	asker, with := Asker{name, addOn.UID}, slices.Clone(addOn.With)
	for _, need := range addOn.Needs {
		if need.Install != addonv1alpha1.InstallAuto || addOn.Cycles[need.Name] != nil {
			continue
		}
		there, exists := on[need.Name]
		switch {
		case exists && !there.Deleting:
			a.share(need.Name, there, asker, on)
		case exists || slices.ContainsFunc(need.Alternatives, func(other string) bool { _, chosen := on[other]; return chosen }),
			slices.Contains(with, need.Name), !missing[need.Name].Defined, missing[need.Name].Placed:
			continue
		default:
			a.Enable[need.Name] = append(a.Enable[need.Name], asker)
		}
		if !slices.Contains(with, need.Name) {
			with = append(with, need.Name)
		}
	}
	if len(with) > len(addOn.With) {
		slices.Sort(with)
		a.With[name] = with
	}
}

// share adds a dependent to those for which addon-manager has enabled an add-on, and drops those that do not exist any more.
func (a *Automatic) share(name string, there Enabled, asker Asker, on map[string]Enabled) {
	asking, changed := a.For[name]
	if !changed {
		asking = there.For
	}
	if len(there.For) == 0 || slices.Contains(asking, asker) {
		return
	}
	asking = slices.DeleteFunc(slices.Clone(asking), func(other Asker) bool { return !other.exists(on) })
	asking = append(asking, asker)
	slices.SortFunc(asking, func(a, b Asker) int { return strings.Compare(a.Name, b.Name) })
	a.For[name] = asking
}

// isUnneeded reports whether addon-manager has enabled the add-on, and nothing asks for it any more or could depend on it.
func (e Enabled) isUnneeded(name string, on map[string]Enabled) bool {
	if len(e.For) == 0 || e.Deleting || slices.ContainsFunc(e.For, func(a Asker) bool { return a.exists(on) }) {
		return false
	}
	for other, enabled := range on {
		if other != name && (enabled.Malformed || slices.Contains(enabled.Named, name)) {
			return false
		}
	}
	return true
}

// Remainder is an add-on that addon-manager has enabled for a dependent that no longer asks for it, and that stays until the dependent is deleted.
type Remainder struct {
	Name string
	For  Asker
}

// RemaindersOf returns the remainders among the add-ons of a cluster, sorted: their dependents have no dependency with install Auto on them there, because a
// declaration or a label has changed. before holds the previous ones: those of a dependent stay as they are while its declaration is malformed.
func RemaindersOf(on map[string]Enabled, before []Remainder) []Remainder {
	var left []Remainder
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if on[name].Deleting {
			continue
		}
		for _, asker := range on[name].For {
			dependent, remainder := on[asker.Name], Remainder{name, asker}
			if !asker.exists(on) || dependent.Deleting || dependent.Malformed && !slices.Contains(before, remainder) || dependent.asksFor(name) {
				continue
			}
			left = append(left, remainder)
		}
	}
	return left
}

// asksFor reports whether the add-on has a dependency with install Auto of that name on the cluster.
func (e Enabled) asksFor(name string) bool {
	return slices.ContainsFunc(e.Needs, func(n addonv1alpha1.AddonDependency) bool {
		return n.Name == name && n.Install == addonv1alpha1.InstallAuto
	})
}

// exists reports whether the dependent is on the cluster, and was not created again since.
func (a Asker) exists(on map[string]Enabled) bool {
	return on[a.Name].UID == a.UID && a.UID != ""
}

// MayInstall reports whether a definition may have a dependency with install Auto. It is cheap, and true for some that have none.
func MayInstall(definition *addonv1alpha1.ClusterManagementAddOn) bool {
	return slices.ContainsFunc(definition.Spec.Dependencies, func(n addonv1alpha1.AddonDependency) bool { return n.Install == addonv1alpha1.InstallAuto }) ||
		strings.Contains(definition.Annotations[addonv1alpha1.AnnotationDependencies], string(addonv1alpha1.InstallAuto))
}

// maxNoted limits the length of a list in an annotation that anyone who may change the add-on writes: no add-on has more dependencies or dependents.
const maxNoted = 1000

// ParseNames parses AnnotationInstalledWith.
func ParseNames(annotation string) []string {
	if annotation == "" {
		return nil
	}
	names := strings.SplitN(annotation, ",", maxNoted+1)
	return names[:min(len(names), maxNoted)]
}

// FormatNames is the inverse of ParseNames.
func FormatNames(names []string) string { return strings.Join(names, ",") }

// ParseAskers parses AnnotationInstalledFor. What is malformed asks for nothing.
func ParseAskers(annotation string) []Asker {
	var askers []Asker
	for _, entry := range ParseNames(annotation) {
		if name, uid, valid := strings.Cut(entry, "="); valid {
			askers = append(askers, Asker{name, types.UID(uid)})
		}
	}
	return askers
}

// FormatAskers is the inverse of ParseAskers.
func FormatAskers(askers []Asker) string {
	entries := make([]string, len(askers))
	for i, asker := range askers {
		entries[i] = asker.Name + "=" + string(asker.UID)
	}
	return FormatNames(entries)
}
