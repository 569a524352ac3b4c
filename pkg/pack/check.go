package pack

import (
	"fmt"
	"strings"
	"text/template"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Check applies the rules of verification to an OperatorVersion. Its findings have a Field instead of a file; those about
// the text of a template have the line in it.
func Check(spec *kudo.OperatorVersionSpec) []Finding {
	return newSubject(spec).judge()
}

// rules of verification, each about one matter. Every rule sees the whole subject and says everything it finds.
var rules = []func(*subject) []Finding{
	operatorName,
	versions,
	operatorDetails,
	boundedSize,

	parameterNames,
	parameterValues,
	parameterTriggers,
	immutableParameters,
	switchingParameters,
	unusedParameters,

	taskNames,
	taskKinds,
	taskFields,
	taskResources,
	toggleParameters,
	pipeShapes,
	pipeOrder,
	childOperators,
	unusedTasks,
	endlessTasks,

	deployPlan,
	planStrategies,
	planNames,
	planTimeouts,
	stepTasks,
	cleanupWithoutChildren,

	templateSyntax,
	templateReferences,
	unusedTemplates,
	removedAPIVersions,
	namespaceManifest,
	ownNamespaces,
	fixedNames,
}

// subject is what the rules judge, with what several of them need.
type subject struct {
	*kudo.OperatorVersionSpec
	// operator is what a package says beside its version; nothing where only an OperatorVersion is judged.
	operator kudo.OperatorSpec
	// blind says that the parameters could not be read: then nothing is said about one that does not exist.
	blind bool
	// What there is by name, the first of a name that stands twice, and what messages list: a package may have thousands of each.
	parameters                                          map[string]*kudo.Parameter
	tasks                                               map[string]*kudo.Task
	parameterNames, taskNames, planNames, templateNames []string
	// parsed templates by name; those with wrong syntax are missing and stand in broken.
	parsed map[string]*template.Template
	broken map[string]error
	// references of the templates, by template and in order of appearance.
	references map[string][]reference
	// searches counts how often a name was looked for that may be meant: a package may have a hundred thousand wrong ones.
	searches int
}

func newSubject(spec *kudo.OperatorVersionSpec) *subject {
	s := &subject{
		OperatorVersionSpec: spec,
		parsed:              map[string]*template.Template{},
		broken:              map[string]error{},
		references:          map[string][]reference{},
		planNames:           sortedKeys(spec.Plans),
		templateNames:       sortedKeys(spec.Templates),
	}
	s.parameterNames, s.parameters = byName(spec.Parameters, func(p *kudo.Parameter) string { return p.Name })
	s.taskNames, s.tasks = byName(spec.Tasks, func(t *kudo.Task) string { return t.Name })
	for name, text := range spec.Templates {
		t, err := render.Parse(name, text)
		if err != nil {
			s.broken[name] = err
			continue
		}
		s.parsed[name] = t
		s.references[name] = references(t, text)
	}
	return s
}

// byName lists the names of items, and finds the first of each.
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

// judge applies the rules in their order.
func (s *subject) judge() []Finding {
	var findings []Finding
	for _, rule := range rules {
		findings = append(findings, rule(s)...)
	}
	return findings
}

// eachStep visits the steps of all plans, plans sorted by name.
func (s *subject) eachStep(visit func(plan string, step *kudo.Step, field string)) {
	for _, plan := range s.planNames {
		for i, phase := range s.Plans[plan].Phases {
			for j := range phase.Steps {
				visit(plan, &phase.Steps[j], fmt.Sprintf("plans.%s.phases[%d].steps[%d]", plan, i, j))
			}
		}
	}
}

func faultAt(field, format string, args ...any) Finding {
	return Finding{Field: field, Severity: Error, Message: fmt.Sprintf(format, args...)}
}

func warningAt(field, format string, args ...any) Finding {
	return Finding{Field: field, Severity: Warning, Message: fmt.Sprintf(format, args...)}
}

const (
	// maxChoices is the number of names that a message lists as the way out.
	maxChoices = 12
	// maxSearches is the number of wrong names that are compared with all that there are.
	maxSearches = 100
)

// choices says which of the names that there are may be meant, or lists them.
func (s *subject) choices(name string, names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	if s.searches++; s.searches <= maxSearches {
		if meant := text.ClosestMatch(name, names); meant != "" {
			return "did you mean " + meant + "?"
		}
	}
	return "there are " + strings.Join(text.Limit(names, maxChoices, "more"), ", ")
}

// repeated visits each index whose name stood before, with the first index of it. Names that differ in nothing but case are taken for
// the same too: nobody can tell them apart for long.
func repeated(names []string, visit func(i, first int)) {
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

// twice is the finding that a name stands where it stood before: an error, or a warning where the case differs.
func twice(field, where string, name, first string) Finding {
	if name == first {
		return faultAt(field, "%s stands twice: rename one", where)
	}
	return warningAt(field, "%s differs from %s in nothing but case: rename one", where, text.Quote(first))
}
