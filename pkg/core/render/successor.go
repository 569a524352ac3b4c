package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// removal is the removal of an API version of a kind: the Kubernetes minor release that stopped serving it, and its replacement.
type removal struct {
	since       string
	replacement string
}

// successors are removed API versions with an unchanged schema in the replacement, or one that convertToSuccessor converts to. Source: the
// "Deprecated API Migration Guide" of the Kubernetes documentation, and the release notes for alpha versions.
var successors = removals(map[string][]gone{
	"policy/v1beta1": {{"1.25", "policy/v1", kinds{"PodDisruptionBudget"}}},
	"rbac.authorization.k8s.io/v1beta1": {
		{"1.22", "rbac.authorization.k8s.io/v1", kinds{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}},
	},
	"rbac.authorization.k8s.io/v1alpha1": {{"1.23", "rbac.authorization.k8s.io/v1", kinds{"Role", "ClusterRole"}}},
	"batch/v1beta1":                      {{"1.25", "batch/v1", kinds{"CronJob"}}},
	"batch/v2alpha1":                     {{"1.21", "batch/v1", kinds{"CronJob"}}},
	"apps/v1beta2":                       {{"1.16", "apps/v1", kinds{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision"}}},
	"apps/v1beta1":                       {{"1.16", "apps/v1", kinds{"ControllerRevision"}}},
	"extensions/v1beta1":                 {{"1.16", "networking.k8s.io/v1", kinds{"NetworkPolicy"}}},
	"networking.k8s.io/v1beta1":          {{"1.22", "networking.k8s.io/v1", kinds{"IngressClass"}}},
	"autoscaling/v2beta2":                {{"1.26", "autoscaling/v2", kinds{"HorizontalPodAutoscaler"}}},
	"scheduling.k8s.io/v1beta1":          {{"1.22", "scheduling.k8s.io/v1", kinds{"PriorityClass"}}},
	"scheduling.k8s.io/v1alpha1":         {{"1.23", "scheduling.k8s.io/v1", kinds{"PriorityClass"}}},
	"storage.k8s.io/v1beta1": {
		{"1.22", "storage.k8s.io/v1", kinds{"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment"}},
		{"1.27", "storage.k8s.io/v1", kinds{"CSIStorageCapacity"}},
	},
	"storage.k8s.io/v1alpha1": {
		{"1.24", "storage.k8s.io/v1", kinds{"VolumeAttachment", "CSIStorageCapacity"}},
		{"1.35", "storage.k8s.io/v1", kinds{"VolumeAttributesClass"}},
	},
	"admissionregistration.k8s.io/v1beta1": {
		{"1.34", "admissionregistration.k8s.io/v1", kinds{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}},
	},
	"apiextensions.k8s.io/v1beta1":         {{"1.22", "apiextensions.k8s.io/v1", kinds{"CustomResourceDefinition"}}},
	"coordination.k8s.io/v1beta1":          {{"1.22", "coordination.k8s.io/v1", kinds{"Lease"}}},
	"node.k8s.io/v1beta1":                  {{"1.25", "node.k8s.io/v1", kinds{"RuntimeClass"}}},
	"apiregistration.k8s.io/v1beta1":       {{"1.22", "apiregistration.k8s.io/v1", kinds{"APIService"}}},
	"flowcontrol.apiserver.k8s.io/v1beta1": {{"1.26", "flowcontrol.apiserver.k8s.io/v1", kinds{"FlowSchema"}}},
	"flowcontrol.apiserver.k8s.io/v1beta2": {{"1.29", "flowcontrol.apiserver.k8s.io/v1", kinds{"FlowSchema"}}},
	"flowcontrol.apiserver.k8s.io/v1beta3": {{"1.32", "flowcontrol.apiserver.k8s.io/v1", kinds{"FlowSchema"}}},
})

// changed are removed API versions whose replacement has another schema or other defaults, so that a manifest must be rewritten by hand; an
// empty replacement means that there is none.
var changed = removals(map[string][]gone{
	"extensions/v1beta1": {
		{"1.16", "apps/v1", kinds{"Deployment", "DaemonSet", "ReplicaSet"}},
		{"1.22", "networking.k8s.io/v1", kinds{"Ingress"}},
		{"1.16", "", kinds{"PodSecurityPolicy"}},
	},
	"apps/v1beta1":                       {{"1.16", "apps/v1", kinds{"Deployment", "StatefulSet"}}},
	"networking.k8s.io/v1beta1":          {{"1.22", "networking.k8s.io/v1", kinds{"Ingress"}}},
	"rbac.authorization.k8s.io/v1alpha1": {{"1.23", "rbac.authorization.k8s.io/v1", kinds{"RoleBinding", "ClusterRoleBinding"}}},
	"admissionregistration.k8s.io/v1beta1": {
		{"1.22", "admissionregistration.k8s.io/v1", kinds{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}},
	},
	"admissionregistration.k8s.io/v1alpha1": {
		{"1.32", "admissionregistration.k8s.io/v1", kinds{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}},
	},
	"certificates.k8s.io/v1beta1":          {{"1.22", "certificates.k8s.io/v1", kinds{"CertificateSigningRequest"}}},
	"discovery.k8s.io/v1beta1":             {{"1.25", "discovery.k8s.io/v1", kinds{"EndpointSlice"}}},
	"events.k8s.io/v1beta1":                {{"1.25", "events.k8s.io/v1", kinds{"Event"}}},
	"autoscaling/v2beta1":                  {{"1.25", "autoscaling/v2", kinds{"HorizontalPodAutoscaler"}}},
	"policy/v1beta1":                       {{"1.25", "", kinds{"PodSecurityPolicy"}}},
	"flowcontrol.apiserver.k8s.io/v1beta1": {{"1.26", "flowcontrol.apiserver.k8s.io/v1", kinds{"PriorityLevelConfiguration"}}},
	"flowcontrol.apiserver.k8s.io/v1beta2": {{"1.29", "flowcontrol.apiserver.k8s.io/v1", kinds{"PriorityLevelConfiguration"}}},
	"flowcontrol.apiserver.k8s.io/v1beta3": {{"1.32", "flowcontrol.apiserver.k8s.io/v1", kinds{"PriorityLevelConfiguration"}}},
	"settings.k8s.io/v1alpha1":             {{"1.20", "", kinds{"PodPreset"}}},
})

type kinds []string

// gone are kinds of one API version that were removed together.
type gone struct {
	since, replacement string
	kinds              kinds
}

// removals builds a lookup table from the listing.
func removals(listing map[string][]gone) map[schema.GroupVersionKind]removal {
	table := map[schema.GroupVersionKind]removal{}
	for apiVersion, list := range listing {
		for _, g := range list {
			for _, kind := range g.kinds {
				table[schema.FromAPIVersionAndKind(apiVersion, kind)] = removal{since: g.since, replacement: g.replacement}
			}
		}
	}
	return table
}

// Successor returns the kind that replaces gvk, if Kubernetes has removed that API version and objects of it are applied as the replacement; false
// for every other kind.
func Successor(gvk schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	r, ok := successors[gvk]
	if !ok {
		return gvk, false
	}
	return schema.FromAPIVersionAndKind(r.replacement, gvk.Kind), true
}

// RemovalAdvice describes when Kubernetes removed an API version that has no Successor, and what replaces it; it returns "" for every other
// kind.
func RemovalAdvice(gvk schema.GroupVersionKind) string {
	r, ok := changed[gvk]
	what := gvk.GroupVersion().String() + " " + gvk.Kind
	switch {
	case !ok:
		return ""
	case r.replacement == "":
		return fmt.Sprintf("%s is no longer served as of Kubernetes %s and has no replacement: remove it", what, r.since)
	default:
		return fmt.Sprintf("%s is no longer served as of Kubernetes %s: use %s, which has different fields", what, r.since, r.replacement)
	}
}

// convertToSuccessor converts an object to its successor version, if it has one.
func convertToSuccessor(obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	successor, ok := Successor(gvk)
	if !ok {
		return nil
	}
	obj.SetAPIVersion(successor.GroupVersion().String())
	switch gvk.Kind {
	case "PodDisruptionBudget":
		keepEmptySelector(obj)
	case "CustomResourceDefinition":
		return convertDefinition(obj)
	}
	return nil
}

// keepEmptySelector preserves the meaning of a PodDisruptionBudget's empty selector: in policy/v1beta1 it selects no pods, in policy/v1 all
// pods of the namespace. A missing selector selects none in both.
func keepEmptySelector(obj *unstructured.Unstructured) {
	spec, _ := obj.Object["spec"].(map[string]any)
	selector, ok := spec["selector"].(map[string]any)
	if !ok {
		return
	}
	for _, requirement := range selector {
		if !isEmpty(requirement) {
			return
		}
	}
	delete(spec, "selector")
}
