package webhook

import (
	"context"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/install"
)

// instance judges a write of an Instance in the namespace of a managed cluster by its parameters, its request for a plan and the
// plans that it triggers. Elsewhere Instances are not Tandem's, or are the mirrors of a hub that is its own managed cluster.
//
// What addon-manager itself writes is let in, and condition Resolved says what is wrong with it: behind such a write stands one that
// nobody could refuse, of an AddOnDeploymentConfig or of a parent, and refusing it would only make addon-manager try again. It is told
// by the user, not by the owner of the Instance: an edit by somebody else of an add-on's Instance is judged as any other, and
// everybody can write an owner reference.
func (a *admissions) instance(ctx context.Context, w write[*kudo.Instance]) (opinion, error) {
	if own, err := a.user.get(ctx, a.client); err != nil || w.user == own {
		return opinion{}, err
	}
	if managed, err := read.IsManaged(ctx, a.live, w.after.Namespace); err != nil || !managed {
		return opinion{}, err
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

// stateOf gathers what matters about the Instance, as the controller does. An OperatorVersion that the cache does not have is looked
// for past it: it is often created together with the Instance.
func (a *admissions) stateOf(ctx context.Context, instance *kudo.Instance) (install.Instance, error) {
	state, err := read.Instance(ctx, a.client, instance, a.packagesNamespace)
	if err == nil && state.Version == nil && state.MayRead() {
		state.Version, err = read.Version(ctx, a.live, install.VersionOf(instance))
	}
	if err != nil {
		return state, err
	}
	state.VersionFaults = a.verifications.Of(state.Version)
	return state, read.Tree(ctx, a.client, &state)
}
