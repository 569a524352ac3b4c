package hub

// The reasons of the hub's events, in addition to those of the conditions that they accompany.
const (
	// eventDependenciesMalformed: the dependencies of a ClusterManagementAddOn are malformed.
	eventDependenciesMalformed = "DependenciesMalformed"
	// eventDependenciesSatisfied: all dependencies of an add-on are satisfied again.
	eventDependenciesSatisfied = "DependenciesSatisfied"
	// eventDependencyEnabled, eventDependencyRefused: a dependency of an add-on with install Auto was enabled, or the API server refused that.
	eventDependencyEnabled = "DependencyEnabled"
	eventDependencyRefused = "DependencyRefused"
	// eventDependencyDisabled: an add-on that was enabled because of install Auto is disabled, because nothing depends on it any more.
	eventDependencyDisabled = "DependencyDisabled"
	// eventDependencyKept: an add-on that was enabled because of install Auto stays enabled, although its dependent no longer asks for it.
	eventDependencyKept = "DependencyKept"
	// eventConfigurationIgnored: a part of an add-on's configuration has no effect.
	eventConfigurationIgnored = "ConfigurationIgnored"
	// eventWindowsMalformed: the maintenance windows of a ManagedCluster are malformed.
	eventWindowsMalformed = "WindowsMalformed"
	// eventSuspendedAnyway: an annotation or ConfigMap suspends an Instance although its value looks as if it did not.
	eventSuspendedAnyway = "SuspendedAnyway"
	// eventForceReleased: an Instance was released before its agent had removed all applied objects.
	eventForceReleased = "ForceReleased"
	// eventChildCreated, eventChildChanged, eventChildDeleted: a child of an Instance was created, changed, deleted.
	eventChildCreated = "ChildCreated"
	eventChildChanged = "ChildChanged"
	eventChildDeleted = "ChildDeleted"
	// eventChildRerun: a failed plan of a child runs again because its parent's plan does.
	eventChildRerun = "ChildRerun"
	// eventChildFailed: a child cannot reach the state that its parent requires.
	eventChildFailed = "ChildFailed"
)

// The actions of the hub's events.
const (
	actionEvaluate = "EvaluateDependencies"
	actionResolve  = "Resolve"
	actionEnable   = "EnableDependency"
	actionDisable  = "DisableDependency"
	actionRelease  = "Release"
	actionRemove   = "Remove"

	actionBringAbout = "BringAboutChild"
)
