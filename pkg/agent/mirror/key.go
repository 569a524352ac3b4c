package mirror

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tandem-addons/tandem/pkg/agent/secret"
)

// The Secret in the agent's namespace with the key for signatures.
const (
	keySecret = "tandem-mirror-key"
	keyBytes  = 32
	// keyDelay is how long to wait before the key is read again.
	keyDelay = 5 * time.Second
)

// LoadSigner returns the Signer with the key in the agent's namespace, which it creates if it does not exist. It tries again until the managed
// cluster can be reached, or ctx ends.
func LoadSigner(ctx context.Context, namespace string, local ctrl.Manager) (*Signer, error) {
	var key secret.Key
	err := wait.PollUntilContextCancel(ctx, keyDelay, true, func(ctx context.Context) (bool, error) {
		var err error
		name := types.NamespacedName{Namespace: namespace, Name: keySecret}
		if key, err = secret.EnsureKey(ctx, local.GetClient(), local.GetAPIReader(), name, keyBytes); err != nil && ctx.Err() == nil {
			local.GetLogger().Error(err, "failed to read the key of mirrors; retrying", "after", keyDelay)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the key of mirrors: %w", err)
	}
	return NewSigner(key.Bytes, key.Created), nil
}
