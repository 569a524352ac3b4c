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

// glimpse is the summarized status of an add-on on a cluster.
type glimpse struct {
	state  addOnState
	reason string
}

func glimpseOf(addOn *addonv1alpha1.ManagedClusterAddOn) glimpse {
	g := glimpse{state: stateAvailable, reason: reasonOf(addOn)}
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	switch {
	case !addOn.DeletionTimestamp.IsZero():
		g.state = stateRemoving
	case available == nil || available.Status == metav1.ConditionUnknown:
		g.state = stateUnknown
	case available.Status == metav1.ConditionFalse:
		g.state = stateNotAvailable
	case meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded):
		g.state = stateDegraded
	}
	if g.reason == "" {
		g.reason = "NotReported"
	}
	return g
}

// glance is the summarized status of the add-ons of a fleet, by cluster and name.
type glance map[string]map[string]glimpse

// GatherGlance reads the add-ons of the selected clusters. Clusters without add-ons are included, as far as the user may read them.
func GatherGlance(ctx context.Context, h hubclient.Hub, where hubclient.Selection) (glance, error) {
	fleet := glance{}
	var of []string
	if where.Everything() {
		found, err := hubclient.GatherClusters(ctx, h, "", labels.Everything())
		if err != nil {
			return nil, err
		}
		for _, cluster := range found.Names {
			fleet[cluster] = map[string]glimpse{}
		}
	} else {
		var err error
		if of, err = where.Clusters(ctx, h); err != nil {
			return nil, err
		}
		for _, cluster := range of {
			fleet[cluster] = map[string]glimpse{}
		}
	}
	return fleet, h.EachAddOn(ctx, of, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		if fleet[addOn.Namespace] == nil {
			fleet[addOn.Namespace] = map[string]glimpse{}
		}
		fleet[addOn.Namespace][addOn.Name] = glimpseOf(addOn)
	})
}

// fleetSum is the output of `fleet`.
type fleetSum struct {
	Clusters int          `json:"clusters"`
	AddOns   []addOnSum   `json:"addOns"`
	Reasons  []reasonSum  `json:"reasons"`
	Groups   []fleetGroup `json:"groups"`
}

// addOnSum is the number of clusters with an add-on, by state.
type addOnSum struct {
	AddOn    string             `json:"addOn"`
	Clusters int                `json:"clusters"`
	States   map[addOnState]int `json:"states"`
}

// reasonSum is a reason why add-ons are not available or degraded, and where it occurs.
type reasonSum struct {
	State    addOnState `json:"state"`
	Reason   string     `json:"reason"`
	AddOns   []string   `json:"addOns"`
	Clusters []string   `json:"clusters"`
	// example is an affected add-on on the first of the clusters.
	example string
}

// fleetGroup is a group of clusters with the same states of all add-ons.
type fleetGroup struct {
	Clusters []string `json:"clusters"`
	// States lists the states of the add-ons, in the order of the summary.
	States []addOnState `json:"states"`
}

// Sum counts the add-ons by state and reason, and groups the clusters.
func (g glance) Sum() fleetSum {
	sum := fleetSum{Clusters: len(g), Reasons: []reasonSum{}, Groups: []fleetGroup{}}
	clusters := slices.Sorted(maps.Keys(g))
	addOns := map[string]*addOnSum{}
	reasons := map[glimpse]*reasonSum{}
	for _, cluster := range clusters {
		for _, name := range slices.Sorted(maps.Keys(g[cluster])) {
			seen := g[cluster][name]
			if addOns[name] == nil {
				addOns[name] = &addOnSum{AddOn: name, States: map[addOnState]int{}}
			}
			addOns[name].Clusters++
			addOns[name].States[seen.state]++
			if seen.state != stateAvailable {
				if reasons[seen] == nil {
					reasons[seen] = &reasonSum{State: seen.state, Reason: seen.reason}
				}
				reasons[seen].add(cluster, name)
			}
		}
	}
	sum.AddOns = []addOnSum{}
	for _, name := range slices.Sorted(maps.Keys(addOns)) {
		sum.AddOns = append(sum.AddOns, *addOns[name])
	}
	for _, reason := range reasons {
		slices.Sort(reason.AddOns)
		sum.Reasons = append(sum.Reasons, *reason)
	}
	slices.SortFunc(sum.Reasons, func(a, b reasonSum) int {
		return cmp.Or(rank(a.State)-rank(b.State), len(b.Clusters)-len(a.Clusters), cmp.Compare(a.Reason, b.Reason))
	})
	sum.Groups = g.groups(clusters, sum.AddOns)
	return sum
}

// add counts an add-on on a cluster. Clusters must be added in order.
func (r *reasonSum) add(cluster, addOn string) {
	if len(r.Clusters) == 0 || r.Clusters[len(r.Clusters)-1] != cluster {
		r.Clusters = append(r.Clusters, cluster)
	}
	if !slices.Contains(r.AddOns, addOn) {
		r.AddOns = append(r.AddOns, addOn)
	}
	r.example = cmp.Or(r.example, addOn)
}

// rank returns the position of a state, worst first.
func rank(state addOnState) int { return slices.Index(addOnStates, state) }

// groups groups clusters with the same states, the worst first, then the largest.
func (g glance) groups(clusters []string, addOns []addOnSum) []fleetGroup {
	byMarks := map[string]*fleetGroup{}
	for _, cluster := range clusters {
		states, key := make([]addOnState, len(addOns)), make([]byte, len(addOns))
		for i, of := range addOns {
			states[i] = cmp.Or(g[cluster][of.AddOn].state, stateAbsent)
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
