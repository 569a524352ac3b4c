package preview

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// objects returns the objects of all tasks, including those of children.
func (p Preview) objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, t := range p.tasks() {
			for _, o := range t.Objects {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// tasks returns all tasks, including those of children.
func (p Preview) tasks() []Task {
	var tasks []Task
	for _, coming := range p.Plans {
		for _, t := range coming.Tasks {
			tasks = append(tasks, t)
			if t.Child != nil && t.Child.Preview != nil {
				tasks = append(tasks, t.Child.Preview.tasks()...)
			}
		}
	}
	return tasks
}

// Waits returns why plans of the Instance, and of its children, wait for another version of Kubernetes.
func (p Preview) Waits() []string {
	var waits []string
	if p.Unsupported != "" {
		waits = append(waits, p.Unsupported)
	}
	for _, t := range p.tasks() {
		if t.Child != nil && t.Child.Preview != nil && t.Child.Preview.Unsupported != "" {
			waits = append(waits, fmt.Sprintf("Instance %q: %s", t.Child.Instance, t.Child.Preview.Unsupported))
		}
	}
	return waits
}

// unknownKinds returns the kinds of objects to create of which only the cluster knows whether it has them: they are neither Kubernetes' own nor
// defined by an object of the change, and no Instance of the cluster has objects of them.
func (c Change) unknownKinds(p Preview) []schema.GroupKind {
	existing := map[schema.GroupKind]bool{}
	for _, i := range c.instances() {
		for _, e := range i.Status.Inventory {
			existing[schema.GroupKind{Group: e.Group, Kind: e.Kind}] = !e.Pending
		}
	}
	for o := range p.objects() {
		if o.After != nil {
			if kind, defines := rights.DefinedKind(o.After); defines {
				existing[kind] = true
			}
		}
	}
	var kinds []schema.GroupKind
	for o := range p.objects() {
		if o.After == nil {
			continue
		}
		kind := o.After.GroupVersionKind().GroupKind()
		known, _ := rights.IsBuiltIn(kind)
		if !known && !existing[kind] && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// instances returns the Instances of the cluster that are known, among them the changed one.
func (c Change) instances() []kudo.Instance {
	if c.Before == nil {
		return c.Instances
	}
	return append([]kudo.Instance{*c.Before}, c.Instances...)
}

// reservedProblem returns why the agent would not start a plan: a task applies an object in a reserved namespace. Where Instances of the cluster have
// objects, and in the install namespace, which the hub admits, the agent may allow that.
func (s *simulation) reservedProblem(tasks []Task) string {
	policy := rights.Policy{Reserved: rights.ReservedExcept(s.usedNamespaces())}
	for _, t := range tasks {
		for _, o := range t.Objects {
			known, namespaced := rights.IsBuiltIn(schema.GroupKind{Group: o.Group, Kind: o.Kind})
			if problem := policy.Protects(o.Namespace); problem != nil && o.After != nil && (namespaced || !known) {
				return fmt.Sprintf("%s: %v", o.InventoryEntry, problem)
			}
		}
	}
	return ""
}

// usedNamespaces returns the namespaces to which the agent applies objects now, and the install namespace.
func (s *simulation) usedNamespaces() []string {
	namespaces := []string{s.instance.TargetNamespace()}
	for _, i := range s.change.instances() {
		for _, e := range i.Status.Inventory {
			if !e.Pending {
				namespaces = append(namespaces, e.Namespace)
			}
		}
	}
	return namespaces
}
