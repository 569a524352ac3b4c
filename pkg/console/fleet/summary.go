package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Subject is an add-on, or an Instance that belongs to no add-on.
type Subject struct {
	Instance bool
	Name     string
}

// String returns the name of an add-on, or instance/NAME.
func (s Subject) String() string {
	if s.Instance {
		return "instance/" + s.Name
	}
	return s.Name
}

// Compare sorts add-ons before Instances, then by name.
func (s Subject) Compare(other Subject) int {
	if s.Instance != other.Instance {
		if other.Instance {
			return -1
		}
		return 1
	}
	return cmp.Compare(s.Name, other.Name)
}

// Glance is the summarized status of the add-ons and independent Instances of a fleet, by cluster.
type Glance map[string]map[Subject]Glimpse

// Add adds the status of an add-on or Instance on a cluster.
func (g Glance) Add(cluster string, of Subject, seen Glimpse) {
	if g[cluster] == nil {
		g[cluster] = map[Subject]Glimpse{}
	}
	g[cluster][of] = seen
}

// Summary is the output of `fleet`. Instances are those that belong to no add-on.
type Summary struct {
	Clusters  int           `json:"clusters"`
	AddOns    []AddOnSum    `json:"addOns"`
	Instances []InstanceSum `json:"instances"`
	Reasons   []ReasonSum   `json:"reasons"`
	Groups    []Group       `json:"groups"`
}

// AddOnSum is the number of clusters with an add-on, by state.
type AddOnSum struct {
	AddOn string `json:"addOn"`
	StateSum
}

// InstanceSum is the number of clusters with an Instance of a name, by state.
type InstanceSum struct {
	Instance string `json:"instance"`
	StateSum
}

// StateSum is a number of clusters, by state.
type StateSum struct {
	Clusters int           `json:"clusters"`
	States   map[State]int `json:"states"`
}

// ReasonSum is a reason why add-ons or Instances are not simply available, and where it occurs.
type ReasonSum struct {
	Glimpse
	AddOns    []string `json:"addOns"`
	Instances []string `json:"instances,omitempty"`
	Clusters  []string `json:"clusters"`
	// Example is affected on the first of the clusters.
	Example Subject `json:"-"`
}

// Group is a group of clusters with the same states of all add-ons and Instances.
type Group struct {
	Clusters []string `json:"clusters"`
	// States lists the states of the add-ons, then of the Instances, in the order of the summary.
	States []State `json:"states"`
}

// Sum counts the add-ons and Instances by state and reason, and groups the clusters.
func (g Glance) Sum() Summary {
	sum := Summary{Clusters: len(g), AddOns: []AddOnSum{}, Instances: []InstanceSum{}, Reasons: []ReasonSum{}}
	clusters := slices.Sorted(maps.Keys(g))
	counts := map[Subject]*StateSum{}
	reasons := map[Glimpse]*ReasonSum{}
	for _, cluster := range clusters {
		for _, of := range slices.SortedFunc(maps.Keys(g[cluster]), Subject.Compare) {
			seen := g[cluster][of]
			if counts[of] == nil {
				counts[of] = &StateSum{States: map[State]int{}}
			}
			counts[of].Clusters++
			counts[of].States[seen.State]++
			if seen.State != Available {
				if reasons[seen] == nil {
					reasons[seen] = &ReasonSum{Glimpse: seen, AddOns: []string{}, Example: of}
				}
				reasons[seen].add(cluster, of)
			}
		}
	}
	subjects := slices.SortedFunc(maps.Keys(counts), Subject.Compare)
	for _, of := range subjects {
		if of.Instance {
			sum.Instances = append(sum.Instances, InstanceSum{of.Name, *counts[of]})
		} else {
			sum.AddOns = append(sum.AddOns, AddOnSum{of.Name, *counts[of]})
		}
	}
	sum.Reasons = worstReasons(reasons)
	sum.Groups = g.groups(clusters, subjects)
	return sum
}

// add counts an add-on or Instance on a cluster. Clusters must be added in order.
func (r *ReasonSum) add(cluster string, of Subject) {
	if len(r.Clusters) == 0 || r.Clusters[len(r.Clusters)-1] != cluster {
		r.Clusters = append(r.Clusters, cluster)
	}
	names := &r.AddOns
	if of.Instance {
		names = &r.Instances
	}
	if !slices.Contains(*names, of.Name) {
		*names = append(*names, of.Name)
	}
}

// worstReasons returns the reasons, those of the worst states first, then those on the most clusters.
func worstReasons(reasons map[Glimpse]*ReasonSum) []ReasonSum {
	sorted := make([]ReasonSum, 0, len(reasons))
	for _, reason := range reasons {
		slices.Sort(reason.AddOns)
		slices.Sort(reason.Instances)
		sorted = append(sorted, *reason)
	}
	slices.SortFunc(sorted, func(a, b ReasonSum) int {
		return cmp.Or(a.State.Rank()-b.State.Rank(), len(b.Clusters)-len(a.Clusters), cmp.Compare(a.ReasonText(), b.ReasonText()))
	})
	return sorted
}

// groups groups clusters with the same states, the worst first, then the largest.
func (g Glance) groups(clusters []string, subjects []Subject) []Group {
	byMarks := map[string]*Group{}
	for _, cluster := range clusters {
		states, key := make([]State, len(subjects)), make([]byte, len(subjects))
		for i, of := range subjects {
			states[i] = cmp.Or(g[cluster][of].State, NotEnabled)
			key[i] = byte(states[i].Rank())
		}
		if byMarks[string(key)] == nil {
			byMarks[string(key)] = &Group{States: states}
		}
		byMarks[string(key)].Clusters = append(byMarks[string(key)].Clusters, cluster)
	}
	groups := make([]Group, 0, len(byMarks))
	for _, key := range slices.SortedFunc(maps.Keys(byMarks), func(a, b string) int {
		return cmp.Or(worse(a, b), len(byMarks[b].Clusters)-len(byMarks[a].Clusters), cmp.Compare(a, b))
	}) {
		groups = append(groups, *byMarks[key])
	}
	return groups
}

// worse compares two clusters' states; more of the worst states sort first.
func worse(a, b string) int {
	for i := range States {
		if order := strings.Count(b, string(byte(i))) - strings.Count(a, string(byte(i))); order != 0 {
			return order
		}
	}
	return 0
}

// WorstFirst returns the clusters, those with the worst states first.
func (g Glance) WorstFirst() []string {
	var clusters []string
	for _, group := range g.Sum().Groups {
		clusters = append(clusters, group.Clusters...)
	}
	return clusters
}

// Command returns the command that explains the example.
func (r ReasonSum) Command() string {
	if r.Example.Instance {
		return fmt.Sprintf("kubectl addon plan status %s --cluster %s", r.Example.Name, r.Clusters[0])
	}
	return fmt.Sprintf("kubectl addon why %s --cluster %s", r.Example.Name, r.Clusters[0])
}

// Independent reports whether an Instance belongs to no add-on and to no other Instance: users create and delete it.
func Independent(i *kudo.Instance) bool {
	owner := metav1.GetControllerOfNoCopy(i)
	return !kudo.IsMirror(i) && i.Parent() == nil && (owner == nil || owner.Kind != "ManagedClusterAddOn")
}
