package wrap

import (
	"encoding/json"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// schema is the part of a JSON schema that describes a value: references are not followed.
type schema struct {
	Type        json.RawMessage    `json:"type"`
	Description string             `json:"description"`
	Title       string             `json:"title"`
	Enum        []any              `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
}

// UnmarshalJSON accepts a boolean, which is a schema, too.
func (s *schema) UnmarshalJSON(data []byte) error {
	type plain schema
	if string(data) == "true" || string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, (*plain)(s))
}

// at returns the schema at a path; nil if there is none.
func (s *schema) at(path Path) *schema {
	for _, key := range path {
		if s == nil {
			return nil
		}
		s = s.Properties[key]
	}
	return s
}

// property returns the schema at a path, which it adds to its properties.
func (s *schema) property(path Path) *schema {
	for _, key := range path {
		if s.Properties[key] == nil {
			if s.Properties == nil {
				s.Properties = map[string]*schema{}
			}
			s.Properties[key] = &schema{}
		}
		s = s.Properties[key]
	}
	return s
}

// over returns a schema that describes what another one does, too.
func (s *schema) over(below *schema) *schema {
	switch {
	case s == nil:
		return below
	case below == nil:
		return s
	}
	both := *s
	if len(both.Type) == 0 {
		both.Type = below.Type
	}
	if len(both.Enum) == 0 {
		both.Enum = below.Enum
	}
	if s.description() == "" {
		both.Description = below.description()
	}
	both.Properties = maps.Clone(below.Properties)
	for name, own := range s.Properties {
		if both.Properties == nil {
			both.Properties = map[string]*schema{}
		}
		both.Properties[name] = own.over(below.Properties[name])
	}
	return &both
}

// kind returns the type of a parameter that a schema says, apart from null; empty if it is none or several.
func (s *schema) kind() kind {
	if s == nil {
		return ""
	}
	var one string
	var several []string
	if json.Unmarshal(s.Type, &one) != nil {
		if json.Unmarshal(s.Type, &several) != nil {
			return ""
		}
		several = slices.DeleteFunc(several, func(t string) bool { return t == "null" })
		if len(several) != 1 {
			return ""
		}
		one = several[0]
	}
	if one == "object" {
		return mapKind
	}
	if known := kind(one); slices.Contains([]kind{stringKind, integerKind, numberKind, booleanKind, arrayKind}, known) {
		return known
	}
	return ""
}

func (s *schema) description() string {
	switch {
	case s == nil:
		return ""
	case s.Description != "":
		return s.Description
	default:
		return s.Title
	}
}

// texts returns the values that a schema allows, if all are strings.
func (s *schema) texts() []string {
	if s == nil {
		return nil
	}
	var all []string
	for _, allowed := range s.Enum {
		name, is := allowed.(string)
		if !is {
			return nil
		}
		all = append(all, name)
	}
	return all
}

// kind is the type of a parameter.
type kind string

const (
	stringKind  kind = "string"
	integerKind kind = "integer"
	numberKind  kind = "number"
	booleanKind kind = "boolean"
	arrayKind   kind = "array"
	mapKind     kind = "map"
)

// format returns the template that prints a value of the type in a file of values.
func (k kind) format(value string) string {
	switch k {
	case stringKind:
		return value + " | quote"
	case arrayKind, mapKind:
		return value + " | toJson"
	default:
		return value
	}
}

// kindOf returns the type of a value: what the schema says, or else that of the default.
func kindOf(node *yaml.Node, described *schema) kind {
	if known := described.kind(); known != "" {
		return known
	}
	if node == nil {
		return stringKind
	}
	switch node.ShortTag() {
	case "!!int":
		return integerKind
	case "!!float":
		return numberKind
	case "!!bool":
		return booleanKind
	case "!!seq":
		return arrayKind
	case "!!map":
		return mapKind
	default:
		return stringKind
	}
}

// mismatch returns what a value has to be; empty if it is that.
func (k kind) mismatch(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return "set: leave it out to have the default of the chart"
	}
	given := kindOf(node, nil)
	switch {
	case node.Kind == yaml.AliasNode:
		return "written out"
	case given == k || k == numberKind && given == integerKind:
		return ""
	case k == stringKind && node.Kind == yaml.ScalarNode:
		return ""
	}
	return map[kind]string{
		stringKind: "a text", integerKind: "an integer", numberKind: "a number", booleanKind: "true or false", arrayKind: "a list", mapKind: "a map",
	}[k]
}
