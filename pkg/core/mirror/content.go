package mirror

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/diagnosis"
)

// newMirror returns the mirror to create for an Instance.
func newMirror(wanted *kudo.Instance, version corev1.ObjectReference) *kudo.Instance {
	made := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Name:        wanted.Name,
			Namespace:   wanted.TargetNamespace(),
			Annotations: identityOf(wanted),
			Finalizers:  []string{kudo.Finalizer},
		},
		Spec: specOf(wanted, version),
	}
	if wanted.Status.Execution != nil {
		made.Annotations[kudo.AnnotationInventoryRestored] = "true"
	}
	return made
}

// specOf returns the mirror's spec: that of the Instance on the hub, with the mirrored OperatorVersion.
func specOf(wanted *kudo.Instance, version corev1.ObjectReference) kudo.InstanceSpec {
	spec := *wanted.Spec.DeepCopy()
	spec.OperatorVersion = version
	spec.InstallNamespace = wanted.TargetNamespace()
	return spec
}

// identityOf returns the annotations of a mirror that do not change: the Instance on the hub, and the parent that created it, whose
// permissions it may have. Only the hub sets label kudo.dev/root: an owner that another writer has set has no effect.
func identityOf(wanted *kudo.Instance) map[string]string {
	marks := map[string]string{kudo.AnnotationHubUID: string(wanted.UID)}
	if parent := wanted.Parent(); parent != nil && wanted.Labels[kudo.LabelRoot] != "" {
		marks[kudo.AnnotationParent] = parent.Name
	}
	return marks
}

func marksOf(wanted *kudo.Instance) map[string]string {
	marks := identityOf(wanted)
	marks[kudo.AnnotationHubGeneration] = strconv.FormatInt(wanted.Generation, 10)
	maps.Copy(marks, requestOf(wanted))
	return marks
}

// requestOf returns the annotation with the request for a diagnosis, if there is one.
func requestOf(wanted *kudo.Instance) map[string]string {
	if request := diagnosis.RequestOf(wanted); request != "" {
		return map[string]string{kudo.AnnotationDiagnose: request}
	}
	return nil
}

// copyRequest replaces the request for a diagnosis of a mirror.
func copyRequest(mirrored, wanted *kudo.Instance) {
	delete(mirrored.Annotations, kudo.AnnotationDiagnose)
	annotate(mirrored, requestOf(wanted))
}

// mark replaces the signed annotations of a mirror, except the one about its inventory.
func mark(mirrored *kudo.Instance, marks map[string]string) {
	for _, name := range SignedAnnotations {
		if name != kudo.AnnotationInventoryRestored {
			delete(mirrored.Annotations, name)
		}
	}
	annotate(mirrored, marks)
}

// annotate adds annotations to a mirror.
func annotate(mirrored *kudo.Instance, marks map[string]string) {
	if mirrored.Annotations == nil {
		mirrored.Annotations = map[string]string{}
	}
	maps.Copy(mirrored.Annotations, marks)
}

func addFinalizer(mirrored *kudo.Instance) {
	if !slices.Contains(mirrored.Finalizers, kudo.Finalizer) {
		mirrored.Finalizers = append(mirrored.Finalizers, kudo.Finalizer)
	}
}

// removeFinalizer removes the finalizer, and reports whether the mirror had it.
func removeFinalizer(mirrored *kudo.Instance) bool {
	before := len(mirrored.Finalizers)
	mirrored.Finalizers = slices.DeleteFunc(mirrored.Finalizers, func(f string) bool { return f == kudo.Finalizer })
	return len(mirrored.Finalizers) < before
}
