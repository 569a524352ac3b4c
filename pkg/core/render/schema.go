package render

import (
	"maps"
	"slices"
	"strings"
)

// schemaFields are the fields of a schema in v1, except those that structural schemas must not have.
var schemaFields = setOf("$ref description type format title default maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern " +
	"maxItems minItems uniqueItems multipleOf enum maxProperties minProperties required items allOf oneOf anyOf not properties " +
	"additionalProperties patternProperties dependencies additionalItems definitions externalDocs example nullable id " +
	"x-kubernetes-preserve-unknown-fields x-kubernetes-embedded-resource x-kubernetes-int-or-string x-kubernetes-list-map-keys " +
	"x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-validations")

// The fields of other parts of a definition in v1beta1.
var (
	definitionFields = setOf("group version names scope validation subresources versions additionalPrinterColumns conversion preserveUnknownFields")
	namesFields      = setOf("plural singular shortNames kind listKind categories")
	versionFields    = setOf("name served storage deprecated deprecationWarning schema subresources additionalPrinterColumns")
	columnFields     = setOf("name type format description priority JSONPath jsonPath")
)

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(names) {
		set[name] = true
	}
	return set
}

// pruning removes the fields that a definition of v1beta1 does not have, as the API server did, and collects their paths.
type pruning struct{ removed []string }

func (p *pruning) definition(spec map[string]any) {
	p.object(spec, definitionFields, "spec")
	if names, ok := spec["names"].(map[string]any); ok {
		p.object(names, namesFields, "spec.names")
	}
	p.version(spec, "spec")
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			p.object(version, versionFields, "spec.versions[]")
			p.version(version, "spec.versions[]")
		}
	}
}

// version prunes what a definition has once or in each version.
func (p *pruning) version(version map[string]any, path string) {
	columns, _ := version["additionalPrinterColumns"].([]any)
	for _, c := range columns {
		if column, ok := c.(map[string]any); ok {
			p.object(column, columnFields, path+".additionalPrinterColumns[]")
		}
	}
	for _, field := range []string{"validation", "schema"} {
		holder, _ := version[field].(map[string]any)
		p.schema(holder["openAPIV3Schema"], path+"."+field+".openAPIV3Schema")
	}
}

func (p *pruning) object(object map[string]any, known map[string]bool, path string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !known[key] {
			delete(object, key)
			p.removed = append(p.removed, path+"."+key)
		}
	}
}

func (p *pruning) schema(value any, path string) {
	schema, ok := value.(map[string]any)
	if !ok {
		return
	}
	p.object(schema, schemaFields, path)
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if properties[name] == nil {
				properties[name] = map[string]any{}
			}
			p.schema(properties[name], path+".properties."+name)
		}
	}
	for _, field := range []string{"items", "additionalProperties", "not"} {
		p.schema(schema[field], path+"."+field)
	}
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		alternatives, _ := schema[field].([]any)
		for _, alternative := range alternatives {
			p.schema(alternative, path+"."+field+"[]")
		}
	}
}

// restrictRoot makes the root of a schema structural: of metadata it may restrict only the names, and it is an object of any content.
func restrictRoot(schema map[string]any) {
	delete(schema, "additionalProperties")
	delete(schema, "nullable")
	properties, _ := schema["properties"].(map[string]any)
	for _, field := range []string{"apiVersion", "kind"} {
		if property, ok := properties[field].(map[string]any); ok {
			property["type"] = "string"
		}
	}
	metadata, ok := properties["metadata"].(map[string]any)
	if !ok {
		return
	}
	restricted := map[string]any{"type": "object"}
	names, _ := metadata["properties"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"name", "generateName"} {
		if name, ok := names[field].(map[string]any); ok {
			name["type"] = "string"
			kept[field] = name
		}
	}
	if len(kept) > 0 {
		restricted["properties"] = kept
	}
	properties["metadata"] = restricted
}

// makeValidationsStructural removes from the alternatives of a schema what describes and does not validate. Those that a structural schema cannot
// express are removed, so that it accepts more. The properties in the others are also properties of the schema itself.
func makeValidationsStructural(schema map[string]any) {
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		alternatives, ok := schema[field].([]any)
		if !ok {
			continue
		}
		expressible := slices.DeleteFunc(alternatives, func(a any) bool { return !isExpressible(a) })
		if len(expressible) == 0 || field != "allOf" && len(expressible) < len(alternatives) {
			delete(schema, field)
			continue
		}
		schema[field] = expressible
		for _, alternative := range expressible {
			completeProperties(schema, alternative)
		}
	}
	if not, exists := schema["not"]; exists {
		if !isExpressible(not) {
			delete(schema, "not")
			return
		}
		completeProperties(schema, not)
	}
}

// isExpressible removes from an alternative what describes, and reports whether a structural schema can have the rest.
func isExpressible(value any) bool {
	v, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for _, field := range []string{"description", "title", "default", "example", "externalDocs", "nullable"} {
		delete(v, field)
	}
	for field := range v {
		if field == "type" || field == "additionalProperties" || strings.HasPrefix(field, "x-") {
			return false
		}
	}
	var inside []any
	for _, field := range []string{"items", "not"} {
		if below, exists := v[field]; exists {
			inside = append(inside, below)
		}
	}
	properties, _ := v["properties"].(map[string]any)
	inside = slices.AppendSeq(inside, maps.Values(properties))
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		alternatives, _ := v[field].([]any)
		inside = append(inside, alternatives...)
	}
	return !slices.ContainsFunc(inside, func(i any) bool { return !isExpressible(i) })
}

// completeProperties adds the properties and items of an alternative, of any content, to a schema that lacks them.
func completeProperties(schema map[string]any, alternative any) {
	v, _ := alternative.(map[string]any)
	wanted, _ := v["properties"].(map[string]any)
	for name, below := range wanted {
		properties, err := child(schema, "properties", "")
		if err != nil {
			return
		}
		if property, err := child(properties, name, ""); err == nil {
			completeProperties(property, below)
		}
	}
	if items, exists := v["items"]; exists {
		if own, err := child(schema, "items", ""); err == nil {
			completeProperties(own, items)
		}
	}
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		nested, _ := v[field].([]any)
		for _, a := range nested {
			completeProperties(schema, a)
		}
	}
	if not, exists := v["not"]; exists {
		completeProperties(schema, not)
	}
}
