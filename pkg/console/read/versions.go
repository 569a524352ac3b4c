package read

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// StoredVersions returns the OperatorVersions in a namespace, or in all if it is empty.
func StoredVersions(ctx context.Context, c client.Reader, namespace string) ([]kudo.OperatorVersion, error) {
	var stored kudo.OperatorVersionList
	if err := c.List(ctx, &stored, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing OperatorVersions in namespace %q: %w", namespace, err)
	}
	return stored.Items, nil
}
