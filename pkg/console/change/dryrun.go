package change

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/text"
)

// DryRun lists changes that are not written.
type DryRun struct {
	// Changes lists identical changes of several clusters once, with the values of the first cluster.
	Changes []ChangeData `json:"changes"`
	Refused []Refusal    `json:"refused"`
	// NotChecked lists what only the clusters know about the changes: plans may fail because of it although the hub expects them to succeed.
	NotChecked []string `json:"notChecked,omitempty"`
}

// ChangeData is a change of an Instance on each of the clusters. The name is empty if an add-on has no Instance yet.
type ChangeData struct {
	Clusters []string `json:"clusters"`
	Instance string   `json:"instance,omitempty"`
	// AddOn is the add-on that is written, and determines the Instance.
	AddOn string `json:"addOn,omitempty"`
	// Write is the effect on the hub: created, changed, unchanged or removed.
	Write preview.Effect `json:"write"`
	// Writes lists the objects to write on the hub.
	Writes []string `json:"writes,omitempty"`
	// From and To are the names of OperatorVersions.
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Unknown is why the plans are unknown.
	Unknown string `json:"unknown,omitempty"`
	// UnknownKinds lists the kinds of objects to create of which only the clusters know whether they have them.
	UnknownKinds []string `json:"unknownKinds,omitempty"`
	preview.Data
}

// DryRunOf returns the changes, with identical changes of several clusters grouped.
func DryRunOf(changes []Change, refused Refusals) DryRun {
	data := DryRun{Changes: []ChangeData{}, Refused: refused.groups()}
	for i, r := range data.Refused {
		data.Refused[i].Message = strings.TrimPrefix(r.Message, "cluster "+r.Clusters[0]+": ") // Clusters has it
	}
	var kinds []ChangeData
	for _, c := range changes {
		kind := c.anywhere().Data()
		if i := slices.IndexFunc(kinds, func(other ChangeData) bool { return equality.Semantic.DeepEqual(other, kind) }); i >= 0 {
			data.Changes[i].Clusters = append(data.Changes[i].Clusters, c.Cluster)
			continue
		}
		kinds, data.Changes = append(kinds, kind), append(data.Changes, c.Data())
	}
	data.NotChecked = NotChecked(data.Changes)
	return data
}

// anywhere returns the change with the cluster's name replaced in namespaces, so that changes of different clusters can be compared: each
// Instance is in the namespace of its cluster.
func (c *Change) anywhere() *Change {
	const nowhere = "cluster"
	move := func(i *kudo.Instance) *kudo.Instance {
		if i == nil || i.TargetNamespace() != c.Cluster {
			return i
		}
		i = i.DeepCopy()
		i.Spec.InstallNamespace = nowhere
		for at := range i.Status.Inventory {
			if entry := &i.Status.Inventory[at]; entry.Namespace == c.Cluster {
				entry.Namespace = nowhere
			}
		}
		return i
	}
	moved := *c
	moved.Unknown, moved.Remarks = strings.ReplaceAll(c.Unknown, c.Cluster, nowhere), nil
	for _, remark := range c.Remarks {
		moved.Remarks = append(moved.Remarks, strings.ReplaceAll(remark, c.Cluster, nowhere))
	}
	if c.Facts != nil {
		facts := *c.Facts
		facts.Name = nowhere
		moved.Facts = &facts
	}
	moved.Cluster, moved.Before, moved.After, moved.Instances = nowhere, move(c.Before), move(c.After), nil
	for i := range c.Instances {
		moved.Instances = append(moved.Instances, *move(&c.Instances[i]))
	}
	return &moved
}

// Validate returns an error if the change writes something although a plan would fail. What the hub cannot prove does not count: a failure
// that depends on the value of a sensitive parameter, or on data that the user may not read.
func (c *Change) Validate() error {
	data := c.Data()
	problem := data.Err()
	if problem == nil || len(data.Writes) == 0 {
		return nil
	}
	return fmt.Errorf("cluster %s: a plan of Instance %q would fail: %s; fix the cause, or use --force to make the change anyway",
		c.Cluster, data.Instance, text.JoinMessage(problem.Error()))
}

// WriteText describes the effect on the hub.
func (d ChangeData) WriteText() string {
	return map[preview.Effect]string{
		preview.Created: "would be created", preview.Changed: "would be changed", preview.Unchanged: "would not change",
		preview.Removed: "would be removed",
	}[d.Write]
}

// Data returns the change in a form that can be printed.
func (c *Change) Data() ChangeData {
	effects := preview.Of(c.Change)
	data := ChangeData{
		Clusters: []string{c.Cluster}, Write: c.effect(), Warnings: slices.Concat(c.Warnings, c.Remarks, effects.Waits()), Unknown: c.Unknown,
		Data: preview.DataOf(effects),
	}
	for _, kind := range effects.UnknownKinds {
		data.UnknownKinds = append(data.UnknownKinds, kind.String())
	}
	if c.Step != nil {
		data.AddOn = c.Step.Wanted.Name
	}
	if c.Before != nil {
		data.Instance, data.From = c.Before.Name, c.Before.Spec.OperatorVersion.Name
	}
	if c.After != nil {
		data.Instance, data.To = c.After.Name, c.After.Spec.OperatorVersion.Name
	}
	data.Writes = c.writes(data.Write)
	return data
}

// effect returns the effect on the Instance, or on an add-on whose Instance is unknown.
func (c *Change) effect() preview.Effect {
	switch {
	case c.After == nil && c.Before == nil && c.Step != nil:
		return c.Step.effect()
	case c.After == nil:
		return preview.Removed
	case c.Before == nil:
		return preview.Created
	case !SameSpec(c.Before, c.After):
		return preview.Changed
	default:
		return preview.Unchanged
	}
}

// writes returns the objects on the hub that the change writes.
func (c *Change) writes(effect preview.Effect) []string {
	switch {
	case c.Object != "":
		return []string{c.Object}
	case c.Step != nil:
		return c.Step.Objects()
	case effect == preview.Unchanged:
		return nil
	default:
		return []string{text.ObjectName(kudo.GroupVersion.Group, "Instance", c.After.Name)}
	}
}

// maxUnknownKinds is the number of kinds that NotChecked names.
const maxUnknownKinds = 5

// NotChecked lists what only the clusters know about the changes; nothing if they apply no objects.
func NotChecked(changes []ChangeData) []string {
	var isNew, exists bool
	var kinds []string
	for _, c := range changes {
		effects := c.AppliedEffects()
		isNew = isNew || slices.Contains(effects, preview.Created)
		exists = exists || slices.ContainsFunc(effects, func(e preview.Effect) bool { return e != preview.Created })
		for _, kind := range c.UnknownKinds {
			if kind = text.Word(kind); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	var unchecked []string
	if isNew {
		unchecked = append(unchecked, "whether the objects to create already exist, and who owns them")
	}
	if exists {
		unchecked = append(unchecked, "manual changes to existing objects")
	}
	if len(kinds) > 0 {
		unchecked = append(unchecked, "whether these kinds exist: "+text.List(kinds, maxUnknownKinds))
	}
	if isNew || exists {
		unchecked = append(unchecked, "permissions, quotas, admission webhooks and policies")
	}
	return unchecked
}

// Footer names what the dry run did not check; empty if it checked everything.
func (d DryRun) Footer() string {
	if len(d.NotChecked) == 0 {
		return ""
	}
	var clusters []string
	for _, c := range d.Changes {
		for _, cluster := range c.Clusters {
			if !slices.Contains(clusters, cluster) {
				clusters = append(clusters, cluster)
			}
		}
	}
	who := "the clusters know"
	if len(clusters) == 1 {
		who = clusters[0] + " knows"
	}
	return "Not checked, because only " + who + ": " + strings.Join(d.NotChecked, "; ") + "."
}
