package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Workers is the number of Instances and add-ons that a controller of the agent reconciles in parallel.
const Workers = 8

// StaleCacheDelay is how long to wait for a stale cache.
const StaleCacheDelay = 50 * time.Millisecond

// byName is the field selector for Instances by name, which the API server supports and the cache indexes.
const byName = "metadata.name"

// Index adds the index of Instances by name to the cache of the managed cluster.
func Index(ctx context.Context, local ctrl.Manager) error {
	return local.GetFieldIndexer().IndexField(ctx, &kudo.Instance{}, byName, func(o client.Object) []string {
		return []string{o.GetName()}
	})
}

// Find reads the signed mirror of an Instance by its name, which is unique on the hub; nil if there is none. unsigned is true if instead there is
// one of an earlier release, which is signed once the hub confirms it.
func (s *Signer) Find(ctx context.Context, local client.Reader, name string) (existing *kudo.Instance, unsigned bool, err error) {
	candidates, err := listMirrors(ctx, local, name)
	if err != nil {
		return nil, false, err
	}
	switch chosen := s.choose(candidates, nil); {
	case chosen == nil:
		return nil, false, nil
	case s.IsSigned(chosen):
		return chosen, false, nil
	default:
		return nil, true, nil
	}
}

// listMirrors reads all Instances of that name that claim to be mirrors.
func listMirrors(ctx context.Context, local client.Reader, name string) ([]kudo.Instance, error) {
	list := &kudo.InstanceList{}
	if err := local.List(ctx, list, client.MatchingFields{byName: name}); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(i kudo.Instance) bool { return !kudo.IsMirror(&i) }), nil
}

// choose returns the mirror of an Instance on the hub, which is nil if it does not exist, among the objects that claim to be it: the signed
// one; without one, one that predates the signatures; without any, the one in the Instance's install namespace, which the agent corrects.
// Objects in other namespaces cannot get in its way.
func (s *Signer) choose(candidates []kudo.Instance, wanted *kudo.Instance) *kudo.Instance {
	rank := func(i *kudo.Instance) int {
		installed := wanted != nil && i.Namespace == wanted.TargetNamespace()
		switch {
		case s.IsSigned(i):
			return 4
		case s.Predates(i) && installed:
			return 3
		case s.Predates(i):
			return 2
		case installed:
			return 1
		default:
			return 0
		}
	}
	var best *kudo.Instance
	for at := range candidates {
		if candidate := &candidates[at]; rank(candidate) > 0 && (best == nil || rank(candidate) > rank(best)) {
			best = candidate
		}
	}
	return best
}

// mirrors reports whether a mirror was copied from exactly this Instance on the hub, and not from another one of that name.
func mirrors(existing, wanted *kudo.Instance) bool {
	return existing.Annotations[kudo.AnnotationHubUID] == string(wanted.UID)
}

// Source maps every mirror to its Instance on the hub.
func Source(cluster string, local ctrl.Manager, which ...predicate.TypedPredicate[*kudo.Instance]) source.Source {
	return controller.Source(local, &kudo.Instance{}, func(_ context.Context, i *kudo.Instance) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster, Name: i.Name}}}
	}, which...)
}

// VersionName returns the name on the managed cluster of a mirrored OperatorVersion. It contains the uid: an OperatorVersion that was
// replaced on the hub is a different object here.
func VersionName(onHub corev1.ObjectReference) string {
	short, _, _ := strings.Cut(string(onHub.UID), "-")
	return onHub.Name + "-" + short
}

// HubReference returns the identity on the hub of a mirrored OperatorVersion.
func HubReference(mirrored *kudo.OperatorVersion) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(mirrored.Annotations[kudo.AnnotationHubOperatorVersion], string(types.Separator))
	return corev1.ObjectReference{Namespace: namespace, Name: name, UID: types.UID(mirrored.Annotations[kudo.AnnotationHubUID])}
}

// HandedOver reports whether the mirror controller has completed its writes to the Instance and still manages it. Removal never waits for
// this.
func HandedOver(instance *kudo.Instance) bool {
	_, copied := instance.Annotations[kudo.AnnotationHubGeneration]
	return copied && !instance.IsOrphaned() || instance.IsRemoving()
}

// Acknowledgements returns status.children in a comparable form.
func Acknowledgements(i *kudo.Instance) string {
	if len(i.Status.Children) == 0 {
		return ""
	}
	return fmt.Sprint(i.Status.Children)
}

// IsStale reports whether an Instance, as read from the cache of the hub, is older than its mirror; both may be nil. The mirror of the same
// generation may have a request to cancel a plan, which is mirrored before the rest of the next generation.
func IsStale(wanted, existing *kudo.Instance) bool {
	if wanted == nil || existing == nil || !mirrors(existing, wanted) {
		return false
	}
	request, known := existing.Spec.PlanExecution, existing.HubGeneration()
	return wanted.Generation < known || wanted.Generation == known && request.Cancel && request != wanted.Spec.PlanExecution
}

// specOf returns the mirror's spec: the hub's, with the mirrored OperatorVersion.
func specOf(wanted *kudo.Instance, version corev1.ObjectReference) kudo.InstanceSpec {
	spec := *wanted.Spec.DeepCopy()
	spec.OperatorVersion = version
	spec.InstallNamespace = wanted.TargetNamespace()
	return spec
}

func marksOf(wanted *kudo.Instance) map[string]string {
	marks := identityOf(wanted)
	marks[kudo.AnnotationHubGeneration] = strconv.FormatInt(wanted.Generation, 10)
	return marks
}

// mark replaces the annotations of a mirror that its signature covers. What it says about its inventory is kept.
func mark(mirrored *kudo.Instance, marks map[string]string) {
	for _, name := range signedAnnotations {
		if name != kudo.AnnotationInventoryRestored {
			delete(mirrored.Annotations, name)
		}
	}
	maps.Copy(mirrored.Annotations, marks)
}

// targetOf returns the name on the managed cluster of an Instance on the hub.
func targetOf(wanted *kudo.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: wanted.TargetNamespace(), Name: wanted.Name}
}

// identityOf returns the annotations of a mirror that do not change: the Instance on the hub, and the parent that created it, whose permissions
// it may have. Other owners than the hub set no label.
func identityOf(wanted *kudo.Instance) map[string]string {
	marks := map[string]string{kudo.AnnotationHubUID: string(wanted.UID)}
	if parent := wanted.Parent(); parent != nil && wanted.Labels[kudo.LabelRoot] != "" {
		marks[kudo.AnnotationParent] = parent.Name
	}
	return marks
}
