package planstatus

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
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

func (v View) shown() terminal.Shown {
	return terminal.Shown{Text: Text(v), Data: statusData(v), Names: v.names()}
}

// names are those of the Instance, and of its children where they are shown.
func (v View) names() []string {
	names := []string{terminal.ObjectName(kudo.GroupVersion.Group, "Instance", v.Instance.Name)}
	for _, child := range v.children {
		names = append(names, child.names()...)
	}
	return names
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
