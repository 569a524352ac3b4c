package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// addOns are the names of the add-ons of a fleet.
var addOns = []string{"a", "b", "c", "d", "e"}

// member is an add-on of a fleet, on one cluster.
type member struct {
	definition *addonv1alpha1.ClusterManagementAddOn
	addOn      *addonv1alpha1.ManagedClusterAddOn
	// instance is set once the install gate was open; broken is true while the workloads are not healthy.
	instance *kudo.Instance
	broken   bool
	// past are earlier states of the add-on.
	past []*addonv1alpha1.ManagedClusterAddOn
}

// fleet is a model of the add-ons of one cluster: the hub's verdicts, the agent's availability, and the link between them.
type fleet struct {
	t           TB
	members     map[string]*member
	webhookDown bool
	// cut is true while the cluster is unreachable; held are the verdicts at that time, nil after a change of the hub's objects.
	cut    bool
	held   map[string]string
	writes int
}

func newFleet(t TB) *fleet {
	f := &fleet{t: t, members: map[string]*member{}}
	for _, name := range addOns {
		f.members[name] = &member{}
	}
	return f
}

// change is one change of a fleet.
type change struct {
	do, addOn string
	needs     []addonv1alpha1.AddonDependency
	// ago is how old the view of the dependencies is in a single evaluation.
	ago int
}

func (c change) String() string {
	switch c.do {
	case "declare":
		var needs []string
		for _, need := range c.needs {
			needs = append(needs, fmt.Sprintf(`{"name":"%s","type":"%s"}`, need.Name, need.Type))
		}
		return fmt.Sprintf(`kubectl patch clustermanagementaddon %s --type=merge -p '{"spec":{"dependencies":[%s]}}'`, c.addOn, strings.Join(needs, ","))
	case "undefine":
		return "kubectl delete clustermanagementaddon " + c.addOn
	case "enable", "disable":
		return fmt.Sprintf("kubectl addon %s %s --cluster %s", c.do, c.addOn, cluster)
	case "evaluate":
		return fmt.Sprintf("# addon-manager evaluates %s, %d versions behind", c.addOn, c.ago)
	default:
		return fmt.Sprintf("# %s %s", c.do, c.addOn)
	}
}

// make makes one change.
func (f *fleet) make(c change) {
	m := f.members[c.addOn]
	if slices.Contains([]string{"declare", "undefine", "enable", "disable", "disabled", "connect"}, c.do) || c.ago > 0 {
		f.held = nil // a changed declaration or existence is judged all the same
	}
	switch c.do {
	case "declare":
		f.declare(m, c)
	case "undefine":
		m.definition = nil
	case "enable":
		if m.addOn == nil {
			m.addOn = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: c.addOn}}
			meta.SetStatusCondition(&m.addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionFalse})
		}
	case "disable":
		if m.addOn != nil {
			m.addOn.DeletionTimestamp = &metav1.Time{Time: noon}
		}
	case "disabled":
		if m.addOn != nil && m.addOn.DeletionTimestamp != nil {
			*m = member{definition: m.definition, broken: m.broken}
		}
	case "break", "mend":
		m.broken = c.do == "break"
	case "webhook":
		f.webhookDown = !f.webhookDown
	case "cut":
		if !f.cut {
			f.cutOff()
		}
	case "connect":
		f.cut = false
	case "evaluate":
		f.evaluate(c.addOn, c.ago)
	case "observe":
		f.observe(c.addOn)
	}
}

// declare edits the dependencies of a definition, if the hub accepts them.
func (f *fleet) declare(m *member, c change) {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: c.addOn}}
	definition.Spec.Dependencies = c.needs
	if _, err := dependency.Admit(m.definition, definition, f.needsOf); err == nil || f.webhookDown {
		m.definition = definition
	}
}

func (f *fleet) needsOf(name string) []addonv1alpha1.AddonDependency {
	return dependency.Needs(f.members[name].definition)
}

// cutOff makes the cluster unreachable: OCM sets every add-on to Unknown.
func (f *fleet) cutOff() {
	f.settle(addOns)
	f.cut, f.held = true, f.verdicts()
	for _, name := range addOns {
		if m := f.members[name]; m.addOn != nil {
			f.set(m, &metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonClusterLeaseStopped,
			}, addonv1alpha1.ConditionAvailable)
		}
	}
}

// evaluate is one pass of the hub's controller of dependencies for an add-on.
func (f *fleet) evaluate(name string, ago int) {
	m := f.members[name]
	if m.addOn == nil || m.addOn.DeletionTimestamp != nil {
		return
	}
	needs, seen := f.needsOf(name), map[string]dependency.Seen{}
	for _, need := range needs {
		other := f.members[need.Name]
		view := other.addOn
		if len(other.past) > 0 && ago > 0 && view != nil {
			view = other.past[max(0, len(other.past)-ago)]
		}
		s := dependency.See(other.definition, view)
		s.Cycle = dependency.Cycle(name, need.Name, f.needsOf)
		seen[need.Name] = s
	}
	previous := meta.FindStatusCondition(m.addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	verdict := dependency.Evaluate(needs, seen, previous)
	f.set(m, verdict.Condition(), addonv1alpha1.ConditionDegraded)
	if m.instance == nil && m.definition != nil && len(verdict.NotReady()) == 0 {
		m.instance = &kudo.Instance{}
		f.writes++
	}
}

// observe is one pass of the agent's controller of availability for an add-on.
func (f *fleet) observe(name string) {
	m := f.members[name]
	if f.cut || m.addOn == nil || m.addOn.DeletionTimestamp != nil {
		return
	}
	var instance *kudo.Instance
	if m.instance != nil {
		ready := metav1.Condition{Type: kudo.ConditionReady, Status: metav1.ConditionTrue, Reason: kudo.ReasonHealthy}
		if m.broken {
			ready.Status, ready.Reason = metav1.ConditionFalse, kudo.ReasonUnhealthy
		}
		instance = &kudo.Instance{Status: kudo.InstanceStatus{Conditions: []metav1.Condition{ready}}}
	}
	judged := availability.Of(availability.Seen{AddOn: m.addOn, Instance: instance}, noon)
	f.set(m, judged.Condition, addonv1alpha1.ConditionAvailable)
}

// set stores a condition of an add-on, or removes it, if that changes it.
func (f *fleet) set(m *member, c *metav1.Condition, name string) {
	changed := m.addOn.DeepCopy()
	if c == nil {
		meta.RemoveStatusCondition(&changed.Status.Conditions, name)
	} else {
		c.LastTransitionTime = noonTime()
		meta.SetStatusCondition(&changed.Status.Conditions, *c)
	}
	if cmp.Equal(m.addOn.Status, changed.Status) {
		return
	}
	f.writes++
	m.past = append(m.past, m.addOn)
	m.addOn = changed
}

// settle runs both controllers for all add-ons, in that order, until neither writes.
func (f *fleet) settle(order []string) {
	for round := 0; ; round++ {
		before := f.writes
		for _, name := range order {
			f.evaluate(name, 0)
			f.observe(name)
		}
		if f.writes == before {
			return
		}
		if round > 50 {
			f.t.Fatalf("the verdicts do not settle: %v", f.verdicts())
		}
	}
}

// verdicts returns both conditions of each add-on.
func (f *fleet) verdicts() map[string]string {
	verdicts := map[string]string{}
	for name, m := range f.members {
		if m.addOn == nil || m.addOn.DeletionTimestamp != nil {
			continue
		}
		degraded, available := "", ""
		if c := meta.FindStatusCondition(m.addOn.Status.Conditions, addonv1alpha1.ConditionDegraded); c != nil {
			degraded = c.Reason + ": " + c.Message
		}
		if c := meta.FindStatusCondition(m.addOn.Status.Conditions, addonv1alpha1.ConditionAvailable); c != nil && !f.cut {
			available = string(c.Status)
		}
		verdicts[name] = degraded + "; available " + available
	}
	return verdicts
}

// expectedVerdicts is a naive reading of the contract: what verdicts returns for a connected cluster at rest.
func (f *fleet) expectedVerdicts() map[string]string {
	reach := f.reach()
	available := f.available(reach)
	verdicts := map[string]string{}
	for name, m := range f.members {
		if m.addOn != nil && m.addOn.DeletionTimestamp == nil {
			verdicts[name] = f.degradedText(name, reach, available) + "; available " + map[bool]string{true: "True", false: "False"}[available[name]]
		}
	}
	return verdicts
}

// edge leads from an add-on to one that it depends on, directly or transitively.
type edge struct{ from, to string }

// reach returns the transitive dependencies (Warshall).
func (f *fleet) reach() map[edge]bool {
	reach := map[edge]bool{}
	for name := range f.members {
		for _, need := range f.needsOf(name) {
			reach[edge{name, need.Name}] = true
		}
	}
	for _, over := range addOns {
		for _, from := range addOns {
			for _, to := range addOns {
				reach[edge{from, to}] = reach[edge{from, to}] || reach[edge{from, over}] && reach[edge{over, to}]
			}
		}
	}
	return reach
}

// available returns the available add-ons: healthy ones whose Required dependencies are available and on no cycle.
func (f *fleet) available(reach map[edge]bool) map[string]bool {
	available := map[string]bool{}
	for range addOns { // the longest chain
		for name, m := range f.members {
			available[name] = m.addOn != nil && m.addOn.DeletionTimestamp == nil && m.instance != nil && !m.broken
			for _, need := range f.needsOf(name) {
				met := available[need.Name] && need.Name != name && !reach[edge{need.Name, name}]
				available[name] = available[name] && (met || need.Type == addonv1alpha1.DependencyTypeOptional)
			}
		}
	}
	return available
}

// degradedText returns reason and message of condition Degraded; empty if all dependencies are met.
func (f *fleet) degradedText(name string, reach map[edge]bool, available map[string]bool) string {
	lines := map[addonv1alpha1.DependencyType][]string{}
	for _, need := range f.needsOf(name) {
		switch {
		case need.Name == name || reach[edge{need.Name, name}]:
			way := dependency.Cycle(name, need.Name, f.needsOf)
			lines[need.Type] = append(lines[need.Type], "circular dependency: "+strings.Join(way, " -> "))
		case !available[need.Name]:
			lines[need.Type] = append(lines[need.Type], fmt.Sprintf("%s addon '%s' is not installed or not available.", need.Type, need.Name))
		}
	}
	all := slices.Concat(lines[addonv1alpha1.DependencyTypeRequired], lines[addonv1alpha1.DependencyTypeOptional])
	switch {
	case len(lines[addonv1alpha1.DependencyTypeRequired]) > 0:
		return addonv1alpha1.ReasonRequiredDependencyNotSatisfied + ": " + strings.Join(all, "\n")
	case len(all) > 0:
		return addonv1alpha1.ReasonDependencyNotSatisfied + ": " + strings.Join(all, "\n")
	default:
		return ""
	}
}

// clone returns an independent copy of the fleet.
func (f *fleet) clone() *fleet {
	c := *f
	c.members = map[string]*member{}
	for name, m := range f.members {
		other := *m
		if m.addOn != nil {
			other.addOn = m.addOn.DeepCopy()
		}
		c.members[name] = &other
	}
	return &c
}

// check settles a copy of the fleet in two orders, and compares the verdicts with each other and with the naive ones.
func (f *fleet) check(order []string) {
	one, other := f.clone(), f.clone()
	one.settle(addOns)
	other.settle(order)
	if diff := cmp.Diff(one.verdicts(), other.verdicts()); diff != "" {
		f.t.Fatalf("the verdicts depend on the order of evaluation, %v (-) or %v (+):\n%s", addOns, order, diff)
	}
	if f.held != nil {
		for name, verdict := range one.verdicts() {
			if was, _, _ := strings.Cut(f.held[name], "; available"); verdict != was+"; available " {
				f.t.Fatalf("the verdict on %s is not held while the cluster is unreachable: %q became %q", name, was, verdict)
			}
		}
	}
	if f.cut {
		return
	}
	if diff := cmp.Diff(one.expectedVerdicts(), one.verdicts()); diff != "" {
		f.t.Fatalf("the verdicts differ from the naive ones (-naive +verdicts):\n%s", diff)
	}
}

// TestFleets plays random histories of the add-ons of a cluster. After each change the verdicts at rest equal those of a naive reading of
// the contract, in whatever order they are evaluated; while the cluster is unreachable they stay; and cycles recover.
func TestFleets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		for _, name := range addOns {
			f.make(change{do: "declare", addOn: name})
			f.make(change{do: "enable", addOn: name})
		}
		for _, c := range rapid.SliceOfN(changes(), 1, 40).Draw(t, "changes") {
			if rapid.Bool().Draw(t, "settled") {
				f.settle(addOns)
			}
			t.Logf("%s", c)
			f.make(c)
			f.check(rapid.Permutation(addOns).Draw(t, "order"))
		}
		f.make(change{do: "connect", addOn: "a"})
		f.check(addOns)
		for _, name := range addOns { // without any dependency left, all recover
			f.make(change{do: "declare", addOn: name})
			f.make(change{do: "disabled", addOn: name})
			f.make(change{do: "enable", addOn: name})
			f.make(change{do: "mend", addOn: name})
		}
		f.settle(addOns)
		for _, name := range slices.Sorted(maps.Keys(f.members)) {
			if verdict := f.verdicts()[name]; verdict != "; available True" {
				t.Fatalf("%s does not recover: %s", name, verdict)
			}
		}
	})
}

// changes generates changes of a fleet.
func changes() *rapid.Generator[change] {
	return rapid.Custom(func(t *rapid.T) change {
		c := change{
			do: rapid.SampledFrom([]string{
				"declare", "declare", "declare", "declare", "enable", "enable", "disable", "disabled", "break", "mend", "undefine", "webhook",
				"cut", "connect", "connect", "evaluate", "evaluate", "observe",
			}).Draw(t, "do"),
			addOn: rapid.SampledFrom(addOns).Draw(t, "add-on"),
		}
		switch c.do {
		case "declare":
			kind := rapid.SampledFrom([]addonv1alpha1.DependencyType{addonv1alpha1.DependencyTypeRequired, addonv1alpha1.DependencyTypeOptional})
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(addOns), 0, 3, rapid.ID[string]).Draw(t, "needs") {
				c.needs = append(c.needs, addonv1alpha1.AddonDependency{Name: name, Type: kind.Draw(t, "type")})
			}
		case "evaluate":
			c.ago = rapid.IntRange(0, 4).Draw(t, "ago")
		}
		return c
	})
}
