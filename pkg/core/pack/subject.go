package pack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/text"
)

// subject holds the input of the rules, with shared lookups.
type subject struct {
	*kudo.OperatorVersionSpec
	// operator is the package's description of the operator; empty if only an OperatorVersion is judged.
	operator kudo.OperatorSpec
	// blind is true if the parameters could not be decoded: missing ones are then not reported.
	blind bool
	// whole is true if the specification has the templates that are stored in OperatorContents.
	whole bool
	// unread are the templates whose files cannot be read, which is a problem of its own.
	unread map[string]bool
	// charts are what the charts of Helm tasks render, by the names of the tasks, once they are rendered.
	charts map[string]Chart
	// The existing items by name, the first of a duplicate name, and lists for messages: a package may have thousands of each.
	parameters                                          map[string]*kudo.Parameter
	tasks                                               map[string]*kudo.Task
	parameterNames, taskNames, planNames, templateNames []string
	// broken holds the errors of templates with wrong syntax.
	broken map[string]error
	// references of the other templates, by template and in order of appearance.
	references map[string][]reference
	// searches counts the searches for similar names: a package may have a hundred thousand wrong ones.
	searches int
}

func newSubject(spec *kudo.OperatorVersionSpec) *subject {
	s := &subject{
		OperatorVersionSpec: spec,
		broken:              map[string]error{},
		references:          map[string][]reference{},
		planNames:           sortedKeys(spec.Plans),
		templateNames:       sortedKeys(spec.Templates),
	}
	s.parameterNames, s.parameters = byName(spec.Parameters, func(p *kudo.Parameter) string { return p.Name })
	s.taskNames, s.tasks = byName(spec.Tasks, func(t *kudo.Task) string { return t.Name })
	for name, text := range spec.Templates {
		t, err := template.Parse(name, text)
		if err != nil {
			s.broken[name] = err
			continue
		}
		s.references[name] = references(t, text)
	}
	return s
}

// byName returns the names of items, and the first item of each name.
func byName[T any](items []T, nameOf func(*T) string) ([]string, map[string]*T) {
	names, found := make([]string, len(items)), make(map[string]*T, len(items))
	for i := range items {
		names[i] = nameOf(&items[i])
		if _, twice := found[names[i]]; !twice {
			found[names[i]] = &items[i]
		}
	}
	return names, found
}

// eachStep visits the steps of all plans, sorted by plan name.
func (s *subject) eachStep(visit func(plan string, step *kudo.Step, field string)) {
	for _, plan := range s.planNames {
		for i, phase := range s.Plans[plan].Phases {
			for j := range phase.Steps {
				visit(plan, &phase.Steps[j], fmt.Sprintf("plans.%s.phases[%d].steps[%d]", plan, i, j))
			}
		}
	}
}

// hasCharts reports whether the package has Helm tasks.
func (s *subject) hasCharts() bool {
	return slices.ContainsFunc(s.Tasks, func(t kudo.Task) bool { return t.Kind == kudo.TaskHelm })
}

const (
	// maxChoices is the maximum number of names that a message suggests.
	maxChoices = 12
	// maxSearches is the maximum number of wrong names that are compared with all existing ones.
	maxSearches = 100
)

// choices suggests the similar ones of the existing names, or lists them.
func (s *subject) choices(name string, names []string) string {
	if len(names) == 0 {
		return "none exist"
	}
	if s.searches++; s.searches <= maxSearches {
		if meant := text.ClosestMatch(name, names); meant != "" {
			return "did you mean " + meant + "?"
		}
	}
	return "must be one of " + strings.Join(text.Limit(names, maxChoices, "more"), ", ")
}

// visitRepeated visits each index with a name that occurred before, with its first index. Names that differ only in case count as equal
// too, because they are easily confused.
func visitRepeated(names []string, visit func(i, first int)) {
	exact, folded := map[string]int{}, map[string]int{}
	for i, name := range names {
		if name == "" {
			continue
		}
		if first, stood := exact[name]; stood {
			visit(i, first)
			continue
		}
		exact[name] = i
		fold := strings.ToLower(name)
		if first, stood := folded[fold]; stood {
			visit(i, first)
			continue
		}
		folded[fold] = i
	}
}

// twice returns the problem about a duplicate name: an error, or a warning if the case differs.
func twice(field, where string, name, first string) Problem {
	if name == first {
		return problemAt(field, "%s is defined twice: rename one", where)
	}
	return warningAt(field, "%s differs from %s only in case: rename one", where, text.Quote(first))
}

// asStored returns the specification as it is stored, without the templates that are too large for it.
func (s *subject) asStored() *kudo.OperatorVersionSpec {
	if !s.whole {
		return s.OperatorVersionSpec
	}
	stored, _ := content.Fit(s.OperatorVersionSpec, MaxSize)
	return stored
}

// size returns the number of bytes of the specification in JSON.
func size(spec *kudo.OperatorVersionSpec) int {
	text, err := json.Marshal(spec)
	if err != nil {
		return 0 // plain data always marshals
	}
	return len(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
