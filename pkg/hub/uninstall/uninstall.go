// Package uninstall takes off a hub what addon-manager enforces and has judged. It reads and writes the hub.
package uninstall

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Options say which hub it is.
type Options struct {
	// Lease is the Lease that the leader holds.
	Lease types.NamespacedName
	// Concurrency is how many add-ons are released at a time.
	Concurrency int
}

// Run takes what Tandem enforces and what it has judged off a hub, so that nothing waits for, or stays False because of, an
// addon-manager that is gone. It says on out what it does, and may be repeated, also after an interruption. What runs stays:
// Instances, and the add-ons that have one, are left as they are.
//
// It refuses while an addon-manager runs, which would write everything again, and then leaves everything as it is.
func Run(ctx context.Context, c client.Client, options Options, out io.Writer) error {
	u := &uninstallation{client: c, out: out, concurrency: max(1, options.Concurrency), now: time.Now}
	if err := u.refuseWhileLed(ctx, options.Lease); err != nil {
		return err
	}
	for _, refuse := range []func(context.Context) error{u.refuseWhileConverted, u.refuseWhileJudged} {
		if err := refuse(ctx); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		u.removeAdmission, // first, for the policies would undo the rest
		u.endConversion,   // before add-ons are written, for which the API server may have to convert
		u.releaseAddOns,
		u.nameWhatRuns,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("uninstalling (it may be repeated): %w", err)
		}
	}
	u.say("done: addon-manager has nothing left to do on this hub")
	return nil
}

// removeAdmission deletes bindings, policies and webhooks, bindings first: a policy without one is inert.
func (u *uninstallation) removeAdmission(ctx context.Context) error {
	objects, err := manifests.Admission()
	if err != nil {
		return err
	}
	isBinding := func(o *unstructured.Unstructured) bool { return strings.HasSuffix(o.GetKind(), "Binding") }
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		switch {
		case isBinding(a) == isBinding(b):
			return 0
		case isBinding(a):
			return -1
		default:
			return 1
		}
	})
	for _, object := range objects {
		switch err := u.client.Delete(ctx, object); {
		case err == nil:
			u.say("removed %s %s", object.GetKind(), object.GetName())
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("removing %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// endConversion leaves Tandem's resource definitions with the version that they store. Those of a stock OCM, which do not have
// Tandem's label, stay as they are.
func (u *uninstallation) endConversion(ctx context.Context) error {
	definitions, err := u.definitions(ctx)
	if err != nil {
		return err
	}
	for i := range definitions {
		definition := &definitions[i]
		operations := withoutConversion(definition)
		if len(operations) == 0 {
			continue
		}
		if err := apply.Patch(ctx, u.client, definition, operations); err != nil {
			return err
		}
		u.say("CustomResourceDefinition %s has its stored version only, and converts no more", definition.Name)
	}
	return nil
}

// namedAtMost is how many Instances are named; the others are counted.
const namedAtMost = 20

// nameWhatRuns tells what goes on without addon-manager, and how to end it.
func (u *uninstallation) nameWhatRuns(context.Context) error {
	if len(u.instances) == 0 {
		return nil
	}
	names := slices.Sorted(slices.Values(u.instances))
	u.say("these Instances stay, with the add-ons that own them, and the agents go on running them: %s\n"+
		"To remove one, run addon-manager again, disable the add-on or delete the Instance, and uninstall once it is gone",
		text.List(names, namedAtMost))
	return nil
}
