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
)

// ImmutableError reports that the API server refuses a change of fields that an object keeps as long as it exists.
type ImmutableError struct {
	// Fields are the paths of what would have to change, sorted: `spec.selector`.
	Fields []string
}

// Error names the fields and the way out, and none of their values, of which the API server's own message is full.
func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s cannot be changed while the object exists: delete the object and run the plan again, or give it another name in the package",
		strings.Join(e.Fields, ", "))
}

// errGoing is no refusal for good: what cannot be changed is about to make room.
var errGoing = errors.New("the object that cannot be changed is being deleted, and is made anew once it is gone")

// Refused makes an *ImmutableError of the API server's refusal to change live into want, where nothing but immutable fields stands in
// the way. Where other faults do as well, immutable fields are left out: there the API server shows all of their values. Every other
// error is returned as it is.
func Refused(err error, live, want *unstructured.Unstructured) error {
	var fields, faults []string
	for _, cause := range causesOf(err) {
		fault := strings.TrimPrefix(cause.Field+": "+cause.Message, ": ")
		switch {
		case live != nil && cause.Field != "" && keeps.MatchString(cause.Message):
			fields = append(fields, changedFields(cause, live, want)...)
		case !slices.Contains(faults, fault): // some are found twice
			faults = append(faults, fault)
		}
	}
	switch {
	case len(fields) == 0:
		return err
	case len(faults) > 0:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: strings.Join(faults, ", ")}}
	case live.GetDeletionTimestamp() != nil:
		return errGoing
	}
	slices.Sort(fields)
	return &ImmutableError{Fields: slices.Compact(fields)}
}

// Final reports whether the API server will refuse the same object again whatever becomes of the rest of the cluster. Everything else,
// such as a lack of rights, a quota, or a port that another Service still has, may pass.
func Final(err error) bool {
	var immutable *ImmutableError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &immutable):
		return true
	case !errors.As(err, &status):
		return false
	case apierrors.IsInvalid(err):
		return !slices.ContainsFunc(causesOf(err), func(c metav1.StatusCause) bool { return strings.Contains(c.Message, "already allocated") })
	// What the schema does not know or types otherwise; server-side apply answers so before any validation.
	case strings.Contains(err.Error(), "failed to create typed patch object"):
		return true
	default:
		return apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
	}
}

// keeps matches what the API server says of a field that cannot change: most often "field is immutable". There is no code for it.
// Sources: the validation packages of k8s.io/kubernetes, and what authors of CustomResourceDefinitions write into CEL rules.
var keeps = regexp.MustCompile(`(?i)immutable|may not (be )?chang|can ?not (be )?chang|may not be updated|fields other than|` +
	`updates to .* are forbidden|can not be less than|can only be modified in tandem|self == oldSelf`)

// exceptions matches the parts of a field that may change after all.
var exceptions = regexp.MustCompile(`(other than|except) .*`)

// causesOf are the causes of a refusal of the object as such (422), each of which is about one field.
func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// changedFields are the fields that a cause is about. Of a StatefulSet, a volume claim and a few more the API server names only the whole
// spec, and which parts of it may change at times; then those that differ and never may are named, or else all that differ.
func changedFields(cause metav1.StatusCause, live, want *unstructured.Unstructured) []string {
	path := strings.Split(cause.Field, ".")
	wanted, _, _ := unstructured.NestedMap(want.Object, path...)
	standing, _, _ := unstructured.NestedMap(live.Object, path...)
	line, _, _ := strings.Cut(cause.Message, "\n") // what follows is a comparison
	changeable := exceptions.FindString(line)
	var fixed, excepted []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch {
		case covers(standing[name], wanted[name]):
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

// covers reports whether a live value has all that is wanted of it; what the API server has added by default does not count.
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
