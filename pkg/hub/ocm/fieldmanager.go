package ocm

// The field managers beside OCM.
const (
	// Condition ManifestApplied and supported configs of a ManagedClusterAddOn, the ManifestWork that marks how far its rollout
	// has got, and hashes of configs.
	ManagerRollout = "addon-manager-rollout"
	// The finalizer and condition AddOnsRemaining of the agent's add-on, and the agent's rights.
	ManagerDelivery = "addon-manager-delivery"
)
