package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/faults/proxy"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// kind is a kind of objects to compare.
type kind = schema.GroupVersionKind

// state is the normalised content of all objects of a run, by API server, kind and name.
type state map[string]string

// clients returns the administrator's clients by API server.
func (w *world) clients() map[string]client.WithWatch {
	return map[string]client.WithWatch{"hub": w.hub, "cluster": w.managed}
}

// versionOf returns the current resource version of an API server.
func versionOf(ctx context.Context, c client.Client) (string, error) {
	list := &corev1.ConfigMapList{}
	err := c.List(ctx, list, client.InNamespace("default"), client.Limit(1))
	return list.ResourceVersion, err
}

// state reads the objects of the run.
func (r *run) state(ctx context.Context) (state, error) {
	found := state{}
	for server, kinds := range map[string][]kind{"hub": r.scenario.onHub, "cluster": r.scenario.onCluster} {
		for _, k := range kinds {
			if err := r.add(ctx, found, server, k); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range r.programs {
		gauges, err := p.gauges(ctx, r.name)
		if err != nil {
			return nil, err
		}
		found["metrics of "+p.name] = Normal(gauges, r.name)
	}
	return found, nil
}

// add adds the objects of a kind that belong to the run.
func (r *run) add(ctx context.Context, found state, server string, k kind) error {
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	err := r.clients()[server].List(ctx, objects)
	if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && err != nil {
		return nil // its definition has been removed
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", k.Kind, err)
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		if !r.scenario.owns(o, r.name) {
			continue
		}
		text, err := content(o)
		if err != nil {
			return err
		}
		key := fmt.Sprintf("%s: %s %s/%s", server, k.Kind, o.GetNamespace(), o.GetName())
		found[Normal(key, r.name)] = Normal(text, r.name)
	}
	return nil
}

// owns reports whether an object belongs to the scenario's run of that name. Definitions have the same names in all runs: those of other scenarios'
// kinds, which a chart leaves in a world, do not belong to it.
func (s scenario) owns(o *unstructured.Unstructured, name string) bool {
	if o.GetKind() != "CustomResourceDefinition" {
		return ofRun(o, name)
	}
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	defined, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
	return slices.ContainsFunc(s.onCluster, func(k kind) bool { return k.Group == group && k.Kind == defined })
}

// ofRun reports whether an object belongs to the run of that name. Marks of rollouts are named like their add-on, with a prefix.
func ofRun(o *unstructured.Unstructured, name string) bool {
	return o.GetNamespace() == name || strings.HasPrefix(strings.TrimPrefix(o.GetName(), "addon-"), name)
}

// content returns an object without what differs between two runs.
func content(o *unstructured.Unstructured) (string, error) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	for _, field := range []string{"reset", "unhealthySeconds"} { // a fault may have made the Instance unhealthy for a while
		unstructured.RemoveNestedField(o.Object, "status", "soak", field)
	}
	for _, field := range []string{"changedBy", "requestedBy"} { // they have times, and digests of these
		unstructured.RemoveNestedField(o.Object, "spec", field)
	}
	if kudo.IsMirror(o) { // maintenance windows reach it before the rest of a change, or with it
		unstructured.RemoveNestedField(o.Object, "metadata", "generation")
	}
	if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "ManifestWork" {
		unstructured.RemoveNestedField(o.Object, "status")
	}
	if o.GetNamespace() == packages { // a chart that is named like the run
		if err := editList(o, without("size"), "spec", "content"); err != nil {
			return "", err
		}
	}
	err := errors.Join(
		editList(o, without("conditions"), "status", "installProgressions"),                             // their counts of clusters are as old as the last event that made OCM count
		editList(o, without("fields"), "status", "inventory"),                                           // it is missing if the agent was interrupted before it was recorded
		editList(o, sortByRank, "status", "inventory"), editList(o, sortByRank, "status", "conditions"), // in the order in which they were added
	)
	if err != nil {
		return "", err
	}
	plans, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "planStatus")
	removeDigests(plans)
	text, err := json.MarshalIndent(o.Object, "", " ")
	return string(text), err
}

// editList changes the items of a list in an object, if it has that list.
func editList(o *unstructured.Unstructured, edit func([]any), path ...string) error {
	items, found, _ := unstructured.NestedSlice(o.Object, path...)
	if !found {
		return nil
	}
	edit(items)
	return unstructured.SetNestedSlice(o.Object, items, path...)
}

// without returns a function that removes a field of items.
func without(field string) func([]any) {
	return func(items []any) {
		for _, item := range items {
			delete(item.(map[string]any), field)
		}
	}
}

func sortByRank(items []any) {
	slices.SortFunc(items, func(a, b any) int { return strings.Compare(rank(a), rank(b)) })
}

// removeDigests removes the digests of what tasks have rendered, which are of names that differ between two runs.
func removeDigests(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "rendered")
		for _, field := range v {
			removeDigests(field)
		}
	case []any:
		for _, item := range v {
			removeDigests(item)
		}
	}
}

// rank returns a text by which conditions and entries of an inventory can be sorted.
func rank(item any) string {
	fields, _ := item.(map[string]any)
	return fmt.Sprint(fields["type"], fields["group"], fields["kind"], fields["name"])
}

// violations returns the writes of a step after it was recorded as complete, the versions that have run together although one excludes the other, the removals
// before those of dependents, and the fields that do not belong to their writer.
func (r *run) violations(ctx context.Context) ([]string, error) {
	entries, err := r.entries()
	if err != nil {
		return nil, err
	}
	steps, err := audit.StepsIn(entries, r.owner)
	if err != nil {
		return nil, err
	}
	excluded, err := r.exclusions(ctx, entries)
	if err != nil {
		return nil, err
	}
	foreign, err := invariants.Violations(ctx, r.hub)
	return slices.Concat(steps.Late(), excluded, r.earlyRemovals(entries), foreign), err
}

// entries returns the writes of the agent to its own cluster as entries of an audit log, in the order of their requests.
func (r *run) entries() ([]audit.Entry, error) {
	var entries []audit.Entry
	for _, written := range r.local {
		entry, err := entryOf(written)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b audit.Entry) int { return a.RequestTime().Compare(b.RequestTime()) })
	return entries, nil
}

// owner returns the Instance and the step of an object. The object's name consists of the Instance's name with dashes, the step, and, after
// a dot or a dash, what distinguishes objects of a step.
func (r *run) owner(object types.NamespacedName) (types.NamespacedName, string) {
	instance, step := "", ""
	for _, written := range r.local {
		rest, found := strings.CutPrefix(object.Name, strings.ReplaceAll(written.Name, ".", "-")+"-")
		if found && written.Resource == "instances" && len(written.Name) > len(instance) {
			instance, step = written.Name, rest[:strings.IndexAny(rest+".", ".-")]
		}
	}
	return types.NamespacedName{Namespace: r.name, Name: instance}, step
}

// entryOf returns a write as an entry of an audit log.
func entryOf(written *proxy.Write) (audit.Entry, error) {
	var e audit.Entry
	e.Verb, e.ResponseStatus.Code = written.Verb, written.Code
	if !written.IsSuccess() {
		e.ResponseStatus.Code = max(written.Code, 500)
	}
	e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource = written.Group, written.Resource, written.Subresource
	e.ObjectRef.Namespace, e.ObjectRef.Name = written.Namespace, written.Name
	e.RequestReceivedTimestamp, e.StageTimestamp = metav1.NewMicroTime(written.Received), metav1.NewMicroTime(written.Answered)
	body := written.Body
	if body == nil {
		body = map[string]any{}
	}
	var err error
	e.RequestObject, err = json.Marshal(body)
	return e, err
}
