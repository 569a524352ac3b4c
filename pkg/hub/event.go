package hub

// The reasons of the hub's events, beside those of the conditions that they accompany.
const (
	// eventDependenciesMalformed: a ClusterManagementAddOn's dependencies cannot be read.
	eventDependenciesMalformed = "DependenciesMalformed"
	// eventDependenciesSatisfied: all dependencies of an add-on are satisfied again.
	eventDependenciesSatisfied = "DependenciesSatisfied"
	// eventForceReleased: an Instance was let go of before its agent had removed what it applied.
	eventForceReleased = "ForceReleased"
	// eventChildCreated, eventChildChanged, eventChildDeleted: a child of an Instance was made, changed, deleted.
	eventChildCreated = "ChildCreated"
	eventChildChanged = "ChildChanged"
	eventChildDeleted = "ChildDeleted"
	// eventChildRerun: a plan of a child that has failed runs again, because its parent's does.
	eventChildRerun = "ChildRerun"
	// eventChildFailed: a child cannot be what its parent wants.
	eventChildFailed = "ChildFailed"
)

// The actions of the hub's events: what the controller was doing.
const (
	actionEvaluate = "EvaluateDependencies"
	actionResolve  = "Resolve"
	actionRelease  = "Release"

	actionBringAbout = "BringAboutChild"
)
