package mirror

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// authenticity classifies an object that claims to be a mirror.
type authenticity string

const (
	// foreign is an object of another writer: it counts as missing.
	foreign authenticity = "foreign"
	// remnant is a mirror whose Instance the hub no longer has: it is orphaned, or deleted after its removal. A mirror of an earlier release
	// is not signed for that.
	remnant authenticity = "remnant"
	// unconfirmed is a mirror without a valid signature that is ignored until the hub has resolved its Instance.
	unconfirmed authenticity = "unconfirmed"
	// confirmed is a mirror without a valid signature that the hub confirms: it is signed now.
	confirmed authenticity = "confirmed"
	// authentic is a mirror that is signed already, or will be when the Instance is copied to it.
	authentic authenticity = "authentic"
)

// authenticate classifies a mirror: it is authentic if it is signed, or if its Instance is resolved and will be copied to it. A mirror of a
// release that did not sign them, or whose key is lost, is confirmed by the uid of the Instance on the hub. Unless the Instance is being
// deleted, the mirror must also be what the agent has reported to the hub, because another writer may have changed it.
func authenticate(o Observation) authenticity {
	if o.Wanted == nil {
		if o.Proof.HasObjects() {
			return remnant
		}
		return foreign
	}
	deleting := o.Wanted.DeletionTimestamp != nil
	switch {
	case o.Proof.Signed, !deleting && IsResolved(o.Wanted): // the copy is signed
		return authentic
	case Mirrors(o.Mirror, o.Wanted) && (deleting || isStarted(o.Mirror, o.Wanted)):
		return confirmed
	case Mirrors(o.Mirror, o.Wanted):
		return unconfirmed
	case o.Proof.Predates():
		return remnant
	default:
		return foreign
	}
}

// HomeNamespace returns the namespace of the Instance's workloads on the managed cluster.
func (o Observation) HomeNamespace() string {
	if o.Mirror != nil && authenticate(o) != foreign {
		return o.Mirror.Namespace
	}
	return o.Wanted.TargetNamespace()
}

// isStarted reports whether a mirror has the spec that the agent started last, according to its report on the hub, which no writer on the
// managed cluster can change, or has that spec with the facts that the hub records now. The hub no longer has the generation that the mirror was
// copied from.
func isStarted(existing, wanted *kudo.Instance) bool {
	last := wanted.Status.Execution
	if last == nil || existing.HubGeneration() < last.Generation || existing.HubGeneration() > wanted.Generation {
		return false
	}
	spec := specOf(wanted, corev1.ObjectReference{Namespace: existing.Namespace, Name: VersionName(last.OperatorVersion)})
	spec.Parameters, spec.ImageRegistries, spec.Cluster = last.Parameters, last.ImageRegistries, last.Cluster
	if facts.Equal(existing.Spec.Cluster, wanted.Spec.Cluster) { // they are copied without a plan
		spec.Cluster = existing.Spec.Cluster
	}
	if existing.Spec.InstallNamespace == "" {
		spec.InstallNamespace = ""
	}
	if request := existing.Spec.PlanExecution; !request.Cancel && plan.IsHandled(wanted.Status, request.UID) {
		spec.PlanExecution = request // it is inert
	}
	return existing.Namespace == wanted.TargetNamespace() && equality.Semantic.DeepEqual(existing.Spec, spec) && hasMarksOf(existing, wanted)
}

// hasMarksOf reports whether the signed annotations of a mirror are only those that it has while its Instance exists.
func hasMarksOf(existing, wanted *kudo.Instance) bool {
	marks := marksOf(wanted)
	marks[kudo.AnnotationHubGeneration] = existing.Annotations[kudo.AnnotationHubGeneration]
	marks[kudo.AnnotationInventoryRestored] = existing.Annotations[kudo.AnnotationInventoryRestored]
	return !slices.ContainsFunc(SignedAnnotations, func(name string) bool {
		found, exists := existing.Annotations[name]
		want, isSet := marks[name]
		return exists && (!isSet || found != want)
	})
}

func unconfirmedError(existing *kudo.Instance) error {
	return fmt.Errorf("the mirror of Instance %q in namespace %q of the managed cluster lacks the signature of addon-agent, which ignores it "+
		"until the hub has resolved its Instance", existing.Name, existing.Namespace)
}

// reset returns an unsigned mirror with the hub's state of its Instance, which is being deleted, because another writer may have changed
// the mirror. It is signed when it is marked for removal. Its inventory may lack objects.
func reset(existing, wanted *kudo.Instance) *kudo.Instance {
	mirrored := existing.DeepCopy()
	mirrored.Spec = specOf(wanted, wanted.Spec.OperatorVersion)
	if existing.Spec.InstallNamespace == "" { // it is immutable, and that of the mirror counts
		mirrored.Spec.InstallNamespace = ""
	}
	mark(mirrored, marksOf(wanted))
	mirrored.Annotations[kudo.AnnotationInventoryRestored] = "true"
	return mirrored
}
