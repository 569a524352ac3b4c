package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Uninstall takes what Tandem enforces and what it has judged off a hub, so that nothing waits for, or stays False because of, an
// addon-manager that is gone. It says on out what it does, and may be repeated, also after an interruption. What runs stays:
// Instances, and the add-ons that have one, are left as they are.
//
// It refuses while an addon-manager runs, which would write everything again, and then leaves everything as it is.
func Uninstall(ctx context.Context, cfg *rest.Config, options Options, out io.Writer) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	u := &uninstallation{client: c, out: out, concurrency: max(1, options.Concurrency), now: time.Now}
	if err := u.refuseWhileLed(ctx, options.leaseKey()); err != nil {
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

type uninstallation struct {
	client      client.Client
	out         io.Writer
	concurrency int
	now         func() time.Time

	// instances are the Instances that there are, and owners the uids of what owns one of them.
	instances []string
	owners    sets.Set[types.UID]
}

// say tells the user of progress. Nothing depends on whether it is heard.
func (u *uninstallation) say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(u.out, format+"\n", arguments...)
}

// removeAdmission deletes bindings, policies and webhooks, bindings first: a policy without one is inert.
func (u *uninstallation) removeAdmission(ctx context.Context) error {
	objects, err := admissionObjects()
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

// definitions are Tandem's resource definitions.
func (u *uninstallation) definitions(ctx context.Context) ([]apiextensions.CustomResourceDefinition, error) {
	var definitions apiextensions.CustomResourceDefinitionList
	if err := u.client.List(ctx, &definitions, client.MatchingLabels{labelPartOf: partOfTandem}); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	return definitions.Items, nil
}

// withoutConversion removes the versions that only a webhook can convert; nothing where no webhook does. Not to serve them would not
// do: with conversion None, the fields that somebody manages through such a version break every later apply.
func withoutConversion(definition *apiextensions.CustomResourceDefinition) []apply.Operation {
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensions.WebhookConverter {
		return nil
	}
	none := apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter}
	operations := []apply.Operation{{Op: "replace", Path: "/spec/conversion", Value: none}}
	for i, version := range slices.Backward(definition.Spec.Versions) {
		if path := fmt.Sprintf("/spec/versions/%d", i); !version.Storage {
			operations = append(operations,
				apply.Operation{Op: "test", Path: path + "/name", Value: version.Name},
				apply.Operation{Op: "remove", Path: path})
		}
	}
	return operations
}

// The add-ons are read in pages of this size, small enough that what is read is not old when its turn comes, and over again until
// nothing is left to release.
const (
	releasePage   = 100
	releasePasses = 5
)

// releaseAddOns takes off every add-on what addon-manager has written. An add-on that changes meanwhile has its turn in the next
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
	return errors.New("add-ons change faster than they can be released: stop whoever writes them, above all any addon-manager")
}

// pass releases all add-ons once. It says whether there was anything to release.
func (u *uninstallation) pass(ctx context.Context) (bool, error) {
	var seen, released int
	for page, err := range u.pages(ctx) {
		if apierrors.IsResourceExpired(err) { // the rest is for the next pass
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
			u.say("released %d of the first %d add-ons", released, seen)
		}
	}
	return released > 0, nil
}

// pages are all add-ons, page by page. A hub without the resource definition has none.
func (u *uninstallation) pages(ctx context.Context) iter.Seq2[[]addonv1alpha1.ManagedClusterAddOn, error] {
	return func(yield func([]addonv1alpha1.ManagedClusterAddOn, error) bool) {
		options := &client.ListOptions{Limit: releasePage}
		for {
			var page addonv1alpha1.ManagedClusterAddOnList
			err := u.client.List(ctx, &page, options)
			if meta.IsNoMatchError(err) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("listing ManagedClusterAddOns: %w", err))
				return
			}
			if options.Continue = page.Continue; !yield(page.Items, nil) || page.Continue == "" {
				return
			}
		}
	}
}

// releaseEach counts the add-ons of which something was, or is still, to be released.
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

// release takes off one add-on what addon-manager has written, and says whether there was anything. An add-on whose Instance stands
// keeps what belongs to that: its agent goes on by it.
func (u *uninstallation) release(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	runs := u.owners.Has(addOn.UID)
	operations := written(addOn, runs)
	dirty := len(operations) > 0
	if dirty {
		if err := apply.PatchStatus(ctx, u.client, addOn, operations); err != nil {
			return dirty, fmt.Errorf("releasing ManagedClusterAddOn %s: %w", client.ObjectKeyFromObject(addOn), err)
		}
	}
	finalizers := []string{addonv1alpha1.FinalizerAgent}
	if !runs {
		finalizers = append(finalizers, kudo.Finalizer)
	}
	for _, finalizer := range finalizers {
		if !controllerutil.ContainsFinalizer(addOn, finalizer) {
			continue
		}
		if err := release(ctx, u.client, addOn, finalizer); err != nil {
			return true, err
		}
		dirty = true
	}
	return dirty, nil
}

// written removes from an add-on's status what addon-manager has written, and Available where it says nothing else: whoever writes it
// then says what the add-on's own health is.
func written(addOn *addonv1alpha1.ManagedClusterAddOn, runs bool) []apply.Operation {
	var operations []apply.Operation
	current := addOn.Status.Conditions
	for _, condition := range slices.Backward(current) { // so that each stands where it stood when its turn comes
		if isWritten(condition, runs) {
			operations = append(operations, apply.Release(current, condition.Type, condition.Reason)...)
		}
	}
	if !runs && meta.FindStatusCondition(current, addonv1alpha1.ConditionResolved) != nil {
		operations = append(operations, uncustomized(addOn)...)
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
		return !runs && (condition.Reason == addonv1alpha1.ReasonPlanComplete || condition.Reason == addonv1alpha1.ReasonPlanNotComplete)
	case addonv1alpha1.ConditionAddOnsRemaining:
		return true
	default:
		return false
	}
}

// isVerdict says whether a condition is addon-manager's verdict over dependencies.
func isVerdict(condition metav1.Condition) bool {
	return condition.Type == addonv1alpha1.ConditionDegraded &&
		(condition.Reason == addonv1alpha1.ReasonDependencyNotSatisfied || condition.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
}

// findInstances finds out what runs. A hub without the resource definition has nothing that does.
func (u *uninstallation) findInstances(ctx context.Context) error {
	u.owners = sets.New[types.UID]()
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
			instance := &page.Items[i]
			if kudo.IsMirror(instance) {
				continue
			}
			u.instances = append(u.instances, client.ObjectKeyFromObject(instance).String())
			if owner := metav1.GetControllerOf(instance); owner != nil {
				u.owners.Insert(owner.UID)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
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
