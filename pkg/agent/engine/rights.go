package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// impersonate makes the pass act for an Instance: as its own user if its package or that of its parent declares permissions, which it grants
// first, and otherwise as a service account or as the agent.
func (p *pass) impersonate(ctx context.Context, instance *kudo.Instance) (err error) {
	if p.own, err = p.identities.own(); err != nil {
		return err
	}
	actor, granted, err := p.authorize(ctx, instance)
	if p.hindrance = err; err != nil || actor.User == "" {
		p.acting = p.own
		return nil
	}
	p.acting, err = p.identities.of(actor, granted)
	return err
}

// authorize grants an Instance exactly its permissions, and returns the identity that has them. granted reports whether they have changed. An
// error is why no task can be carried out.
func (e *engine) authorize(ctx context.Context, instance *kudo.Instance) (actor rights.Actor, granted bool, err error) {
	key := client.ObjectKeyFromObject(instance)
	permissions, err := e.permissions(ctx, instance)
	if errors.Is(err, errParentMissing) {
		if held, err := e.bindings.Has(ctx, key); err != nil || held {
			return rights.OwnUser(key.Namespace, key.Name, &kudo.Permissions{}), false, err
		}
		permissions, err = nil, nil
	}
	if err != nil {
		return rights.Actor{}, false, err
	}
	actor, refused := e.policy.Actor(subject(instance, permissions))
	granted, err = e.bindings.Sync(ctx, key, rights.Grants(actor.Permissions, key.Namespace))
	if refused != nil {
		err = refused
	}
	return actor, granted, err
}

// subject returns an Instance with permissions, as the policy judges it.
func subject(instance *kudo.Instance, permissions *kudo.Permissions) rights.Subject {
	return rights.Subject{
		Namespace: instance.Namespace, Name: instance.Name, ServiceAccount: instance.Spec.ServiceAccountName, Permissions: permissions,
		Removing: instance.IsRemoving(),
	}
}

// secretReader returns the identity that needs permission to get the Secrets in the spec of an Instance: that of the plans of the OperatorVersion in
// the spec, whatever version runs. The parent that passed a reference on needed the permission for its own plans.
func (e *engine) secretReader(ctx context.Context, instance *kudo.Instance) (reader secret.Reader) {
	version, err := e.version(ctx, instance, instance.Spec.OperatorVersion.Name, client.UnsafeDisableDeepCopy) // it is large, and only read
	switch {
	case err != nil:
	case version == nil:
		err = fmt.Errorf("OperatorVersion %q is missing on the managed cluster", instance.Spec.OperatorVersion.Name)
	default:
		var permissions *kudo.Permissions
		if permissions, err = e.orInherited(ctx, instance, version.Spec.Permissions); err == nil {
			reader.Actor, err = e.policy.Actor(subject(instance, permissions))
		}
	}
	reader.Problem = err
	return reader
}

// errParentMissing reports that the parent, whose permissions an Instance uses while it is being removed, no longer exists. The Instance
// keeps its permissions until it is removed.
var errParentMissing = errors.New("the parent no longer exists")

// permissions returns the permissions of an Instance: those that its package declares, or the permissions of its parent; nil if no package of
// them declares any. The hub must have acknowledged the Instance as a child: owner references alone can be written by any user.
func (e *engine) permissions(ctx context.Context, instance *kudo.Instance) (*kudo.Permissions, error) {
	declared, err := e.declaredPermissions(ctx, instance)
	if err != nil {
		return nil, err
	}
	return e.orInherited(ctx, instance, declared)
}

// orInherited returns the declared permissions of an Instance; without any, those of its parent.
func (e *engine) orInherited(ctx context.Context, instance *kudo.Instance, declared *kudo.Permissions) (*kudo.Permissions, error) {
	name := instance.Annotations[kudo.AnnotationParent]
	if declared != nil || name == "" {
		return declared, nil
	}
	parent := &kudo.Instance{}
	err := e.client.Get(ctx, types.NamespacedName{Namespace: instance.Namespace, Name: name}, parent, client.UnsafeDisableDeepCopy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading parent Instance %q: %w", name, err)
	case err == nil && e.signer.IsSigned(parent) && acknowledges(parent, instance):
		return e.permissions(ctx, parent)
	case instance.IsRemoving():
		return nil, errParentMissing
	default:
		return nil, fmt.Errorf("waiting for parent Instance %q, whose permissions the Instance has: the hub has not reported it as a child yet", name)
	}
}

// acknowledges reports whether the hub has created the child for a task of the parent.
func acknowledges(parent, child *kudo.Instance) bool {
	return slices.ContainsFunc(parent.Status.Children, func(c kudo.ChildStatus) bool {
		return c.Instance == child.Name && string(c.UID) == child.Annotations[kudo.AnnotationHubUID] || slices.Contains(c.Former, child.Name)
	})
}

// declaredPermissions returns the permissions that the last started OperatorVersion declares, or the desired one before the first start;
// together with those of the version before it until the whole plan is complete.
func (e *engine) declaredPermissions(ctx context.Context, instance *kudo.Instance) (*kudo.Permissions, error) {
	var declared []*kudo.Permissions
	for _, name := range versionsOf(instance) {
		version, err := e.version(ctx, instance, name, client.UnsafeDisableDeepCopy) // it is large, and only read
		if err != nil {
			return nil, err
		}
		if version == nil {
			version = &kudo.OperatorVersion{}
		}
		declared = append(declared, version.Spec.Permissions)
	}
	if len(declared) == 1 {
		return declared[0], nil
	}
	return rights.Union(declared[0], declared[1]), nil
}

// forbids returns why an execution that applies these objects does not start.
func (p *pass) forbids(objects []kudo.InventoryEntry) error {
	if refused := (*rights.Refused)(nil); errors.As(p.hindrance, &refused) {
		return p.hindrance
	}
	for _, object := range objects {
		if err := p.policy.Protects(object.Namespace); err != nil {
			return fmt.Errorf("%s: %w", object, err)
		}
	}
	return nil
}

// untilRegrant returns when to grant the permissions of an Instance again; zero if that is not necessary.
func (p *pass) untilRegrant() time.Duration {
	if refused := (*rights.Refused)(nil); p.hindrance == nil || errors.As(p.hindrance, &refused) {
		return 0
	}
	return recheckInterval
}

// disown removes the permissions of an Instance that no longer exists.
func (e *engine) disown(ctx context.Context, instance types.NamespacedName) error {
	e.identities.forget(rights.User(instance.Namespace, instance.Name))
	_, err := e.bindings.Sync(ctx, instance, nil)
	return client.IgnoreNotFound(err)
}

// disownOrphan removes the permissions of an Instance that no longer belongs to the hub, whose plans do not run.
func (e *engine) disownOrphan(ctx context.Context, instance *kudo.Instance) error {
	if !instance.IsOrphaned() {
		return nil
	}
	return e.disown(ctx, client.ObjectKeyFromObject(instance))
}
