package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// listPending lists the objects of tasks that have not started and could not be rendered completely when the execution started, such as objects
// of kinds that did not exist. The commit of this pass records every object before it is created. It reports whether it
// added entries. Errors of a task are reported when it runs.
func (p *pass) listPending(x *execution, tasks []plan.Task) bool {
	before := len(x.inventory.entries)
	for _, at := range tasks {
		placed, found := plan.Find(x.version, x.Plan, at)
		if !found {
			continue
		}
		rendered := x.task(placed)
		if rendered.err != nil || rendered.transient != nil || !rendered.action.Makes() {
			continue
		}
		wants, _, err := p.objects.placeAll(x.instance, rendered.objects)
		if err != nil {
			continue
		}
		if tracked := plan.Track(x.inventory.entries, placed.Task.Name, x.isAside(), wants); plan.CheckSize(tracked, x.Parameters) == nil {
			x.inventory.entries = tracked
		}
	}
	return len(x.inventory.entries) > before
}

// postpone delays a task until a commit has listed its objects, whose kind was unknown before.
func (x *execution) postpone(placed plan.Placed, wants []*unstructured.Unstructured) plan.Outcome {
	tracked := plan.Track(x.instance.Status.Inventory, placed.Task.Name, x.isAside(), wants)
	return outcome.OfUnlisted(tracked, x.Parameters, wants, func() ([]*unstructured.Unstructured, error) {
		again := x.renderTask(placed)
		return again.objects, again.err
	})
}

// prune deletes objects that their task no longer applies, and returns those that still exist. Objects that the version applies in another
// task are kept and move to that task. If a template that may contain an object cannot be rendered, nothing is deleted; if the kinds of APIs were unknown to
// charts, only what serves these.
func (p *pass) prune(ctx context.Context, x *execution, surplus []kudo.InventoryEntry) ([]plan.Object, error) {
	if len(surplus) == 0 {
		return nil, nil
	}
	x.inventory.deletes()
	applied, certain, err := p.versionEntries(x)
	if err != nil || !certain {
		return nil, err
	}
	if unknown := x.unknownVersions(); len(unknown) > 0 {
		surplus = plan.Serving(surplus, unknown)
	}
	inherited, surplus := plan.Inherit(surplus, applied)
	x.inventory.list(inherited...)
	namespaces, surplus := plan.SplitNamespaces(surplus)
	left, err := p.deleteListed(ctx, x, surplus, asSeen)
	if err != nil {
		return nil, err
	}
	for _, entry := range namespaces {
		going, err := p.pruneNamespace(ctx, x, entry, applied)
		if err != nil {
			return nil, err
		}
		left = append(left, going...)
	}
	return left, nil
}

// pruneNamespace deletes a Namespace that the version no longer renders, or releases it: then it stays, and belongs to no Instance.
func (p *pass) pruneNamespace(
	ctx context.Context, x *execution, entry kudo.InventoryEntry, applied []kudo.InventoryEntry,
) ([]plan.Object, error) {
	object, err := p.objects.readEntry(ctx, entry, asSeen)
	if err != nil {
		return nil, err
	}
	if !x.owner().HasApplied(object) || object.IsDeleted() {
		return p.deleteListed(ctx, x, []kudo.InventoryEntry{entry}, asSeen)
	}
	reason := plan.NamespaceKeptReason(object.Live, x.instance.Namespace, applied)
	if reason == "" {
		return p.deleteListed(ctx, x, []kudo.InventoryEntry{entry}, asSeen)
	}
	if _, err := p.release(ctx, x, object); err != nil {
		return nil, err
	}
	x.inventory.forget(entry)
	p.events.Eventf(x.instance, nil, corev1.EventTypeWarning, "NamespaceKept", "Prune",
		"Namespace %s is no longer part of the package and stays, because %s; delete it when it is no longer needed", entry.Name, reason)
	return nil, nil
}

// versionEntries lists all objects that the version applies with the effective parameters, for all tasks of its plans. It is certain if all
// templates could be rendered.
func (p *pass) versionEntries(x *execution) (entries []kudo.InventoryEntry, certain bool, err error) {
	for _, placed := range plan.Everywhere(x.version) {
		rendered := x.task(placed)
		if !rendered.action.Makes() {
			continue
		}
		if rendered.err != nil || rendered.transient != nil {
			return nil, false, nil
		}
		wants, _, err := p.objects.placeAll(x.instance, rendered.objects)
		if err != nil {
			return nil, false, err
		}
		entries = plan.Track(entries, placed.Task.Name, false, wants)
	}
	return entries, true, nil
}

// unknownVersions returns the API versions whose kinds were unknown to the charts of the version.
func (x *execution) unknownVersions() []string {
	var unknown []string
	for _, placed := range plan.Everywhere(x.version) {
		unknown = append(unknown, x.task(placed).release.Unknown...)
	}
	return unknown
}

// deleteListed deletes the objects of entries, and returns those that still exist. It releases objects that the package
// keeps. It removes entries of objects that are deleted, released, have another owner, or were not applied by the Instance.
func (p *pass) deleteListed(
	ctx context.Context, x *execution, entries []kudo.InventoryEntry, fresh freshness,
) (left []plan.Object, err error) {
	var kept []*unstructured.Unstructured
	defer func() { p.emitKept(x.instance, kept) }()
	for _, entry := range entries {
		object, released, err := p.deleteEntry(ctx, x, entry, fresh)
		if err != nil {
			return nil, err
		}
		if released {
			kept = append(kept, object.Want)
		}
		x.inventory.dismiss(entry)
		if !x.owner().HasApplied(object) {
			x.inventory.forget(entry)
			continue
		}
		left = append(left, object)
	}
	return left, nil
}

// deleteEntry deletes the object of an inventory entry if the Instance has applied it, and returns its new state. An
// object that the package keeps is released instead: then it does not belong to the Instance any more.
func (p *pass) deleteEntry(
	ctx context.Context, x *execution, entry kudo.InventoryEntry, fresh freshness,
) (object plan.Object, released bool, err error) {
	rendered := func() []*unstructured.Unstructured { return x.outlines().objects }
	err = retryUnserved(func() error {
		if object, err = p.objects.readEntry(ctx, entry, fresh); err != nil {
			return err
		}
		if !plan.IsKept(entry, object.Live, x.instance.Namespace, rendered) {
			object, err = p.deleteOwn(ctx, p.own, x.owner().HasApplied, object)
			return err
		}
		released, err = p.release(ctx, x, object)
		object.Live = nil
		return err
	})
	var unserved *unservedError
	if errors.As(err, &unserved) && x.instance.IsRemoving() && !entry.Keep && plan.DeletesDefinition(x.inventory.entries, unserved.definition) {
		return object, false, nil // with all objects of the kind, next
	}
	return object, released, err
}

// release removes the marks of the Instance from an object that it has applied, and that then stays. It reports whether there were any.
func (p *pass) release(ctx context.Context, x *execution, object plan.Object) (released bool, err error) {
	if object.IsDeleted() || !x.owner().HasApplied(object) {
		return false, nil
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		if object.Live, err = p.objects.read(ctx, object.Want, fromServer); err != nil { // the cache has no field managers
			return err
		}
		if released = x.owner().HasApplied(object); !released {
			return nil
		}
		return apply.Disown(ctx, p.own.client, object.Live, x.owner().ReleasedByValue(), fieldManager)
	})
	if err = p.objects.wrapUnserved(object.Want.GroupVersionKind(), err); err != nil && !isGone(err) {
		return false, fmt.Errorf("releasing %s: %w", plan.Describe(object.Want), p.conceal(object.Want, err))
	}
	return released && err == nil, nil
}

// maxKeptNames is the number of released objects that an event names.
const maxKeptNames = 10

// emitKept emits an event about released objects. It relates to the first of them: events about the same objects are counted as one.
func (e *engine) emitKept(instance *kudo.Instance, kept []*unstructured.Unstructured) {
	if len(kept) == 0 {
		return
	}
	names := make([]string, len(kept))
	for i, object := range kept {
		names[i] = plan.Describe(object)
	}
	e.events.Eventf(instance, kept[0], corev1.EventTypeNormal, "ObjectsKept", "Remove",
		"the package keeps objects, which no longer belong to the Instance: %s",
		text.Prefix(strings.Join(text.Limit(names, maxKeptNames, "more"), ", "), maxNoteBytes))
}
