package stacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/stack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// pruned returns what the stack no longer has, if that is to be deleted.
func (w *writer) pruned(ctx context.Context) ([]stack.Pruned, error) {
	if !w.prune {
		return nil, nil
	}
	marked, err := w.marked(ctx)
	if err != nil {
		return nil, err
	}
	var versions []types.NamespacedName
	versions = append(versions, w.resolved.versions...)
	return stack.Prune(marked, w.resolved.objects, versions), nil
}

// marked returns the objects that earlier applies of the stack have made.
func (w *writer) marked(ctx context.Context) (stack.Marked, error) {
	found := stack.Marked{Definitions: stack.Definitions{}, Enabled: map[string][]string{}, InUse: map[types.NamespacedName]bool{}}
	keys := slices.SortedFunc(maps.Keys(w.live), func(a, b objectKey) int { return cmp.Compare(a.kind+" "+a.String(), b.kind+" "+b.String()) })
	for _, key := range keys {
		w.mark(&found, key, w.live[key])
	}
	versions, err := read.StoredVersions(ctx, w.hub, w.namespace())
	if err != nil {
		return found, err
	}
	for i := range versions {
		if w.owns(&versions[i]) {
			found.Versions = append(found.Versions, client.ObjectKeyFromObject(&versions[i]))
		}
	}
	return found, w.addInstances(ctx, &found)
}

// owns reports whether the stack has made an object.
func (w *writer) owns(object client.Object) bool {
	return object.GetLabels()[kudo.LabelStack] == w.stack
}

// mark adds an object on the hub, and what it refers to. A definition of the stack refers to what the stack has now, or is deleted.
func (w *writer) mark(found *stack.Marked, key objectKey, object client.Object) {
	use := func(references []install.Reference) {
		for _, config := range references {
			found.InUse[config.NamespacedName] = true
		}
	}
	isOwn := w.owns(object)
	switch object := object.(type) {
	case *addonv1alpha1.ClusterManagementAddOn:
		if isOwn {
			found.Definitions[object.Name] = object
		} else {
			use(install.References(object, nil))
		}
	case *addonv1alpha1.ManagedClusterAddOn:
		found.Enabled[object.Name] = append(found.Enabled[object.Name], object.Namespace)
		use(install.References(nil, object))
		if isOwn {
			found.AddOns = append(found.AddOns, key.NamespacedName)
		}
	case *addonv1alpha1.AddOnDeploymentConfig:
		if isOwn {
			found.Configs = append(found.Configs, key.NamespacedName)
		}
	default:
		if isOwn {
			found.Values = append(found.Values, key.NamespacedName)
		}
	}
}

// addInstances adds the OperatorVersions that Instances run.
func (w *writer) addInstances(ctx context.Context, found *stack.Marked) error {
	var instances kudo.InstanceList
	if err := w.hub.List(ctx, &instances); err != nil {
		return fmt.Errorf("listing Instances, which may run packages that the stack no longer has: %w", err)
	}
	for i := range instances.Items {
		instance := &instances.Items[i]
		found.InUse[install.VersionOf(instance)] = true
		if running := instance.Status.Execution; running != nil {
			found.InUse[types.NamespacedName{Namespace: running.OperatorVersion.Namespace, Name: running.OperatorVersion.Name}] = true
		}
	}
	return nil
}

// agree lists what is deleted, and prompts for confirmation.
func (w *writer) agree(pruned []stack.Pruned) error {
	deleted := 0
	for _, p := range pruned {
		if p.Action == stack.Keep {
			continue
		}
		deleted++
		if w.dryRun {
			continue
		}
		if err := printers.WriteEscaped(w.ErrOut, fmt.Sprintf("To be %s: %s\n", map[stack.Action]string{
			stack.Delete: "deleted", stack.Withdraw: "disabled by OCM",
		}[p.Action], nameOf(p))); err != nil {
			return err
		}
	}
	switch {
	case deleted == 0 || w.dryRun || w.yes:
		return nil
	case !printers.IsTerminal(w.In):
		return fmt.Errorf("stack %q was not applied: cannot prompt for confirmation without a terminal; use --yes, or leave out --prune", w.stack)
	}
	return terminal.Confirm(w.IOStreams, fmt.Sprintf("Delete %s that stack %s no longer has? Add-ons are removed with their objects, including their data.",
		text.Plural(deleted, "object"), w.stack))
}

// nameOf returns an object as kubectl prints it, and its cluster.
func nameOf(p stack.Pruned) string {
	group, on := addonv1alpha1.GroupVersion.Group, ""
	switch p.Kind {
	case "OperatorVersion":
		group = kudo.GroupVersion.Group
	case "ConfigMap":
		group = ""
	case "ManagedClusterAddOn":
		on = " on " + p.Namespace
	}
	return objectName(group, p.Kind, p.Name) + on
}

// delete deletes what the stack no longer has, and prints it.
func (w *writer) delete(ctx context.Context, pruned []stack.Pruned) error {
	var problems []error
	waiting := false
	for _, p := range pruned {
		did, err := w.deleteObject(ctx, p)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", nameOf(p), err))
			continue
		}
		if p.Action != stack.Delete {
			waiting = true
		}
		if w.dryRun {
			did += " (dry run)"
		}
		problems = append(problems, printers.WriteEscaped(w.Out, nameOf(p)+" "+did+"\n"))
	}
	if waiting && !w.dryRun {
		problems = append(problems, printers.WriteEscaped(w.ErrOut, "Repeat the command to delete what stays for now.\n"))
	}
	return errors.Join(problems...)
}

// deleteObject deletes an object, and returns what it did.
func (w *writer) deleteObject(ctx context.Context, p stack.Pruned) (did string, err error) {
	options := []client.DeleteOption{}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	object := objectOf(p)
	switch p.Action {
	case stack.Keep:
		return "stays: " + p.Reason, nil
	case stack.Withdraw:
		return "has no placements any more, and stays: " + p.Reason, w.withdraw(ctx, object)
	}
	err = w.hub.Delete(ctx, object, options...)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if p.Kind == "ManagedClusterAddOn" {
		return "is being deleted", err
	}
	return "deleted", err
}

// withdraw removes the placements of a definition.
func (w *writer) withdraw(ctx context.Context, definition client.Object) error {
	patch := fmt.Sprintf(`{"spec":{"installStrategy":{"type":%q,"placements":null}}}`, upstream.AddonInstallStrategyManual)
	options := []client.PatchOption{client.FieldOwner(fieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	return w.hub.Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

// objectOf returns an empty object of the kind and name.
func objectOf(p stack.Pruned) client.Object {
	var object client.Object
	switch p.Kind {
	case "ManagedClusterAddOn":
		object = &addonv1alpha1.ManagedClusterAddOn{}
	case "ClusterManagementAddOn":
		object = &addonv1alpha1.ClusterManagementAddOn{}
	case "AddOnDeploymentConfig":
		object = &addonv1alpha1.AddOnDeploymentConfig{}
	case "ConfigMap":
		values := &metav1.PartialObjectMetadata{}
		values.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		object = values
	default:
		object = &kudo.OperatorVersion{}
	}
	object.SetNamespace(p.Namespace)
	object.SetName(p.Name)
	return object
}
