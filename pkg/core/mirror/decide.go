package mirror

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Decide returns what the agent does about an Instance. An object that only claims to be its mirror counts as missing.
func Decide(o Observation) Decision {
	if o.Mirror == nil {
		return follow(o)
	}
	switch judged := authenticate(o); {
	case judged == foreign:
		o.Mirror, o.Proof = nil, Proof{}
		return follow(o)
	case judged == remnant:
		return follow(o)
	case judged == unconfirmed:
		return Decision{Err: unconfirmedError(o.Mirror)}
	case !o.Proof.Signed && o.lacks(FactConfirmed):
		return Decision{Need: FactConfirmed}
	case judged == authentic:
		return follow(o)
	case o.Wanted.DeletionTimestamp != nil:
		o.Mirror = reset(o.Mirror, o.Wanted)
		return follow(o)
	default:
		return sign(o)
	}
}

// sign signs a mirror, and then updates it.
func sign(o Observation) Decision {
	signed := o.Mirror.DeepCopy()
	annotate(signed, identityOf(o.Wanted))
	o.Mirror, o.Proof.Signed = signed, true
	next := follow(o)
	if next.Need == "" {
		next.Writes = append([]Write{{Kind: Update, Mirror: signed}}, next.Writes...)
	}
	return next
}

// follow updates, orphans or removes a mirror, depending on the Instance on the hub.
func follow(o Observation) Decision {
	switch {
	case o.Mirror != nil && o.Mirror.IsRemoving() && o.Mirror.IsRemoved() && !isOf(o.Mirror, o.Wanted):
		return Decision{Writes: []Write{{Kind: Delete, Mirror: o.Mirror}}} // the hub has received that report; until then the removal can be cancelled
	case o.Wanted == nil, o.Wanted.IsForceReleased():
		return Decision{Writes: orphan(o)}
	case o.Wanted.DeletionTimestamp != nil:
		return remove(o)
	case o.Mirror != nil && o.Mirror.IsRemoving(): // the hub has released the Instance, or its deletion was undone by a restore
		return Decision{Writes: orphan(o)}
	default:
		return keep(o)
	}
}

// isOf reports whether a mirror belongs to exactly this Instance on the hub, and the Instance was not force-released.
func isOf(existing, wanted *kudo.Instance) bool {
	return wanted != nil && !wanted.IsForceReleased() && Mirrors(existing, wanted)
}
