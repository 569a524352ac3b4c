package change

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxListed is the number of objects, parameters or clusters that a message names.
const maxListed = 5

// Desired is the requested state of an add-on on a cluster.
type Desired struct {
	// Namespace on the managed cluster; if empty, the default of the add-on's definition
	Namespace  string
	Parameters map[string]string
	// Unset lists the parameters to reset to their defaults
	Unset []string
	// Reset is set to reset all parameters that are not given
	Reset            bool
	WithDependencies bool
}

// Step is the write of one add-on on one cluster.
type Step struct {
	// Current is the existing add-on, or nil; Wanted is its desired state.
	Current, Wanted *addonv1alpha1.ManagedClusterAddOn
	// Config is the AddOnDeploymentConfig with the given parameters, nil if there are none; CurrentConfig is its current state.
	CurrentConfig, Config *addonv1alpha1.AddOnDeploymentConfig
	// Parameters are the given parameters. The config may have further variables, which the hub may ignore.
	Parameters map[string]string
}

// Written is an object on the hub after a write.
type Written struct {
	Group, Kind, Name, Cluster string
	// Effect states what was done to it.
	Effect string
}

// String returns the result as kubectl prints it.
func (w Written) String() string {
	return fmt.Sprintf("%s %s on %s", text.ObjectName(w.Group, w.Kind, w.Name), w.Effect, w.Cluster)
}

// Write writes the step: first the config, then the add-on that refers to it. It returns what was written, even if it fails. An object that
// has changed since it was read is a conflict.
func (s Step) Write(ctx context.Context, c client.Client) ([]Written, error) {
	var done []Written
	if s.Config != nil {
		did, err := write(ctx, c, s.CurrentConfig, s.Config, "created")
		if err != nil {
			return nil, err
		}
		done = append(done, Written{addonv1alpha1.GroupVersion.Group, "AddOnDeploymentConfig", s.Config.Name, s.Config.Namespace, did})
	}
	did, err := write(ctx, c, s.Current, s.Wanted, "enabled")
	if err != nil {
		return done, err
	}
	return append(done, Written{addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", s.Wanted.Name, s.Wanted.Namespace, did}), nil
}

// Objects returns the names of the objects that Write changes.
func (s Step) Objects() []string {
	var names []string
	if s.Config != nil && !equality.Semantic.DeepEqual(s.CurrentConfig, s.Config) {
		names = append(names, text.ObjectName(addonv1alpha1.GroupVersion.Group, "AddOnDeploymentConfig", s.Config.Name))
	}
	if !equality.Semantic.DeepEqual(s.Current, s.Wanted) {
		names = append(names, text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", s.Wanted.Name))
	}
	return names
}

// effect returns the effect on the add-on.
func (s Step) effect() preview.Effect {
	switch {
	case s.Current == nil:
		return preview.Created
	case len(s.Objects()) > 0:
		return preview.Changed
	default:
		return preview.Unchanged
	}
}

// write creates the object, or updates it if it has not changed since it was read. It returns the effect.
func write[T client.Object](ctx context.Context, c client.Client, current, wanted T, created string) (string, error) {
	key := client.ObjectKeyFromObject(wanted)
	if wanted.GetResourceVersion() == "" {
		if err := c.Create(ctx, wanted); err != nil {
			return "", fmt.Errorf("creating %s: %w", key, err)
		}
		return created, nil
	}
	if equality.Semantic.DeepEqual(current, wanted) {
		return "unchanged", nil
	}
	if err := patchIfUnchanged(ctx, c, current, wanted); err != nil {
		return "", fmt.Errorf("changing %s: %w", key, err)
	}
	return "configured", nil
}
