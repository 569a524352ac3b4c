package pack

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Check applies the rules of verification to an OperatorVersion. Its findings have a Field instead of a file; those about the text of a
// template have the line in it.
func Check(spec *kudo.OperatorVersionSpec) []Finding {
	return newSubject(spec).judge()
}

// rules of verification, each about one subject. Every rule gets the whole OperatorVersion and reports all of its findings.
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

// judge applies the rules in their order.
func (s *subject) judge() []Finding {
	var findings []Finding
	for _, rule := range rules {
		findings = append(findings, rule(s)...)
	}
	return findings
}
