package webhook

import (
	"context"
	"fmt"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownUser is this process's user name on the API server, once it is known.
type ownUser struct{ name atomic.Pointer[string] }

func (o *ownUser) get(ctx context.Context, c client.Client) (string, error) {
	if name := o.name.Load(); name != nil {
		return *name, nil
	}
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return "", fmt.Errorf("getting the user of addon-manager from the API server: %w", err)
	}
	o.name.Store(&review.Status.UserInfo.Username)
	return review.Status.UserInfo.Username, nil
}
