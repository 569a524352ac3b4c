package rights

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a resource in the API of a cluster, by which RBAC names the objects of a kind.
type resource struct {
	name       string
	namespaced bool
	// known is false for a kind that is neither Kubernetes' own nor defined in the package: name and scope are guesses.
	known bool
}

// builtIn holds Kubernetes' kinds by API group. The kinds before the bar are namespaced, the others are not.
var builtIn = map[string]string{
	"": "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service " +
		"ServiceAccount | Namespace Node PersistentVolume",
	"admissionregistration.k8s.io": "| MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
	"apiextensions.k8s.io":         "| CustomResourceDefinition",
	"apiregistration.k8s.io":       "| APIService",
	"apps":                         "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet |",
	"autoscaling":                  "HorizontalPodAutoscaler |",
	"batch":                        "CronJob Job |",
	"certificates.k8s.io":          "| CertificateSigningRequest ClusterTrustBundle",
	"coordination.k8s.io":          "Lease |",
	"discovery.k8s.io":             "EndpointSlice |",
	"events.k8s.io":                "Event |",
	"flowcontrol.apiserver.k8s.io": "| FlowSchema PriorityLevelConfiguration",
	"networking.k8s.io":            "Ingress NetworkPolicy | IPAddress IngressClass ServiceCIDR",
	"node.k8s.io":                  "| RuntimeClass",
	"policy":                       "PodDisruptionBudget |",
	"rbac.authorization.k8s.io":    "Role RoleBinding | ClusterRole ClusterRoleBinding",
	"resource.k8s.io":              "ResourceClaim ResourceClaimTemplate | DeviceClass ResourceSlice",
	"scheduling.k8s.io":            "| PriorityClass",
	"storage.k8s.io":               "CSIStorageCapacity | CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
}

// resourceOf returns the resource of a kind. defined holds the kinds that the package itself defines.
func resourceOf(gvk schema.GroupVersionKind, defined map[schema.GroupKind]resource) resource {
	if r, ok := defined[gvk.GroupKind()]; ok {
		return r
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	namespaced, cluster, _ := strings.Cut(builtIn[gvk.Group], "|")
	has := func(kinds string) bool { return strings.Contains(" "+kinds+" ", " "+gvk.Kind+" ") }
	return resource{name: plural.Resource, namespaced: !has(cluster), known: has(namespaced) || has(cluster)}
}

// IsBuiltIn reports whether Kubernetes itself has the kind, and whether its objects are namespaced.
func IsBuiltIn(kind schema.GroupKind) (known, namespaced bool) {
	r := resourceOf(kind.WithVersion(""), nil)
	return r.known, r.namespaced
}

// KindsOf returns Kubernetes' own kinds of an API group.
func KindsOf(group string) []string {
	return strings.Fields(strings.Replace(builtIn[group], "|", " ", 1))
}

// DefinedKind returns the kind that an object defines, if it is a CustomResourceDefinition.
func DefinedKind(object *unstructured.Unstructured) (kind schema.GroupKind, ok bool) {
	kind, _, ok = definition(object)
	return kind, ok
}

// definition returns the kind that a CustomResourceDefinition defines.
func definition(object *unstructured.Unstructured) (kind schema.GroupKind, r resource, ok bool) {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return kind, r, false
	}
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, path...)...)
		return value
	}
	kind = schema.GroupKind{Group: field("group"), Kind: field("names", "kind")}
	return kind, resource{name: field("names", "plural"), namespaced: field("scope") == "Namespaced", known: true}, kind.Kind != ""
}
