package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
)

// The condition types of a ManagedClusterAddOn that Tandem writes.
const (
	// ConditionAvailable says whether the add-on works. Written by the agent.
	ConditionAvailable = upstream.ManagedClusterAddOnConditionAvailable
	// ConditionDegraded carries the hub's verdict over the add-on's dependencies. Written by the hub.
	ConditionDegraded = upstream.ManagedClusterAddOnConditionDegraded
	// ConditionConfigured says that OCM has resolved the add-on's configuration. Written by OCM.
	ConditionConfigured = upstream.ManagedClusterAddOnConditionConfigured
	// ConditionResolved says, for an add-on that runs by plans, whether its Instance could be made. Written by the hub.
	ConditionResolved = "Resolved"
	// ConditionManifestApplied says, for an add-on that runs by plans, whether its current configuration has reached the cluster: OCM
	// counts no rollout of an add-on without it. Written by the hub, and of other add-ons by whoever delivers them.
	ConditionManifestApplied = upstream.ManagedClusterAddOnManifestApplied
	// ConditionAddOnsRemaining says that AgentAddOn, which is being deleted, waits for add-ons or Instances on its cluster, which its agent
	// has to remove first. Written by the hub.
	ConditionAddOnsRemaining = "AddOnsRemaining"
)

// The reasons of ConditionDegraded (OCM's Addon Dependency Management proposal).
const (
	// ReasonDependencyNotSatisfied: Optional dependencies are not installed or not available; the add-on may still work.
	ReasonDependencyNotSatisfied = "DependencyNotSatisfied"
	// ReasonRequiredDependencyNotSatisfied: Required dependencies are not installed or not available; the add-on cannot work.
	// The agent sets ConditionAvailable to False with the same reason.
	ReasonRequiredDependencyNotSatisfied = "RequiredDependencyNotSatisfied"
)

// The reasons of ConditionAvailable, for an add-on that runs by plans.
const (
	// ReasonPlanComplete: the add-on's last plan is complete and everything it applied is healthy.
	ReasonPlanComplete = "PlanComplete"
	// ReasonNotInstalled: the hub has not made the add-on's Instance yet; condition Resolved says why.
	ReasonNotInstalled = "NotInstalled"
)

// The reason of ConditionManifestApplied, beside ReasonPlanComplete, for an add-on that runs by plans.
const (
	// ReasonPlanNotComplete: no plan has brought the add-on's current configuration to completion yet.
	ReasonPlanNotComplete = "PlanNotComplete"
)

// The reason of ConditionAddOnsRemaining.
const (
	// ReasonWaitingForRemoval: the message names what has to go first.
	ReasonWaitingForRemoval = "WaitingForRemoval"
)

// The reasons of ConditionAvailable, for an add-on that renews a lease on its managed cluster; they are OCM's.
const (
	// ReasonLeaseUpdated: the add-on's lease was renewed lately.
	ReasonLeaseUpdated = "ManagedClusterAddOnLeaseUpdated"
	// ReasonLeaseStopped: the add-on's lease has not been renewed for more than five of its periods.
	ReasonLeaseStopped = "ManagedClusterAddOnLeaseUpdateStopped"
	// ReasonLeaseNotFound: there is no lease of the add-on's name in its install namespace.
	ReasonLeaseNotFound = "ManagedClusterAddOnLeaseNotFound"
)

// ReasonClusterLeaseStopped is the reason that OCM copies into ConditionAvailable (status Unknown) of every add-on of a
// ManagedCluster that it cannot reach. Without OCM the hub writes it when AgentLease is no longer renewed.
const ReasonClusterLeaseStopped = "ManagedClusterLeaseUpdateStopped"

// AgentLease is the name of the Lease that the agent of a cluster keeps in the cluster's namespace on the hub. It has a time, and is
// renewed, where no OCM klusterlet shows that the cluster is alive; else it only says the agent's version.
const AgentLease = "addon-agent"

// ManagerConfigMap is the name of the ConfigMap of addon-manager, in its namespace on the hub: what its webhooks are trusted by, and its
// version.
const ManagerConfigMap = "addon-manager-webhooks"

// LabelVersion says on AgentLease and on ManagerConfigMap of which version is who writes them.
const LabelVersion = "app.kubernetes.io/version"

// VersionLabel is a version as a label's value can be: a program that calls itself otherwise must not fail over that.
func VersionLabel(version string) string {
	value := strings.ReplaceAll(version, "+", "_") // as Helm does with the builds of semantic versions
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}

// AgentAddOn is the name of Tandem's agent as an add-on: of its ClusterManagementAddOn where OCM delivers it, in the names of its users
// and groups on the hub, and of the Lease that it renews on the managed cluster for OCM's klusterlet.
const AgentAddOn = "tandem"

// FinalizerAgent holds AgentAddOn until nothing is left on its cluster that only the agent can remove.
const FinalizerAgent = "kudo.dev/agent"

// AgentName is what OCM calls the agent among those of the add-on.
const AgentName = "addon-agent"

// The reasons of ConditionResolved of a ManagedClusterAddOn, beside those of an Instance.
const (
	// ReasonWaitingForDependencies: the add-on is installed once its Required dependencies are satisfied.
	ReasonWaitingForDependencies = "WaitingForDependencies"
	// ReasonWaitingForConfiguration: OCM has not resolved the add-on's configuration yet.
	ReasonWaitingForConfiguration = "WaitingForConfiguration"
	// ReasonConfigurationInvalid: the configuration names no OperatorVersion, one in a namespace that agents may not read, or
	// variables that the OperatorVersion does not define; or the definition names OperatorVersions no longer.
	ReasonConfigurationInvalid = "ConfigurationInvalid"
	// ReasonInstanceRefused: the hub's API server refuses the add-on's Instance, as a policy or missing rights make it do; it is
	// tried again with growing intervals.
	ReasonInstanceRefused = "InstanceRefused"
	// ReasonManagedClusterNotFound: the add-on stands in a namespace that is no managed cluster's.
	ReasonManagedClusterNotFound = "ManagedClusterNotFound"
	// ReasonConfigurationNotFound: a configuration object does not exist.
	ReasonConfigurationNotFound = "ConfigurationNotFound"
)

// ResourceOperatorVersions is the group and resource by which a ClusterManagementAddOn's supported configs say that the
// add-on runs by plans.
const (
	GroupKudo                = "kudo.dev"
	ResourceOperatorVersions = "operatorversions"

	// ResourceAddOnDeploymentConfigs stands in the API group of this package.
	ResourceAddOnDeploymentConfigs = "addondeploymentconfigs"
)
