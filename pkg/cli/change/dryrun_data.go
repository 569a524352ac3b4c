package change

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/preview"
)

// changesData is the output of --dry-run.
type changesData struct {
	// Changes lists identical changes of several clusters once, as on the first of them.
	Changes []changeData `json:"changes"`
	Refused []refusal    `json:"refused"`
}

// refusal is the reason why clusters are not changed.
type refusal struct {
	Clusters []string `json:"clusters"`
	// Message is the message for the first cluster; the other clusters have the same message apart from the name.
	Message string `json:"message"`
}

// changeData is a change of an Instance on each of the clusters. The name is empty if an add-on has no Instance yet.
type changeData struct {
	Clusters []string `json:"clusters"`
	Instance string   `json:"instance,omitempty"`
	// Write is the effect on the hub: created, changed, unchanged or removed.
	Write preview.Effect `json:"write"`
	// Writes lists the objects to write on the hub.
	Writes []string `json:"writes,omitempty"`
	// From and To are the names of OperatorVersions.
	From     string   `json:"from,omitempty"`
	To       string   `json:"to,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	comingData
}

// comingData lists the plans that an Instance would run.
type comingData struct {
	WaitingFor string       `json:"waitingFor,omitempty"`
	Plans      []planData   `json:"plans"`
	Removed    []objectData `json:"removed,omitempty"`
	Children   []childData  `json:"children,omitempty"`
	Problem    string       `json:"problem,omitempty"`
}

// planData is a plan that would run.
type planData struct {
	Plan  string     `json:"plan"`
	Cause plan.Cause `json:"cause"`
	// Parameters lists the changed parameters that the plan runs with.
	Parameters []string `json:"parameters,omitempty"`
	// RestartsPods is set if pods restart even if nothing else in them changes; NoRestart lists the changed parameters that do not restart pods.
	RestartsPods bool         `json:"restartsPods"`
	NoRestart    []string     `json:"noRestart,omitempty"`
	Tasks        []taskData   `json:"tasks"`
	Removed      []objectData `json:"removed,omitempty"`
	Children     []childData  `json:"children,omitempty"`
}

// taskData is a task of a plan.
type taskData struct {
	Phase   string          `json:"phase"`
	Step    string          `json:"step"`
	Task    string          `json:"task"`
	Kind    string          `json:"kind"`
	Action  plan.TaskAction `json:"action,omitempty"`
	Objects []objectData    `json:"objects,omitempty"`
	Child   *childData      `json:"child,omitempty"`
	Problem string          `json:"problem,omitempty"`
}

// objectData is an object on the managed cluster. The namespace is empty unless the package sets it.
type objectData struct {
	Group     string         `json:"group,omitempty"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Effect    preview.Effect `json:"effect"`
	Diff      string         `json:"diff,omitempty"`
}

// childData is a child Instance and the plans that it would run.
type childData struct {
	Instance        string         `json:"instance"`
	OperatorVersion string         `json:"operatorVersion,omitempty"`
	Effect          preview.Effect `json:"effect"`
	*comingData
}

// changesOf returns the changes, with identical changes of several clusters grouped.
func changesOf(changes []change, refused refusals) changesData {
	data := changesData{Changes: []changeData{}, Refused: []refusal{}}
	var kinds []changeData
	for _, c := range changes {
		kind := c.anywhere().data()
		if i := slices.IndexFunc(kinds, func(other changeData) bool { return equality.Semantic.DeepEqual(other, kind) }); i >= 0 {
			data.Changes[i].Clusters = append(data.Changes[i].Clusters, c.cluster)
			continue
		}
		kinds, data.Changes = append(kinds, kind), append(data.Changes, c.data())
	}
	for _, cluster := range slices.Sorted(maps.Keys(refused)) {
		message := refused[cluster].Error()
		same := func(r refusal) bool { return strings.ReplaceAll(r.Message, r.Clusters[0], cluster) == message }
		if i := slices.IndexFunc(data.Refused, same); i >= 0 {
			data.Refused[i].Clusters = append(data.Refused[i].Clusters, cluster)
			continue
		}
		data.Refused = append(data.Refused, refusal{Clusters: []string{cluster}, Message: message})
	}
	return data
}

// anywhere returns the change with the cluster's name replaced in namespaces, so that changes of different clusters can be compared: each
// Instance is in the namespace of its cluster.
func (c *change) anywhere() *change {
	const nowhere = "cluster"
	move := func(i *kudo.Instance) *kudo.Instance {
		if i == nil || i.TargetNamespace() != c.cluster {
			return i
		}
		i = i.DeepCopy()
		i.Spec.InstallNamespace = nowhere
		for at := range i.Status.Inventory {
			if entry := &i.Status.Inventory[at]; entry.Namespace == c.cluster {
				entry.Namespace = nowhere
			}
		}
		return i
	}
	moved := *c
	moved.cluster, moved.Before, moved.After, moved.Instances = nowhere, move(c.Before), move(c.After), nil
	for i := range c.Instances {
		moved.Instances = append(moved.Instances, *move(&c.Instances[i]))
	}
	return &moved
}

func (c *change) data() changeData {
	data := changeData{
		Clusters: []string{c.cluster}, Write: preview.Unchanged, Warnings: c.warnings, comingData: comingOf(preview.Of(c.Change)),
	}
	switch {
	case c.After == nil && c.Before == nil: // an add-on without an Instance yet
		data.Write = preview.Removed
	case c.After == nil:
		data.Instance, data.Write = c.Before.Name, preview.Removed
	case c.Before == nil:
		data.Instance, data.Write = c.After.Name, preview.Created
	default:
		data.Instance = c.After.Name
	}
	if c.Before != nil {
		data.From = c.Before.Spec.OperatorVersion.Name
	}
	if c.After != nil {
		data.To = c.After.Spec.OperatorVersion.Name
	}
	if c.Before != nil && c.After != nil && !sameSpec(c.Before, c.After) {
		data.Write = preview.Changed
	}
	data.Writes = c.writes(data.Write)
	return data
}

// writes returns the objects on the hub that the command writes.
func (c *change) writes(effect preview.Effect) []string {
	switch {
	case c.object != "":
		return []string{c.object}
	case effect == preview.Unchanged && (c.step == nil || c.step.unchanged()):
		return nil
	case c.step == nil:
		return []string{terminal.ObjectName(kudo.GroupVersion.Group, "Instance", c.After.Name)}
	}
	var names []string
	if c.step.config != nil && !equality.Semantic.DeepEqual(c.step.currentConfig, c.step.config) {
		names = append(names, terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "AddOnDeploymentConfig", c.step.config.Name))
	}
	if !equality.Semantic.DeepEqual(c.step.current, c.step.wanted) {
		names = append(names, terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", c.step.wanted.Name))
	}
	return names
}

func comingOf(p preview.Preview) comingData {
	data := comingData{
		WaitingFor: p.WaitsFor, Plans: []planData{}, Removed: objectsOf(p.Removed), Children: childrenOf(p.Children), Problem: p.Problem,
	}
	for _, coming := range p.Plans {
		next := planData{
			Plan: coming.Plan, Cause: coming.Cause, Parameters: coming.Changed, RestartsPods: coming.Restart, NoRestart: coming.NoRestart,
			Tasks: []taskData{}, Removed: objectsOf(coming.Removed), Children: childrenOf(coming.Children),
		}
		for _, t := range coming.Tasks {
			next.Tasks = append(next.Tasks, taskOf(t))
		}
		data.Plans = append(data.Plans, next)
	}
	return data
}

func taskOf(t preview.Task) taskData {
	data := taskData{
		Phase: t.Phase, Step: t.Step, Task: t.Task.Name, Kind: t.Task.Kind, Action: t.Action, Objects: objectsOf(t.Objects), Problem: t.Problem,
	}
	if t.Child != nil {
		data.Child = new(childOf(*t.Child))
	}
	return data
}

func childOf(c preview.Child) childData {
	data := childData{Instance: c.Instance, OperatorVersion: c.OperatorVersion, Effect: c.Effect}
	if c.Preview != nil {
		data.comingData = new(comingOf(*c.Preview))
	}
	return data
}

func childrenOf(children []preview.Child) []childData {
	var data []childData
	for _, c := range children {
		data = append(data, childOf(c))
	}
	return data
}

func objectsOf(objects []preview.Object) []objectData {
	var data []objectData
	for _, o := range objects {
		next := objectData{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Effect: o.Effect}
		if o.After != nil && o.Effect != preview.Unchanged && o.Effect != preview.Renewed {
			before, after := terminal.RedactChange(o.Before, o.After)
			next.Diff = packages.Unified(strings.ReplaceAll(o.InventoryEntry.String(), " ", "/"), textOf(before), textOf(after))
		}
		data = append(data, next)
	}
	return data
}

// textOf returns an object as YAML.
func textOf(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	text, err := terminal.YAML(o.Object)
	if err != nil {
		return err.Error() // rendered objects always marshal
	}
	return string(text)
}

// unchanged reports whether there is nothing to write.
func (s step) unchanged() bool {
	return equality.Semantic.DeepEqual(s.current, s.wanted) && (s.config == nil || equality.Semantic.DeepEqual(s.currentConfig, s.config))
}

// fails reports whether a task or a plan would fail.
func (d changeData) fails() bool { return d.comingData.problem() != nil }

// problem returns the first error, or nil.
func (d comingData) problem() error {
	if d.Problem != "" {
		return errors.New(d.Problem)
	}
	for _, p := range d.Plans {
		if err := p.problem(); err != nil {
			return err
		}
	}
	return problemOf(d.Children)
}

func (p planData) problem() error {
	for _, t := range p.Tasks {
		switch {
		case t.Problem != "":
			return fmt.Errorf("task %q: %s", t.Task, t.Problem)
		case t.Child == nil:
		case problemOf([]childData{*t.Child}) != nil:
			return problemOf([]childData{*t.Child})
		}
	}
	return problemOf(p.Children)
}

func problemOf(children []childData) error {
	for _, c := range children {
		if c.comingData == nil {
			continue
		}
		if err := c.problem(); err != nil {
			return err
		}
	}
	return nil
}
