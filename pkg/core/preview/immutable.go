package preview

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/core/render"
)

// immutableField is a field that cannot be changed while its object exists.
type immutableField struct {
	// path of the field; if except is set, that of all fields below it, except those that it lists.
	path, except string
	// unset is the value of an object without the field; nil if only the cluster knows it.
	unset any
}

// immutableFields are the fields that the API server does not change, by kind. Jobs are not listed, because agents replace them. Source: the
// validation packages of k8s.io/kubernetes and k8s.io/apiextensions-apiserver at v1.37.
var immutableFields = map[schema.GroupKind][]immutableField{
	{Group: "apps", Kind: "DaemonSet"}:  {{path: "spec.selector"}},
	{Group: "apps", Kind: "Deployment"}: {{path: "spec.selector"}},
	{Group: "apps", Kind: "ReplicaSet"}: {{path: "spec.selector"}},
	{Group: "apps", Kind: "StatefulSet"}: {
		{path: "spec.podManagementPolicy", unset: "OrderedReady"}, {path: "spec.selector"}, {path: "spec.serviceName", unset: ""},
		{path: "spec.volumeClaimTemplates", unset: []any{}},
	},
	{Kind: "PersistentVolumeClaim"}: {{path: "spec", except: "resources volumeAttributesClassName"}},
	{Kind: "PersistentVolume"}: {{path: "spec", except: "accessModes capacity claimRef mountOptions nodeAffinity " +
		"persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName"}},
	{Kind: "Pod"}:    {{path: "spec", except: "activeDeadlineSeconds schedulingGates terminationGracePeriodSeconds tolerations"}},
	{Kind: "Secret"}: {{path: "type", unset: "Opaque"}},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {
		{path: "spec.group"}, {path: "spec.names.kind"}, {path: "spec.names.plural"}, {path: "spec.scope"},
	},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {{path: "addressType"}},
	{Group: "networking.k8s.io", Kind: "IngressClass"}: {{path: "spec.controller"}},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:       {{path: "handler"}},

	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {{path: "roleRef"}},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {{path: "roleRef"}},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                {{path: "spec"}},
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:        {{path: "spec"}},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {
		{path: "preemptionPolicy", unset: "PreemptLowerPriority"}, {path: "value", unset: int64(0)},
	},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}: {{path: "spec.attachRequired", unset: true}},
	{Group: "storage.k8s.io", Kind: "StorageClass"}: {
		{path: "parameters", unset: map[string]any{}}, {path: "provisioner"}, {path: "reclaimPolicy", unset: "Delete"},
		{path: "volumeBindingMode", unset: "Immediate"},
	},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {{path: "driverName"}, {path: "parameters", unset: map[string]any{}}},
}

// lockedFields are the fields of a Secret or ConfigMap that is immutable.
var lockedFields = []immutableField{
	{path: "immutable", unset: false}, {path: "data", unset: map[string]any{}}, {path: "binaryData", unset: map[string]any{}},
}

// immutableChanges returns the immutable fields in which two contents of an object differ; none for a kind that is not Kubernetes' own. A
// field that only one content has is not listed if the API server may set the same value.
func immutableChanges(before, after *unstructured.Unstructured) []string {
	kind := after.GroupVersionKind().GroupKind()
	fields := immutableFields[kind]
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		fields = immutableFieldsOfService(before, after)
	case schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ConfigMap"}:
		if locked, _, _ := unstructured.NestedBool(before.Object, "immutable"); locked {
			fields = slices.Concat(fields, lockedFields)
		}
	}
	var found []string
	for _, field := range fields {
		found = append(found, field.changes(before.Object, after.Object)...)
	}
	return found
}

// immutableFieldsOfService returns the fields of a Service that cannot be changed. An address that the cluster has allocated stays if the
// Service names none.
func immutableFieldsOfService(before, after *unstructured.Unstructured) []immutableField {
	was, now := textAt(before, "spec.type"), textAt(after, "spec.type")
	if was == "ExternalName" || now == "ExternalName" {
		return nil
	}
	var fields []immutableField
	if address := textAt(after, "spec.clusterIP"); address == "None" || address != "" && textAt(before, "spec.clusterIP") != "" {
		fields = append(fields, immutableField{path: "spec.clusterIP", unset: "an allocated address"})
	}
	if was == "LoadBalancer" && now == was {
		fields = append(fields, immutableField{path: "spec.loadBalancerClass", unset: ""})
	}
	return fields
}

func textAt(o *unstructured.Unstructured, path string) string {
	value, _, _ := unstructured.NestedString(o.Object, strings.Split(path, ".")...)
	return value
}

// changes returns the paths at which the field differs.
func (f immutableField) changes(before, after map[string]any) []string {
	was, now := f.in(before), f.in(after)
	if f.except == "" {
		if was != nil && now != nil && differ(was, now, f.path[strings.LastIndex(f.path, ".")+1:]) {
			return []string{f.path}
		}
		return nil
	}
	var found []string
	existing, _ := was.(map[string]any)
	wanted, _ := now.(map[string]any)
	for _, name := range keysOf(existing, wanted) {
		below := immutableField{path: f.path + "." + name}
		if !slices.Contains(strings.Fields(f.except), name) {
			found = append(found, below.changes(before, after)...)
		}
	}
	return found
}

// in returns the value of the field in an object; nil if it is not known.
func (f immutableField) in(object map[string]any) any {
	value, found, err := unstructured.NestedFieldNoCopy(object, strings.Split(f.path, ".")...)
	if err != nil || !found || value == nil {
		return f.unset
	}
	return value
}

// wholeFields are the fields to which the API server adds nothing, and quantityFields those with quantities.
var (
	wholeFields    = []string{"binaryData", "data", "labels", "matchLabels", "parameters", "selector", "limits", "requests"}
	quantityFields = []string{"limits", "requests"}
)

// differ reports whether two values of the field of that name differ whatever the API server sets by default. Sensitive values, which are not
// known on the hub, do not differ, and an image can be changed.
func differ(was, now any, name string) bool {
	switch was := was.(type) {
	case map[string]any:
		now, isMap := now.(map[string]any)
		return !isMap || slices.ContainsFunc(keysOf(was, now), func(key string) bool { return differAt(was, now, key, name) })
	case []any:
		now, isList := now.([]any)
		if !isList || len(was) != len(now) {
			return true
		}
		for i := range was {
			if differ(was[i], now[i], name) {
				return true
			}
		}
		return false
	default:
		return textsDiffer(fmt.Sprint(was), fmt.Sprint(now), name)
	}
}

// differAt reports whether two values of the field of that name differ at a key.
func differAt(was, now map[string]any, key, name string) bool {
	existing, wanted := was[key], now[key]
	switch {
	case existing == nil || wanted == nil:
		return slices.Contains(wholeFields, name) && !(isBlank(existing) && isBlank(wanted))
	case slices.Contains(quantityFields, name):
		return differ(existing, wanted, name)
	default:
		return key != "image" && differ(existing, wanted, key)
	}
}

func textsDiffer(was, now, name string) bool {
	if strings.Contains(was, render.Hidden) || strings.Contains(now, render.Hidden) || was == now {
		return false
	}
	if slices.Contains(quantityFields, name) {
		existing, err := resource.ParseQuantity(was)
		if wanted, wrong := resource.ParseQuantity(now); err == nil && wrong == nil {
			return !existing.Equal(wanted)
		}
	}
	return true
}

func isBlank(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}

// keysOf returns the keys of both objects, sorted.
func keysOf(a, b map[string]any) []string {
	var keys []string
	for _, object := range []map[string]any{a, b} {
		for key := range object {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
