package preview

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Data is a preview in a form that can be printed, without values of Secrets. It lists the plans that an Instance would run.
type Data struct {
	// Claims lists the volume claims that a removal deletes with their data, and those that stay.
	Claims     []ObjectData `json:"claims,omitempty"`
	WaitingFor string       `json:"waitingFor,omitempty"`
	Plans      []PlanData   `json:"plans"`
	Removed    []ObjectData `json:"removed,omitempty"`
	Children   []ChildData  `json:"children,omitempty"`
	Problem    string       `json:"problem,omitempty"`
}

// PlanData is a plan that would run.
type PlanData struct {
	Plan  string     `json:"plan"`
	Cause plan.Cause `json:"cause"`
	// Parameters lists the changed parameters that the plan runs with.
	Parameters []string `json:"parameters,omitempty"`
	// ImageRegistries is set if the plan runs with other mirrors of images.
	ImageRegistries bool `json:"imageRegistries,omitempty"`
	// RestartsPods is set if pods restart even if nothing else in them changes; NoRestart lists the changed parameters that do not restart pods.
	RestartsPods bool         `json:"restartsPods"`
	NoRestart    []string     `json:"noRestart,omitempty"`
	Tasks        []TaskData   `json:"tasks"`
	Removed      []ObjectData `json:"removed,omitempty"`
	Children     []ChildData  `json:"children,omitempty"`
	// Problem is why the plan would not start.
	Problem string `json:"problem,omitempty"`
}

// TaskData is a task of a plan.
type TaskData struct {
	Phase   string          `json:"phase"`
	Step    string          `json:"step"`
	Task    string          `json:"task"`
	Kind    string          `json:"kind"`
	Action  plan.TaskAction `json:"action,omitempty"`
	Objects []ObjectData    `json:"objects,omitempty"`
	Child   *ChildData      `json:"child,omitempty"`
	Problem string          `json:"problem,omitempty"`
	// Warnings state why the task may fail.
	Warnings []string `json:"warnings,omitempty"`
}

// ObjectData is an object on the managed cluster. The namespace is empty unless the package sets it.
type ObjectData struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Effect    Effect `json:"effect"`
	Note      string `json:"note,omitempty"`
	Diff      string `json:"diff,omitempty"`
}

// ChildData is a child Instance and the plans that it would run.
type ChildData struct {
	Instance        string `json:"instance"`
	OperatorVersion string `json:"operatorVersion,omitempty"`
	Effect          Effect `json:"effect"`
	*Data
}

// DataOf returns the preview in a form that can be printed.
func DataOf(p Preview) Data {
	data := Data{
		Claims: objectsOf(p.Claims), WaitingFor: p.WaitsFor, Plans: []PlanData{}, Removed: objectsOf(p.Removed), Children: childrenOf(p.Children), Problem: p.Problem,
	}
	for _, coming := range p.Plans {
		next := PlanData{
			Plan: coming.Plan, Cause: coming.Cause, Parameters: coming.Changed, ImageRegistries: coming.Registries,
			RestartsPods: coming.Restart, NoRestart: coming.NoRestart,
			Tasks: []TaskData{}, Removed: objectsOf(coming.Removed), Children: childrenOf(coming.Children), Problem: coming.Problem,
		}
		for _, t := range coming.Tasks {
			next.Tasks = append(next.Tasks, taskOf(t))
		}
		data.Plans = append(data.Plans, next)
	}
	return data
}

func taskOf(t Task) TaskData {
	data := TaskData{
		Phase: t.Phase, Step: t.Step, Task: t.Task.Name, Kind: t.Task.Kind, Action: t.Action, Objects: objectsOf(t.Objects), Problem: t.Problem,
		Warnings: t.Warnings,
	}
	if t.Child != nil {
		data.Child = new(childOf(*t.Child))
	}
	return data
}

func childOf(c Child) ChildData {
	data := ChildData{Instance: c.Instance, OperatorVersion: c.OperatorVersion, Effect: c.Effect}
	if c.Preview != nil {
		data.Data = new(DataOf(*c.Preview))
	}
	return data
}

func childrenOf(children []Child) []ChildData {
	var data []ChildData
	for _, c := range children {
		data = append(data, childOf(c))
	}
	return data
}

func objectsOf(objects []Object) []ObjectData {
	var data []ObjectData
	for _, o := range objects {
		next := ObjectData{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Effect: o.Effect, Note: o.Note}
		if o.After != nil && o.Effect != Unchanged && o.Effect != Renewed {
			before, after := maskSecrets(o.Before, o.After)
			next.Diff = text.Diff(strings.ReplaceAll(o.InventoryEntry.String(), " ", "/"), textOf(before), textOf(after))
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
	content, err := text.YAML(o.Object)
	if err != nil {
		return err.Error() // rendered objects always marshal
	}
	return string(content)
}

// Err returns the first problem of a plan, a task or a child; nil if there is none.
func (d Data) Err() error {
	if d.Problem != "" {
		return errors.New(d.Problem)
	}
	for _, p := range d.Plans {
		if err := p.err(); err != nil {
			return err
		}
	}
	return problemOf(d.Children)
}

func (p PlanData) err() error {
	if p.Problem != "" {
		return errors.New(p.Problem)
	}
	for _, t := range p.Tasks {
		switch {
		case t.Problem != "":
			return fmt.Errorf("task %q: %s", t.Task, t.Problem)
		case t.Child == nil:
		case problemOf([]ChildData{*t.Child}) != nil:
			return problemOf([]ChildData{*t.Child})
		}
	}
	return problemOf(p.Children)
}

func problemOf(children []ChildData) error {
	for _, c := range children {
		if c.Data == nil {
			continue
		}
		if err := c.Err(); err != nil {
			return err
		}
	}
	return nil
}

// AppliedEffects returns the effects on the objects that tasks apply, including those of children.
func (d Data) AppliedEffects() []Effect {
	var effects []Effect
	for _, p := range d.Plans {
		for _, t := range p.Tasks {
			for _, o := range t.Objects {
				if o.Effect != Removed {
					effects = append(effects, o.Effect)
				}
			}
			if t.Child != nil && t.Child.Data != nil {
				effects = append(effects, t.Child.AppliedEffects()...)
			}
		}
	}
	return effects
}

// TaskWarnings returns the warnings of all tasks, including those of children.
func (d Data) TaskWarnings() []string {
	var warnings []string
	for _, p := range d.Plans {
		for _, t := range p.Tasks {
			for _, warning := range t.Warnings {
				warnings = append(warnings, fmt.Sprintf("task %q: %s", t.Task, warning))
			}
			if t.Child != nil && t.Child.Data != nil {
				warnings = append(warnings, t.Child.TaskWarnings()...)
			}
		}
	}
	return warnings
}
