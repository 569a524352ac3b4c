package pack

import (
	"fmt"
	"slices"
	"strings"
	"text/template"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/render"
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
	unusedParameters,

	taskNames,
	taskKinds,
	taskFields,
	taskResources,
	toggleParameters,
	pipeShapes,
	childOperators,
	unusedTasks,
	endlessTasks,

	deployPlan,
	planStrategies,
	planNames,
	stepTasks,
	cleanupWithoutChildren,

	templateSyntax,
	templateReferences,
	unusedTemplates,
	removedAPIVersions,
	fixedNames,
}

// subject is what the rules judge, with what several of them need.
type subject struct {
	*kudo.OperatorVersionSpec
	// operator is what a package says beside its version; nothing where only an OperatorVersion is judged.
	operator kudo.OperatorSpec
	// parsed templates by name; those with wrong syntax are missing and stand in broken.
	parsed map[string]*template.Template
	broken map[string]error
	// references of the templates, by template and in order of appearance.
	references map[string][]reference
}

func newSubject(spec *kudo.OperatorVersionSpec) *subject {
	s := &subject{
		OperatorVersionSpec: spec,
		parsed:              map[string]*template.Template{},
		broken:              map[string]error{},
		references:          map[string][]reference{},
	}
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

// judge applies the rules in their order.
func (s *subject) judge() []Finding {
	var findings []Finding
	for _, rule := range rules {
		findings = append(findings, rule(s)...)
	}
	return findings
}

func (s *subject) parameter(name string) *kudo.Parameter {
	i := slices.IndexFunc(s.Parameters, func(p kudo.Parameter) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Parameters[i]
}

func (s *subject) task(name string) *kudo.Task {
	i := slices.IndexFunc(s.Tasks, func(t kudo.Task) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Tasks[i]
}

func (s *subject) parameterNames() []string {
	names := make([]string, len(s.Parameters))
	for i := range s.Parameters {
		names[i] = s.Parameters[i].Name
	}
	return names
}

func (s *subject) taskNames() []string {
	names := make([]string, len(s.Tasks))
	for i := range s.Tasks {
		names[i] = s.Tasks[i].Name
	}
	return names
}

// eachStep visits the steps of all plans, plans sorted by name.
func (s *subject) eachStep(visit func(plan string, step *kudo.Step, field string)) {
	for _, plan := range sortedKeys(s.Plans) {
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

// maxChoices is the number of names that a message lists as the way out.
const maxChoices = 12

// choices lists what there is instead of a name that is not there.
func choices(names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	if more := len(names) - maxChoices; more > 0 {
		names = append(slices.Clone(names[:maxChoices]), fmt.Sprintf("and %d more", more))
	}
	return "there are " + strings.Join(names, ", ")
}

// repeated visits each index whose name stood before.
func repeated(names []string, visit func(i int)) {
	seen := map[string]bool{}
	for i, name := range names {
		if name != "" && seen[name] {
			visit(i)
		}
		seen[name] = true
	}
}
