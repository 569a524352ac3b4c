package secret

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// Reader is the identity that needs the permission to get the Secrets that an Instance refers to: that of its plans.
type Reader struct {
	rights.Actor
	// Problem is why the identity is not known; nothing is read then.
	Problem error
}

// The API server's answer that an identity may get a Secret is kept for answerLifetime, and there are at most answerLimit such answers.
const (
	answerLifetime = 10 * time.Second
	answerLimit    = 10_000
)

// access decides which Secrets are read by reference.
type access struct {
	// namespace is the agent's own, and hub the Secret with its certificate for the hub, wherever it is.
	namespace string
	hub       types.NamespacedName
	policy    rights.Policy
	client    client.Client
	// allowed has the permissions that the API server has confirmed.
	allowed *cache.LRUExpireCache
}

func newAccess(namespace string, hub types.NamespacedName, policy rights.Policy, local client.Client) access {
	return access{namespace: namespace, hub: hub, policy: policy, client: local, allowed: cache.NewLRUExpireCache(answerLimit)}
}

// forbids returns why a Secret is read for no Instance; nil if it may be.
func (a access) forbids(secret types.NamespacedName) error {
	if secret.Namespace == a.namespace || secret == a.hub {
		return fmt.Errorf("addon-agent never reads its own Secret %s for a parameter: use a Secret in another namespace", secret)
	}
	return a.policy.CheckSecret(secret)
}

// refuses returns why the identity does not read a Secret; nil if it does. It does not depend on whether the Secret exists. passing is true if
// that may end without a change of the Instance or its OperatorVersions.
func (a access) refuses(ctx context.Context, reader Reader, secret types.NamespacedName) (refused error, passing bool) {
	if reader.Problem != nil {
		return reader.Problem, !errors.As(reader.Problem, new(*rights.Refused))
	}
	may, known := reader.MayGet(secret)
	if !known {
		var err error
		if may, err = a.ask(ctx, reader, secret); err != nil {
			return err, true
		}
	}
	if !may {
		return reader.CannotGet(secret), !known
	}
	return nil, false
}

// answer identifies a permission that the API server has confirmed.
type answer struct {
	user   string
	secret types.NamespacedName
}

// ask asks the API server whether the identity may get a Secret.
func (a access) ask(ctx context.Context, reader Reader, secret types.NamespacedName) (bool, error) {
	key := answer{reader.User, secret}
	if _, allowed := a.allowed.Get(key); allowed {
		return true, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: reader.User, Groups: reader.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name},
	}}
	if err := a.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("checking whether user %q may get Secret %s: %w", reader.User, secret, err)
	}
	if review.Status.Allowed && !review.Status.Denied {
		a.allowed.Add(key, nil, answerLifetime)
		return true, nil
	}
	return false, nil
}
