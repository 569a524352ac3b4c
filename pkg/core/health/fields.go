package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields reads an object and records the first field of a wrong type.
type fields struct {
	object  map[string]any
	problem string
}

// check returns v, unless a field that was read is malformed.
func (f *fields) check(v verdict) verdict {
	if f.problem != "" {
		return unknownf("%s", f.problem)
	}
	return v
}

// value returns a field; nil if it is missing or null.
func (f *fields) value(path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(f.object, path...)
	if err != nil {
		f.setMalformed(path, "reachable")
	}
	return value
}

func (f *fields) has(path ...string) bool { return f.value(path...) != nil }

// integer returns a number without fraction, or missing if the field is not set.
func (f *fields) integer(missing int64, path ...string) int64 {
	switch value := f.value(path...).(type) {
	case nil:
		return missing
	case int64:
		return value
	case float64: // an object that was not decoded by Kubernetes' rules
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	f.setMalformed(path, "an integer")
	return missing
}

func (f *fields) text(path ...string) string {
	switch value := f.value(path...).(type) {
	case nil:
		return ""
	case string:
		return value
	}
	f.setMalformed(path, "a string")
	return ""
}

func (f *fields) boolean(path ...string) bool {
	switch value := f.value(path...).(type) {
	case nil:
		return false
	case bool:
		return value
	}
	f.setMalformed(path, "true or false")
	return false
}

// list returns the objects of a list.
func (f *fields) list(path ...string) []*fields {
	value := f.value(path...)
	items, ok := value.([]any)
	if !ok && value != nil {
		f.setMalformed(path, "a list")
	}
	objects := make([]*fields, 0, len(items))
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			f.setMalformed(path, "a list of objects")
			return nil
		}
		objects = append(objects, &fields{object: object})
	}
	return objects
}

// adopt takes over the recorded error of a part of the object, which is under path.
func (f *fields) adopt(part *fields, path string) {
	if f.problem == "" && part.problem != "" {
		f.problem = path + ": " + part.problem
	}
}

func (f *fields) setMalformed(path []string, want string) {
	if f.problem == "" {
		f.problem = fmt.Sprintf("%s is not %s", strings.Join(path, "."), want)
	}
}

// condition is an entry of status.conditions.
type condition struct {
	status, reason, message string
	observedGeneration      int64
}

func (c condition) isTrue() bool { return c.status == "True" }

func (c condition) isFalse() bool { return c.status == "False" }

// isStale reports whether the condition belongs to an older generation. Most kinds do not record the generation.
func (c condition) isStale(generation int64) bool {
	return c.observedGeneration > 0 && c.observedGeneration < generation
}

// why returns the condition's reason and message.
func (c condition) why() string { return foreign(c.reason, c.message) }

// condition returns the condition of that type; the zero value if there is none.
func (f *fields) condition(conditionType string) condition {
	for _, entry := range f.list("status", "conditions") {
		if entry.text("type") == conditionType {
			c := condition{entry.text("status"), entry.text("reason"), entry.text("message"), entry.integer(0, "observedGeneration")}
			f.adopt(entry, "status.conditions")
			return c
		}
		f.adopt(entry, "status.conditions")
	}
	return condition{}
}
