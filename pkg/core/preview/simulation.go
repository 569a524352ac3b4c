package preview

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

// simulation holds the state of the Instance on its cluster while plans are simulated one after the other.
type simulation struct {
	change Change
	depth  int
	// instance identifies the Instance.
	instance *kudo.Instance
	// inventory is the agent's reported inventory, updated by the simulation, and contents the known contents of its objects.
	inventory []kudo.InventoryEntry
	contents  map[kudo.InventoryEntry]*unstructured.Unstructured
	// restarted are the objects whose pods a simulated plan has restarted.
	restarted map[kudo.InventoryEntry]bool
}

func newSimulation(c Change, depth int) *simulation {
	if c.work == nil {
		c.work = render.NewBudget()
	}
	s := &simulation{
		change: c, depth: depth, instance: cmp.Or(c.Before, c.After),
		contents:  map[kudo.InventoryEntry]*unstructured.Unstructured{},
		restarted: map[kudo.InventoryEntry]bool{},
	}
	if c.Before != nil {
		s.inventory = slices.DeleteFunc(slices.Clone(c.Before.Status.Inventory), func(e kudo.InventoryEntry) bool { return e.Pending })
	}
	return s
}

// versionOf returns the OperatorVersion of the execution.
func (s *simulation) versionOf(coming plan.Coming) *kudo.OperatorVersion {
	if coming.Cause == plan.RemovalRequested {
		return s.change.Started
	}
	return s.change.Version
}

// wants returns the objects of a task: those that it renders, or that store the files of its pod.
func (s *simulation) wants(version *kudo.OperatorVersionSpec, execution kudo.Execution, placed plan.Placed) ([]*unstructured.Unstructured, error) {
	name := render.InstanceName(s.instance.Name)
	c := render.Context{
		Version: version, OperatorVersion: version.Version,
		Instance: s.instance.Name, Namespace: s.instance.TargetNamespace(), Parameters: execution.Parameters,
		Sensitive: render.HiddenOf(execution.ParametersFrom), Registries: execution.ImageRegistries,
		Plan: placed.Plan, Phase: placed.Phase, Step: placed.Step, Pipes: pipe.Keys(version, name),
		Cluster:           cmp.Or(execution.Cluster, &kudo.ClusterFacts{Name: s.instance.Namespace}),
		KubernetesVersion: cmp.Or(execution.KubernetesVersion, facts.SampleVersion),
		Budget:            s.change.work,
	}
	if placed.Task.Kind == kudo.TaskPipe {
		_, err := render.NamedObject(c, placed.Task.Spec.Pod, pipe.PodName(name, placed.Task.Name))
		return pipe.Artifacts(name, placed.Task), err
	}
	return render.Objects(c, placed.Task.Spec.Resources...)
}

// place sets the namespaces of objects from the inventory: only the agent knows the scope of a kind.
func (s *simulation) place(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetNamespace() != "" || len(s.entriesOf([]*unstructured.Unstructured{o})) > 0 {
			continue
		}
		o.SetNamespace(s.instance.TargetNamespace())
		if len(s.entriesOf([]*unstructured.Unstructured{o})) == 0 {
			o.SetNamespace("")
		}
	}
}

// entriesOf returns the inventory entries of those objects.
func (s *simulation) entriesOf(objects []*unstructured.Unstructured) []kudo.InventoryEntry {
	var entries []kudo.InventoryEntry
	for _, o := range objects {
		if len(plan.UnlistedObjects(s.inventory, []*unstructured.Unstructured{o})) > 0 {
			continue
		}
		i := slices.IndexFunc(s.inventory, func(e kudo.InventoryEntry) bool { return plan.Identity(e) == plan.Entry(o, "") })
		entries = append(entries, s.inventory[i])
	}
	return entries
}

// apply applies an object; restarts is true if that restarts pods.
func (s *simulation) apply(t Task, want *unstructured.Unstructured, restarts bool) Object {
	entry := plan.Entry(want, t.Task.Name)
	o := Object{InventoryEntry: entry, After: withoutExecution(want)}
	there := s.entriesOf([]*unstructured.Unstructured{want})
	if len(there) > 0 {
		o.Before = s.lastApplied(there[0], t.Placed)
	}
	restarts = restarts && render.HasPods(want) && !s.restarted[plan.Identity(entry)]
	if restarts {
		s.restarted[plan.Identity(entry)] = true
	}
	s.inventory = plan.MarkApplied(plan.List(s.inventory, entry), entry, plan.Keeps(want))
	s.contents[plan.Identity(entry)] = o.After
	switch {
	case len(there) == 0:
		o.Effect = Created
	case t.Action == plan.Pipe:
		o.Effect = Renewed
	case plan.IsJob(want):
		o.Effect, o.Note = replacement(o)
	case o.Before == nil:
		o.Effect = Unknown
	default:
		o.Effect = difference(o.Before, o.After, restarts)
	}
	return o
}

// difference returns the effect on an object that was applied before.
func difference(before, after *unstructured.Unstructured, restarts bool) Effect {
	switch {
	case !equality.Semantic.DeepEqual(withoutVersion(before).Object, withoutVersion(after).Object):
		return Changed
	case restarts:
		return Restarted
	case !equality.Semantic.DeepEqual(before.Object, after.Object):
		return Annotated
	default:
		return Unchanged
	}
}

// replacement returns the effect on an object that is replaced where it would change, or has failed, which only the cluster knows.
func replacement(o Object) (Effect, string) {
	if o.Before != nil {
		if effect := difference(o.Before, o.After, false); effect != Changed {
			return effect, "replaced if it has failed"
		}
	}
	return Replaced, ""
}

// withoutVersion returns the object without the version of its package.
func withoutVersion(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	annotations := o.GetAnnotations()
	delete(annotations, kudo.AnnotationOperatorVersion)
	o.SetAnnotations(annotations)
	return o
}

// delete removes objects, also those that the package keeps: a task deletes what it names.
func (s *simulation) delete(entries []kudo.InventoryEntry) []Object {
	var objects []Object
	for _, entry := range entries {
		o := Object{InventoryEntry: entry, Effect: Removed, Note: plan.Taken(entry, s.change.Instances)}
		if !slices.ContainsFunc(objects, func(other Object) bool { return plan.Identity(other.InventoryEntry) == plan.Identity(entry) }) {
			objects = append(objects, o)
		}
	}
	s.inventory = plan.Forget(s.inventory, entries...)
	return objects
}

// remove removes objects, and releases those that the package keeps.
func (s *simulation) remove(entries []kudo.InventoryEntry) []Object {
	objects := s.delete(entries)
	for i := range objects {
		o := &objects[i]
		if !o.Keep {
			continue
		}
		note, stays := plan.KeptNote(o.InventoryEntry, entries)
		if o.Note = note; stays {
			o.Effect = Kept
		}
	}
	return objects
}

// removeAll removes the objects of the Instance, and with its StatefulSets their volume claims. Claims that it has applied itself are
// returned by claims.
func (s *simulation) removeAll() []Object {
	claims := map[kudo.InventoryEntry]string{}
	for _, entry := range s.inventory {
		if before := s.change.Before; plan.IsStatefulSet(entry) && before.Status.Execution != nil {
			claims[plan.Identity(entry)] = s.claimsNote(entry, before.Status.Execution.Plan)
		}
	}
	objects := slices.DeleteFunc(s.remove(s.inventory), func(o Object) bool { return isClaim(o.InventoryEntry) })
	for i, o := range objects {
		if o.Effect == Removed {
			objects[i].Note = cmp.Or(o.Note, claims[plan.Identity(o.InventoryEntry)])
		}
	}
	return objects
}

// claimsNote describes what happens to the volume claims of a StatefulSet. Those of charts stay unless the task says otherwise.
func (s *simulation) claimsNote(set kudo.InventoryEntry, last string) string {
	if s.change.Started != nil {
		for _, task := range s.change.Started.Spec.Tasks {
			switch {
			case task.Name != set.Task || task.Kind != kudo.TaskHelm:
			case task.Spec.Claims == kudo.DeleteClaims:
				return "with its volume claims and their data"
			default:
				return "its volume claims stay"
			}
		}
	}
	return plan.ClaimsNote(s.lastApplied(set, plan.Placed{Plan: last}))
}

// isClaim reports whether an entry is of a volume claim.
func isClaim(entry kudo.InventoryEntry) bool {
	return plan.IsClaim(schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
}

// prune removes objects that the version no longer renders. Namespaces may stay.
func (s *simulation) prune(entries []kudo.InventoryEntry) []Object {
	reasons, applied := map[kudo.InventoryEntry]string{}, plan.Forget(s.inventory, entries...)
	entries = slices.Clone(entries)
	for i, entry := range entries {
		if !plan.IsNamespace(entry) || entry.Keep {
			continue
		}
		namespace := s.lastApplied(entry, plan.Placed{})
		if namespace == nil {
			namespace = &unstructured.Unstructured{}
			namespace.SetName(entry.Name)
		}
		if reason := plan.NamespaceKeptReason(namespace, s.instance.TargetNamespace(), applied); reason != "" {
			entries[i].Keep, reasons[plan.Identity(entry)] = true, reason
		}
	}
	objects := s.remove(entries)
	for i, o := range objects {
		objects[i].Note = cmp.Or(reasons[plan.Identity(o.InventoryEntry)], o.Note)
	}
	return objects
}

// lastApplied returns the last applied content of an inventory object, if it can be determined: it renders the object's task as in the
// simulated plan, but with the OperatorVersion and the parameters that were last started. So only their changes differ.
func (s *simulation) lastApplied(entry kudo.InventoryEntry, at plan.Placed) *unstructured.Unstructured {
	if content, played := s.contents[plan.Identity(entry)]; played {
		return content
	}
	started := s.change.Started
	if started == nil || s.change.Before.Status.Execution == nil {
		return nil
	}
	i := slices.IndexFunc(started.Spec.Tasks, func(t kudo.Task) bool { return t.Name == entry.Task })
	if i < 0 {
		return nil
	}
	at.Task = started.Spec.Tasks[i]
	made, err := s.wants(&started.Spec, *s.change.Before.Status.Execution, at)
	if err != nil {
		return nil
	}
	s.place(made)
	for _, o := range made {
		s.contents[plan.Entry(o, "")] = withoutExecution(o)
	}
	return s.contents[plan.Identity(entry)]
}

// withoutExecution returns the object without fields that change with every execution, and without a namespace that was not written.
func withoutExecution(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	annotations := o.GetAnnotations()
	for _, name := range []string{kudo.AnnotationPlan, kudo.AnnotationPhase, kudo.AnnotationStep, kudo.AnnotationExecution} {
		delete(annotations, name)
	}
	o.SetAnnotations(annotations)
	return o
}
