package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ForeignError reports that an object exists and does not belong to the owner: it must not be changed.
type ForeignError struct {
	Live *unstructured.Unstructured

	// Released is the value of the annotation of an object that the owner may take over (Owner.ReleasedByValue).
	Released string
}

func (e *ForeignError) Error() string {
	if by := e.Live.GetAnnotations()[kudo.AnnotationReleasedBy]; by != "" && isFree(e.Live) {
		return fmt.Sprintf("%s: already exists and was released by Instance %s; it stays as it is: to hand it over, set its annotation %s to %s; "+
			"otherwise use another name in the package", Describe(e.Live), text.Head(text.OneLine(by), maxForeign), kudo.AnnotationReleasedBy, e.Released)
	}
	return fmt.Sprintf("%s: already exists and %s; it stays as it is: use another name in the package, or another install namespace",
		Describe(e.Live), text.Head(text.OneLine(belongsTo(e.Live)), maxForeign))
}

// maxForeign is the maximum number of characters of a text that others have written.
const maxForeign = 256

// belongsTo describes the owner of a foreign object, as a part of a sentence. Writers of the object choose what its marks say: they decide
// nothing.
func belongsTo(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	if labels[kudo.LabelInstance] != "" && (labels[kudo.LabelHeritage] == kudo.Heritage || live.GetAnnotations()[kudo.AnnotationExecution] != "") {
		return "belongs to Instance " + qualifiedName(live.GetAnnotations()[kudo.AnnotationInstanceNamespace], labels[kudo.LabelInstance])
	}
	const foreign = "was not created by this Instance"
	if manager := cmp.Or(deployer(live), controllerOf(live), lastWriter(live)); manager != "" {
		return foreign + ", but " + manager
	}
	return foreign
}

// isFree reports whether no Instance, tool or controller has taken over a released object.
func isFree(live *unstructured.Unstructured) bool {
	return live.GetLabels()[kudo.LabelInstance] == "" && deployer(live) == "" && controllerOf(live) == ""
}

// deployer describes the tool that marks an object as its own; empty if there is none. The marks are those of Helm, Argo CD and Flux.
func deployer(live *unstructured.Unstructured) string {
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	const (
		argo      = "argocd.argoproj.io/"
		kustomize = "kustomize.toolkit.fluxcd.io/"
		helm      = "helm.toolkit.fluxcd.io/"
		release   = "meta.helm.sh/release-"
	)
	application, _, _ := strings.Cut(annotations[argo+"tracking-id"], ":")
	application = cmp.Or(application, labels[argo+"instance"])
	switch {
	case application != "":
		return "belongs to Application " + application + " of Argo CD"
	case labels[kustomize+"name"] != "":
		return "belongs to Kustomization " + qualifiedName(labels[kustomize+"namespace"], labels[kustomize+"name"]) + " of Flux"
	case labels[helm+"name"] != "":
		return "belongs to HelmRelease " + qualifiedName(labels[helm+"namespace"], labels[helm+"name"]) + " of Flux"
	case annotations[release+"name"] != "":
		return "belongs to Helm release " + qualifiedName(annotations[release+"namespace"], annotations[release+"name"])
	default:
		return ""
	}
}

// controllerOf describes the controller of an object; empty if there is none.
func controllerOf(live *unstructured.Unstructured) string {
	controller := metav1.GetControllerOf(live)
	if controller == nil {
		return ""
	}
	return "belongs to " + controller.Kind + " " + controller.Name
}

// lastWriter describes the field manager that changed an object last; empty if none is recorded. A status says nothing about the owner.
func lastWriter(live *unstructured.Unstructured) string {
	entries := slices.DeleteFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" || e.Manager == "" })
	if len(entries) == 0 {
		return ""
	}
	last := slices.MaxFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return writtenAt(a).Compare(writtenAt(b)) })
	return "by field manager " + last.Manager
}

// writtenAt returns the time of a field manager's last write; zero if it is not recorded.
func writtenAt(e metav1.ManagedFieldsEntry) time.Time {
	if e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}

// Describe formats an object for messages: `Deployment ns/name`.
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}.String()
}

// qualifiedName returns a name with its namespace, if that is known.
func qualifiedName(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }
