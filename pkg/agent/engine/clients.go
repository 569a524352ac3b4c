package engine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clients apply and delete objects on the managed cluster, and run commands in containers.
type clients struct {
	client client.Client
	remote *remote
}

// identities holds the clients of impersonated service accounts: the API server limits them to the permissions of the account, and records
// the impersonation. It is safe for concurrent use.
type identities struct {
	local ctrl.Manager
	known *lru.Cache
}

// identityLimit is the number of most recently used service accounts in the cache. It only limits memory.
const identityLimit = 256

func newIdentities(local ctrl.Manager) *identities {
	return &identities{local: local, known: lru.New(identityLimit)}
}

// of returns the clients of a service account. They share connections and rate limits with the agent's own.
func (i *identities) of(account types.NamespacedName) (clients, error) {
	if known, ok := i.known.Get(account); ok {
		return known.(clients), nil
	}
	config := rest.CopyConfig(i.local.GetConfig())
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return clients{}, fmt.Errorf("impersonating service account %s: %w", account, err)
	}
	c, err := client.New(config, client.Options{HTTPClient: transport, Scheme: i.local.GetScheme(), Mapper: i.local.GetRESTMapper()})
	if err != nil {
		return clients{}, fmt.Errorf("impersonating service account %s: %w", account, err)
	}
	remote, err := newRemote(config, transport)
	if err != nil {
		return clients{}, fmt.Errorf("impersonating service account %s: %w", account, err)
	}
	made := clients{client: c, remote: remote}
	i.known.Add(account, made)
	return made, nil
}
