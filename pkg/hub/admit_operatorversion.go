package hub

import (
	"context"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pack"
)

// version refuses an OperatorVersion that cannot be run, by the rules of `kubectl addon package verify`. Its spec is immutable, so
// only its creation matters.
func (a *admissions) version(_ context.Context, w write[*kudo.OperatorVersion]) (opinion, error) {
	if w.before != nil {
		return opinion{}, nil
	}
	return opinion{refused: pack.Admit(w.after)}, nil
}
