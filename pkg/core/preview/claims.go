package preview

import (
	"cmp"
	"fmt"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// claims returns the volume claims whose fate the removal of the Instance decides: those that it has applied, and those of its StatefulSets,
// which only their controller creates. A cleanup plan must not have been simulated. Claims of charts, which only the cluster renders, are
// described at their StatefulSet.
func (s *simulation) claims() []Object {
	var claims []Object
	applied := s.inventory
	removed := s.remove(applied)
	s.inventory = applied // place needs it
	for _, o := range removed {
		switch {
		case isClaim(o.InventoryEntry):
			size := ""
			if content := s.lastApplied(o.InventoryEntry, s.lastPlan()); content != nil {
				size = plan.ClaimSize(content.Object)
			}
			claims = append(claims, claim(o.InventoryEntry, size, o.Effect == Kept))
		case plan.IsStatefulSet(o.InventoryEntry):
			claims = append(claims, s.claimsOfSet(o)...)
		}
	}
	slices.SortStableFunc(claims, func(a, b Object) int { return cmp.Compare(b.Effect, a.Effect) }) // removed before kept
	return claims
}

// claimsOfSet returns the volume claims of a StatefulSet of which the hub knows the content.
func (s *simulation) claimsOfSet(set Object) []Object {
	content := s.lastApplied(set.InventoryEntry, s.lastPlan())
	if content == nil {
		return nil
	}
	listed, all := plan.ClaimsOfSet(content)
	claims := make([]Object, 0, len(listed))
	for _, c := range listed {
		entry := kudo.InventoryEntry{Kind: claimKind, Namespace: set.Namespace, Name: c.Name, Task: set.Task}
		claims = append(claims, claim(entry, c.Size, c.Kept || set.Effect == Kept))
	}
	if more := all - int64(len(listed)); more > 0 {
		last := &claims[len(claims)-1]
		last.Note += fmt.Sprintf("; %d more volume claims of %s are not listed", more, set.InventoryEntry)
	}
	return claims
}

// lastPlan returns the plan that was last started.
func (s *simulation) lastPlan() plan.Placed {
	if s.instance == nil || s.instance.Status.Execution == nil {
		return plan.Placed{}
	}
	return plan.Placed{Plan: s.instance.Status.Execution.Plan}
}

// collectClaims returns the claims with those of removed children, which are then listed there no longer.
func collectClaims(claims []Object, children []Child) []Object {
	for _, child := range children {
		if child.Preview != nil {
			claims, child.Preview.Claims = append(claims, child.Preview.Claims...), nil
		}
	}
	return claims
}

// claim returns a volume claim that is deleted with its data, or stays.
func claim(entry kudo.InventoryEntry, size string, kept bool) Object {
	if size == "" {
		size = "of unknown size"
	}
	if kept {
		return Object{InventoryEntry: entry, Effect: Kept, Note: size}
	}
	return Object{InventoryEntry: entry, Effect: Removed, Note: size + ", with its data"}
}

const claimKind = "PersistentVolumeClaim"
