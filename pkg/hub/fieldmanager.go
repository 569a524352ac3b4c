package hub

// The field managers of the hub, one per concern, so that none drops another's fields. Packages ocm and webhook define their own.
const (
	ManagerDependency = "addon-manager-dependency" // condition Degraded of a ManagedClusterAddOn
	ManagerAddOn      = "addon-manager-addon"      // a ManagedClusterAddOn's finalizer; metadata and spec of its Instance
	ManagerResolved   = "addon-manager-resolved"   // condition Resolved and health check mode of a ManagedClusterAddOn
	ManagerAutomatic  = "addon-manager-automatic"  // ManagedClusterAddOns because of install Auto, and their annotations about that
	ManagerRemoval    = "addon-manager-removal"    // condition AddOnsRemaining of a ManagedClusterAddOn that runs a package
	ManagerInstance   = "addon-manager-instance"   // an Instance's finalizer, condition Resolved and request uid

	ManagerChildren = "addon-manager-children" // metadata and spec of children, status.children of their parents

	// Condition Available of the add-ons of a cluster whose agent has stopped; the agent takes ownership back.
	ManagerLease = "addon-manager-lease"
)
