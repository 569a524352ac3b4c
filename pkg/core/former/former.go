// Package former decides what an Instance returns to if a plan for another version fails (DESIGN §11.6). It is pure and touches no cluster.
package former

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// After returns status.former once an execution has started on a status: what was completely applied before the first execution of another version. It is
// nil if nothing was, or if that is not known. version is the one of the execution before, nil if it is lost: if that has run only in part, what was before it
// can only be applied again if it allows that.
func After(before kudo.InstanceStatus, version *kudo.OperatorVersionSpec, started *kudo.Execution) *kudo.FormerVersion {
	last := before.Execution
	switch {
	case last == nil || started.Plan == kudo.CleanupPlan:
		return nil
	case Same(started.OperatorVersion, last.OperatorVersion) || started.Return:
		return before.Former.DeepCopy()
	case isSettled(before):
		return recordable(of(last, before.Whole))
	case version == nil || !version.Returnable:
		return nil
	default:
		return before.Former.DeepCopy()
	}
}

// isSettled reports whether the last execution of a status left its version completely applied, with all values.
func isSettled(status kudo.InstanceStatus) bool {
	last, whole := status.Execution, status.Whole
	return whole != nil && Same(whole.OperatorVersion, last.OperatorVersion) && len(last.Owed) == 0
}

// of returns what an execution has applied, which has left its version whole.
func of(last *kudo.Execution, whole *kudo.WholeVersion) *kudo.FormerVersion {
	copied := last.DeepCopy()
	return &kudo.FormerVersion{
		OperatorVersion: copied.OperatorVersion, Version: whole.Version,
		Parameters: copied.Parameters, ParametersFrom: copied.ParametersFrom, ImageRegistries: copied.ImageRegistries,
		Cluster: copied.Cluster, KubernetesVersion: copied.KubernetesVersion,
	}
}

// maxBytes limits the size of a record as JSON: an Instance is stored with the parameters of two executions.
const maxBytes = 64 << 10

// recordable returns the record; nil if it is too large: the plan runs all the same.
func recordable(f *kudo.FormerVersion) *kudo.FormerVersion {
	if encoded, _ := json.Marshal(f); len(encoded) > maxBytes { // strings always encode
		return nil
	}
	return f
}

// Same reports whether two references are to the same OperatorVersion on the hub.
func Same(a, b corev1.ObjectReference) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID
}

// Failure is a version that has failed, with what is known of the former one.
type Failure struct {
	// Version is the failed version, and Former the former one; each is nil if it is lost.
	Version, Former *kudo.OperatorVersionSpec
	// Record is status.former.
	Record *kudo.FormerVersion
	// Lost is why values of sensitive parameters of the former version are lost; empty if they are not.
	Lost string
}

// Problem returns why an Instance does not return from a failed version, and the way out; empty if it does.
func (f Failure) Problem() string {
	switch {
	case f.Record == nil:
		return "what ran before is not known: no version was completely applied, or its parameters are too large to record"
	case f.Version == nil:
		return "the OperatorVersion that has failed is no longer on the managed cluster"
	case !f.Version.Returnable:
		return fmt.Sprintf("package %s %s does not declare that returning from it loses nothing: its author can set returnable: true in operator.yaml",
			f.Version.Operator.Name, f.Version.Version)
	case f.Former == nil:
		return fmt.Sprintf("OperatorVersion %q, which ran before, is no longer on the managed cluster", f.Record.OperatorVersion.Name)
	default:
		return f.Lost
	}
}

// WithCause returns the return that is in force on a status once an execution has started, with the cause of the failure if it is new; nil if there is none.
func WithCause(r *kudo.Return, before kudo.InstanceStatus, now time.Time) *kudo.Return {
	if r == nil || !r.Time.IsZero() {
		return r.DeepCopy()
	}
	caused, failed := *r, before.PlanStatus[r.Plan]
	caused.Execution, caused.Cause = failed.UID, text.Truncate(cmp.Or(r.Cause, failed.Message), maxCauseBytes)
	caused.Time = metav1.Time{Time: now.Truncate(time.Second)}
	return &caused
}

// maxCauseBytes is the number of bytes of a cause that are recorded.
const maxCauseBytes = 1024

// SpecDigest returns a digest of what the spec of an Instance asks for beside its version: parameters, references and image registries. What else the spec
// contains, such as windows, a suspension or a request, asks for no other state.
func SpecDigest(spec kudo.InstanceSpec) string {
	from := slices.Clone(spec.ParametersFrom)
	slices.SortFunc(from, func(a, b kudo.ParameterFrom) int { return cmp.Compare(a.Name, b.Name) })
	encoded, _ := json.Marshal(kudo.InstanceSpec{Parameters: spec.Parameters, ParametersFrom: from, ImageRegistries: spec.ImageRegistries}) // strings always encode
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// StartedDigest returns the SpecDigest of the spec with whose values an execution was started.
func StartedDigest(e *kudo.Execution) string {
	spec := kudo.InstanceSpec{Parameters: e.Parameters, ImageRegistries: e.ImageRegistries}
	for _, from := range e.ParametersFrom {
		spec.ParametersFrom = append(spec.ParametersFrom, from.ParameterFrom)
	}
	return SpecDigest(spec)
}

// IsInForce reports whether a return is in force, given the desired version and its content, whose digest is only computed if it is needed: the spec asks
// for nothing else than when the version failed.
func IsInForce(r *kudo.Return, spec kudo.InstanceSpec, version corev1.ObjectReference, content func() string) bool {
	return r != nil && SpecDigest(spec) == r.Wanted && (Same(version, r.OperatorVersion) || content() == r.Content)
}

// IsRetry reports whether a request asks to try the failed version again after a return.
func IsRetry(r *kudo.Return, request kudo.PlanExecution) bool {
	return r != nil && !request.Cancel && request.PlanName == r.Plan && request.Resume != "" && request.Resume == r.Execution
}

// Text describes a return: which version has failed, which one runs again, and why.
func Text(r *kudo.Return) string {
	message := fmt.Sprintf("version %s has failed, and version %s runs again", r.From, r.To)
	if r.Cause != "" {
		message += ": " + r.Cause
	}
	return message
}
