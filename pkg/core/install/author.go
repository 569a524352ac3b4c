package install

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Origin is which objects an add-on's Instance is changed by.
type Origin string

const (
	// OriginNone means that no value changes: the recorded author stays, if there is one.
	OriginNone Origin = ""
	// OriginEnabling means that the Instance is created: the ManagedClusterAddOn is.
	OriginEnabling Origin = "enabling"
	// OriginVersion means that only the OperatorVersion changes: AddOnDeploymentConfigs and ConfigMaps do not choose it.
	OriginVersion Origin = "version"
	// OriginAny means that values change: any object that they are taken from may be the origin.
	OriginAny Origin = "any"
)

// OriginOf returns what changes an add-on's Instance, which is nil if it does not exist, to the desired one.
func OriginOf(own, want *kudo.Instance) Origin {
	switch {
	case own == nil:
		return OriginEnabling
	case isAuthored(own, want):
		return OriginNone
	case !SameValues(own.Spec, want.Spec), own.Spec.ChangedBy != nil && VersionOf(own) == VersionOf(want):
		return OriginAny
	case VersionOf(own) != VersionOf(want):
		return OriginVersion
	default:
		return OriginNone
	}
}

// isAuthored reports whether an Instance has the author of its desired values.
func isAuthored(own, want *kudo.Instance) bool {
	return author.IsOf(own.Spec.ChangedBy, author.Values(VersionOf(want), want.Spec))
}

// IsApplied reports whether an add-on's Instance is as desired, and another writer has not changed its author. A missing author is no reason for a write: an
// earlier release recorded none, and an API server with an earlier resource definition stores none.
func IsApplied(own, want *kudo.Instance) bool {
	return Matches(own, want) && (own.Spec.ChangedBy == nil || isAuthored(own, want))
}

// LacksAuthor reports whether the author of an Instance that users change directly is to be determined: it is about to be changed, or another writer has
// changed its author.
func LacksAuthor(i *kudo.Instance) bool {
	if metav1.GetControllerOfNoCopy(i) != nil || author.IsOf(i.Spec.ChangedBy, author.Values(VersionOf(i), i.Spec)) {
		return false
	}
	return i.Spec.ChangedBy != nil || isChanged(i)
}

// isChanged reports whether an Instance differs from what its agent has started last.
func isChanged(i *kudo.Instance) bool {
	last := i.Status.Execution
	if last == nil {
		return true
	}
	started := kudo.InstanceSpec{Parameters: last.Parameters, ImageRegistries: last.ImageRegistries}
	for _, from := range last.ParametersFrom {
		started.ParametersFrom = append(started.ParametersFrom, from.ParameterFrom)
	}
	version := VersionOf(i)
	return version.Name != last.OperatorVersion.Name || version.Namespace != last.OperatorVersion.Namespace || !SameValues(i.Spec, started)
}

// LacksRequester reports whether the author of a request of a plan is to be determined. The hub gives a request without a uid one before.
func LacksRequester(i *kudo.Instance) bool {
	request := i.Spec.PlanExecution
	switch {
	case request.PlanName == "", request.UID == "", request.Cancel, plan.IsRerun(request.UID):
		return false
	case Request(i) != RequestChange{}, isHandled(i):
		return false
	}
	return !author.IsOf(i.Spec.RequestedBy, author.Request(request))
}

// AuthorChange is a change of an author in the spec of an Instance: to none if it is nil.
type AuthorChange struct {
	Field  string
	Author *kudo.ChangeAuthor
}

// AuthorsOf returns the changes of the authors in an Instance with these last writers.
func AuthorsOf(i *kudo.Instance, writers author.Writers, now time.Time) []AuthorChange {
	var changes []AuthorChange
	note := func(field string, now, want *kudo.ChangeAuthor) {
		if now != nil || want != nil {
			changes = append(changes, AuthorChange{field, want})
		}
	}
	if LacksAuthor(i) {
		note("changedBy", i.Spec.ChangedBy, author.With(author.Newer(writers.Values, i.Spec.ChangedBy, now), author.Values(VersionOf(i), i.Spec)))
	}
	if LacksRequester(i) {
		note("requestedBy", i.Spec.RequestedBy, author.With(writers.Request, author.Request(i.Spec.PlanExecution)))
	}
	return changes
}

// authorOfChild returns the author of a child: its parent.
func authorOfChild(parent, child *kudo.Instance) *kudo.ChangeAuthor {
	name := types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}
	return author.With(kudo.ChangeAuthor{Kind: "Instance", Name: name.String()}, author.Values(VersionOf(child), child.Spec))
}
