package mirror

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// Observation is what a decision depends on. Its facts are gathered only when a decision needs them, because most of them are live reads.
type Observation struct {
	Now time.Time
	// Wanted is the Instance on the hub; nil if it does not exist.
	Wanted *kudo.Instance
	// Mirror is the object on the managed cluster that claims to be its mirror; nil if there is none.
	Mirror *kudo.Instance
	Proof  Proof
	// Rights decides which namespaces are reserved, so that nothing is installed in them.
	Rights rights.Policy

	// Known are the facts that were gathered.
	Known map[Fact]bool
	// Namespace is the state of HomeNamespace.
	Namespace NamespaceState
	// Parent is the parent on the hub; nil if it does not exist.
	Parent *kudo.Instance
	// Detached is true if the cluster is being detached from the hub.
	Detached bool
	// Version is the mirrored OperatorVersion.
	Version corev1.ObjectReference
}

// Fact is a part of an Observation that is gathered when a decision needs it.
type Fact string

// The facts.
const (
	// FactConfirmed is established by signing the OperatorVersions of VersionsOf that the hub confirms, before the mirror is signed. Afterwards the
	// status on the hub may repeat what another writer has put into the status of the mirror, and confirms nothing.
	FactConfirmed Fact = "confirmed OperatorVersions"
	FactNamespace Fact = "namespace"
	FactParent    Fact = "parent"
	FactDetached  Fact = "detached"
	// FactVersion is established by mirroring the OperatorVersion of the Instance's spec.
	FactVersion Fact = "mirrored OperatorVersion"
	// FactContent is established by copying the missing content of that OperatorVersion: the engine runs nothing without it.
	FactContent Fact = "content of the mirrored OperatorVersion"
)

// NamespaceState is the state of a namespace on the managed cluster.
type NamespaceState string

// The states of a namespace.
const (
	NamespaceMissing     NamespaceState = "missing"
	NamespaceActive      NamespaceState = "active"
	NamespaceTerminating NamespaceState = "terminating"
)

// lacks reports whether a fact has to be gathered.
func (o Observation) lacks(fact Fact) bool { return !o.Known[fact] }

// Decision is what the agent does next: gather a fact and decide again, or write.
type Decision struct {
	// Need is a fact that the decision depends on. Nothing is written before it is known.
	Need Fact
	// Removed means that the Instance has no objects on the managed cluster any more. It is recorded before the writes.
	Removed bool
	// Writes are the writes to make, in this order.
	Writes []Write
	// Err is why the Instance cannot be mirrored, returned after the writes.
	Err error
}

// WriteKind is the kind of a write.
type WriteKind string

// The kinds of writes.
const (
	// Create creates a mirror without a signature, if its slot is free: the engine ignores it until it is signed.
	Create WriteKind = "create"
	// RestoreVersion mirrors the OperatorVersion of the last execution, or of what it may return to, unless the hub no longer has it: the engine then
	// continues with the one in the Instance's spec, or does not return.
	RestoreVersion WriteKind = "restore version"
	// UpdateStatus writes the status of a mirror.
	UpdateStatus WriteKind = "update status"
	// Update signs a mirror and writes it.
	Update WriteKind = "update"
	// Orphan is an update of a mirror whose Instance does not exist on the hub or was force-released.
	Orphan WriteKind = "orphan"
	// Leave removes the finalizer of a mirror whose namespace is being deleted. The mirror may be gone already.
	Leave WriteKind = "leave"
	// Delete removes the finalizer of a mirror and deletes it. The mirror may be gone already.
	Delete WriteKind = "delete"
)

// Write is one write to the managed cluster.
type Write struct {
	Kind WriteKind
	// Mirror is the mirror after the write.
	Mirror *kudo.Instance
	// Unsigned means that the mirror is not signed: the engine continues to ignore it.
	Unsigned bool
	// Version is the OperatorVersion on the hub to mirror.
	Version corev1.ObjectReference
	// Optional means that the writes after this one are made although the version cannot be read.
	Optional bool
}

// Onto returns the mirror to write, given the one that the previous write has stored: the API server sets the uid and resource version of a
// mirror, and may normalize it. stored is nil before the first write.
func (w Write) Onto(stored *kudo.Instance) *kudo.Instance {
	if stored == nil {
		return w.Mirror.DeepCopy()
	}
	next := stored.DeepCopy()
	if w.Kind == UpdateStatus {
		next.Status = *w.Mirror.Status.DeepCopy()
		return next
	}
	next.Spec, next.Annotations, next.Finalizers = *w.Mirror.Spec.DeepCopy(), w.Mirror.DeepCopy().Annotations, w.Mirror.DeepCopy().Finalizers
	return next
}
