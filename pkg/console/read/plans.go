package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// View reads the OperatorVersion of an Instance into a view.
func View(ctx context.Context, c client.Reader, instance *kudo.Instance) progress.View {
	ref := instance.Spec.OperatorVersion
	version := &kudo.OperatorVersion{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = instance.Namespace
	}
	if err := c.Get(ctx, key, version); err != nil {
		return progress.View{Instance: instance, Unreadable: err}
	}
	return progress.View{Instance: instance, Version: version}
}

// Children adds the descendants of an Instance to its view.
func Children(ctx context.Context, c client.Reader, root *progress.View) error {
	var found kudo.InstanceList
	if err := c.List(ctx, &found, client.InNamespace(root.Instance.Namespace)); err != nil {
		return fmt.Errorf("listing Instances of cluster %q: %w", root.Instance.Namespace, err)
	}
	owned := map[types.UID][]*kudo.Instance{}
	for i := range found.Items {
		if owner := metav1.GetControllerOf(&found.Items[i]); owner != nil {
			owned[owner.UID] = append(owned[owner.UID], &found.Items[i])
		}
	}
	attachChildren(ctx, c, root, owned)
	return nil
}

// attachChildren moves children from owned into the view. It removes them from owned, so that it terminates whatever the owner references
// are.
func attachChildren(ctx context.Context, c client.Reader, view *progress.View, owned map[types.UID][]*kudo.Instance) {
	view.WithChildren = true
	children := owned[view.Instance.UID]
	delete(owned, view.Instance.UID)
	slices.SortFunc(children, func(a, b *kudo.Instance) int { // in the order in which plans created them
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, instance := range children {
		child := View(ctx, c, instance)
		attachChildren(ctx, c, &child, owned)
		view.Children = append(view.Children, child)
	}
}
