package ui

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// complete is a reader that reads from the hub what the cache does not have: the templates of packages, and the parameters of add-ons. Both
// only if the user may read them.
type complete struct{ reader }

// Get reads an object that the user may read.
func (c complete) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	k := kind{}
	switch object.(type) {
	case *kudo.OperatorVersion:
		k = kind{gvk: kudo.GroupVersion.WithKind("OperatorVersion"), resource: "operatorversions"}
	case *addonv1alpha1.AddOnDeploymentConfig:
		k = kind{gvk: addonv1alpha1.GroupVersion.WithKind("AddOnDeploymentConfig"), resource: "addondeploymentconfigs"}
	default:
		return c.reader.Get(ctx, key, object, options...)
	}
	may, err := c.rights.May(ctx, k.request("get", key.Namespace, key.Name))
	if err != nil {
		return err
	}
	if !may {
		return refusal(k.gvk.Group, k.resource, key.Name, key.Namespace)
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
	may, err := c.rights.May(ctx, k.request("list", asked.Namespace, ""))
	if err != nil {
		return err
	}
	if !may {
		return refusal(k.gvk.Group, k.resource, "", asked.Namespace)
	}
	if asked.Namespace == "" {
		return c.reader.List(ctx, list, options...) // their templates are not needed
	}
	return c.Client.List(ctx, list, options...)
}
