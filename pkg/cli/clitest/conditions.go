package clitest

import (
	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var (
	Works         = Condition(addon.ConditionAvailable, "True", addon.ReasonPlanComplete, "")
	Fails         = Condition(addon.ConditionAvailable, "False", "PlanFailed", "plan deploy: Deployment kafka/kafka: image not found.")
	Missing       = Condition(addon.ConditionAvailable, "False", "Unhealthy", "StatefulSet data/zookeeper: is missing")
	Unhealthy     = Condition(addon.ConditionAvailable, "False", "Unhealthy", "StatefulSet data/zookeeper: 0 of 3 pods ready")
	OutOfTouch    = Condition(addon.ConditionAvailable, "Unknown", addon.ReasonClusterLeaseStopped, "Registration agent stopped updating its lease.")
	NoProbe       = Condition(addon.ConditionAvailable, "Unknown", "ProbeUnavailable", "")
	Held          = Condition(addon.ConditionResolved, "False", addon.ReasonWaitingForDependencies, "waits for zookeeper")
	Resolved      = Condition(addon.ConditionResolved, "True", "Resolved", "")
	BadParameters = Condition(addon.ConditionResolved, "False", kudo.ReasonParametersInvalid, `parameter "X": value "two": want an integer, such as 3`)
	BadConfig     = Condition(addon.ConditionResolved, "False", addon.ReasonConfigurationInvalid, `variable "X" is not defined`)
	NotThereYet   = Condition(addon.ConditionAvailable, "False", addon.ReasonNotInstalled, "the add-on is not installed")
	NotThereFor   = Condition(addon.ConditionAvailable, "False", addon.ReasonNotInstalled, "the add-on is not installed: ConfigurationInvalid: "+BadConfig.Message)
	DiskFull      = Condition(addon.ConditionDegraded, "True", "DiskFull", "5 % left.")
	VerdictThen   = Condition(addon.ConditionDegraded, "True", addon.ReasonRequiredDependencyNotSatisfied,
		"Required addon 'zookeeper' is not installed or not available.")
	HeldBack = Condition(addon.ConditionAvailable, "False", addon.ReasonRequiredDependencyNotSatisfied,
		"Required addon 'zookeeper' is not installed or not available.")
)
