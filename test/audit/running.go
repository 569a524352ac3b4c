package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Running is a version of a package of which an Instance has objects on a managed cluster.
type Running struct{ Instance, Operator, Version string }

// Excludes reports whether a running version has a constraint that the other one does not satisfy.
type Excludes func(dependent, other Running) bool

// Exclusions returns the running versions that exclude each other at any time, in the order in which they began. It only uses what was applied and deleted,
// and no status: an Instance runs each version of which it has an object. The entries are those of a managed cluster, in the order of their requests. What
// excludes each other must not depend on what else runs.
func Exclusions(entries []Entry, excludes Excludes) []string {
	objects, counts := map[string]Running{}, map[Running]int{}
	var found []string
	for i := range entries {
		e := &entries[i]
		running := runningOf(e)
		if !e.IsSuccess() || e.ObjectRef.Subresource != "" || running == (Running{}) && e.Verb != "delete" {
			continue
		}
		key := fmt.Sprintf("%s/%s/%s", e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.Object())
		if counts[objects[key]]--; counts[objects[key]] <= 0 {
			delete(counts, objects[key])
		}
		delete(objects, key)
		if e.Verb == "delete" {
			continue
		}
		objects[key] = running
		if counts[running]++; counts[running] == 1 {
			found = append(found, newExclusions(e, running, counts, excludes)...)
		}
	}
	return found
}

// newExclusions returns what a version that begins to run excludes, or is excluded by.
func newExclusions(e *Entry, running Running, counts map[Running]int, excludes Excludes) []string {
	var found []string
	for _, other := range slices.SortedFunc(maps.Keys(counts), compare) {
		if excludes(running, other) || excludes(other, running) {
			found = append(found, fmt.Sprintf("%s: %s %s begins to run while %s %s runs", e, running.Instance, running.Version, other.Instance, other.Version))
		}
	}
	return found
}

func compare(a, b Running) int {
	return slices.Compare([]string{a.Instance, a.Version}, []string{b.Instance, b.Version})
}

// runningOf returns the version whose object a request applies; the zero value if it applies none.
func runningOf(e *Entry) Running {
	var sent metav1.PartialObjectMetadata
	if e.Verb == "delete" || json.Unmarshal(e.RequestObject, &sent) != nil { // nor does a JSON patch
		return Running{}
	}
	running := Running{
		Instance: sent.Labels[kudo.LabelInstance], Operator: sent.Labels[kudo.LabelOperator], Version: sent.Annotations[kudo.AnnotationOperatorVersion],
	}
	if running.Instance == "" || running.Operator == "" || running.Version == "" {
		return Running{}
	}
	return running
}
