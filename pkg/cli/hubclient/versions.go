package hubclient

import (
	"context"
	"sync"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// VersionsOnce returns a function that returns the OperatorVersions in a namespace, read on the first call.
func VersionsOnce(ctx context.Context, f *Factory, namespace string) func() ([]kudo.OperatorVersion, error) {
	return sync.OnceValues(func() ([]kudo.OperatorVersion, error) {
		c, err := f.Hub()
		if err != nil {
			return nil, err
		}
		versions, err := read.StoredVersions(ctx, c, namespace)
		return versions, Advise(err, namespace)
	})
}
