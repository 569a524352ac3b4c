package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/hub/read"
)

// version rejects an OperatorVersion that cannot run, by the rules of `kubectl addon package verify`, and one that closes a cycle. Its spec
// is immutable, so only its creation is reviewed. Only versions that Instances of managed clusters may use belong to Tandem: others are
// KUDO's own, or the mirrors of a hub that is its own managed cluster.
func (a *admissions) version(ctx context.Context, w write[*kudo.OperatorVersion]) (opinion, error) {
	if w.before != nil {
		return opinion{}, nil
	}
	if w.after.Namespace != a.namespaces.Packages {
		if managed, err := read.IsManaged(ctx, a.live, w.after.Namespace); err != nil || !managed {
			return opinion{}, err
		}
	}
	if err := a.verifications.Admit(w.after); err != nil || len(tree.Tasks(&w.after.Spec)) == 0 {
		return opinion{refused: err}, nil
	}
	return a.childOperators(ctx, w.after)
}

// childOperators judges the child operators of a version. It reads the other versions live, like definitions: cycles are created by several
// consecutive writes. Only a version with child operators can close a cycle.
func (a *admissions) childOperators(ctx context.Context, version *kudo.OperatorVersion) (opinion, error) {
	var stored kudo.OperatorVersionList
	if err := a.live.List(ctx, &stored, client.InNamespace(version.Namespace)); err != nil {
		return opinion{}, fmt.Errorf("listing OperatorVersions: %w", err)
	}
	warnings, refused := tree.Admit(version, read.FilterExisting(stored.Items))
	return opinion{warnings: warnings, refused: refused}, nil
}
