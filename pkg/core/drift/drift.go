// Package drift decides what is drift: a difference between what was applied and what exists, in fields that the applier owns, or an object that is
// gone. It compares an object with the response to a dry run of its apply. It touches no cluster.
package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// MaxObjects is the maximum number of objects of an Instance whose differences are reported. MaxFields limits the fields of an object.
	MaxObjects = 20
	MaxFields  = 20

	// maxNamedObjects and maxNamedFields are the numbers of objects, and of fields of each, that a message names. maxMessageBytes limits it.
	maxNamedObjects = 5
	maxNamedFields  = 3
	maxMessageBytes = 2000

	// maxPathBytes, maxManagerBytes and maxValueBytes limit parts of a message that other writers choose.
	maxPathBytes    = 200
	maxManagerBytes = 64
	maxValueBytes   = 120

	// maxStatusBytes limits the paths and values of all fields in a status, and maxManagers the field managers of each.
	maxStatusBytes = 16 << 10
	maxManagers    = 3
)

// Difference is a field that another writer has changed or removed.
type Difference struct {
	// Path is the field as a JSON pointer. An item of a list has its keys in place of an index.
	Path string

	// Was is what was applied, and Is what exists. Both are empty unless they are numbers, booleans or images: other values may be secret.
	Was, Is string

	// Removed means that the field does not exist any more.
	Removed bool

	// Managers are the field managers that own the field now, sorted.
	Managers []string
}

// Key identifies an applied object.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// Finding is what a comparison has found about an object. Without fields it is no drift, unless the object is gone.
type Finding struct {
	// Key identifies the object. A Memory sets it.
	Key Key

	// Object describes the object, such as `Deployment ns/name`.
	Object string

	// Gone means that the object does not exist.
	Gone bool

	// Fields are at most MaxFields differences, and More is the number of others.
	Fields []Difference
	More   int

	// Repairs is how often the object was put back lately.
	Repairs int
}

// IsDrift reports whether the object differs from what was applied.
func (f Finding) IsDrift() bool { return f.Gone || len(f.Fields) > 0 }

// NewCondition returns condition Drifted for findings in the order of the objects. failed is why objects could not be compared or put back; nil if all could.
func NewCondition(findings []Finding, failed error) metav1.Condition {
	condition := metav1.Condition{
		Type: kudo.ConditionDrifted, Status: metav1.ConditionFalse, Reason: kudo.ReasonInSync, Message: "all objects are as they were applied",
	}
	var parts []string
	for _, finding := range findings {
		if finding.IsDrift() {
			parts = append(parts, finding.String())
		}
	}
	switch {
	case len(parts) > 0:
		condition.Status, condition.Reason = metav1.ConditionTrue, kudo.ReasonDrifted
		parts = text.Limit(parts, maxNamedObjects, "more objects")
		if failed != nil {
			parts = append(parts, text.OneLine(failed.Error()))
		}
		condition.Message = strings.Join(parts, "; ")
	case failed != nil:
		condition.Status, condition.Reason = metav1.ConditionUnknown, kudo.ReasonComparisonFailed
		condition.Message = text.OneLine(failed.Error())
	}
	condition.Message = text.Truncate(condition.Message, maxMessageBytes)
	return condition
}

// Status returns the objects and fields of findings for a status, at most MaxObjects: workloads that are stopped first.
func Status(findings []Finding) (objects []kudo.DriftedObject) {
	left := maxStatusBytes
	findings = slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return !f.IsDrift() })
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rankOf(a.isStopped()), rankOf(b.isStopped())) })
	for _, finding := range findings[:min(len(findings), MaxObjects)] {
		object := kudo.DriftedObject{
			Group: finding.Key.Group, Kind: finding.Key.Kind, Namespace: finding.Key.Namespace, Name: finding.Key.Name, Gone: finding.Gone, More: finding.More, Repairs: finding.Repairs,
		}
		for _, difference := range finding.Fields {
			field := difference.status()
			if left -= sizeOf(field); left < 0 {
				object.More++
				continue
			}
			object.Fields = append(object.Fields, field)
		}
		objects = append(objects, object)
	}
	return objects
}

// isStopped reports whether the object is a workload that another writer has scaled to zero.
func (f Finding) isStopped() bool {
	return len(f.Fields) > 0 && f.Fields[0].Path == replicasPath && f.Fields[0].Is == "0"
}

// sizeOf returns the number of bytes of the texts of a field.
func sizeOf(field kudo.DriftedField) int {
	return len(field.Path) + len(field.Applied) + len(field.Live) + len(strings.Join(field.Managers, ""))
}

// StoppedText describes a workload that another writer has scaled to zero; empty if the object is none.
func StoppedText(object kudo.DriftedObject) string {
	for _, field := range object.Fields {
		if field.Path != replicasPath || field.Live != "0" || field.Applied == "" {
			continue
		}
		by := ""
		if len(field.Managers) > 0 {
			by = " (by " + text.List(field.Managers, maxManagers) + ")"
		}
		return object.Kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/") + ": has 0 replicas where " + field.Applied + " were applied" + by
	}
	return ""
}

// String describes the drift of an object.
func (f Finding) String() string {
	repairs := ""
	if f.Repairs > 0 {
		repairs = fmt.Sprintf(", after %s", text.Plural(f.Repairs, "repair"))
	}
	if f.Gone {
		return f.Object + " is gone" + repairs
	}
	var fields []string
	for _, field := range f.Fields {
		fields = append(fields, field.String())
	}
	if f.More > 0 && len(fields) <= maxNamedFields {
		fields = append(fields, fmt.Sprintf("and %d more fields", f.More))
	} else if more := len(fields) - maxNamedFields; more > 0 {
		fields = append(fields[:maxNamedFields], fmt.Sprintf("and %d more fields", more+f.More))
	}
	return f.Object + ": " + strings.Join(fields, ", ") + repairs
}

// status returns the difference for a status.
func (d Difference) status() kudo.DriftedField {
	return kudo.DriftedField{Path: d.shortPath(), Applied: d.Was, Live: d.Is, Removed: d.Removed, Managers: d.names()[:min(len(d.Managers), maxManagers)]}
}

func (d Difference) shortPath() string { return text.Truncate(text.OneLine(d.Path), maxPathBytes) }

// String describes the change of a field.
func (d Difference) String() string {
	path := d.shortPath()
	switch {
	case d.Removed:
		return path + " was removed"
	case d.Was != "" && d.Is != "":
		return path + " is " + d.Is + " instead of " + d.Was + d.writers()
	default:
		return path + " was changed" + d.writers()
	}
}

// writers names the field managers that own the field.
func (d Difference) writers() string {
	if len(d.Managers) == 0 {
		return ""
	}
	return " (by " + text.List(d.names(), maxManagers) + ")"
}

// names returns the names of the field managers, each on a line and shortened.
func (d Difference) names() []string {
	var names []string
	for _, manager := range d.Managers {
		names = append(names, text.Truncate(text.OneLine(manager), maxManagerBytes))
	}
	return names
}

// Objects is a comparison: the object that exists, with all its managed fields, and the response to the dry run of its apply by a field manager.
type Objects struct {
	Live, Applied *unstructured.Unstructured
	Manager       string

	// Opaque means that no values may be shown.
	Opaque bool

	// IsUnsure means that it is not known which fields were applied, as the object may be rendered with more now: only fields that exist, and that others
	// own, were changed for certain.
	IsUnsure bool
}

// Compare returns the differences in fields that the apply would get back: those that the manager does not own now and that the apply would
// change. Another writer's change always takes the field from the manager. A field that it still owns differs only because it was rendered
// differently since, and is applied by the next plan. Other fields belong to other writers.
func Compare(o Objects, name string, ignored []kudo.IgnoredFields) Finding {
	finding := Finding{Object: name}
	others := otherManagers(o.Live, o.Manager)
	lost := o.lost(ignored)
	isStopped := func(field place) bool {
		return field.pointer() == replicasPath && isZero(field.live) && !isZero(field.applied)
	}
	slices.SortStableFunc(lost, func(a, b place) int { return cmp.Compare(rankOf(isStopped(a)), rankOf(isStopped(b))) })
	for _, field := range lost {
		if len(finding.Fields) == MaxFields {
			finding.More++
			continue
		}
		difference := Difference{Path: field.pointer(), Removed: !field.exists, Managers: managersOf(others, field.path)}
		if !o.Opaque || difference.Path == replicasPath {
			difference.Was, difference.Is = shownValues(field)
		}
		finding.Fields = append(finding.Fields, difference)
	}
	return finding
}

// rankOf returns where a field is among those that differ: what stops a workload is first.
func rankOf(isStopped bool) int {
	if isStopped {
		return 0
	}
	return 1
}

// lost returns the fields that the apply would get back and change, without those that are no drift.
func (o Objects) lost(ignored []kudo.IgnoredFields) []place {
	owned, after, others := fieldsOf(o.Live, o.Manager), fieldsOf(o.Applied, o.Manager), otherManagers(o.Live, o.Manager)
	all := lostFields(after, owned, place{live: o.Live.Object, applied: o.Applied.Object, exists: true})
	return slices.DeleteFunc(all, func(field place) bool {
		isCertain := !o.IsUnsure || field.exists && len(managersOf(others, field.path)) > 0
		return !isCertain || isOwnMark(field.path) || isIgnored(ignored, o.Live, field.pointer())
	})
}

// replicasPath is the field with the number of replicas of a workload.
const replicasPath = "/spec/replicas"

// isZero reports whether a value is the number zero.
func isZero(value any) bool { return fmt.Sprint(value) == "0" }

// shownValues returns the values of a field before and after if they may be shown.
func shownValues(field place) (was, is string) {
	if !field.exists {
		return "", ""
	}
	isImage := isImage(field.path)
	show := func(value any) string {
		switch value := value.(type) {
		case int64, float64, bool:
			return fmt.Sprint(value)
		case string:
			if isImage {
				return text.Truncate(text.OneLine(value), maxValueBytes)
			}
		}
		return ""
	}
	return show(field.applied), show(field.live)
}

// isImage reports whether a path is the image of a container.
func isImage(path fieldPath) bool {
	const below = 3 // containers/NAME/image
	return len(path) >= below && path[len(path)-1].name == "image" && strings.HasSuffix(strings.ToLower(path[len(path)-below].name), "containers")
}

// isOwnMark reports whether a path is an annotation that each apply changes.
func isOwnMark(path fieldPath) bool {
	return len(path) == 3 && path[0].name == "metadata" && path[1].name == "annotations" && slices.Contains(ownMarks, path[2].name)
}

// ownMarks are annotations that say which execution has applied an object. They are the same for all its objects, or differ with each apply.
var ownMarks = []string{kudo.AnnotationPlan, kudo.AnnotationPhase, kudo.AnnotationStep, kudo.AnnotationOperatorVersion, kudo.AnnotationExecution}

// Differs reports whether an apply would change an object, according to the response to its dry run: a look that needs no managed fields, after which
// Compare decides.
func Differs(live, applied *unstructured.Unstructured) bool { return !equal(bare(live), bare(applied)) }

// bare returns the fields of an object without those that the API server sets and those that each apply changes.
func bare(o *unstructured.Unstructured) map[string]any {
	fields := make(map[string]any, len(o.Object))
	for name, value := range o.Object {
		if name != "status" {
			fields[name] = value
		}
	}
	metadata, _ := o.Object["metadata"].(map[string]any)
	kept := make(map[string]any, len(metadata))
	for name, value := range metadata {
		if name != "managedFields" && name != "resourceVersion" && name != "generation" {
			kept[name] = value
		}
	}
	annotations := o.GetAnnotations()
	for _, name := range ownMarks {
		delete(annotations, name)
	}
	kept["annotations"] = annotations
	fields["metadata"] = kept
	return fields
}
