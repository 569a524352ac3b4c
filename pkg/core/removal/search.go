// Package removal decides how the objects of an Instance that is being removed are deleted: in which order, what is waited for, and when
// nothing is left. It touches no cluster.
package removal

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// isClaim reports whether an object that a search has found is a volume claim.
func isClaim(found plan.Object) bool { return plan.IsClaim(found.Live.GroupVersionKind().GroupKind()) }

// Reads are the results of a search through kinds of a cluster: the error of each kind that was searched, nil if it was read, and of each
// API group that could not be discovered.
type Reads struct {
	Kinds  map[schema.GroupKind]error
	Groups map[string]error
}

// CheckRequired returns why a kind could not be read that must be before an Instance counts as removed: volume claims, the kinds in the
// inventory, and the kinds that the version renders. It returns nil if all of them were read, or if the cluster does not have them.
func (r Reads) CheckRequired(inventory []kudo.InventoryEntry, rendered []*unstructured.Unstructured) error {
	for _, kind := range requiredKinds(inventory, rendered) {
		if err := r.of(kind); err != nil {
			return err
		}
	}
	return nil
}

// requiredKinds returns the kinds that must be read before an Instance counts as removed.
func requiredKinds(inventory []kudo.InventoryEntry, rendered []*unstructured.Unstructured) []schema.GroupKind {
	kinds := []schema.GroupKind{{Kind: "PersistentVolumeClaim"}}
	for _, entry := range inventory {
		kinds = append(kinds, schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	}
	for _, o := range rendered {
		kinds = append(kinds, o.GroupVersionKind().GroupKind())
	}
	return kinds
}

// UnsearchedEntries returns the entries of kinds that could not be read.
func (r Reads) UnsearchedEntries(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(inventory), func(e kudo.InventoryEntry) bool {
		return r.of(schema.GroupKind{Group: e.Group, Kind: e.Kind}) == nil
	})
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
