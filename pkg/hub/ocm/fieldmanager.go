package ocm

// The field managers of the integration with OCM.
const (
	// Condition ManifestApplied and supported configs of a ManagedClusterAddOn, the ManifestWork that marks the progress of its rollout,
	// and hashes of configs.
	ManagerRollout = "addon-manager-rollout"
	// The finalizer and condition AddOnsRemaining of the agent's add-on, and the agent's rights.
	ManagerDelivery = "addon-manager-delivery"
)
