package webhook

import (
	"context"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
)

// instance judges a write of an Instance in the namespace of a managed cluster by its parameters, its plan request and the plans that it
// triggers. Elsewhere, an Instance never runs, or is a mirror of a hub that is its own managed cluster.
//
// Writes of addon-manager itself are admitted, and condition Resolved reports their problems: such a write follows from an
// AddOnDeploymentConfig or a parent that could not be rejected, and rejecting it would only cause retries. It is identified by the user,
// not by the owner of the Instance: another user's edit of an add-on's Instance is judged like any other, and every user can set an owner
// reference.
func (a *admissions) instance(ctx context.Context, w write[*kudo.Instance]) (opinion, error) {
	if own, err := a.user.get(ctx, a.live); err != nil || w.user == own {
		return opinion{}, err
	}
	managed, err := read.IsManaged(ctx, a.live, w.after.Namespace)
	switch {
	case err != nil:
		return opinion{}, err
	case !managed:
		return outside(w), nil
	}
	var before *install.Instance
	if w.before != nil {
		state, err := a.stateOf(ctx, w.before)
		if err != nil {
			return opinion{}, err
		}
		before = &state
	}
	after, err := a.stateOf(ctx, w.after)
	if err != nil {
		return opinion{}, err
	}
	warnings, refused := install.Admit(before, after)
	return opinion{warnings: warnings, refused: refused}, nil
}

// outside warns about the creation of an Instance in a namespace that does not belong to a managed cluster. Mirrors and existing Instances
// are not Tandem's concern there.
func outside(w write[*kudo.Instance]) opinion {
	if w.before != nil || kudo.IsMirror(w.after) {
		return opinion{}
	}
	warnings, refused := install.Admit(nil, install.Instance{Instance: w.after, Unmanaged: true})
	return opinion{warnings: warnings, refused: refused}
}

// stateOf reads everything that decides about the Instance, as the controller does. If the cache lacks the OperatorVersion, it reads it
// live: it is often created together with the Instance.
func (a *admissions) stateOf(ctx context.Context, instance *kudo.Instance) (install.Instance, error) {
	state, err := read.Instance(ctx, a.client, instance, a.namespaces.Packages)
	if err == nil && state.Version == nil {
		state.Version, err = read.WantedVersion(ctx, a.live, instance, a.namespaces.Packages)
	}
	if err != nil {
		return state, err
	}
	state.Reserved = a.reserved
	state.VersionProblems = a.verifications.Of(state.Version)
	return state, read.Tree(ctx, a.client, &state)
}
