package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
)

// The condition types of a ManagedClusterAddOn that Tandem writes.
const (
	// ConditionAvailable means that the add-on works. Set by the agent.
	ConditionAvailable = upstream.ManagedClusterAddOnConditionAvailable
	// ConditionDegraded means that dependencies of the add-on are not satisfied. Set by the hub.
	ConditionDegraded = upstream.ManagedClusterAddOnConditionDegraded
	// ConditionConfigured means that OCM has resolved the add-on's configuration. Set by OCM.
	ConditionConfigured = upstream.ManagedClusterAddOnConditionConfigured
	// ConditionResolved means that the Instance of a plan-based add-on was created from its configuration. Set by the hub.
	ConditionResolved = "Resolved"
	// ConditionManifestApplied means that the current configuration of the add-on was applied to the cluster. OCM requires it to count
	// rollouts. Set by the hub for plan-based add-ons, and for others by the controller that delivers them.
	ConditionManifestApplied = upstream.ManagedClusterAddOnManifestApplied
	// ConditionAddOnsRemaining means that the add-on is being deleted, and that others are removed from its cluster first: those that depend
	// on it, or if it is AgentAddOn, all add-ons and Instances that the agent removes. Set by the hub.
	ConditionAddOnsRemaining = "AddOnsRemaining"
)

// The reasons of ConditionDegraded (OCM's Addon Dependency Management proposal).
const (
	// ReasonDependencyNotSatisfied means that Optional dependencies are not installed or not available. The add-on may still work.
	ReasonDependencyNotSatisfied = "DependencyNotSatisfied"
	// ReasonRequiredDependencyNotSatisfied means that Required dependencies are not installed or not available. The add-on cannot
	// work, and the agent sets ConditionAvailable to False with the same reason.
	ReasonRequiredDependencyNotSatisfied = "RequiredDependencyNotSatisfied"
)

// The reasons of ConditionAvailable, for a plan-based add-on.
const (
	// ReasonPlanComplete means that the add-on's last plan is complete and all applied objects are healthy.
	ReasonPlanComplete = "PlanComplete"
	// ReasonUpdating means that a plan updates the available add-on, and that its workloads have stayed available so far. What waits for the
	// end of a plan, such as the first installation of dependents, waits for ReasonPlanComplete.
	ReasonUpdating = "Updating"
	// ReasonNotInstalled means that the hub has not created the add-on's Instance yet. Condition Resolved gives the cause.
	ReasonNotInstalled = "NotInstalled"
)

// The reasons of ConditionManifestApplied, in addition to ReasonPlanComplete, for a plan-based add-on.
const (
	// ReasonPlanNotComplete means that no plan has completed yet with the add-on's current configuration.
	ReasonPlanNotComplete = "PlanNotComplete"
	// ReasonSoaking means that the plan is complete, and that the add-on has to be healthy for longer before a rollout counts the cluster as done.
	ReasonSoaking = "Soaking"
	// ReasonSoakFailed means that the add-on was unhealthy for too long after its plan, or that its containers restart again and again.
	ReasonSoakFailed = "SoakFailed"
	// ReasonHealthyForInvalid means that annotation kudo.dev/healthy-for of the configuration is malformed: a rollout does not continue.
	ReasonHealthyForInvalid = "HealthyForInvalid"
	// ReasonAgentTooOld means that the agent of the cluster does not report for how long the add-on is healthy.
	ReasonAgentTooOld = "AgentTooOld"
)

// RolloutReasons are the reasons of ConditionManifestApplied of a plan-based add-on.
func RolloutReasons() []string {
	return []string{ReasonPlanComplete, ReasonPlanNotComplete, ReasonSoaking, ReasonSoakFailed, ReasonHealthyForInvalid, ReasonAgentTooOld}
}

// The reasons of ConditionAddOnsRemaining.
const (
	// ReasonWaitingForDependents means that the add-ons named in the message are being removed, too, and depend on the add-on.
	ReasonWaitingForDependents = "WaitingForDependents"
	// ReasonWaitingForRemoval means that the add-ons and Instances named in the message must be removed first.
	ReasonWaitingForRemoval = "WaitingForRemoval"
)

// The reasons of ConditionAvailable, for an add-on that renews a lease on its managed cluster; they are OCM's.
const (
	// ReasonLeaseUpdated means that the add-on's lease was renewed recently.
	ReasonLeaseUpdated = "ManagedClusterAddOnLeaseUpdated"
	// ReasonLeaseStopped means that the add-on's lease has not been renewed for more than five lease durations.
	ReasonLeaseStopped = "ManagedClusterAddOnLeaseUpdateStopped"
	// ReasonLeaseNotFound means that the install namespace contains no lease with the add-on's name.
	ReasonLeaseNotFound = "ManagedClusterAddOnLeaseNotFound"
)

// ReasonClusterLeaseStopped is the reason that OCM sets in ConditionAvailable (status Unknown) of every add-on on an
// unreachable ManagedCluster. Without OCM, the hub sets it when AgentLease is no longer renewed.
const ReasonClusterLeaseStopped = "ManagedClusterLeaseUpdateStopped"

// AgentLease is the name of the Lease that the agent of a cluster keeps in the cluster's namespace on the hub. The agent renews it
// only if no OCM klusterlet reports the cluster's liveness; otherwise the Lease has no time and only carries the agent's version.
const AgentLease = "addon-agent"

// ManagerConfigMap is the name of addon-manager's ConfigMap in its namespace on the hub. It holds the CA bundle of the webhooks and
// addon-manager's version.
const ManagerConfigMap = "addon-manager-webhooks"

// LeaderLease is the name of the Lease of the leading addon-manager in its namespace on the hub, with --leader-elect.
const LeaderLease = "tandem-addon-manager"

// LabelVersion is the label of AgentLease and ManagerConfigMap that holds the version of the program that writes them.
const LabelVersion = "app.kubernetes.io/version"

// VersionLabel returns a version as a label value, or an empty string if it cannot be one: an unusual version must not cause an error.
func VersionLabel(version string) string {
	value := strings.ReplaceAll(version, "+", "_") // as Helm does with the builds of semantic versions
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}

// AgentAddOn is the add-on name of Tandem's agent. It is the name of its ClusterManagementAddOn if OCM delivers the agent, part of the
// names of its users and groups on the hub, and the name of the Lease that it renews on the managed cluster for OCM's klusterlet.
const AgentAddOn = "tandem"

// FinalizerAgent keeps AgentAddOn until the agent has removed everything from the cluster that only the agent can remove.
const FinalizerAgent = "kudo.dev/agent"

// AgentName is the agent name that OCM uses for AgentAddOn.
const AgentName = "addon-agent"

// The reasons of ConditionResolved of a ManagedClusterAddOn, in addition to the reasons for an Instance.
const (
	// ReasonWaitingForDependencies means that the add-on is installed once its Required dependencies are satisfied.
	ReasonWaitingForDependencies = "WaitingForDependencies"
	// ReasonWaitingForConfiguration means that OCM has not resolved the add-on's configuration yet.
	ReasonWaitingForConfiguration = "WaitingForConfiguration"
	// ReasonConfigurationInvalid means that the configuration names no OperatorVersion, an OperatorVersion in a namespace that agents
	// may not read, an AddOnDeploymentConfig in the namespace of another cluster, or misspelt parameters; or that the definition no longer
	// names OperatorVersions.
	ReasonConfigurationInvalid = "ConfigurationInvalid"
	// ReasonInstanceRefused means that the hub's API server rejected the add-on's Instance, for example because of a policy or missing
	// permissions. It is retried with increasing intervals.
	ReasonInstanceRefused = "InstanceRefused"
	// ReasonConfigurationNotFound means that a configuration object does not exist.
	ReasonConfigurationNotFound = "ConfigurationNotFound"
)

// The API groups and resources of supported configurations. A ClusterManagementAddOn that supports GroupKudo and
// ResourceOperatorVersions is plan-based.
const (
	GroupKudo                = "kudo.dev"
	ResourceOperatorVersions = "operatorversions"

	// ResourceAddOnDeploymentConfigs belongs to the API group of this package.
	ResourceAddOnDeploymentConfigs = "addondeploymentconfigs"

	// ResourceConfigMaps belongs to the core API group, whose name is empty.
	ResourceConfigMaps = "configmaps"
)
