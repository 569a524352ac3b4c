package mirror

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// NewVersion returns the mirror of an OperatorVersion on the hub. Its name differs from that of the original, so its spec names the
// operator.
func NewVersion(original *kudo.OperatorVersion, namespace string) *kudo.OperatorVersion {
	key := types.NamespacedName{Namespace: original.Namespace, Name: original.Name}
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{
			Name:      VersionName(corev1.ObjectReference{Name: original.Name, UID: original.UID}),
			Namespace: namespace,
			Annotations: map[string]string{
				kudo.AnnotationHubUID:             string(original.UID),
				kudo.AnnotationHubOperatorVersion: key.String(),
			},
		},
		Spec: *original.NamedSpec(),
	}
}

// VersionKey returns the name on the hub of the OperatorVersion that the Instance's spec refers to.
func VersionKey(wanted *kudo.Instance, cluster string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(wanted.Spec.OperatorVersion.Namespace, cluster), Name: wanted.Spec.OperatorVersion.Name}
}

// VersionClaim is the name of a mirrored OperatorVersion that an Instance uses.
type VersionClaim struct {
	Name string
	// Reported means that the status on the hub names it.
	Reported bool
}

// VersionsOf returns the mirrored OperatorVersions that an Instance uses. An earlier release may have created them without a signature.
func VersionsOf(wanted, existing *kudo.Instance) []VersionClaim {
	reported := usedVersions(wanted)
	names := append([]string{existing.Spec.OperatorVersion.Name}, slices.Concat(reported, usedVersions(existing))...)
	slices.Sort(names)
	var claims []VersionClaim
	for _, name := range slices.Compact(names) {
		claims = append(claims, VersionClaim{Name: name, Reported: slices.Contains(reported, name)})
	}
	return claims
}

// usedVersions returns the names of the mirrored OperatorVersions in the status of an Instance.
func usedVersions(i *kudo.Instance) []string {
	var names []string
	if last := i.Status.Execution; last != nil {
		names = append(names, VersionName(last.OperatorVersion))
	}
	if whole := i.Status.Whole; whole != nil {
		names = append(names, VersionName(whole.OperatorVersion))
	}
	if former := i.Status.Former; former != nil {
		names = append(names, VersionName(former.OperatorVersion))
	}
	if returned := i.Status.Returned; returned != nil && i.Status.Former != nil { // its objects are not pruned yet
		names = append(names, VersionName(returned.OperatorVersion))
	}
	return names
}

// Confirmation is what the hub says about a mirrored OperatorVersion without a signature.
type Confirmation string

// The confirmations.
const (
	// Confirmed means that the hub confirms the mirror, which is then signed.
	Confirmed Confirmation = "confirmed"
	// Unknown means that the hub neither has the OperatorVersion nor names it in a status, or that the mirror's name does not match.
	Unknown Confirmation = "unknown"
	// Different means that the hub has different content under its uid.
	Different Confirmation = "different"
)

// Confirm compares an unsigned mirror of an OperatorVersion with the hub. If the hub still has the original, the mirror must be equal to
// it. If the original was replaced or deleted since (then it may be nil), the mirror is confirmed if a status on the hub names it, because
// an OperatorVersion is immutable.
func Confirm(existing, original *kudo.OperatorVersion, reported bool) Confirmation {
	reference := HubReference(existing)
	switch {
	case original == nil || original.UID != reference.UID:
		if !reported {
			return Unknown
		}
	case !equality.Semantic.DeepEqual(existing.Spec, *original.NamedSpec()):
		return Different
	}
	if VersionName(corev1.ObjectReference{Name: reference.Name, UID: reference.UID}) != existing.Name {
		return Unknown
	}
	return Confirmed
}

// KeepsVersion reports whether an unsigned object with the name of a new mirrored OperatorVersion is equal to it, and can be signed and
// kept. If not, it only claims to be the mirror, and is to be deleted. An error means that it belongs to another writer.
func KeepsVersion(existing, made *kudo.OperatorVersion) (bool, error) {
	if !kudo.IsMirror(existing) {
		return false, fmt.Errorf("namespace %q already has an OperatorVersion %q that does not belong to the hub: delete it, or install into another "+
			"namespace (spec.installNamespace)", made.Namespace, made.Name)
	}
	return HubReference(existing) == HubReference(made) && equality.Semantic.DeepEqual(existing.Spec, made.Spec), nil
}

// Unneeded returns the mirrored versions that no mirror uses. A mirror uses the version in its spec, the one that it runs, and, until the
// plan that replaces it is complete, the previous one, because that plan has the permissions of both versions.
func Unneeded(versions []kudo.OperatorVersion, mirrors []kudo.Instance) []kudo.OperatorVersion {
	needed := map[types.NamespacedName]bool{}
	for i := range mirrors {
		for _, name := range append(usedVersions(&mirrors[i]), mirrors[i].Spec.OperatorVersion.Name) {
			needed[types.NamespacedName{Namespace: mirrors[i].Namespace, Name: name}] = true
		}
	}
	return without(versions, needed)
}

// Unexpected returns the mirrored versions that no Instance on the hub is about to use. An Instance may be about to use a version if its
// choice is not known: the agent may have stopped between the creation of a mirrored OperatorVersion and that of its Instance.
func Unexpected(versions []kudo.OperatorVersion, onHub []kudo.Instance, cluster string, hasChoice func(name string) bool) []kudo.OperatorVersion {
	expected := map[string]bool{} // by namespace, and name on the hub
	for i := range onHub {
		if wanted := &onHub[i]; wanted.DeletionTimestamp == nil && !hasChoice(wanted.Name) {
			expected[wanted.TargetNamespace()+"/"+VersionKey(wanted, cluster).String()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(versions), func(v kudo.OperatorVersion) bool {
		return expected[v.Namespace+"/"+v.Annotations[kudo.AnnotationHubOperatorVersion]]
	})
}

func without(versions []kudo.OperatorVersion, names map[types.NamespacedName]bool) []kudo.OperatorVersion {
	return slices.DeleteFunc(slices.Clone(versions), func(v kudo.OperatorVersion) bool {
		return names[types.NamespacedName{Namespace: v.Namespace, Name: v.Name}]
	})
}
