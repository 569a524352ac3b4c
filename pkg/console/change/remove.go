package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Removal is an add-on or Instance to remove from a cluster.
type Removal struct {
	client.ObjectKey
	// AddOn is nil if the Instance belongs to no add-on, and Instance if the add-on has none. Definition is the add-on's; nil if there is none.
	AddOn      *addonv1alpha1.ManagedClusterAddOn
	Definition *addonv1alpha1.ClusterManagementAddOn
	Instance   *kudo.Instance
	// Below lists the Instance's descendants, each before its own children.
	Below []kudo.Instance
	// Dependents lists the add-ons on the cluster that depend on the add-on.
	Dependents []dependency.Dependent
	// Order is the add-on's place in the order of removal.
	Order dependency.Removal
	// After lists the add-ons that addon-manager disables once the add-on is gone.
	After []string
}

// RemovalOf returns the removal of an existing add-on of a cluster, without its Instance.
func RemovalOf(view fleet.Cluster, addOn string) Removal {
	return Removal{
		ObjectKey: client.ObjectKey{Namespace: view.Name, Name: addOn}, AddOn: view.AddOns[addOn], Definition: view.Definitions[addOn].Object,
		Dependents: view.Dependents(addOn), Order: view.Removal(addOn), After: view.DisabledAfter(addOn),
	}
}

// Removal returns the removal of the existing add-on, or else of the Instance. It returns ErrAbsent if there is neither, and an error if the
// hub would re-create it.
func (s *State) Removal(key client.ObjectKey) (Removal, error) {
	view, existing := s.viewWithInstances(key.Namespace), s.FindInstance(key)
	r := Removal{ObjectKey: key}
	if view.AddOns[key.Name] != nil {
		r = RemovalOf(view, key.Name)
	}
	if existing != nil && (r.AddOn == nil || metav1.IsControlledBy(existing, r.AddOn)) {
		r.Instance, r.Below = existing, fleet.Descendants(existing, s.instances[key.Namespace])
	}
	if r.AddOn == nil && r.Instance == nil {
		return r, ErrAbsent
	}
	return r, r.Validate()
}

// Validate returns an error for an object that would be re-created: an add-on by OCM, or a child Instance by its parent.
func (r Removal) Validate() error {
	switch {
	case r.AddOn != nil && r.AddOn.DeletionTimestamp.IsZero():
		return CheckRecreation(r.Definition, "cluster "+r.Namespace)
	case r.AddOn != nil || r.Instance == nil || !r.Instance.DeletionTimestamp.IsZero():
		return nil
	}
	owner := metav1.GetControllerOf(r.Instance)
	if owner == nil || owner.Kind != "Instance" {
		return nil
	}
	return fmt.Errorf("%q is a child of Instance %q, which would re-create it; uninstall the parent, or change its parameters", r.Name, owner.Name)
}

// CheckUnprotected returns an error for an add-on that is to be deleted, and that dependents protect from removal.
func (r Removal) CheckUnprotected() error {
	var names []string
	for _, dependent := range r.Dependents {
		if dependent.Protects {
			names = append(names, text.Word(dependent.Name))
		}
	}
	if len(names) == 0 || r.AddOn == nil || !r.AddOn.DeletionTimestamp.IsZero() {
		return nil
	}
	return fmt.Errorf("add-on %q is protected on cluster %s by add-ons that require it there: %s; disable these first, or use "+
		"'kubectl addon disable %s --cluster %[2]s --force'", r.Name, text.Word(r.Namespace), text.List(names, maxListed), text.Word(r.Name))
}

// Effects states what happens to the dependents of the add-on, which of them are removed first, and what is disabled after it; required reports whether one requires it.
func (r Removal) Effects() (texts []string, required bool) {
	texts, required = EffectsOnDependents(r.Name, r.Dependents)
	if waits := r.Order.Message(); waits != "" {
		texts = append(texts, waits)
	}
	if len(r.After) > 0 {
		texts = append(texts, fmt.Sprintf("%s: enabled automatically; will be disabled after %s", text.List(r.After, maxListed), text.Word(r.Name)))
	}
	return texts, required
}

// Object returns the name of the object to delete on the hub.
func (r Removal) Object() string {
	if r.AddOn != nil {
		return text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", r.Name)
	}
	return text.ObjectName(kudo.GroupVersion.Group, "Instance", r.Name)
}

// Remove returns the change that the removal makes.
func (s *State) Remove(ctx context.Context, r Removal) (Change, error) {
	affected, _ := r.Effects()
	going := Change{Cluster: r.Namespace, Warnings: affected, Object: r.Object()}
	if kept := r.KeptConfig(); kept != "" {
		going.Remarks = []string{kept}
	}
	if r.Instance == nil {
		return going, nil
	}
	var err error
	if going.Started, err = s.reader.startedVersion(ctx, r.Instance); err != nil {
		return going, err
	}
	going.Before, going.Instances = r.Instance, r.Below
	going.Candidates, err = s.reader.candidates(install.VersionOf(r.Instance).Namespace, going.Started)
	return going, err
}

// Loss is what a removal deletes besides the objects of the Instances that it removes, or what it keeps.
type Loss struct {
	// Text is a sentence without a full stop.
	Text string
	// Of describes objects that are deleted as well, and Known is how many of them the Instances of the cluster have: the hub does not know
	// others. Of is empty if nothing else is deleted.
	Of    string
	Known int
}

// String returns the sentence with the number of objects.
func (l Loss) String() string {
	if l.Of == "" {
		return l.Text
	}
	return fmt.Sprintf("%s; Instances have %s %s", l.Text, text.Plural(l.Known, "object"), l.Of)
}

// Losses returns what else the removal deletes according to the agents' reports, and what the package keeps. instances are those of the cluster.
func (r Removal) Losses(instances []kudo.Instance) []Loss {
	definitions, namespaces, sets, kept := takers(plan.Settled(r.inventory(instances)))
	var losses []Loss
	switch known := plan.CountTaken(instances, definitions...); len(definitions) {
	case 0:
	case 1:
		losses = append(losses, Loss{kinds(definitions) + " is deleted with every object of its kind, " + unknownObjectsText, "of its API group", known})
	default:
		losses = append(losses, Loss{kinds(definitions) + " are deleted with every object of their kinds, " + unknownObjectsText, "of their API groups", known})
	}
	switch known := plan.CountTaken(instances, namespaces...); len(namespaces) {
	case 0:
	case 1:
		losses = append(losses, Loss{kinds(namespaces) + " is deleted with everything in it, " + unknownObjectsText, "in it", known})
	default:
		losses = append(losses, Loss{kinds(namespaces) + " are deleted with everything in them, " + unknownObjectsText, "in them", known})
	}
	if len(sets) > 0 {
		losses = append(losses, Loss{Text: "volume claims of " + kinds(sets) + " are deleted with their data, unless the package keeps them"})
	}
	if len(kept) > 0 {
		losses = append(losses, Loss{Text: "the package keeps " + listed(kept, kudo.InventoryEntry.String)})
	}
	return losses
}

// KeptConfig states that the parameters of a disabled add-on stay, and how to delete them; empty if it has none of its own.
func (r Removal) KeptConfig() string {
	own := install.OwnConfig(r.Namespace, r.Name)
	if r.AddOn == nil || !refersTo(nil, r.AddOn, own) {
		return ""
	}
	return fmt.Sprintf("its parameters stay in AddOnDeploymentConfig %s: to delete it, run 'kubectl delete addondeploymentconfig %[1]s -n %[2]s'",
		own.Name, own.Namespace)
}

// takers returns the objects of an inventory whose deletion deletes others, and those that are kept.
func takers(inventory []kudo.InventoryEntry) (definitions, namespaces, sets, kept []kudo.InventoryEntry) {
	for _, entry := range inventory {
		_, stays := plan.KeptNote(entry, inventory)
		switch {
		case entry.Keep && stays:
			kept = append(kept, entry)
		case plan.IsDefinition(entry):
			definitions = append(definitions, entry)
		case plan.IsNamespace(entry):
			namespaces = append(namespaces, entry)
		case plan.IsStatefulSet(entry):
			sets = append(sets, entry)
		}
	}
	return definitions, namespaces, sets, kept
}

// unknownObjectsText describes the objects whose number the hub does not know.
const unknownObjectsText = "including objects that users have created, which the hub does not know"

// inventory returns the objects of the Instances to remove.
func (r Removal) inventory(instances []kudo.Instance) []kudo.InventoryEntry {
	root := r.Instance
	if root == nil {
		at := slices.IndexFunc(instances, func(i kudo.Instance) bool {
			return i.Name == r.Name && r.AddOn != nil && metav1.IsControlledBy(&i, r.AddOn)
		})
		if at < 0 {
			return nil
		}
		root = &instances[at]
	}
	all := slices.Clone(root.Status.Inventory)
	for _, below := range fleet.Descendants(root, instances) {
		all = append(all, below.Status.Inventory...)
	}
	return all
}

// kinds lists the names of objects of one kind.
func kinds(entries []kudo.InventoryEntry) string {
	kind := entries[0].Kind
	if len(entries) > 1 {
		kind += "s"
	}
	return kind + " " + listed(entries, func(e kudo.InventoryEntry) string { return e.Name })
}

// listed lists objects, at most maxListed of them.
func listed(entries []kudo.InventoryEntry, name func(kudo.InventoryEntry) string) string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = text.OneLine(name(entry))
	}
	return strings.Join(text.Limit(names, maxListed, "more"), ", ")
}
