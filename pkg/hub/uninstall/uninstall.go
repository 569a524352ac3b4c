// Package uninstall removes the rules that addon-manager enforces and its verdicts from a hub. It reads and writes the hub.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Options describe the hub.
type Options struct {
	// Lease is the name of the leader's Lease.
	Lease types.NamespacedName
	// Concurrency is the number of add-ons that are released in parallel.
	Concurrency int
}

// Run removes Tandem's rules and verdicts from a hub, so that nothing waits for, or stays False because of, a removed addon-manager. It
// reports progress on out, and may be repeated, also after an interruption. Running add-ons are unaffected: Instances, and the add-ons that
// have one, are left unchanged.
//
// It refuses to run while an addon-manager runs, which would restore everything, and then changes nothing.
func Run(ctx context.Context, c client.Client, options Options, out io.Writer) error {
	u := &uninstallation{
		client: c, out: out, concurrency: max(1, options.Concurrency), now: time.Now,
		owners: sets.New[types.UID](), versions: map[string]sets.Set[string]{},
	}
	if err := u.refuseWhileLed(ctx, options.Lease); err != nil {
		return err
	}
	for _, refuse := range []func(context.Context) error{u.refuseWhileConverted, u.refuseWhileJudged} {
		if err := refuse(ctx); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		u.removeAdmission, // first, because the policies would revert the rest
		u.endConversion,   // before add-ons are written, which may require conversion by the API server
		u.releaseAddOns,
		u.nameUnconverted,
		u.nameWhatRuns,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("uninstalling (it can be repeated): %w", err)
		}
	}
	u.print("done: this hub no longer depends on addon-manager")
	return nil
}

// removeAdmission deletes bindings, policies and webhooks, bindings first: a policy without one has no effect.
func (u *uninstallation) removeAdmission(ctx context.Context) error {
	objects, err := manifests.Admission()
	if err != nil {
		return err
	}
	for _, object := range bindingsFirst(objects) {
		switch err := u.client.Delete(ctx, object); {
		case err == nil:
			u.print("removed %s %s", object.GetKind(), object.GetName())
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("removing %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// bindingsFirst returns the bindings, then the other objects.
func bindingsFirst(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	isBinding := func(o *unstructured.Unstructured) bool { return strings.HasSuffix(o.GetKind(), "Binding") }
	others := slices.DeleteFunc(slices.Clone(objects), isBinding)
	return append(slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !isBinding(o) }), others...)
}

// endConversion reduces Tandem's resource definitions to their storage version. It leaves those of a stock OCM, which do not have Tandem's
// label, unchanged.
func (u *uninstallation) endConversion(ctx context.Context) error {
	definitions, err := u.definitions(ctx)
	if err != nil {
		return err
	}
	for i := range definitions {
		definition := &definitions[i]
		u.versions[definition.Spec.Names.Kind] = remainingVersions(definition)
		operations := withoutConversion(definition)
		if len(operations) == 0 {
			continue
		}
		if err := apply.Patch(ctx, u.client, definition, operations); err != nil {
			return err
		}
		u.print("reduced CustomResourceDefinition %s to its storage version, without conversion", definition.Name)
	}
	return nil
}

// namedAtMost is the maximum number of listed Instances; the others are counted.
const namedAtMost = 20

// nameUnconverted lists the objects with managed fields of removed versions that addon-manager may not write, and how to remove these.
func (u *uninstallation) nameUnconverted(ctx context.Context) error {
	var names []string
	for _, kind := range []string{"ClusterManagementAddOn", "AddOnDeploymentConfig"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := u.client.List(ctx, list); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("listing %ss: %w", kind, err)
		}
		for i := range list.Items {
			if len(managerOperations(&list.Items[i], u.versions[kind])) > 0 {
				names = append(names, kind+" "+strings.TrimPrefix(client.ObjectKeyFromObject(&list.Items[i]).String(), "/"))
			}
		}
	}
	if len(names) > 0 {
		u.print("these objects have managed fields in a removed version, with which server-side applies fail as of Kubernetes 1.37: %s\n"+
			`To remove them, run: kubectl patch KIND NAME --type=json -p '[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]'`,
			text.List(names, namedAtMost))
	}
	return nil
}

// nameWhatRuns lists what continues to run without addon-manager, and how to remove it.
func (u *uninstallation) nameWhatRuns(context.Context) error {
	if len(u.instances) == 0 {
		return nil
	}
	names := slices.Sorted(slices.Values(u.instances))
	u.print("these Instances and the add-ons that own them are kept, and agents continue to run them: %s\n"+
		"To remove one, run addon-manager again, disable the add-on or delete the Instance, and uninstall again once it is removed",
		text.List(names, namedAtMost))
	return nil
}
