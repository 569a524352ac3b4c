package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/remote"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// clients apply and delete objects on the managed cluster, and run commands in containers.
type clients struct {
	client client.Client
	remote *remote.Remote
	// limits is nil if the identity has permissions that no package declares.
	limits *limits
}

// latest is the client with the agent's own identity. It is replaced when the kinds that the API server serves change, because a client keeps
// the resource of each kind that it has used. It reads the API server, and is safe for concurrent use.
type latest struct {
	local ctrl.Manager
	kinds *controller.Mapper

	mutex    sync.Mutex
	made     client.Client
	renewals int64
}

func newLatest(local ctrl.Manager) (*latest, error) {
	kinds, is := local.GetRESTMapper().(*controller.Mapper)
	if !is {
		return nil, fmt.Errorf("the mapper of the managed cluster is a %T, which does not follow changes of kinds", local.GetRESTMapper())
	}
	return &latest{local: local, kinds: kinds}, nil
}

func (l *latest) client() (client.Client, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if renewals := l.kinds.Renewals(); l.made == nil || renewals != l.renewals {
		made, err := client.New(l.local.GetConfig(), client.Options{
			HTTPClient: l.local.GetHTTPClient(), Scheme: l.local.GetScheme(), Mapper: l.kinds,
		})
		if err != nil {
			return nil, fmt.Errorf("connecting to the managed cluster: %w", err)
		}
		l.made, l.renewals = made, renewals
	}
	return l.made, nil
}

// Get reads an object from the API server.
func (l *latest) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c, err := l.client()
	if err != nil {
		return err
	}
	return c.Get(ctx, key, object, options...)
}

// List lists objects of the API server.
func (l *latest) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c, err := l.client()
	if err != nil {
		return err
	}
	return c.List(ctx, list, options...)
}

// identities holds the clients of impersonated users: the API server limits them to the permissions of the user, and records the
// impersonation. It is safe for concurrent use.
type identities struct {
	latest   *latest
	commands *remote.Remote // with the agent's own identity
	clock    func() time.Time
	known    *lru.Cache
}

// identityLimit is the number of most recently used identities in the cache. It only limits memory.
const identityLimit = 256

// identity is an impersonated user.
type identity struct {
	clients
	// granted is when the user's permissions last changed, or may have.
	granted  *atomic.Pointer[time.Time]
	renewals int64 // of the kinds that the client knows
}

func newIdentities(own *latest) (*identities, error) {
	commands, err := remote.New(own.local.GetConfig(), own.local.GetHTTPClient())
	return &identities{latest: own, commands: commands, clock: time.Now, known: lru.New(identityLimit)}, err
}

// own returns the clients with the agent's own identity.
func (i *identities) own() (clients, error) {
	c, err := i.latest.client()
	return clients{client: c, remote: i.commands}, err
}

// of returns the clients of a user. They share connections and rate limits with the agent's own. granted reports whether the user's
// permissions have just changed.
func (i *identities) of(actor rights.Actor, granted bool) (clients, error) {
	made := &identity{granted: &atomic.Pointer[time.Time]{}, renewals: i.latest.kinds.Renewals()}
	if last, known := i.known.Get(actor.User); known {
		made.granted = last.(*identity).granted
		if granted {
			made.granted.Store(new(i.clock()))
		}
		if last.(*identity).renewals == made.renewals {
			return last.(*identity).clients, nil
		}
	} else {
		made.granted.Store(new(i.clock()))
	}
	local := i.latest.local
	config := rest.CopyConfig(local.GetConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: actor.User, Groups: actor.Groups}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return clients{}, fmt.Errorf("impersonating user %q: %w", actor.User, err)
	}
	c, err := client.New(config, client.Options{HTTPClient: transport, Scheme: local.GetScheme(), Mapper: i.latest.kinds})
	if err != nil {
		return clients{}, fmt.Errorf("impersonating user %q: %w", actor.User, err)
	}
	commands, err := remote.New(config, transport)
	if err != nil {
		return clients{}, fmt.Errorf("impersonating user %q: %w", actor.User, err)
	}
	made.clients = clients{client: c, remote: commands}
	if actor.Permissions != nil {
		limits := &limits{user: actor.User, granted: made.granted, clock: i.clock}
		made.client, made.limits = limited{Client: c, limits: limits}, limits
	}
	i.known.Add(actor.User, made)
	return made.clients, nil
}

// forget drops the clients of a user.
func (i *identities) forget(user string) { i.known.Remove(user) }

// limits explain the API server's answers to a user with declared permissions.
type limits struct {
	user    string
	granted *atomic.Pointer[time.Time]
	clock   func() time.Time
}

// missingRight reports that the package does not declare a permission that a task needs.
type missingRight struct {
	why   string
	final bool
	err   error
}

func (m *missingRight) Error() string { return m.why }
func (m *missingRight) Unwrap() error { return m.err }

// explain returns a *missingRight if the error is the API server's answer to a missing permission, and other errors unchanged.
func (l *limits) explain(err error) error {
	if l == nil || err == nil {
		return err
	}
	if why := rights.Refusal(l.user, err.Error()); why != "" {
		return &missingRight{why: why, final: l.clock().Sub(*l.granted.Load()) > taskRetryTimeout, err: err}
	}
	return err
}

// try sends a request, and repeats it while permissions that were just granted may be missing.
func (l *limits) try(ctx context.Context, send func() error) error {
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		err := l.explain(send())
		if missing := (*missingRight)(nil); !errors.As(err, &missing) || l.clock().Add(pause).Sub(*l.granted.Load()) > requestRetryTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// limited is a client of a user with declared permissions.
type limited struct {
	client.Client
	*limits
}

func (l limited) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	return l.try(ctx, func() error { return l.Client.Apply(ctx, object, options...) })
}

func (l limited) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return l.try(ctx, func() error { return l.Client.Delete(ctx, object, options...) })
}

// conceal returns an error about an object without its message if the object holds a part of a sensitive value that cannot be masked. The
// message about a missing permission quotes nothing of the object, unless that grants permissions.
func (p *pass) conceal(object *unstructured.Unstructured, err error) error {
	if missing := (*missingRight)(nil); errors.As(err, &missing) && object.GroupVersionKind().Group != rbacv1.GroupName {
		return err
	}
	return p.view.Conceal(object, err)
}
