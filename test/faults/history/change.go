// Package history generates a user's changes of an Instance of a package with children, prints them as commands, and returns the part of
// their outcome that must not depend on earlier changes. It touches no cluster.
package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const (
	// Operator is the package, and the name of its Instance in commands.
	Operator = "shop"
	// Cluster is the namespace of the Instance, and Packages that of its OperatorVersions.
	Cluster, Packages = "cluster1", "addon-packages"
)

// What a user does.
const (
	Install   = "install"
	Update    = "update"
	Upgrade   = "upgrade"
	Run       = "run"
	Cancel    = "cancel"
	Uninstall = "uninstall"
)

// Change is what a user does with the Instance. It prints as the command that does the same.
type Change struct {
	Do string
	// Version, Plan and Set are arguments; a nil value removes a parameter.
	Version, Plan string
	Set           map[string]*string
}

func (c Change) String() string {
	on := Operator + " --cluster " + Cluster
	switch c.Do {
	case Install:
		return fmt.Sprintf("kubectl addon install %s %s --version %s%s", Operator, on, c.Version, c.parameters())
	case Update:
		return strings.Join(append(c.unsetCommands(), "kubectl addon update "+on+c.parameters()), "\n")
	case Upgrade:
		return fmt.Sprintf("kubectl addon upgrade %s --version %s", on, c.Version)
	case Run:
		return fmt.Sprintf("kubectl addon plan run %s %s --cluster %s", Operator, c.Plan, Cluster)
	case Cancel:
		return "kubectl addon plan cancel " + on
	default:
		return "kubectl addon uninstall " + on + " --yes"
	}
}

func (c Change) parameters() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		if value := c.Set[name]; value != nil {
			fmt.Fprintf(&text, " -p '%s=%s'", name, *value)
		}
	}
	return text.String()
}

func (c Change) unsetCommands() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		if c.Set[name] == nil {
			lines = append(lines, fmt.Sprintf(`kubectl patch instances.kudo.dev %s -n %s --type=json -p '[{"op":"remove","path":"/spec/parameters/%s"}]'`,
				Operator, Cluster, name))
		}
	}
	return lines
}

// Edit returns a copy of the Instance after a change other than Uninstall; before is nil if there is none. It is not ok if the change is
// impossible.
func (c Change) Edit(before *kudo.Instance) (after *kudo.Instance, ok bool) {
	if (before == nil) != (c.Do == Install) || before != nil && before.DeletionTimestamp != nil {
		return nil, false
	}
	after = &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: Cluster, Name: Operator}, Spec: kudo.InstanceSpec{InstallNamespace: Cluster},
	}
	if before != nil {
		after = before.DeepCopy()
	}
	switch c.Do {
	case Install, Upgrade:
		after.Spec.OperatorVersion = corev1.ObjectReference{Namespace: Packages, Name: Operator + "-" + c.Version}
	case Run:
		after.Spec.PlanExecution = kudo.PlanExecution{PlanName: c.Plan}
	case Cancel:
		if before.Status.Execution == nil {
			return nil, false
		}
		after.Spec.PlanExecution = kudo.PlanExecution{UID: before.Status.Execution.UID, Cancel: true}
	}
	c.setIn(&after.Spec)
	return after, true
}

// setIn sets and removes parameters.
func (c Change) setIn(spec *kudo.InstanceSpec) {
	if spec.Parameters == nil {
		spec.Parameters = map[string]string{}
	}
	for name, value := range c.Set {
		if value == nil {
			delete(spec.Parameters, name)
		} else {
			spec.Parameters[name] = *value
		}
	}
}

// Again returns the installation of a new Instance with the spec of an existing one.
func Again(i *kudo.Instance) Change {
	set := map[string]*string{}
	for name, value := range i.Spec.Parameters {
		set[name] = &value
	}
	return Change{Do: Install, Version: strings.TrimPrefix(i.Spec.OperatorVersion.Name, Operator+"-"), Set: set}
}

// Recovery returns the changes by which a user makes an unhealthy Instance healthy without a plan: its parameters get their defaults, one after
// the other, because one edit cannot trigger two plans. The immutable one gets the value with which the Instance was started.
func Recovery(i *kudo.Instance) []Change {
	good := map[string]*string{}
	for name := range i.Spec.Parameters {
		good[name] = nil
	}
	delete(good, immutable)
	if x := i.Status.Execution; x != nil {
		started, given := x.Parameters[immutable]
		if good[immutable] = nil; given {
			good[immutable] = &started
		}
	}
	var changes []Change
	if request := i.Spec.PlanExecution; request.PlanName != "" || request.Cancel {
		changes = append(changes, Change{Do: Run}) // a request that cannot be fulfilled is removed
	}
	for _, name := range slices.Sorted(maps.Keys(good)) {
		changes = append(changes, Change{Do: Update, Set: map[string]*string{name: good[name]}})
	}
	return changes
}
