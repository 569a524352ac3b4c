package hub

import (
	"context"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pack"
)

// version refuses an OperatorVersion that cannot be run, by the rules of `kubectl addon package verify`. Its spec is immutable, so
// only its creation matters. Only those that Instances of managed clusters may use are Tandem's: beside them stand KUDO's own, and the
// mirrors of a hub that is its own managed cluster.
func (a *admissions) version(ctx context.Context, w write[*kudo.OperatorVersion]) (opinion, error) {
	if w.before != nil {
		return opinion{}, nil
	}
	if w.after.Namespace != a.packagesNamespace {
		if managed, err := isManaged(ctx, a.live, w.after.Namespace); err != nil || !managed {
			return opinion{}, err
		}
	}
	return opinion{refused: pack.Admit(w.after)}, nil
}
