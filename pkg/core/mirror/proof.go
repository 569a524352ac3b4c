package mirror

import (
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// SignedAnnotations are the annotations that a signature covers.
var SignedAnnotations = append(slices.Clone(kudo.MirrorAnnotations), kudo.AnnotationSkipCleanup, kudo.AnnotationDiagnose)

// Proof is what the signature and the age of an object prove about its writer. Names, annotations and labels prove nothing: anyone with
// permission to write objects in a namespace can set them.
type Proof struct {
	// Signed means that the agent has signed exactly this object.
	Signed bool
	// Older means that a mirror is older than the key, which may have been lost.
	Older bool
	// Former means that the content was signed by an agent of an earlier release, which did not sign uids.
	Former bool
}

// Predates reports whether a mirror may have been signed by an agent of an earlier release or with a lost key, or not at all. It is ignored
// until the hub confirms it.
func (p Proof) Predates() bool { return p.Older || p.Former }

// HasObjects reports whether an Instance on the managed cluster may have objects: it is a mirror, of this release or an earlier one.
func (p Proof) HasObjects() bool { return p.Signed || p.Predates() }

// Candidate is an object on the managed cluster that claims to be a mirror.
type Candidate struct {
	Instance *kudo.Instance
	Proof    Proof
}

// Choose returns the mirror of an Instance among the objects that claim to be it: the signed one, else one that predates the signatures,
// else the one in the Instance's install namespace, which the agent corrects. Other objects in other namespaces are ignored. wanted is the
// Instance on the hub; nil if it does not exist. It returns an empty Candidate if there is none.
func Choose(candidates []Candidate, wanted *kudo.Instance) Candidate {
	best, highest := Candidate{}, 0
	for _, candidate := range candidates {
		if rank := candidate.rank(wanted); rank > highest {
			best, highest = candidate, rank
		}
	}
	return best
}

func (c Candidate) rank(wanted *kudo.Instance) int {
	installed := wanted != nil && c.Instance.Namespace == wanted.TargetNamespace()
	switch {
	case c.Proof.Signed:
		return 4
	case c.Proof.Predates() && installed:
		return 3
	case c.Proof.Predates():
		return 2
	case installed:
		return 1
	default:
		return 0
	}
}
