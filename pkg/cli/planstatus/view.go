package planstatus

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// View is all that is shown about an Instance.
type View struct {
	Instance *kudo.Instance
	// version gives the shape of plans that never ran; nil if it cannot be read, and unreadable says why.
	Version    *kudo.OperatorVersion
	Unreadable error
	// withChildren says that the children are shown as well.
	withChildren bool
	children     []View
}

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
