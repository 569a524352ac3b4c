package ui

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

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
