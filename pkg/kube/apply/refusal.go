package apply

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// ImmutableError reports that the API server rejects a change of immutable fields.
type ImmutableError struct {
	// Fields are the sorted paths of the fields to change: `spec.selector`.
	Fields []string
}

// Error names the fields and how to proceed, and none of their values, which the API server's own message includes.
func (e *ImmutableError) Error() string {
	return plan.CannotChangeText(e.Fields...)
}

// errBeingDeleted is not a permanent rejection: the immutable object is being deleted.
var errBeingDeleted = errors.New("the immutable object is being deleted and will be re-created")

// ToImmutableError returns an *ImmutableError if the API server rejected a change of live into want only because of immutable fields. If
// there are other causes, it omits the immutable fields, for which the API server prints all values. It returns any other error unchanged.
func ToImmutableError(err error, live, want *unstructured.Unstructured) error {
	var fields, problems []string
	for _, cause := range causesOf(err) {
		problem := strings.TrimPrefix(cause.Field+": "+cause.Message, ": ")
		switch {
		case live != nil && cause.Field != "" && keeps.MatchString(cause.Message):
			fields = append(fields, changedFields(cause, live, want)...)
		case !slices.Contains(problems, problem): // some are reported twice
			problems = append(problems, problem)
		}
	}
	switch {
	case len(fields) == 0:
		return err
	case len(problems) > 0:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: strings.Join(problems, ", ")}}
	case live.GetDeletionTimestamp() != nil:
		return errBeingDeleted
	}
	slices.Sort(fields)
	return &ImmutableError{Fields: slices.Compact(fields)}
}

// denied matches the API server's messages about objects that an admission webhook or policy denies, with whatever code.
var denied = regexp.MustCompile(`^admission webhook ".*" denied the request|admission request denied by policy|[Pp]olicy ['"].*['"] denied request: `)

// IsFinal reports whether the API server will always reject the same object, whatever changes on the cluster. Other errors, such as missing
// permissions, a quota, a webhook, an admission policy, or a port that another Service uses, may be temporary.
func IsFinal(err error) bool {
	var immutable *ImmutableError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &immutable):
		return true
	case !errors.As(err, &status):
		return false
	case denied.MatchString(status.Status().Message):
		return false
	case apierrors.IsInvalid(err):
		return !slices.ContainsFunc(causesOf(err), func(c metav1.StatusCause) bool { return strings.Contains(c.Message, "already allocated") })
	// Fields that are unknown to the schema or have another type; server-side apply returns this before any validation.
	case strings.Contains(status.Status().Message, "failed to create typed patch object"):
		return true
	default:
		return apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
	}
}

// keeps matches the API server's messages about immutable fields: most often "field is immutable". There is no code for it. Sources: the
// validation packages of k8s.io/kubernetes, and common CEL rules of CustomResourceDefinitions.
var keeps = regexp.MustCompile(`(?i)immutable|may not (be )?chang|can ?not (be )?chang|may not be updated|fields other than|` +
	`updates to .* are forbidden|can not be less than|can only be modified in tandem|self == oldSelf`)

// exceptions matches the mutable parts of a field.
var exceptions = regexp.MustCompile(`(other than|except) .*`)

// causesOf returns the causes of a rejection of the object itself (422), each about one field.
func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// changedFields returns the fields that a cause refers to. For a StatefulSet, a volume claim and a few more, the API server only names the
// whole spec, and sometimes its mutable parts. Then it returns the immutable fields that differ, or else all that differ.
func changedFields(cause metav1.StatusCause, live, want *unstructured.Unstructured) []string {
	path := strings.Split(cause.Field, ".")
	wanted, _, _ := unstructured.NestedMap(want.Object, path...)
	existing, _, _ := unstructured.NestedMap(live.Object, path...)
	line, _, _ := strings.Cut(cause.Message, "\n") // the rest is a comparison
	changeable := exceptions.FindString(line)
	var fixed, excepted []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch {
		case covers(existing[name], wanted[name]):
		case strings.Contains(changeable, name):
			excepted = append(excepted, cause.Field+"."+name)
		default:
			fixed = append(fixed, cause.Field+"."+name)
		}
	}
	for _, fields := range [][]string{fixed, excepted} {
		if len(fields) > 0 {
			return fields
		}
	}
	return []string{cause.Field}
}

// covers reports whether a live value contains the wanted one, ignoring defaults added by the API server.
func covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(k string) bool { return !covers(live[k], want[k]) })
	case []any:
		live, ok := live.([]any)
		if !ok || len(live) != len(want) {
			return false
		}
		for i := range want {
			if !covers(live[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return fmt.Sprint(live) == fmt.Sprint(want)
	}
}
