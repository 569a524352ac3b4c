package hub

import "github.com/tandem-addons/tandem/pkg/text"

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

// noteLimit is the length of an event's note in bytes at most, as the API server has it.
const noteLimit = 1024

// note is text as it fits into an event.
func note(message string) string { return text.Truncate(message, noteLimit) }
