package agent

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// objects finds on the managed cluster what tasks want, and keeps watching every kind that it was asked for.
type objects struct {
	client client.Client
	live   client.Reader
	watch  func(schema.GroupVersionKind) error

	mutex   sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// find puts a wanted object in its place (namespace, owner) and pairs it with what stands on the cluster. A kind that the
// cluster does not have is an error that meta.IsNoMatchError knows.
func (o *objects) find(ctx context.Context, owner *kudo.Instance, want *unstructured.Unstructured) (plan.Object, error) {
	if err := o.place(owner, want); err != nil {
		return plan.Object{}, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	live, err := o.get(ctx, want)
	return plan.Object{Want: want, Live: live}, err
}

// place gives a namespaced object the Instance's namespace unless it names one, and makes the Instance the owner of those
// that share its namespace.
func (o *objects) place(owner *kudo.Instance, want *unstructured.Unstructured) error {
	gvk := want.GroupVersionKind()
	mapping, err := o.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		want.SetNamespace("")
		return nil
	}
	if want.GetNamespace() == "" {
		want.SetNamespace(owner.Namespace)
	}
	if want.GetNamespace() == owner.Namespace {
		want.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion:         kudo.GroupVersion.String(),
			Kind:               "Instance",
			Name:               owner.Name,
			UID:                owner.UID,
			Controller:         ptr.To(true),
			BlockOwnerDeletion: ptr.To(true),
		}})
	}
	return nil
}

// get reads an object from the cache, which holds only what carries KUDO's label, and else from the API server; nil if it does
// not exist.
func (o *objects) get(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := o.ensureWatch(want.GroupVersionKind()); err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := o.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return o.read(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", plan.Describe(want), err)
	}
	return live, nil
}

// read asks the API server for an object; nil if it does not exist.
func (o *objects) read(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := o.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", plan.Describe(want), err)
	}
	return live, nil
}

// list reads all objects of a kind that belong to the Instance.
func (o *objects) list(ctx context.Context, owner plan.Owner, gvk schema.GroupVersionKind) ([]plan.Object, error) {
	if err := o.ensureWatch(gvk); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := o.live.List(ctx, list, client.MatchingLabels{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: owner.Name})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	var found []plan.Object
	for i := range list.Items {
		if owner.Owns(&list.Items[i]) {
			found = append(found, plan.Object{Want: &list.Items[i], Live: &list.Items[i]})
		}
	}
	return found, nil
}

func (o *objects) ensureWatch(gvk schema.GroupVersionKind) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.watched[gvk] {
		return nil
	}
	if err := o.watch(gvk); err != nil {
		return fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	o.watched[gvk] = true
	return nil
}
