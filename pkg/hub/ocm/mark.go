package ocm

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

var manifestWorkKind = schema.GroupVersionKind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork"}

// manifestWork returns a ManifestWork for reading metadata only.
func manifestWork() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(manifestWorkKind)
	return object
}

// newMarks returns a cache of the marks' metadata.
func newMarks(mgr manager.Manager) (cache.Cache, error) {
	return cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		NewInformer: controller.NewInformer, DefaultTransform: read.Trim,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{manifests.LabelPartOf: manifests.PartOf}),
	})
}

// markValue returns the configuration that the add-on's mark records. It ignores a mark of a deleted add-on of the same name: that exists
// until OCM's work agent releases it, which may take long on an unreachable cluster.
func markValue(mark *metav1.PartialObjectMetadata, addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if mark == nil || !metav1.IsControlledBy(mark, addOn) {
		return ""
	}
	return mark.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]
}

func markName(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	return "addon-" + addOn.Name + "-plan"
}

// markOf returns the mark of an add-on: a ManifestWork that only checks whether the Instance resource definition exists on the cluster, and
// neither creates nor removes anything. The definition exists wherever an Instance runs, and OCM's work agent may read resource definitions
// without further permissions, even while addon-agent is being removed, which the mark must not outlive. It is deleted with the add-on.
// Without a configuration, it records that none has reached the cluster.
func markOf(addOn *addonv1alpha1.ManagedClusterAddOn, configuration string) (*unstructured.Unstructured, error) {
	owner := metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	owner.BlockOwnerDeletion = nil
	reference, err := runtime.DefaultUnstructuredConverter.ToUnstructured(owner)
	if err != nil {
		return nil, fmt.Errorf("encoding the mark of ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	const instances = "instances." + addonv1alpha1.GroupKudo
	mark := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{reference}},
		"spec": map[string]any{
			"workload": map[string]any{"manifests": []any{map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": instances},
			}}},
			"manifestConfigs": []any{map[string]any{
				"resourceIdentifier": map[string]any{
					"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "name": instances,
				},
				"updateStrategy": map[string]any{"type": string(workv1.UpdateStrategyTypeReadOnly)},
			}},
		},
	}}
	mark.SetGroupVersionKind(manifestWorkKind)
	mark.SetNamespace(addOn.Namespace)
	mark.SetName(markName(addOn))
	mark.SetLabels(map[string]string{manifests.LabelPartOf: manifests.PartOf, upstream.AddonLabelKey: addOn.Name})
	if configuration != "" {
		mark.SetAnnotations(map[string]string{workv1.ManifestConfigSpecHashAnnotationKey: configuration})
	}
	return mark, nil
}

// asRead makes operations fail if the object changed since it was read: they address list items of other writers by index.
func asRead(object client.Object, operations []apply.Operation) []apply.Operation {
	if len(operations) == 0 {
		return nil
	}
	test := apply.Operation{Op: "test", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}
	return append([]apply.Operation{test}, operations...)
}
