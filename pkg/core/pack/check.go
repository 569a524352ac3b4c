package pack

import (
	"fmt"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Check applies the rules of verification to an OperatorVersion. Its problems have a Field instead of a file; those about the text of a
// template have the line in it.
//
// An OperatorVersion that is too large to be verified in little memory has only problems that say so.
func Check(spec *kudo.OperatorVersionSpec) []Problem {
	if problems := excess(spec); len(problems) > 0 {
		return problems
	}
	return newSubject(spec).judge()
}

// rules of verification, each about one subject. Every rule gets the whole OperatorVersion and reports all of its problems.
var rules = []func(*subject) []Problem{
	operatorName,
	versions,
	requiredVersions,
	dependencies,
	boundedSize,
	contentFiles,
	declaredPermissions,
	healthRules,
	ignoredFields,

	parameterNames,
	parameterValues,
	parameterTriggers,
	immutableParameters,
	sensitiveParameters,
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
	helmTasks,
	unusedTasks,
	endlessTasks,

	deployPlan,
	planStrategies,
	planNames,
	planTimeouts,
	stepTasks,
	cleanupTasks,

	templateSyntax,
	templateReferences,
	unusedTemplates,
	removedAPIVersions,
	namespaceManifest,
	ownNamespaces,
	fixedNames,
}

// judge applies the rules in their order.
func (s *subject) judge() []Problem {
	var problems []Problem
	for _, rule := range rules {
		problems = append(problems, rule(s)...)
	}
	return problems
}

// problemLimit is the maximum number of problems in an error of Admit. The others are reported once those are fixed.
const problemLimit = 10

// Admit rejects a new OperatorVersion for which Check finds errors. Warnings are for the author of the package, and are shown by
// verification.
func Admit(version *kudo.OperatorVersion) error {
	problems := Errors(Check(version.NamedSpec()))
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, len(problems))
	for i, problem := range problems[:min(len(problems), problemLimit)] {
		lines[i] = problem.String()
	}
	return fmt.Errorf("OperatorVersion %s/%s is not valid; fix the package ('kubectl addon package verify DIR' checks it): %s",
		version.Namespace, version.Name, strings.Join(text.Limit(lines, problemLimit, "more errors"), "; "))
}
