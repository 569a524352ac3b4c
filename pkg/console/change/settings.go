package change

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// Settings reads what the configs of an add-on on a cluster set at present, by name of the parameter.
func Settings(ctx context.Context, c client.Reader, addOn *addonv1alpha1.ManagedClusterAddOn) (map[string]install.Setting, error) {
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	switch err := c.Get(ctx, client.ObjectKey{Name: addOn.Name}, definition); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ClusterManagementAddOn %q: %w", addOn.Name, err)
	}
	namespaces, err := NewReader(ctx, c).namespaces(ctx, definition, addOn)
	if err != nil {
		return nil, err
	}
	a := install.AddOn{
		Definition: definition, ManagedAddOn: addOn, Configuration: install.Configure(definition, addOn, namespaces),
		DeploymentConfigs: map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{}, ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{},
	}
	if err := readParameters(ctx, Reader{Reader: c}, &a, nil); err != nil {
		return nil, err
	}
	return a.Settings(), nil
}
