package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
)

// addOnState is the summarized state of an add-on on a cluster.
type addOnState string

// The states, worst first.
const (
	stateNotAvailable addOnState = "NotAvailable"
	stateUnknown      addOnState = "Unknown"
	stateRemoving     addOnState = "Removing"
	stateDegraded     addOnState = "Degraded"
	stateAvailable    addOnState = "Available"
	stateAbsent       addOnState = "NotEnabled"
)

var addOnStates = []addOnState{stateNotAvailable, stateUnknown, stateRemoving, stateDegraded, stateAvailable, stateAbsent}

// subject is an add-on, or an Instance that belongs to no add-on.
type subject struct {
	instance bool
	name     string
}

// String returns the name of an add-on, or instance/NAME.
func (s subject) String() string {
	if s.instance {
		return "instance/" + s.name
	}
	return s.name
}

// compare sorts add-ons before Instances, then by name.
func (s subject) compare(other subject) int {
	if s.instance != other.instance {
		if other.instance {
			return -1
		}
		return 1
	}
	return cmp.Compare(s.name, other.name)
}

// glimpse is the summarized status of an add-on or Instance on a cluster.
type glimpse struct {
	state  addOnState
	reason string
}

func glimpseOf(addOn *addonv1alpha1.ManagedClusterAddOn) glimpse {
	return glimpseAt(addOn, addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
}

// glimpseAt returns the status of an object whose health is the condition of the given type. A ready Instance counts as available.
func glimpseAt(object metav1.Object, conditions []metav1.Condition, health string) glimpse {
	g := glimpse{state: stateAvailable, reason: reasonOf(object, conditions, health)}
	healthy := meta.FindStatusCondition(conditions, health)
	switch {
	case object.GetDeletionTimestamp() != nil:
		g.state = stateRemoving
	case healthy == nil || healthy.Status == metav1.ConditionUnknown:
		g.state = stateUnknown
	case healthy.Status == metav1.ConditionFalse:
		g.state = stateNotAvailable
	case meta.IsStatusConditionTrue(conditions, addonv1alpha1.ConditionDegraded):
		g.state = stateDegraded
	}
	if g.reason == "" {
		g.reason = "NotReported"
	}
	return g
}

// glance is the summarized status of the add-ons and independent Instances of a fleet, by cluster.
type glance map[string]map[subject]glimpse

// add adds the status of an add-on or Instance on a cluster.
func (g glance) add(cluster string, of subject, seen glimpse) {
	if g[cluster] == nil {
		g[cluster] = map[subject]glimpse{}
	}
	g[cluster][of] = seen
}

// GatherGlance reads the add-ons and independent Instances of the selected clusters. Clusters without any are included, as far as the user
// may read them. unread gets the error if the user may not read Instances.
func GatherGlance(ctx context.Context, h hubclient.Hub, where hubclient.Selection, unread func(error)) (glance, error) {
	fleet := glance{}
	var of []string
	if where.Everything() {
		found, err := hubclient.GatherClusters(ctx, h, "", labels.Everything())
		if err != nil {
			return nil, err
		}
		for _, cluster := range found.Names {
			fleet[cluster] = map[subject]glimpse{}
		}
	} else {
		var err error
		if of, err = where.Clusters(ctx, h); err != nil {
			return nil, err
		}
		for _, cluster := range of {
			fleet[cluster] = map[subject]glimpse{}
		}
	}
	err := h.EachAddOn(ctx, of, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		fleet.add(addOn.Namespace, subject{name: addOn.Name}, glimpseOf(addOn))
	})
	if err != nil {
		return nil, err
	}
	return fleet, h.EachInstance(ctx, of, func(instance *kudo.Instance) {
		seen := glimpseAt(instance, instance.Status.Conditions, kudo.ConditionReady)
		fleet.add(instance.Namespace, subject{instance: true, name: instance.Name}, seen)
	}, unread)
}

// fleetSum is the output of `fleet`. Instances are those that belong to no add-on.
type fleetSum struct {
	Clusters  int           `json:"clusters"`
	AddOns    []addOnSum    `json:"addOns"`
	Instances []instanceSum `json:"instances"`
	Reasons   []reasonSum   `json:"reasons"`
	Groups    []fleetGroup  `json:"groups"`
}

// addOnSum is the number of clusters with an add-on, by state.
type addOnSum struct {
	AddOn string `json:"addOn"`
	stateSum
}

// instanceSum is the number of clusters with an Instance of a name, by state.
type instanceSum struct {
	Instance string `json:"instance"`
	stateSum
}

// stateSum is a number of clusters, by state.
type stateSum struct {
	Clusters int                `json:"clusters"`
	States   map[addOnState]int `json:"states"`
}

// reasonSum is a reason why add-ons or Instances are not available or degraded, and where it occurs.
type reasonSum struct {
	State     addOnState `json:"state"`
	Reason    string     `json:"reason"`
	AddOns    []string   `json:"addOns"`
	Instances []string   `json:"instances,omitempty"`
	Clusters  []string   `json:"clusters"`
	// example is affected on the first of the clusters.
	example subject
}

// fleetGroup is a group of clusters with the same states of all add-ons and Instances.
type fleetGroup struct {
	Clusters []string `json:"clusters"`
	// States lists the states of the add-ons, then of the Instances, in the order of the summary.
	States []addOnState `json:"states"`
}

// Sum counts the add-ons and Instances by state and reason, and groups the clusters.
func (g glance) Sum() fleetSum {
	sum := fleetSum{Clusters: len(g), AddOns: []addOnSum{}, Instances: []instanceSum{}, Reasons: []reasonSum{}}
	clusters := slices.Sorted(maps.Keys(g))
	counts := map[subject]*stateSum{}
	reasons := map[glimpse]*reasonSum{}
	for _, cluster := range clusters {
		for _, of := range slices.SortedFunc(maps.Keys(g[cluster]), subject.compare) {
			seen := g[cluster][of]
			if counts[of] == nil {
				counts[of] = &stateSum{States: map[addOnState]int{}}
			}
			counts[of].Clusters++
			counts[of].States[seen.state]++
			if seen.state != stateAvailable {
				if reasons[seen] == nil {
					reasons[seen] = &reasonSum{State: seen.state, Reason: seen.reason, AddOns: []string{}, example: of}
				}
				reasons[seen].add(cluster, of)
			}
		}
	}
	subjects := slices.SortedFunc(maps.Keys(counts), subject.compare)
	for _, of := range subjects {
		if of.instance {
			sum.Instances = append(sum.Instances, instanceSum{of.name, *counts[of]})
		} else {
			sum.AddOns = append(sum.AddOns, addOnSum{of.name, *counts[of]})
		}
	}
	sum.Reasons = worstReasons(reasons)
	sum.Groups = g.groups(clusters, subjects)
	return sum
}

// add counts an add-on or Instance on a cluster. Clusters must be added in order.
func (r *reasonSum) add(cluster string, of subject) {
	if len(r.Clusters) == 0 || r.Clusters[len(r.Clusters)-1] != cluster {
		r.Clusters = append(r.Clusters, cluster)
	}
	names := &r.AddOns
	if of.instance {
		names = &r.Instances
	}
	if !slices.Contains(*names, of.name) {
		*names = append(*names, of.name)
	}
}

// worstReasons returns the reasons, those of the worst states first, then those on the most clusters.
func worstReasons(reasons map[glimpse]*reasonSum) []reasonSum {
	sorted := make([]reasonSum, 0, len(reasons))
	for _, reason := range reasons {
		slices.Sort(reason.AddOns)
		slices.Sort(reason.Instances)
		sorted = append(sorted, *reason)
	}
	slices.SortFunc(sorted, func(a, b reasonSum) int {
		return cmp.Or(rank(a.State)-rank(b.State), len(b.Clusters)-len(a.Clusters), cmp.Compare(a.Reason, b.Reason))
	})
	return sorted
}

// rank returns the position of a state, worst first.
func rank(state addOnState) int { return slices.Index(addOnStates, state) }

// groups groups clusters with the same states, the worst first, then the largest.
func (g glance) groups(clusters []string, subjects []subject) []fleetGroup {
	byMarks := map[string]*fleetGroup{}
	for _, cluster := range clusters {
		states, key := make([]addOnState, len(subjects)), make([]byte, len(subjects))
		for i, of := range subjects {
			states[i] = cmp.Or(g[cluster][of].state, stateAbsent)
			key[i] = byte(rank(states[i]))
		}
		if byMarks[string(key)] == nil {
			byMarks[string(key)] = &fleetGroup{States: states}
		}
		byMarks[string(key)].Clusters = append(byMarks[string(key)].Clusters, cluster)
	}
	groups := make([]fleetGroup, 0, len(byMarks))
	for _, key := range slices.SortedFunc(maps.Keys(byMarks), func(a, b string) int {
		return cmp.Or(worse(a, b), len(byMarks[b].Clusters)-len(byMarks[a].Clusters), cmp.Compare(a, b))
	}) {
		groups = append(groups, *byMarks[key])
	}
	return groups
}

// worse compares two clusters' states; more of the worst states sort first.
func worse(a, b string) int {
	for i := range addOnStates {
		if order := strings.Count(b, string(byte(i))) - strings.Count(a, string(byte(i))); order != 0 {
			return order
		}
	}
	return 0
}

// WorstFirst returns the clusters, those with the worst states first.
func (g glance) WorstFirst() []string {
	var clusters []string
	for _, group := range g.Sum().Groups {
		clusters = append(clusters, group.Clusters...)
	}
	return clusters
}
