// Package sourcing decides when a PackageSource is attempted, which version it takes, which hosts and addresses it may reach, and what its status says. It
// touches no cluster and no network.
package sourcing

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Outcome is the result of an attempt: an artifact, or a failure.
type Outcome struct {
	// Artifact is what is stored on the hub.
	Artifact *kudo.SourceArtifact
	// Failure is why nothing was stored.
	Failure *Failure
}

// Status returns the status of a source after an attempt. It is the former one if nothing has changed, apart from the time of conditions, which the caller sets.
func Status(source *kudo.PackageSource, o Outcome) kudo.PackageSourceStatus {
	status := observe(source)
	ready := metav1.Condition{Type: kudo.ConditionReady, ObservedGeneration: source.Generation}
	if f := o.Failure; f != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, f.Reason, bound(f.message(), maxMessage)
		status.Refused = refuse(status.Refused, f)
	} else {
		status.Artifact = withHistory(o.Artifact, status.Artifact, &source.Spec)
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, kudo.ReasonStored, bound(storedText(status.Artifact)+suspectsText(source.Spec.Chart), maxMessage)
		status.Refused = accept(status.Refused, status.Artifact.Version)
	}
	setConditions(&status, ready, o.Failure != nil && o.Failure.IsFinal())
	return status
}

// Suspended returns the status of a source while it is suspended.
func Suspended(source *kudo.PackageSource) kudo.PackageSourceStatus {
	status := observe(source)
	ready := metav1.Condition{Type: kudo.ConditionReady, Status: metav1.ConditionUnknown, Reason: kudo.ReasonSourceSuspended,
		ObservedGeneration: source.Generation, Message: "suspended by spec.suspend; nothing was stored"}
	if before := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady); before != nil {
		ready.Status = before.Status
	}
	if status.Artifact != nil {
		ready.Message = bound("suspended by spec.suspend; the last attempt that succeeded: "+storedText(status.Artifact), maxMessage)
	}
	setConditions(&status, ready, false)
	return status
}

// observe returns the former status of a source for its current generation and request.
func observe(source *kudo.PackageSource) kudo.PackageSourceStatus {
	status := *source.Status.DeepCopy()
	if status.ObservedGeneration != source.Generation {
		status.Refused = nil
	}
	status.ObservedGeneration = source.Generation
	status.LastHandledReconcileAt = RequestOf(source)
	return status
}

// setConditions sets Ready, and Stalled if it is final. The times of conditions whose status changes are set when they are written.
func setConditions(status *kudo.PackageSourceStatus, ready metav1.Condition, final bool) {
	conditions := []metav1.Condition{ready}
	if final {
		stalled := ready
		stalled.Type, stalled.Status = kudo.ConditionStalled, metav1.ConditionTrue
		conditions = append(conditions, stalled)
	}
	for i := range conditions {
		if before := meta.FindStatusCondition(status.Conditions, conditions[i].Type); before != nil && before.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	status.Conditions = conditions
}

// withHistory returns an artifact with the higher version that it replaces, if the registry no longer has that.
func withHistory(artifact, before *kudo.SourceArtifact, spec *kudo.PackageSourceSpec) *kudo.SourceArtifact {
	wanted := rangeOf(spec)
	if before == nil || wanted == "" || before.Version == "" {
		return artifact
	}
	result := artifact.DeepCopy()
	highest := before.Version
	if before.LowerThan != "" {
		highest = before.LowerThan
	}
	inRange, err := catalog.Highest(wanted, []string{highest})
	if err == nil && inRange != "" && catalog.IsHigher(highest, artifact.Version) {
		result.LowerThan = highest
	}
	return result
}

// rangeOf returns the range of versions of a source; empty if it has none.
func rangeOf(spec *kudo.PackageSourceSpec) string {
	switch {
	case spec.Package != nil:
		return spec.Package.Version
	case spec.Chart != nil:
		return spec.Chart.Version
	}
	return ""
}

// storedText describes a stored artifact.
func storedText(a *kudo.SourceArtifact) string {
	message := fmt.Sprintf("OperatorVersion %s is stored, from %s", a.OperatorVersion, a.Reference)
	if a.LowerThan != "" {
		message += fmt.Sprintf("; version %s, which was stored before, is no longer there", text.Escape(a.LowerThan))
	}
	return message
}

// suspectsText names the values of a source that look like secrets, and that its package contains; empty if there are none.
func suspectsText(c *kudo.SourceChart) string {
	const shown = 5
	if c == nil {
		return ""
	}
	_, options, err := ReadChart(c)
	if err != nil { // nothing is stored
		return ""
	}
	suspects := wrap.Release{Values: options.Values}.Suspects(options.Choices)
	if len(suspects) == 0 {
		return ""
	}
	var paths []string
	for _, path := range suspects {
		paths = append(paths, path.String())
	}
	return fmt.Sprintf("; these values look like secrets, and everyone who may read OperatorVersions can read them: %s; make them sensitive parameters", text.List(paths, shown))
}

// refuse returns the list of refused versions with one more in front. A version with the same digest is listed once.
func refuse(refused []kudo.RefusedVersion, f *Failure) []kudo.RefusedVersion {
	if f.Version == "" || !f.isAboutVersion() {
		return refused
	}
	entry := kudo.RefusedVersion{
		Version: text.Truncate(f.Version, maxVersion), Digest: f.Digest, Reason: f.Reason, Message: bound(f.message(), maxRefusedMessage),
	}
	others := slices.DeleteFunc(slices.Clone(refused), func(r kudo.RefusedVersion) bool {
		return r.Version == entry.Version && r.Digest == entry.Digest
	})
	all := append([]kudo.RefusedVersion{entry}, others...)
	return all[:min(len(all), maxRefused)]
}

// accept returns the list of refused versions without a version.
func accept(refused []kudo.RefusedVersion, version string) []kudo.RefusedVersion {
	var others []kudo.RefusedVersion
	for _, r := range refused {
		if r.Version != version {
			others = append(others, r)
		}
	}
	return others
}
