// Package progress describes the progress of an Instance: its plans, phases and steps, their last runs, what its last change waits for, and its
// drift. It is pure and touches no cluster.
package progress

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// View holds everything that is shown about an Instance.
type View struct {
	Instance *kudo.Instance
	// Version provides the phases and steps of plans that never ran; nil if it cannot be read, for the reason in Unreadable.
	Version    *kudo.OperatorVersion
	Unreadable error
	// WithChildren is set if Children holds the children.
	WithChildren bool
	Children     []View
}
