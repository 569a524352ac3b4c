package pack

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// MaxItems limits the parameters, tasks, templates, plans, phases and steps of an OperatorVersion, and what they list: each may cause
	// several problems, which take memory.
	MaxItems = 10_000
	// MaxTemplates limits the templates: parsing takes memory for each, however short it is.
	MaxTemplates = 1000
	// MaxNameBytes limits every name in an OperatorVersion, because messages list names.
	MaxNameBytes = 1024
)

// excess returns the problem that keeps an OperatorVersion from being verified at all; nil if there is none. Admission verifies versions of
// everyone who may create one.
func excess(spec *kudo.OperatorVersionSpec) []Problem {
	if problems := boundedSize(&subject{OperatorVersionSpec: spec}); len(problems) > 0 {
		return problems
	}
	all := tallyOf(spec)
	switch {
	case len(spec.Templates) > MaxTemplates:
		return []Problem{problemAt("templates", "the OperatorVersion has %d templates, more than the limit of %d: split the operator",
			len(spec.Templates), MaxTemplates)}
	case all.items > MaxItems:
		return []Problem{problemAt("tasks", "the OperatorVersion has %d parameters, tasks, templates, steps and references to them, "+
			"more than the limit of %d: split the operator", all.items, MaxItems)}
	case len(all.largestName) > MaxNameBytes:
		return []Problem{problemAt("tasks", "the name %s has %d bytes, more than the limit of %d: shorten it",
			text.Quote(all.largestName), len(all.largestName), MaxNameBytes)}
	default:
		return nil
	}
}

// tally counts the items of an OperatorVersion, and keeps the longest of their names.
type tally struct {
	items       int
	largestName string
}

// add counts an item with its names.
func (t *tally) add(names ...string) {
	t.items++
	for _, name := range names {
		if len(name) > len(t.largestName) {
			t.largestName = name
		}
	}
}

func tallyOf(spec *kudo.OperatorVersionSpec) *tally {
	all := &tally{}
	all.add(spec.Operator.Name, spec.Version, spec.AppVersion)
	for name := range spec.Templates {
		all.add(name)
	}
	for _, file := range spec.Content {
		all.add(file.File)
		all.items += len(file.Parts)
	}
	for i := range spec.Parameters {
		p := &spec.Parameters[i]
		all.add(p.Name, string(p.Type), p.Trigger)
		all.items += len(p.Enum)
	}
	for i := range spec.Tasks {
		all.task(&spec.Tasks[i])
	}
	for i := range spec.Health {
		all.add(spec.Health[i].Group, spec.Health[i].Kind)
	}
	all.permissions(spec.Permissions)
	all.drift(spec.Drift)
	for name, plan := range spec.Plans {
		all.add(name, string(plan.Strategy))
		for _, phase := range plan.Phases {
			all.add(phase.Name, string(phase.Strategy))
			for _, step := range phase.Steps {
				all.add(step.Name)
				for _, task := range step.Tasks {
					all.add(task)
				}
			}
		}
	}
	return all
}

func (t *tally) task(task *kudo.Task) {
	t.add(task.Name, task.Kind, task.Spec.Parameter, task.Spec.Pod, task.Spec.ParameterFile, task.Spec.EnablingParameter, task.Spec.InstanceName)
	for _, template := range task.Spec.Resources {
		t.add(template)
	}
	for _, file := range task.Spec.Pipe {
		t.add(file.Key, file.Kind)
	}
}

func (t *tally) drift(d *kudo.PackageDrift) {
	if d == nil {
		return
	}
	for _, fields := range d.Ignore {
		t.add(fields.Kind, fields.Name)
		t.add(fields.Paths...)
	}
}

func (t *tally) permissions(p *kudo.Permissions) {
	if p == nil {
		return
	}
	t.rules(p.Rules)
	t.rules(p.ClusterRules)
	for _, n := range p.Namespaces {
		t.add(n.Name)
		t.rules(n.Rules)
	}
}

func (t *tally) rules(rules []rbacv1.PolicyRule) {
	for _, r := range rules {
		t.add()
		for _, name := range slices.Concat(r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs, r.Verbs) {
			t.add(name)
		}
	}
}
