package notice

import (
	"cmp"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// Suspension is a suspension of one or many Instances.
type Suspension struct {
	// Origin is the object on the hub that suspends many Instances; of a single Instance that its own spec suspends, it is empty.
	Origin suspension.Origin
	// Cluster and Instance are set for a single Instance.
	Cluster, Instance string
	// Instances is the number of Instances that it suspends, as far as they are known. It can be 0: what is installed later is suspended, too.
	Instances int
	// Unread is true if the object was not read: Instances name it, and any writer of theirs may have invented it.
	Unread bool
	// Command ends it.
	Command string
}

// Overview collects what is suspended on the hub.
type Overview struct {
	// Read has the kinds of origins whose objects were read: other writers may have named objects in Instances that suspend nothing.
	Read    map[suspension.Kind]bool
	origins map[string]Suspension
	single  []Suspension
}

// AddOrigin adds an object that suspends many Instances.
func (o *Overview) AddOrigin(origin suspension.Origin) {
	if o.origins == nil {
		o.origins = map[string]Suspension{}
	}
	o.origins[keyOf(origin)] = Suspension{Origin: origin, Command: origin.ResumeCommand()}
}

func keyOf(origin suspension.Origin) string { return string(origin.Kind) + " " + origin.Name }

// AddInstance counts an Instance where it is suspended, by at most one object of each kind: addon-manager names no more, but other writers may. The objects have to
// be added first.
func (o *Overview) AddInstance(instance *kudo.Instance) {
	if !instance.IsSuspended() { // most are not
		return
	}
	counted := map[suspension.Kind]bool{}
	for _, origin := range suspension.Sort(suspension.Parse(instance.Spec.SuspendedBy)) {
		known, exists := o.origins[keyOf(origin)]
		if counted[origin.Kind] || !exists && o.Read[origin.Kind] {
			continue
		}
		if !exists {
			o.AddOrigin(origin)
			known = o.origins[keyOf(origin)]
			known.Unread = true
		}
		known.Instances++
		o.origins[keyOf(origin)] = known
		counted[origin.Kind] = true
	}
	if instance.Spec.Suspend {
		o.single = append(o.single, Suspension{
			Cluster: instance.Namespace, Instance: instance.Name, Instances: 1, Command: ResumeCommand(instance.Name, instance.Namespace),
		})
	}
}

// List returns all suspensions: those of many Instances first, the widest one first.
func (o *Overview) List() []Suspension {
	origins := make([]suspension.Origin, 0, len(o.origins))
	for _, s := range o.origins {
		origins = append(origins, s.Origin)
	}
	var all []Suspension
	for _, origin := range suspension.Sort(origins) {
		all = append(all, o.origins[keyOf(origin)])
	}
	single := slices.SortedFunc(slices.Values(o.single), func(a, b Suspension) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Instance, b.Instance))
	})
	return append(all, single...)
}
