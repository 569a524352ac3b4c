package ui

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// Rights decides what one user may do.
type Rights interface {
	// May reports whether the user may send a request. Without a namespace, the request is for all of them.
	May(ctx context.Context, request authorizationv1.ResourceAttributes) (bool, error)
}

// reader reads the cache of the hub as one user. What the user may not read is forbidden whether or not it exists; a list of all namespaces
// has the objects of those that the user may read.
type reader struct {
	*Hub
	rights Rights
}

// kindOf returns the cached kind of an object or list. Its error says why there is none.
func (r reader) kindOf(object runtime.Object) (kind, error) {
	gvk, err := apiutil.GVKForObject(object, r.Scheme())
	if err != nil {
		return kind{}, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List") // lists of metadata may have the kind of their items
	for _, k := range r.kinds {
		if k.gvk == gvk {
			return k, nil
		}
	}
	if err := r.refused[gvk]; err != nil {
		return kind{}, err
	}
	if gvk == read.ManagedClusterKind {
		return kind{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return kind{}, fmt.Errorf("%s is not cached", gvk)
}

// request returns a request for objects of the kind.
func (k kind) request(verb, namespace, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: k.gvk.Group, Resource: k.resource, Namespace: namespace, Name: name}
}

// Get reads an object that the user may read.
func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	k, err := r.kindOf(object)
	if err != nil {
		return err
	}
	namespace := key.Namespace
	if slices.Contains(clusterWide, k.resource) {
		namespace = metav1.NamespaceAll
	}
	if err := r.check(ctx, k, "get", namespace, key.Name); err != nil {
		return err
	}
	if !k.has(namespace) {
		return refusal(k.gvk.Group, k.resource, key.Name, namespace)
	}
	if only, is := object.(*metav1.PartialObjectMetadata); is {
		return r.getMetadata(ctx, key, only, k)
	}
	return r.cache.Get(ctx, key, object, options...)
}

// getMetadata reads the metadata of an object that is cached completely.
func (r reader) getMetadata(ctx context.Context, key client.ObjectKey, only *metav1.PartialObjectMetadata, k kind) error {
	complete, err := r.Scheme().New(k.gvk)
	if err != nil {
		return err
	}
	object, ok := complete.(client.Object)
	if !ok {
		return fmt.Errorf("%s is no object", k.gvk)
	}
	if err := r.cache.Get(ctx, key, object); err != nil {
		return err
	}
	found := meta.AsPartialObjectMetadata(object)
	found.TypeMeta = only.TypeMeta
	found.DeepCopyInto(only)
	return nil
}

// listsAll reports whether the user may list the objects of a kind in all namespaces, and the cache has all.
func (r reader) listsAll(ctx context.Context, object client.Object) (bool, error) {
	k, err := r.kindOf(object)
	if err != nil || k.namespaces != nil {
		return false, err
	}
	return r.rights.May(ctx, k.request("list", metav1.NamespaceAll, ""))
}

// check returns an error unless the user may send a request for objects of the kind.
func (r reader) check(ctx context.Context, k kind, verb, namespace, name string) error {
	may, err := r.rights.May(ctx, k.request(verb, namespace, name))
	if err == nil && !may {
		return refusal(k.gvk.Group, k.resource, name, namespace)
	}
	return err
}

// List lists the objects that the user may read.
func (r reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := r.kindOf(list)
	if err != nil {
		return err
	}
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	may, err := r.rights.May(ctx, k.request("list", asked.Namespace, ""))
	if err != nil {
		return err
	}
	if !k.has(asked.Namespace) || !may && (asked.Namespace != "" || slices.Contains(clusterWide, k.resource)) {
		return refusal(k.gvk.Group, k.resource, "", asked.Namespace)
	}
	asked.Limit, asked.Continue = 0, ""
	if names, only := list.(*metav1.PartialObjectMetadataList); only {
		err = r.listNames(ctx, names, k, &asked)
	} else {
		err = r.cache.List(ctx, list, &asked)
	}
	list.SetContinue("") // the list is complete, but a cache sets a token that it does not support
	if err != nil || may {
		return err
	}
	return r.limit(ctx, list, k)
}

// listNames lists the metadata of objects that are cached completely.
func (r reader) listNames(ctx context.Context, names *metav1.PartialObjectMetadataList, k kind, asked *client.ListOptions) error {
	complete, err := r.Scheme().New(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	if err != nil {
		return err
	}
	list, ok := complete.(client.ObjectList)
	if !ok {
		return fmt.Errorf("%s has no list", k.gvk)
	}
	if err := r.cache.List(ctx, list, asked); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		names.Items = append(names.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), Labels: object.GetLabels(),
		}})
		return nil
	})
}

// limit removes the objects of namespaces that the user may not read from a list of all namespaces.
func (r reader) limit(ctx context.Context, list client.ObjectList, k kind) error {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(pointer).Elem()
	kept := reflect.MakeSlice(items.Type(), 0, 0)
	may := map[string]bool{}
	for i := range items.Len() {
		object, err := meta.Accessor(items.Index(i).Addr().Interface())
		if err != nil {
			return err
		}
		namespace := object.GetNamespace()
		if _, asked := may[namespace]; !asked {
			if may[namespace], err = r.rights.May(ctx, k.request("list", namespace, "")); err != nil {
				return err
			}
		}
		if may[namespace] {
			kept = reflect.Append(kept, items.Index(i))
		}
	}
	items.Set(kept)
	return nil
}

// complete is a reader that reads from the hub what the cache does not have, if the user may read it: the templates and the content of
// packages, and the parameters of add-ons.
type complete struct{ reader }

// Get reads an object that the user may read.
func (c complete) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	var k kind
	switch object.(type) {
	case *kudo.OperatorVersion:
		k = kind{gvk: kudo.GroupVersion.WithKind("OperatorVersion"), resource: "operatorversions"}
	case *kudo.OperatorContent:
		k = kind{gvk: kudo.GroupVersion.WithKind("OperatorContent"), resource: "operatorcontents"}
	case *addonv1alpha1.AddOnDeploymentConfig:
		k = kind{gvk: addonv1alpha1.GroupVersion.WithKind("AddOnDeploymentConfig"), resource: "addondeploymentconfigs"}
	default:
		return c.reader.Get(ctx, key, object, options...)
	}
	if err := c.check(ctx, k, "get", key.Namespace, key.Name); err != nil {
		return err
	}
	return c.Client.Get(ctx, key, object, options...)
}

// List lists the objects that the user may read. OperatorVersions of all namespaces are forbidden to users who may read only some.
func (c complete) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, versions := list.(*kudo.OperatorVersionList); !versions {
		return c.reader.List(ctx, list, options...)
	}
	k, err := c.kindOf(list)
	if err != nil {
		return err
	}
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if err := c.check(ctx, k, "list", asked.Namespace, ""); err != nil {
		return err
	}
	if asked.Namespace == "" {
		return c.reader.List(ctx, list, options...) // their templates are not needed
	}
	return c.Client.List(ctx, list, options...)
}

// everything are the rights of the user of the connection: the cache has only what that user may read.
type everything struct{}

// May allows everything.
func (everything) May(context.Context, authorizationv1.ResourceAttributes) (bool, error) {
	return true, nil
}

// isHidden reports whether an error means that an object does not exist, or that the user may not read it. Both look the same to users.
func isHidden(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// isMissingKind reports whether an error means that the hub does not have the kind of an object.
func isMissingKind(err error) bool { return meta.IsNoMatchError(err) }

// isReadProblem reports whether an error means more than that the user may not read objects, or that the hub does not have their kind.
func isReadProblem(err error) bool { return err != nil && !isHidden(err) && !isMissingKind(err) }
