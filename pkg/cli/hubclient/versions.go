package hubclient

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// VersionsOnce returns a function that returns the OperatorVersions in a namespace, read on the first call.
func VersionsOnce(ctx context.Context, f *Factory, namespace string) func() ([]kudo.OperatorVersion, error) {
	return sync.OnceValues(func() ([]kudo.OperatorVersion, error) {
		c, err := f.Hub()
		if err != nil {
			return nil, err
		}
		versions, err := StoredVersions(ctx, c, namespace)
		return versions, Advise(err, namespace)
	})
}

// StoredVersions returns the OperatorVersions in a namespace, or in all if it is empty.
func StoredVersions(ctx context.Context, c client.Client, namespace string) ([]kudo.OperatorVersion, error) {
	var stored kudo.OperatorVersionList
	if err := c.List(ctx, &stored, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing OperatorVersions in namespace %q: %w", namespace, err)
	}
	return stored.Items, nil
}
