package stacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/core/stack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// fieldManager is the field manager of the objects of stacks.
const fieldManager = hubclient.FieldManager + "-apply"

// writer writes a stack.
type writer struct {
	*applyFlags
	hub      hubclient.Hub
	stack    string
	resolved *resolved
	// live are the objects on the hub of the kinds that stacks have.
	live map[objectKey]client.Object
	// trial is the hub for dry runs, whose warnings are not printed: some of them are about objects that are written before.
	trial client.Client
	// missing are the OperatorVersions that the hub does not have yet.
	missing []client.ObjectKey
	// changed is set once something was written.
	changed bool
}

// objectKey identifies an object of a stack.
type objectKey struct {
	kind string
	types.NamespacedName
}

func keyOf(kind string, object client.Object) objectKey {
	return objectKey{kind, client.ObjectKeyFromObject(object)}
}

// check reads the hub and refuses what it would refuse, before anything is written.
func (w *writer) check(ctx context.Context) error {
	if err := w.read(ctx); err != nil {
		return err
	}
	all, err := w.objects()
	if err != nil {
		return err
	}
	if err := w.checkOwners(all); err != nil {
		return err
	}
	for _, p := range w.resolved.packages {
		missing, err := p.Missing(ctx, w.hub, w.namespace())
		if err != nil {
			return err
		}
		w.missing = append(w.missing, missing...)
	}
	if w.trial, err = silent(w.hub); err != nil {
		return err
	}
	err = w.tryAll(ctx)
	if isUndeclared(err) {
		if err := w.resolved.annotate(); err != nil {
			return err
		}
		err = w.tryAll(ctx)
	}
	return err
}

// read reads the objects of the kinds that stacks have.
func (w *writer) read(ctx context.Context) error {
	w.live = map[objectKey]client.Object{}
	for _, definition := range w.resolved.existing {
		w.live[keyOf("ClusterManagementAddOn", definition)] = definition
	}
	var configs addonv1alpha1.AddOnDeploymentConfigList
	if err := w.hub.List(ctx, &configs, client.InNamespace(w.namespace())); err != nil {
		return fmt.Errorf("listing AddOnDeploymentConfigs in namespace %q: %w", w.namespace(), err)
	}
	for i := range configs.Items {
		w.live[keyOf("AddOnDeploymentConfig", &configs.Items[i])] = &configs.Items[i]
	}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := w.hub.List(ctx, &addOns); err != nil {
		return fmt.Errorf("listing ManagedClusterAddOns: %w", err)
	}
	for i := range addOns.Items {
		w.live[keyOf("ManagedClusterAddOn", &addOns.Items[i])] = &addOns.Items[i]
	}
	if !w.prune && len(w.resolved.objects.Values) == 0 {
		return nil
	}
	values := &metav1.PartialObjectMetadataList{}
	values.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := w.hub.List(ctx, values, client.InNamespace(w.namespace())); err != nil {
		return fmt.Errorf("listing ConfigMaps in namespace %q: %w", w.namespace(), err)
	}
	for i := range values.Items {
		w.live[keyOf("ConfigMap", &values.Items[i])] = &values.Items[i]
	}
	return nil
}

// checkOwners returns an error for each object that exists and does not belong to the stack. An add-on that a user has enabled stays as it is.
func (w *writer) checkOwners(all []written) error {
	var problems []error
	for _, next := range all {
		existing := w.live[keyOf(next.object.GetKind(), next.object)]
		switch {
		case existing == nil:
		case next.object.GetKind() != "ManagedClusterAddOn":
			problems = append(problems, w.checkOwner(next.object.GetKind(), existing))
		case existing.GetDeletionTimestamp() != nil:
			problems = append(problems, fmt.Errorf("add-on %q is being removed from cluster %s: repeat the command once it is gone",
				existing.GetName(), existing.GetNamespace()))
		}
	}
	return errors.Join(problems...)
}

// checkOwner returns an error unless an object belongs to the stack.
func (w *writer) checkOwner(kind string, object client.Object) error {
	switch owner := object.GetLabels()[kudo.LabelStack]; owner {
	case w.stack:
		return nil
	case "":
	default:
		return fmt.Errorf("%s %q belongs to stack %q: remove it from that stack first", kind, object.GetName(), owner)
	}
	namespaced := ""
	if object.GetNamespace() != "" {
		namespaced = " -n " + text.ShellWord(object.GetNamespace())
	}
	return fmt.Errorf("%s %q exists and does not belong to stack %q: to adopt it, run 'kubectl label %s %s%s %s=%s'",
		kind, object.GetName(), w.stack, strings.ToLower(kind), text.ShellWord(object.GetName()), namespaced, kudo.LabelStack, w.stack)
}

// written is an object of the stack, and what is done to it.
type written struct {
	object *unstructured.Unstructured
	// before is its resource version; empty if it does not exist.
	before string
	// remark states why it is left as it is; empty if it is written.
	remark string
}

// objects returns all objects of the stack besides packages, in the order in which they are written.
func (w *writer) objects() ([]written, error) {
	manifests, err := w.resolved.objects.Manifests()
	if err != nil {
		return nil, err
	}
	var all []written
	for _, object := range manifests {
		all = append(all, w.stateOf(object))
	}
	return all, nil
}

// stateOf returns an object with its state on the hub.
func (w *writer) stateOf(object *unstructured.Unstructured) written {
	found := written{object: object}
	existing := w.live[keyOf(object.GetKind(), object)]
	if existing == nil {
		return found
	}
	found.before = existing.GetResourceVersion()
	addOn, isAddOn := existing.(*addonv1alpha1.ManagedClusterAddOn)
	namespace, _, _ := unstructured.NestedString(object.Object, "spec", "installNamespace")
	switch {
	case !isAddOn:
	case addOn.Labels[kudo.LabelStack] != w.stack:
		found.remark = "unchanged; it was not enabled by the stack"
	case addOn.Spec.InstallNamespace == namespace:
		found.remark = "unchanged"
	}
	return found
}

// tryAll asks the hub whether it accepts all objects.
func (w *writer) tryAll(ctx context.Context) error {
	all, err := w.objects()
	if err != nil {
		return err
	}
	problems := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(requestsAtOnce)
	for i := range all {
		group.Go(func() error {
			if all[i].remark == "" {
				_, problems[i] = w.applyObject(ctx, w.trial, all[i].object, client.DryRunAll)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(problems...)
}

// requestsAtOnce is the number of concurrent requests.
const requestsAtOnce = 10

// applyObject applies an object, and returns it as the hub has it.
func (w *writer) applyObject(
	ctx context.Context, c client.Client, object *unstructured.Unstructured, options ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	applied := object.DeepCopy()
	options = append(options, client.FieldOwner(fieldManager))
	if w.force {
		options = append(options, client.ForceOwnership)
	}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), options...)
	if apierrors.IsConflict(err) {
		return nil, fmt.Errorf("%s %q has fields that another writer has set: %w: leave them out of the stack, or take them over with --force-conflicts",
			object.GetKind(), object.GetName(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("applying %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return applied, nil
}

// write writes packages and then all other objects, and prints what it does.
func (w *writer) write(ctx context.Context) error {
	for _, p := range w.resolved.packages {
		if w.dryRun {
			if err := w.printMissing(p.Versions(w.namespace())); err != nil {
				return err
			}
			continue
		}
		var lines bytes.Buffer
		err := p.Push(ctx, w.hub, &lines, w.namespace())
		for line := range strings.Lines(lines.String()) {
			w.changed = w.changed || !strings.HasSuffix(line, " unchanged\n")
		}
		if err := errors.Join(printers.WriteEscaped(w.Out, lines.String()), err); err != nil {
			return err
		}
	}
	if err := w.markVersions(ctx); err != nil {
		return err
	}
	all, err := w.objects()
	if err != nil {
		return err
	}
	for _, next := range all {
		if err := w.writeObject(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// printMissing prints which OperatorVersions a push would create.
func (w *writer) printMissing(keys []client.ObjectKey) error {
	for _, key := range keys {
		did := "unchanged"
		for _, missing := range w.missing {
			if missing == key {
				did = "created"
			}
		}
		if err := w.report(text.ObjectName(kudo.GroupVersion.Group, "OperatorVersion", key.Name), did, ""); err != nil {
			return err
		}
	}
	return nil
}

// markVersions marks the OperatorVersions that this apply has created as those of the stack.
func (w *writer) markVersions(ctx context.Context) error {
	if w.dryRun {
		return nil
	}
	for _, key := range w.missing {
		version := &kudo.OperatorVersion{}
		version.Namespace, version.Name = key.Namespace, key.Name
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, kudo.LabelStack, w.stack)
		if err := w.hub.Patch(ctx, version, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("marking OperatorVersion %q: %w", key.Name, err)
		}
	}
	return nil
}

// writeObject applies an object and prints the result.
func (w *writer) writeObject(ctx context.Context, next written) error {
	name := objectName(next.object.GroupVersionKind().Group, next.object.GetKind(), next.object.GetName())
	on := ""
	if next.object.GetKind() == "ManagedClusterAddOn" {
		on = next.object.GetNamespace()
	}
	if next.remark != "" {
		return w.report(name, next.remark, on)
	}
	var c client.Client = w.hub
	var options []client.ApplyOption
	if w.dryRun {
		c, options = w.trial, append(options, client.DryRunAll)
	}
	applied, err := w.applyObject(ctx, c, next.object, options...)
	if err != nil {
		return err
	}
	changes, err := w.changes(ctx, next, applied)
	if err != nil {
		return err
	}
	did := "unchanged"
	switch {
	case next.before == "":
		did = "created"
	case changes:
		did = "configured"
	}
	return w.report(name, did, on)
}

// changes reports whether applying an object has changed it, or would change it: a dry run does not change the resource version.
func (w *writer) changes(ctx context.Context, next written, applied *unstructured.Unstructured) (bool, error) {
	if next.before == "" || !w.dryRun {
		return next.before != applied.GetResourceVersion(), nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(next.object.GroupVersionKind())
	if err := w.hub.Get(ctx, client.ObjectKeyFromObject(next.object), live); err != nil {
		return false, fmt.Errorf("reading %s %q: %w", next.object.GetKind(), next.object.GetName(), err)
	}
	return !equality.Semantic.DeepEqual(visible(live), visible(applied)), nil
}

// visible returns what a user sees of an object.
func visible(object *unstructured.Unstructured) map[string]any {
	compared := object.DeepCopy()
	compared.SetManagedFields(nil)
	compared.SetResourceVersion("")
	compared.SetGeneration(0)
	return compared.Object
}

// report prints what was done to an object.
func (w *writer) report(name, did, cluster string) error {
	w.changed = w.changed || !strings.HasPrefix(did, "unchanged")
	line := name + " " + did
	if cluster != "" {
		line += " on " + cluster
	}
	if w.dryRun {
		line += " (dry run)"
	}
	return printers.WriteEscaped(w.Out, line+"\n")
}

// summarize states that nothing was written, if that is so.
func (w *writer) summarize(pruned []stack.Pruned) error {
	if w.changed || len(pruned) > 0 {
		return nil
	}
	return printers.WriteEscaped(w.Out, fmt.Sprintf("stack %s is up to date: nothing was written\n", w.stack))
}
