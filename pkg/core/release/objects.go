package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/image"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// MaxName limits the name of a release, as Helm does: charts append to it.
const MaxName = 53

// All returns all objects: definitions, hooks and manifests.
func (r Rendering) All() []*unstructured.Unstructured {
	all := Unwrap(r.Definitions)
	for _, hook := range r.Hooks {
		all = append(all, hook.Object.Object)
	}
	return append(all, Unwrap(r.Objects)...)
}

// WithMirrors returns the rendering with the registries of images in hooks and objects replaced by their mirrors.
func (r Rendering) WithMirrors(registries []kudo.ImageRegistry) (Rendering, error) {
	if len(registries) == 0 {
		return r, nil
	}
	mirrored, images := r.DeepCopy(), image.NewOverride(registries)
	for _, o := range mirrored.All() {
		if err := images.Apply(o); err != nil {
			return Rendering{}, fmt.Errorf("%s: %w", plan.Describe(o), err)
		}
	}
	return mirrored, nil
}

// Unwrap returns objects without their sources.
func Unwrap(objects []Object) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = o.Object
	}
	return all
}

// Batches splits objects into those that are applied in parallel, as Helm does: the neighbors of one kind.
func Batches(objects []*unstructured.Unstructured) (batches [][]*unstructured.Unstructured) {
	for from, to := 0, 0; from < len(objects); from = to {
		for to = from + 1; to < len(objects) && objects[to].GroupVersionKind() == objects[from].GroupVersionKind(); {
			to++
		}
		batches = append(batches, objects[from:to])
	}
	return batches
}

// ForTask returns what a Helm task applies of a rendering, with marks: no definitions if it skips them, and no hooks of events that do not happen
// to it, such as tests. mark returns an object with the marks of an Instance. An object that is rendered twice is an error.
func (r Rendering) ForTask(
	task kudo.HelmTaskSpec, mark func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (Rendering, error) {
	marked := Rendering{Warnings: r.Warnings, Unknown: r.Unknown}
	with := func(o Object, annotation, value string) (Object, error) {
		object, err := mark(o.Object)
		if err != nil {
			return o, fmt.Errorf("%s: %w", o.Source, err)
		}
		if annotation != "" {
			annotate(object, annotation, value)
		}
		return Object{Source: o.Source, Object: object}, nil
	}
	for _, o := range r.Definitions {
		if task.CRDs == kudo.SkipCRDs {
			break
		}
		object, err := with(o, kudo.AnnotationKeep, "true")
		if err != nil {
			return Rendering{}, err
		}
		marked.Definitions = append(marked.Definitions, object)
	}
	for _, hook := range r.Hooks {
		if hook.Events = slices.DeleteFunc(slices.Clone(hook.Events), isForeign); len(hook.Events) == 0 {
			continue
		}
		object, err := with(hook.Object, kudo.AnnotationHook, string(hook.Events[0]))
		if err != nil {
			return Rendering{}, err
		}
		hook.Object = keepDefinition(object)
		marked.Hooks = append(marked.Hooks, hook)
	}
	for _, o := range r.Objects {
		object, err := with(o, "", "")
		if err != nil {
			return Rendering{}, err
		}
		marked.Objects = append(marked.Objects, object)
	}
	return marked, cmp.Or(marked.checkUnique(), marked.checkHooks())
}

// isForeign reports whether an event does not happen to a Helm task.
func isForeign(event Event) bool {
	return !slices.Contains([]Event{PreInstall, PostInstall, PreUpgrade, PostUpgrade, PreDelete, PostDelete}, event)
}

func annotate(o *unstructured.Unstructured, name, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}

// keepDefinition marks a definition as one to keep: its removal would delete all objects of its kind.
func keepDefinition(o Object) Object {
	if o.Object.GetKind() == definition {
		annotate(o.Object, kudo.AnnotationKeep, "true")
	}
	return o
}

// maxHooks limits the hooks of a chart, each as often as it has events: an Instance records their states.
const maxHooks = 512

// checkHooks returns an error if there are too many hooks.
func (r Rendering) checkHooks() error {
	count := 0
	for _, hook := range r.Hooks {
		count += len(hook.Events)
	}
	if count > maxHooks {
		return fmt.Errorf("the chart has %d hooks, more than %d", count, maxHooks)
	}
	return nil
}

// checkUnique returns an error if an object is rendered twice. Hooks of different events may be the same object, one after the other.
func (r Rendering) checkUnique() error {
	manifests, hooks := map[string]string{}, map[string]string{}
	for _, o := range slices.Concat(r.Definitions, r.Objects) {
		if other, twice := manifests[identify(o)]; twice {
			return twiceError(o, other)
		}
		manifests[identify(o)] = o.Source
	}
	for _, hook := range r.Hooks {
		if other, twice := manifests[identify(hook.Object)]; twice {
			return twiceError(hook.Object, other)
		}
		for _, event := range hook.Events {
			key := string(event) + " " + identify(hook.Object)
			if other, twice := hooks[key]; twice {
				return twiceError(hook.Object, other)
			}
			hooks[key] = hook.Source
		}
	}
	return nil
}

// identify returns the kind, in any version, and the name of an object.
func identify(o Object) string {
	return o.Object.GroupVersionKind().GroupKind().String() + " " + plan.Describe(o.Object)
}

func twiceError(o Object, other string) error {
	return fmt.Errorf("%s: %s is also rendered by %s: the chart has to name them differently", o.Source, plan.Describe(o.Object), other)
}

// Serves returns the API versions and kinds that the definitions of a rendering add to a cluster, as charts read them: such as example.com/v1 and
// example.com/v1/Thing.
func (r Rendering) Serves() []string {
	var served []string
	for _, o := range r.Definitions {
		group, _, _ := unstructured.NestedString(o.Object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object.Object, "spec", "names", "kind")
		for _, version := range versionsOf(o.Object) {
			if version.served {
				gv := schema.GroupVersion{Group: group, Version: version.name}.String()
				served = append(served, gv, gv+"/"+kind)
			}
		}
	}
	return served
}

// version is a version of a definition.
type version struct {
	name   string
	served bool
}

func versionsOf(definition *unstructured.Unstructured) []version {
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var found []version
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		served, _ := fields["served"].(bool)
		found = append(found, version{name: name, served: served})
	}
	return found
}

// CheckDefinition returns an error if a definition lacks a version in which objects are stored: the API server would refuse it, or could not read
// them.
func CheckDefinition(want, live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	has := func(name string) bool {
		return slices.ContainsFunc(versionsOf(want), func(v version) bool { return v.name == name })
	}
	if missing := slices.DeleteFunc(stored, has); len(missing) > 0 {
		return fmt.Errorf("%s: the chart drops version %s, in which objects are stored: migrate them, remove the version from status.storedVersions, "+
			"and request the plan again", plan.Describe(want), strings.Join(missing, ", "))
	}
	return nil
}

// CheckServed returns an error if a definition of another owner, which stays as it is, does not serve a version that the chart's definition serves.
func CheckServed(want, live *unstructured.Unstructured) error {
	for _, v := range versionsOf(want) {
		serves := slices.ContainsFunc(versionsOf(live), func(l version) bool { return l == v })
		if v.served && !serves {
			return fmt.Errorf("%s: belongs to another owner, and lacks version %s, which the chart defines: update it with its owner; if there is none "+
				"any more, annotate it with %s=NAMESPACE/NAME of this Instance, which maintains it then; or set crds: Skip in the task",
				plan.Describe(want), v.name, kudo.AnnotationReleasedBy)
		}
	}
	return nil
}

// Of returns the hooks of an event alone.
func (r Rendering) Of(event Event) Rendering {
	return Rendering{Hooks: slices.DeleteFunc(slices.Clone(r.Hooks), func(h Hook) bool { return !slices.Contains(h.Events, event) })}
}

// RemovalOf returns the record of a task at the start of an execution that removes its objects. Hooks of a removal that was tried before do not run
// again if they have succeeded.
func RemovalOf(record kudo.TaskRecord, execution types.UID) kudo.TaskRecord {
	record.HooksOf = execution
	record.Hooks = slices.DeleteFunc(slices.Clone(record.Hooks), func(r kudo.HookRecord) bool {
		return r.State != kudo.HookSucceeded || r.Event != string(PreDelete) && r.Event != string(PostDelete)
	})
	return record
}

// HasFailed reports whether a hook has failed.
func HasFailed(record kudo.TaskRecord) bool {
	return slices.ContainsFunc(record.Hooks, func(r kudo.HookRecord) bool { return r.State == kudo.HookFailed })
}

// EndedHooks returns the hooks that have succeeded or failed between two records of a task.
func EndedHooks(before, after kudo.TaskRecord) []kudo.HookRecord {
	return slices.DeleteFunc(slices.Clone(after.Hooks), func(hook kudo.HookRecord) bool {
		return hook.State == kudo.HookRunning || slices.ContainsFunc(before.Hooks, func(r kudo.HookRecord) bool {
			return r.Event == hook.Event && r.Kind == hook.Kind && r.Namespace == hook.Namespace && r.Name == hook.Name && r.State == hook.State
		})
	})
}
