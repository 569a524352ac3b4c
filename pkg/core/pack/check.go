package pack

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
