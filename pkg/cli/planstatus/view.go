package planstatus

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// View holds everything that is shown about an Instance.
type View struct {
	Instance *kudo.Instance
	// Version provides the phases and steps of plans that never ran; nil if it cannot be read, for the reason in Unreadable.
	Version    *kudo.OperatorVersion
	Unreadable error
	// withChildren shows the children too.
	withChildren bool
	children     []View
}

// Gather reads the OperatorVersion of an Instance into a view.
func Gather(ctx context.Context, c client.Reader, instance *kudo.Instance) View {
	ref := instance.Spec.OperatorVersion
	version := &kudo.OperatorVersion{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = instance.Namespace
	}
	if err := c.Get(ctx, key, version); err != nil {
		return View{Instance: instance, Unreadable: err}
	}
	return View{Instance: instance, Version: version}
}
