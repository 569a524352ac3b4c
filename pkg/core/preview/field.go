package preview

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// unknownField returns the path of the field that a decoder does not know; false for another error.
func unknownField(err error) (path string, isUnknown bool) {
	quoted, isUnknown := strings.CutPrefix(err.Error(), "unknown field ")
	if !isUnknown {
		return "", false
	}
	path, err = strconv.Unquote(quoted)
	return path, err == nil
}

// misspelt describes a field that an object of the type does not have, with the most similar one that it has there.
func misspelt(object reflect.Type, path string) string {
	description := fmt.Sprintf("unknown field %q", path)
	segments := strings.Split(path, ".")
	last := len(segments) - 1
	for _, segment := range segments[:last] {
		object = typeBelow(object, segment)
	}
	if meant := text.ClosestMatch(segments[last], fieldNames(object)); meant != "" {
		description += fmt.Sprintf(": did you mean %s?", meant)
	}
	return description
}

// typeBelow returns the type of a field, of an item of a list if the segment has an index, or of a value of a map; nil if there is none.
func typeBelow(object reflect.Type, segment string) reflect.Type {
	name, index, isItem := strings.Cut(segment, "[")
	object = fields(object)[name]
	for range strings.Count(index, "[") + 1 {
		if object = pointedTo(object); isItem && object != nil && object.Kind() == reflect.Slice {
			object = object.Elem()
		}
	}
	return object
}

// fieldNames returns the names of the fields of an object, sorted.
func fieldNames(object reflect.Type) []string { return slices.Sorted(maps.Keys(fields(object))) }

// fields returns the fields of an object by name; none unless the type is a struct.
func fields(object reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	if object = pointedTo(object); object == nil || object.Kind() != reflect.Struct {
		return found
	}
	for i := range object.NumField() {
		field := object.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name != "":
			found[name] = field.Type
		case field.Anonymous || strings.Contains(options, "inline"):
			maps.Copy(found, fields(field.Type))
		}
	}
	return found
}

func pointedTo(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
