package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Groups are the API groups of definitions.
type Groups map[string]bool

// add adds the groups that an inventory defines. Groups without a dot are Kubernetes' own, and cannot be defined.
func (g Groups) add(inventory []kudo.InventoryEntry) {
	for _, entry := range inventory {
		if group := groupDefined(entry); IsDefinition(entry) && strings.Contains(group, ".") {
			g[group] = true
		}
	}
}

// hasCustom reports whether an entry is of a custom resource of these groups, or of a definition. Objects that the package keeps are neither: they
// are only released.
func (g Groups) hasCustom(entry kudo.InventoryEntry) bool {
	return !entry.Keep && (g[entry.Group] || IsDefinition(entry))
}

// Teardown returns the order in which a whole inventory is deleted: the reverse of the order of application, with consecutive objects of
// one kind in one wave. Objects of groups that the inventory itself or its tree defines come first, followed by the definitions, which also
// deletes objects that others have created of these kinds. All of them may have finalizers that only the operator removes, so it runs until
// then: it is among the rest.
func Teardown(inventory []kudo.InventoryEntry, tree Groups) (custom, rest [][]kudo.InventoryEntry) {
	groups := Groups{}
	maps.Copy(groups, tree)
	groups.add(inventory)
	isRest := func(e kudo.InventoryEntry) bool { return !groups.hasCustom(e) }
	isResource := func(e kudo.InventoryEntry) bool { return !IsDefinition(e) }
	reversed := slices.Clone(inventory)
	slices.Reverse(reversed)
	early := only(reversed, groups.hasCustom)
	return waves(slices.Concat(only(early, isResource), only(early, IsDefinition))), waves(only(reversed, isRest))
}

// waves divides entries into consecutive ones of one kind.
func waves(entries []kudo.InventoryEntry) [][]kudo.InventoryEntry {
	var waves [][]kudo.InventoryEntry
	for i, entry := range entries {
		if i == 0 || entry.Group != entries[i-1].Group || entry.Kind != entries[i-1].Kind {
			waves = append(waves, nil)
		}
		waves[len(waves)-1] = append(waves[len(waves)-1], entry)
	}
	return waves
}

// groupDefined returns the API group of a definition, which is named PLURAL.GROUP.
func groupDefined(definition kudo.InventoryEntry) string {
	_, group, _ := strings.Cut(definition.Name, ".")
	return group
}

// DeletesDefinition reports whether the removal of an Instance with that inventory deletes the CustomResourceDefinition of that name.
func DeletesDefinition(inventory []kudo.InventoryEntry, name string) bool {
	return slices.ContainsFunc(inventory, func(e kudo.InventoryEntry) bool { return IsDefinition(e) && e.Name == name && !e.Keep })
}

// HasHeldObject reports whether another writer's finalizer blocks the deletion of any object.
func HasHeldObject(objects []Object) bool { return slices.ContainsFunc(objects, Object.isHeld) }

// Outline returns the part of a rendered object that a removal depends on: its identity, the kind that it defines, whether it is kept, and the
// volume claims that it requests to keep. A version may render more than fits into memory.
func Outline(o *unstructured.Unstructured) *unstructured.Unstructured {
	outline := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"},
		{"metadata", "annotations", kudo.AnnotationKeep}, {"metadata", "annotations", kudo.AnnotationHelmPolicy},
		{"spec", "group"}, {"spec", "names", "kind"}, {"spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"},
	} {
		if text, found, _ := unstructured.NestedString(o.Object, path...); found {
			_ = unstructured.SetNestedField(outline.Object, text, path...)
		}
	}
	if templates, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "volumeClaimTemplates"); found && o.GetKind() == "StatefulSet" {
		_ = unstructured.SetNestedField(outline.Object, templates, "spec", "volumeClaimTemplates")
	}
	return outline
}

// RetainedClaims returns a function that reports whether a StatefulSet explicitly requests to keep a volume claim when it is deleted: by
// its policy, because it is kept itself, or because the template of the claim says so (Keeps). Without an explicit request, claims that
// Kubernetes keeps by default are removed with the Instance. If a problem hides the package's request, all are kept.
func RetainedClaims(rendered []*unstructured.Unstructured, problem error) func(claim string) bool {
	var names []*regexp.Regexp
	for _, o := range rendered {
		_, retained := claimsOf(o)
		for _, name := range retained {
			names = append(names, regexp.MustCompile("^"+regexp.QuoteMeta(name+"-"+o.GetName())+"-[0-9]+$"))
		}
	}
	return func(claim string) bool {
		return problem != nil || slices.ContainsFunc(names, func(n *regexp.Regexp) bool { return n.MatchString(claim) })
	}
}

// claimsOf returns the names of a StatefulSet's claim templates: of those whose claims its removal deletes, and of those whose claims stay.
func claimsOf(o *unstructured.Unstructured) (deleted, retained []string) {
	if o.GetKind() != "StatefulSet" {
		return nil, nil
	}
	policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		template, _ := t.(map[string]any)
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		if policy == "Retain" || Keeps(o) || Keeps(&unstructured.Unstructured{Object: template}) {
			retained = append(retained, name)
		} else {
			deleted = append(deleted, name)
		}
	}
	return deleted, retained
}

// DeletedClaims returns the names of the claim templates of a StatefulSet whose claims its removal deletes.
func DeletedClaims(set *unstructured.Unstructured) []string {
	deleted, _ := claimsOf(set)
	return deleted
}

// IsStatefulSet reports whether an entry is of a StatefulSet, with which an Instance's removal deletes volume claims.
func IsStatefulSet(entry kudo.InventoryEntry) bool {
	return entry.Group == "apps" && entry.Kind == "StatefulSet"
}

// ClaimsNote describes what happens to the volume claims of a StatefulSet when its Instance is removed; empty if it has none. applied is nil if its
// content is not known.
func ClaimsNote(applied *unstructured.Unstructured) string {
	if applied == nil {
		return "with its volume claims and their data, unless the package keeps them"
	}
	var notes []string
	deleted, retained := claimsOf(applied)
	if len(deleted) > 0 {
		notes = append(notes, fmt.Sprintf("with its volume claims (%s) and their data", text.OneLine(strings.Join(deleted, ", "))))
	}
	if len(retained) > 0 {
		notes = append(notes, fmt.Sprintf("its volume claims (%s) stay", text.OneLine(strings.Join(retained, ", "))))
	}
	return strings.Join(notes, "; ")
}

// IsKept reports whether the package keeps an object that the Instance in namespace install has applied. That is recorded when it is applied.
// Releases before recorded nothing: then it is kept if its annotation says so and the package renders it like that.
func IsKept(entry kudo.InventoryEntry, live *unstructured.Unstructured, install string, rendered func() []*unstructured.Unstructured) bool {
	if entry.Keep || live == nil || !Keeps(live) {
		return entry.Keep
	}
	return slices.ContainsFunc(rendered(), func(o *unstructured.Unstructured) bool {
		want := Entry(o, "")
		if want.Namespace == "" && entry.Namespace == install {
			want.Namespace = install
		}
		return want == Identity(entry) && Keeps(o)
	})
}

// WithoutRetained returns the entries of volume claims without those of StatefulSets that are retained. Other retained claims, which the package
// renders, are marked as kept: the Instance may own them.
func WithoutRetained(claims []kudo.InventoryEntry, retained func(claim string) bool) []kudo.InventoryEntry {
	left := only(claims, func(e kudo.InventoryEntry) bool { return e.Task != "" || !retained(e.Name) })
	for i := range left {
		left[i].Keep = left[i].Keep || retained(left[i].Name)
	}
	return left
}

// Taken describes what is deleted together with an object; empty if nothing is. instances are those of the cluster: the hub knows only
// their objects.
func Taken(entry kudo.InventoryEntry, instances []kudo.Instance) string {
	switch {
	case IsNamespace(entry):
		return fmt.Sprintf("with everything in it: %s of Instances, and objects that the hub does not know",
			text.Plural(CountTaken(instances, entry), "object"))
	case IsDefinition(entry):
		return fmt.Sprintf("with every object of its kind on the cluster, including those that users have created, which the hub does not know; Instances have %s of API group %s",
			text.Plural(CountTaken(instances, entry), "object"), groupDefined(entry))
	default:
		return ""
	}
}

// CountTaken returns the number of objects of Instances in the Namespaces, or in the API groups of the definitions.
func CountTaken(instances []kudo.Instance, by ...kudo.InventoryEntry) int {
	namespaces, groups := map[string]bool{}, map[string]bool{}
	for _, entry := range by {
		namespaces[entry.Name] = namespaces[entry.Name] || IsNamespace(entry)
		groups[groupDefined(entry)] = groups[groupDefined(entry)] || IsDefinition(entry)
	}
	count := 0
	for i := range instances {
		for _, entry := range instances[i].Status.Inventory {
			if !entry.Pending && (entry.Namespace != "" && namespaces[entry.Namespace] || entry.Group != "" && groups[entry.Group]) {
				count++
			}
		}
	}
	return count
}

// KeptNote describes what happens to an object that the package keeps. removed are the objects that are deleted: among them may be its namespace.
func KeptNote(entry kudo.InventoryEntry, removed []kudo.InventoryEntry) (note string, stays bool) {
	goes := slices.ContainsFunc(removed, func(e kudo.InventoryEntry) bool {
		return IsNamespace(e) && !e.Keep && e.Name == entry.Namespace
	})
	switch {
	case goes:
		return "the package keeps it, but not its Namespace", false
	case IsDefinition(entry):
		return "the package keeps it, and with it the objects of its kind that the package has not applied", true
	case IsNamespace(entry):
		return "the package keeps it, and with it the objects in it that the package has not applied", true
	default:
		return "the package keeps it", true
	}
}

// Settled returns the entries of objects that have been applied, or found.
func Settled(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(inventory, func(e kudo.InventoryEntry) bool { return !e.Pending })
}
