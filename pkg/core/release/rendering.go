// Package release decides what an execution of a Helm task does next: definitions, hooks, manifests, hooks again. It is pure and knows no chart,
// only what one has rendered.
package release

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrInvalidOutput is wrapped by errors of charts that render text that is not the YAML of objects.
var ErrInvalidOutput = errors.New("the chart renders invalid YAML")

// ErrCleanup is why a plan cannot run a Helm task.
var ErrCleanup = errors.New("a Helm task cannot be part of plan cleanup, because charts are removed after that plan: remove the task from the plan")

// Rendering is what a chart renders.
type Rendering struct {
	// Definitions are the objects in crds/ of the chart and of its enabled subcharts.
	Definitions []Object `json:"definitions,omitempty"`
	// Hooks are in the order in which those of one event run.
	Hooks []Hook `json:"hooks,omitempty"`
	// Objects are all others, in the order in which they are applied.
	Objects []Object `json:"objects,omitempty"`
	// Warnings are problems with which the chart is rendered all the same.
	Warnings []string `json:"warnings,omitempty"`
	// Unknown are API versions (GROUP/VERSION) that the Instance serves itself, and whose kinds were unknown to the chart: what it no longer renders may
	// depend on them.
	Unknown []string `json:"unknown,omitempty"`
}

// Object is an object of a chart, and the file that it comes from.
type Object struct {
	Source string                     `json:"source,omitempty"`
	Object *unstructured.Unstructured `json:"object"`
}

// Hook is an object of a chart that is applied when something happens to its release.
type Hook struct {
	Object
	Events []Event `json:"events"`
	Weight int     `json:"weight,omitempty"`
	// DeletePolicies are those of the annotation helm.sh/hook-delete-policy; before-hook-creation if it has none.
	DeletePolicies []DeletePolicy `json:"deletePolicies"`
}

// Event is what a hook is applied at.
type Event string

// The events at which hooks are applied. Helm has further ones, for rollbacks and for tests.
const (
	PreInstall  Event = "pre-install"
	PostInstall Event = "post-install"
	PreUpgrade  Event = "pre-upgrade"
	PostUpgrade Event = "post-upgrade"
	PreDelete   Event = "pre-delete"
	PostDelete  Event = "post-delete"
)

// DeletePolicy states when a hook is deleted.
type DeletePolicy string

// The delete policies of hooks.
const (
	HookSucceeded      DeletePolicy = "hook-succeeded"
	HookFailed         DeletePolicy = "hook-failed"
	BeforeHookCreation DeletePolicy = "before-hook-creation"
)

// DeepCopy returns a copy whose objects the caller may change.
func (r Rendering) DeepCopy() Rendering {
	copied := Rendering{Warnings: r.Warnings, Unknown: r.Unknown}
	for _, o := range r.Definitions {
		copied.Definitions = append(copied.Definitions, Object{Source: o.Source, Object: o.Object.DeepCopy()})
	}
	for _, hook := range r.Hooks {
		hook.Object.Object = hook.Object.Object.DeepCopy()
		copied.Hooks = append(copied.Hooks, hook)
	}
	for _, o := range r.Objects {
		copied.Objects = append(copied.Objects, Object{Source: o.Source, Object: o.Object.DeepCopy()})
	}
	return copied
}
