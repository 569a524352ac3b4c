package planstatus

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Find returns the Instance of that key, optionally with its children, or else the add-on. If neither exists, the error states how to enable the
// add-on, and lists the existing names.
func Find(ctx context.Context, c client.Reader, key client.ObjectKey, withChildren bool) (terminal.Shown, error) {
	instance := &kudo.Instance{}
	err := c.Get(ctx, key, instance)
	if err == nil {
		return Of(ctx, c, instance, withChildren)
	}
	if !apierrors.IsNotFound(err) {
		return terminal.Shown{}, fmt.Errorf("reading Instance %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err = c.Get(ctx, key, addOn)
	if err == nil {
		return terminal.Shown{Text: addOnText(addOn), Data: progress.StatusOfAddOn(addOn), Names: []string{
			text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", addOn.Name),
		}}, nil
	}
	if !apierrors.IsNotFound(err) {
		return terminal.Shown{}, fmt.Errorf("reading ManagedClusterAddOn %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	return terminal.Shown{}, read.MissingOn(ctx, c, key)
}

// Of returns the status of an Instance, optionally with its children.
func Of(ctx context.Context, c client.Reader, instance *kudo.Instance, withChildren bool) (terminal.Shown, error) {
	view := read.View(ctx, c, instance)
	if withChildren {
		if err := read.Children(ctx, c, &view); err != nil {
			return terminal.Shown{}, err
		}
	}
	return shownOf(view), nil
}

func shownOf(v progress.View) terminal.Shown {
	return terminal.Shown{Text: Text(v), Data: progress.StatusOf(v), Names: names(v)}
}

// names returns the object names of the Instance and, if they are shown, its children.
func names(v progress.View) []string {
	found := []string{text.ObjectName(kudo.GroupVersion.Group, "Instance", v.Instance.Name)}
	for _, child := range v.Children {
		found = append(found, names(child)...)
	}
	return found
}
