package engine

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// storageClass is the kind that the health of volume claims depends on.
var storageClass = storagev1.SchemeGroupVersion.WithKind("StorageClass")

// withClasses adds the StorageClasses of the cluster to the objects whose health depends on them.
func (o *objects) withClasses(ctx context.Context, found []plan.Object) ([]plan.Object, error) {
	var classes []health.StorageClass
	for i := range found {
		if !health.DependsOnStorageClass(found[i].Live) {
			continue
		}
		if classes == nil {
			var err error
			if classes, err = o.classes(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", plan.Describe(found[i].Live), err)
			}
		}
		found[i].Classes = classes
	}
	return found, nil
}

// classes returns the StorageClasses of the cluster, which is not nil. They are few, and watched from then on.
func (o *objects) classes(ctx context.Context) ([]health.StorageClass, error) {
	if err := o.ensureWatch(storageClass); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(storageClass.GroupVersion().WithKind("StorageClassList"))
	if err := o.live.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	classes := make([]health.StorageClass, len(list.Items))
	for i, item := range list.Items {
		mode, _, _ := unstructured.NestedString(item.Object, "volumeBindingMode")
		classes[i] = health.StorageClass{
			Name: item.GetName(), Default: isDefaultClass(&item), WaitsForConsumer: mode == string(storagev1.VolumeBindingWaitForFirstConsumer),
		}
	}
	return classes, nil
}

// isDefaultClass reports whether a StorageClass is a default of the cluster.
func isDefaultClass(class client.Object) bool {
	annotations := class.GetAnnotations()
	return annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// affectedBy maps an object of any kind to the Instances to reconcile when it changes: its owner, and for a StorageClass all Instances with
// volume claims.
func (e *engine) affectedBy(kind schema.GroupVersionKind) func(context.Context, client.Object) []reconcile.Request {
	if kind != storageClass {
		return e.ownersOf
	}
	return func(ctx context.Context, class client.Object) []reconcile.Request {
		return append(e.ownersOf(ctx, class), e.requestsFor(ctx, "", func(i *kudo.Instance) bool {
			return slices.ContainsFunc(i.Status.Inventory, func(entry kudo.InventoryEntry) bool {
				return entry.Group == "" && entry.Kind == "PersistentVolumeClaim"
			})
		})...)
	}
}
