package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// releaseAddOns removes the fields written by addon-manager from every add-on. An add-on that changes meanwhile is retried in the next
// pass.
func (u *uninstallation) releaseAddOns(ctx context.Context) error {
	if err := u.findInstances(ctx); err != nil {
		return err
	}
	for range releasePasses {
		left, err := u.pass(ctx)
		if err != nil || !left {
			return err
		}
	}
	return errors.New("add-ons change faster than they can be released: stop the clients that write them, in particular every addon-manager")
}

// pass releases all add-ons once. It reports whether there was anything to release.
func (u *uninstallation) pass(ctx context.Context) (bool, error) {
	var seen, released int
	for page, err := range u.pages(ctx) {
		if apierrors.IsResourceExpired(err) { // the next pass reads the rest
			return true, nil
		}
		if err != nil {
			return false, err
		}
		n, err := u.releaseEach(ctx, page)
		if err != nil {
			return false, err
		}
		if seen, released = seen+len(page), released+n; n > 0 {
			u.print("released %d of the first %d add-ons", released, seen)
		}
	}
	return released > 0, nil
}

// releaseEach counts the add-ons with fields that were, or still are to be, released.
func (u *uninstallation) releaseEach(ctx context.Context, addOns []addonv1alpha1.ManagedClusterAddOn) (int, error) {
	var released atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(u.concurrency)
	for i := range addOns {
		group.Go(func() error {
			dirty, err := u.release(ctx, &addOns[i])
			if dirty {
				released.Add(1)
			}
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	err := group.Wait()
	return int(released.Load()), err
}

// release removes the fields written by addon-manager from one add-on, and reports whether there were any.
func (u *uninstallation) release(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	r := newRemoval(addOn, u.owners.Has(addOn.UID), u.versions["ManagedClusterAddOn"])
	return !r.isEmpty(), u.execute(ctx, addOn, r)
}

// execute removes managed fields first: with those of a removed version, the API server may reject all other writes.
func (u *uninstallation) execute(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, r removal) error {
	if len(r.managers) > 0 {
		if err := apply.Patch(ctx, u.client, addOn, r.managers); err != nil {
			return fmt.Errorf("removing managed fields of ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
		}
	}
	if len(r.status) > 0 {
		if err := apply.PatchStatus(ctx, u.client, addOn, r.status); err != nil {
			return fmt.Errorf("releasing ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
		}
	}
	if len(r.finalizers) > 0 {
		if err := apply.Patch(ctx, u.client, addOn, r.finalizers); err != nil {
			return fmt.Errorf("removing finalizers of ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
		}
	}
	return nil
}

// removal is what is removed from one add-on.
type removal struct{ managers, status, finalizers []apply.Operation }

// newRemoval returns what is removed from an add-on. An add-on with an Instance that runs keeps the fields that belong to the Instance: its
// agent continues to use them. versions are the API versions that remain.
func newRemoval(addOn *addonv1alpha1.ManagedClusterAddOn, runs bool, versions sets.Set[string]) removal {
	return removal{
		managers: managerOperations(addOn, versions), status: releaseOperations(addOn, runs), finalizers: finalizerOperations(addOn, runs),
	}
}

func (r removal) isEmpty() bool { return len(r.managers)+len(r.status)+len(r.finalizers) == 0 }

// finalizerOperations returns operations that remove addon-manager's finalizers.
func finalizerOperations(addOn *addonv1alpha1.ManagedClusterAddOn, runs bool) []apply.Operation {
	var operations []apply.Operation
	for i, finalizer := range slices.Backward(addOn.Finalizers) {
		if finalizer == addonv1alpha1.FinalizerAgent || finalizer == kudo.Finalizer && !runs {
			path := fmt.Sprintf("/metadata/finalizers/%d", i)
			operations = append(operations, apply.Operation{Op: "test", Path: path, Value: finalizer}, apply.Operation{Op: "remove", Path: path})
		}
	}
	return operations
}

// managerOperations returns operations that remove the managed fields of versions that the definition no longer has. The API server cannot
// convert to these versions, and rejects every later server-side apply. Up to Kubernetes 1.36, it removed all managed fields in the next update.
func managerOperations(object client.Object, versions sets.Set[string]) []apply.Operation {
	var operations []apply.Operation
	for i, entry := range slices.Backward(object.GetManagedFields()) {
		if len(versions) > 0 && !versions.Has(entry.APIVersion) {
			path := fmt.Sprintf("/metadata/managedFields/%d", i)
			operations = append(operations,
				apply.Operation{Op: "test", Path: path + "/apiVersion", Value: entry.APIVersion},
				apply.Operation{Op: "remove", Path: path})
		}
	}
	return operations
}

// releaseOperations returns operations that remove addon-manager's fields from an add-on's status, and Available if it only repeats them:
// its writer then reports the add-on's own health.
func releaseOperations(addOn *addonv1alpha1.ManagedClusterAddOn, runs bool) []apply.Operation {
	var operations []apply.Operation
	current := addOn.Status.Conditions
	for _, condition := range slices.Backward(current) { // so that indices stay valid while items are removed
		if isWritten(condition, runs) {
			operations = append(operations, apply.Release(current, condition.Type, condition.Reason)...)
		}
	}
	if !runs && meta.FindStatusCondition(current, addonv1alpha1.ConditionResolved) != nil {
		operations = append(operations, apply.ReleaseHealthCheck(addOn)...)
	}
	return operations
}

func isWritten(condition metav1.Condition, runs bool) bool {
	switch condition.Type {
	case addonv1alpha1.ConditionDegraded:
		return isVerdict(condition)
	case addonv1alpha1.ConditionAvailable:
		return condition.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied ||
			condition.Reason == addonv1alpha1.ReasonNotInstalled && !runs
	case addonv1alpha1.ConditionResolved:
		return !runs
	case addonv1alpha1.ConditionManifestApplied:
		return !runs && slices.Contains(addonv1alpha1.RolloutReasons(), condition.Reason)
	case addonv1alpha1.ConditionAddOnsRemaining:
		return true
	default:
		return false
	}
}

// findInstances finds the running Instances. A hub without the resource definition has none.
func (u *uninstallation) findInstances(ctx context.Context) error {
	options := &client.ListOptions{Limit: releasePage}
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kudo.GroupVersion.WithKind("InstanceList"))
		if err := u.client.List(ctx, page, options); meta.IsNoMatchError(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("listing Instances: %w", err)
		}
		for i := range page.Items {
			u.addInstance(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// addInstance adds an Instance, unless it is a mirror: an agent on a cluster that is also the hub has these.
func (u *uninstallation) addInstance(instance metav1.Object) {
	if kudo.IsMirror(instance) {
		return
	}
	u.instances = append(u.instances, instance.GetNamespace()+"/"+instance.GetName())
	if owner := metav1.GetControllerOf(instance); owner != nil {
		u.owners.Insert(owner.UID)
	}
}
