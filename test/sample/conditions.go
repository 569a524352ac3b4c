package sample

import (
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var (
	Works      = Condition(addonv1alpha1.ConditionAvailable, "True", addonv1alpha1.ReasonPlanComplete, "")
	Updates    = Condition(addonv1alpha1.ConditionAvailable, "True", addonv1alpha1.ReasonUpdating, `plan "upgrade" is running`)
	Fails      = Condition(addonv1alpha1.ConditionAvailable, "False", "PlanFailed", "plan deploy: Deployment kafka/kafka: image not found.")
	Missing    = Condition(addonv1alpha1.ConditionAvailable, "False", "Unhealthy", "StatefulSet data/zookeeper: is missing")
	Unhealthy  = Condition(addonv1alpha1.ConditionAvailable, "False", "Unhealthy", "StatefulSet data/zookeeper: 0 of 3 pods ready")
	OutOfTouch = Condition(addonv1alpha1.ConditionAvailable, "Unknown", addonv1alpha1.ReasonClusterLeaseStopped, "Registration agent stopped updating its lease.")
	NoProbe    = Condition(addonv1alpha1.ConditionAvailable, "Unknown", "ProbeUnavailable", "")
	Held       = Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies, "waits for zookeeper")
	Resolved   = Condition(addonv1alpha1.ConditionResolved, "True", "Resolved", "")
	Remarked   = Condition(addonv1alpha1.ConditionResolved, "True", "Resolved", "OperatorVersion addon-packages/shop-1.0.0\n"+
		`variables that OperatorVersion "shop-1.0.0" does not define are ignored: COLOUR`+"\n"+
		`the add-on stays in namespace "market" of the managed cluster: to move it to "fair", disable it, and enable it again after its removal`)
	BadParameters = Condition(addonv1alpha1.ConditionResolved, "False", kudo.ReasonParametersInvalid, `parameter "X": value "two": must be an integer, such as 3`)
	BadConfig     = Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonConfigurationInvalid, `variable "X" is not defined`)
	Soaking       = Condition(addonv1alpha1.ConditionManifestApplied, "False", addonv1alpha1.ReasonSoaking, "a plan has completed with the add-on's current configuration, "+
		"which has to be healthy for 10m0s: healthy since 2026-01-02T12:00:00Z, complete at 2026-01-02T12:10:00Z")
	NotRolledOut = Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForConfiguration, "the rollout of the last change waits for other clusters")
	// UpgradeWaits is the wait of shop for another version of kafka.
	UpgradeWaits = Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies,
		"waiting to change to shop-3.0.0: shop-3.0.0 requires kafka >=2, which runs version 1.0.0; change kafka to a version that satisfies >=2")
	NotThereYet = Condition(addonv1alpha1.ConditionAvailable, "False", addonv1alpha1.ReasonNotInstalled, "the add-on is not installed")
	NotThereFor = Condition(addonv1alpha1.ConditionAvailable, "False", addonv1alpha1.ReasonNotInstalled, "the add-on is not installed: ConfigurationInvalid: "+BadConfig.Message)
	DiskFull    = Condition(addonv1alpha1.ConditionDegraded, "True", "DiskFull", "5 % left.")
	VerdictThen = Condition(addonv1alpha1.ConditionDegraded, "True", addonv1alpha1.ReasonRequiredDependencyNotSatisfied,
		"Required addon 'zookeeper' is not installed or not available.")
	HeldBack = Condition(addonv1alpha1.ConditionAvailable, "False", addonv1alpha1.ReasonRequiredDependencyNotSatisfied,
		"Required addon 'zookeeper' is not installed or not available.")
)
