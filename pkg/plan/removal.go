package plan

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Teardown returns the order in which a whole inventory is deleted: the reverse of the order of application, with consecutive objects of
// one kind in one wave. Objects of kinds that the inventory itself defines come first, followed by their definitions, which also deletes
// objects that others have created of these kinds. All of them may have finalizers that only the operator removes, so it runs until then.
func Teardown(inventory []kudo.InventoryEntry) [][]kudo.InventoryEntry {
	defined := map[string]bool{}
	for _, entry := range inventory {
		if IsDefinition(entry) {
			_, group, _ := strings.Cut(entry.Name, ".") // a definition is named PLURAL.GROUP
			defined[group] = true
		}
	}
	rank := func(entry kudo.InventoryEntry) int {
		switch {
		case defined[entry.Group]:
			return 0
		case IsDefinition(entry):
			return 1
		default:
			return 2
		}
	}
	entries := slices.Clone(inventory)
	slices.Reverse(entries)
	slices.SortStableFunc(entries, func(a, b kudo.InventoryEntry) int { return rank(a) - rank(b) })
	var waves [][]kudo.InventoryEntry
	for i, entry := range entries {
		if i == 0 || entry.Group != entries[i-1].Group || entry.Kind != entries[i-1].Kind {
			waves = append(waves, nil)
		}
		waves[len(waves)-1] = append(waves[len(waves)-1], entry)
	}
	return waves
}

// IsDefinition reports whether an entry is of a CustomResourceDefinition, whose deletion deletes all objects of its kind.
func IsDefinition(entry kudo.InventoryEntry) bool {
	return entry.Group == "apiextensions.k8s.io" && entry.Kind == "CustomResourceDefinition"
}

// Held reports whether another writer's finalizer blocks the deletion of any object.
func Held(objects []Object) bool { return slices.ContainsFunc(objects, Object.held) }

// Claims separates volume claims from the rest. Volumes count as claims, because Kubernetes keeps them until their claims are deleted.
func Claims(entries []kudo.InventoryEntry) (claims, others []kudo.InventoryEntry) {
	for _, entry := range entries {
		kind := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}
		if IsClaim(kind) || kind == (schema.GroupKind{Kind: "PersistentVolume"}) {
			claims = append(claims, entry)
		} else {
			others = append(others, entry)
		}
	}
	return claims, others
}

// Reads are the results of a search through kinds of a cluster: the error of each kind that was searched, nil if it was read, and of each API
// group that could not be discovered.
type Reads struct {
	Kinds  map[schema.GroupKind]error
	Groups map[string]error
}

// Required returns why a kind could not be read that must be before an Instance counts as removed: volume claims, the kinds in the
// inventory, and the kinds that the version renders. It returns nil if all of them were read, or if the cluster does not have them.
func (r Reads) Required(inventory []kudo.InventoryEntry, rendered []*unstructured.Unstructured) error {
	for _, kind := range RequiredKinds(inventory, rendered) {
		if err := r.of(kind); err != nil {
			return err
		}
	}
	return nil
}

// RequiredKinds returns the kinds that must be read before an Instance counts as removed.
func RequiredKinds(inventory []kudo.InventoryEntry, rendered []*unstructured.Unstructured) []schema.GroupKind {
	kinds := []schema.GroupKind{volumeClaim}
	for _, entry := range inventory {
		kinds = append(kinds, schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	}
	for _, o := range rendered {
		kinds = append(kinds, o.GroupVersionKind().GroupKind())
	}
	return kinds
}

// Unsearched returns the entries of kinds that could not be read.
func (r Reads) Unsearched(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(inventory, func(e kudo.InventoryEntry) bool { return r.of(schema.GroupKind{Group: e.Group, Kind: e.Kind}) != nil })
}

// of returns why a kind could not be read. A kind of a group that could not be discovered was read if another version of it was.
func (r Reads) of(kind schema.GroupKind) error {
	if err, searched := r.Kinds[kind]; searched {
		return err
	}
	return r.Groups[kind.Group]
}

// Unread describes everything that could not be read, in a sorted order; empty if everything was.
func (r Reads) Unread() string {
	var reasons []string
	for _, err := range r.Kinds {
		if err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	for _, err := range r.Groups {
		reasons = append(reasons, err.Error())
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}

// Outline returns the part of a rendered object that a removal depends on: its identity, the kind that it defines, and the volume claims that
// it requests to keep. A version may render more than fits into memory.
func Outline(o *unstructured.Unstructured) *unstructured.Unstructured {
	outline := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"},
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

// Retained returns a function that reports whether a StatefulSet explicitly requests to keep a volume claim when it is deleted. Without an
// explicit request, claims that Kubernetes keeps by default are removed with the Instance. If a problem hides the package's request, all are
// kept.
func Retained(rendered []*unstructured.Unstructured, problem error) func(claim string) bool {
	var names []*regexp.Regexp
	for _, o := range rendered {
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if o.GetKind() != "StatefulSet" || policy != "Retain" {
			continue
		}
		templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
		for _, t := range templates {
			template, _ := t.(map[string]any)
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			names = append(names, regexp.MustCompile("^"+regexp.QuoteMeta(name+"-"+o.GetName())+"-[0-9]+$"))
		}
	}
	return func(claim string) bool {
		return problem != nil || slices.ContainsFunc(names, func(n *regexp.Regexp) bool { return n.MatchString(claim) })
	}
}
