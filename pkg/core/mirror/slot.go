package mirror

import (
	"errors"
	"fmt"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

// Precedes returns an error if another Instance on the hub has a prior claim to the slot of a new mirror.
func Precedes(wanted *kudo.Instance, onHub []kudo.Instance) error {
	if collision := install.Collision(wanted, onHub); collision != nil {
		return errors.New(collision.Message)
	}
	return nil
}

// SharesSlot reports whether another Instance on the hub has the slot of a new mirror: the cache of the managed cluster may lack that
// Instance's mirror, which may have just been created.
func SharesSlot(wanted *kudo.Instance, onHub []kudo.Instance) bool {
	return slices.ContainsFunc(onHub, func(i kudo.Instance) bool {
		return i.Name != wanted.Name && install.SlotOf(&i) == install.SlotOf(wanted)
	})
}

// Occupied returns an error if an Instance in the install namespace, orphaned or not, occupies the slot of a new mirror.
func Occupied(wanted *kudo.Instance, candidates []Candidate) error {
	for _, c := range candidates {
		other := c.Instance
		if other.Name == wanted.Name || render.InstanceName(other.Name) != render.InstanceName(wanted.Name) || !c.Proof.HasObjects() {
			continue
		}
		return fmt.Errorf("namespace %q has Instance %q, whose objects have the same names and labels: install into another namespace "+
			"(spec.installNamespace), or remove that Instance first; if the hub no longer has it, re-create it there before", other.Namespace, other.Name)
	}
	return nil
}

// NameTakenError returns the error for a mirror whose name is taken by an object of another writer.
func NameTakenError(made *kudo.Instance) error {
	return fmt.Errorf("namespace %q already has an Instance %q that does not belong to the hub: install into another namespace "+
		"(spec.installNamespace); on a hub that manages itself, it must not be the namespace of the cluster", made.Namespace, made.Name)
}
