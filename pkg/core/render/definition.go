package render

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
)

const (
	preserveUnknown = "x-kubernetes-preserve-unknown-fields"
	intOrString     = "x-kubernetes-int-or-string"
	approval        = "api-approved.kubernetes.io"
)

// convertDefinition converts a CustomResourceDefinition of apiextensions.k8s.io/v1beta1 to v1, as the API server did: what v1beta1 has once
// for all versions becomes part of each. Schemas, which need not be structural in v1beta1, become structural where that changes nothing
// that they accept, or lets them accept more; the API server names what remains. It returns an error if the definition would become too large.
func convertDefinition(obj *unstructured.Unstructured) error {
	delete(obj.Object, "status")
	spec, _ := obj.Object["spec"].(map[string]any)
	if spec == nil {
		return nil
	}
	setDefault(spec, "scope", "Namespaced")
	approve(obj, spec)
	convertConversion(spec)
	preserve := spec["preserveUnknownFields"] != false
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		versions = []any{map[string]any{"name": spec["version"], "served": true, "storage": true}}
	}
	if err := copiesFit(spec, len(versions)); err != nil {
		return err
	}
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			convertVersion(version, spec, preserve)
		}
	}
	spec["versions"] = versions
	for _, field := range []string{"version", "validation", "subresources", "additionalPrinterColumns", "preserveUnknownFields"} {
		delete(spec, field)
	}
	return nil
}

// forAllVersions maps the fields that v1beta1 has once to those of each version in v1.
var forAllVersions = map[string]string{
	"validation": "schema", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns",
}

// copiesFit returns an error if a definition would become too large with a copy for each version of what it has for all.
func copiesFit(spec map[string]any, versions int) error {
	for from := range forAllVersions {
		size, err := yaml.Size(spec[from])
		if err != nil {
			return err
		}
		if size*versions > yaml.MaxDocument {
			return fmt.Errorf("with a copy of spec.%s in each of %d versions, %w", from, versions, yaml.TooLarge(yaml.MaxDocument))
		}
	}
	return nil
}

// approve marks a definition in a group of the Kubernetes community as unapproved: v1 requires that an annotation says so.
func approve(obj *unstructured.Unstructured, spec map[string]any) {
	group, _ := spec["group"].(string)
	if !strings.HasSuffix("."+group, ".k8s.io") && !strings.HasSuffix("."+group, ".kubernetes.io") {
		return
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[approval] == "" {
		annotations[approval] = "unapproved, converted from apiextensions.k8s.io/v1beta1"
		obj.SetAnnotations(annotations)
	}
}

// convertConversion moves the fields of a conversion webhook, with v1beta1's default.
func convertConversion(spec map[string]any) {
	conversion, _ := spec["conversion"].(map[string]any)
	if conversion == nil || conversion["strategy"] != "Webhook" {
		return
	}
	webhook := map[string]any{"conversionReviewVersions": []any{"v1beta1"}}
	for from, to := range map[string]string{"webhookClientConfig": "clientConfig", "conversionReviewVersions": "conversionReviewVersions"} {
		if value, set := conversion[from]; set && !isEmpty(value) {
			webhook[to] = value
		}
		delete(conversion, from)
	}
	conversion["webhook"] = webhook
}

// convertVersion adds what the definition has for all versions to one of them.
func convertVersion(version, spec map[string]any, preserve bool) {
	for from, to := range forAllVersions {
		if value := spec[from]; !isEmpty(value) || from == "subresources" && value != nil {
			setDefault(version, to, runtime.DeepCopyJSONValue(value))
		}
	}
	columns, _ := version["additionalPrinterColumns"].([]any)
	for _, c := range columns {
		if column, ok := c.(map[string]any); ok {
			if path, old := column["JSONPath"]; old {
				column["jsonPath"] = path
				delete(column, "JSONPath")
			}
		}
	}
	holder, _ := version["schema"].(map[string]any)
	if holder == nil {
		holder = map[string]any{}
	}
	schema, _ := holder["openAPIV3Schema"].(map[string]any)
	if schema == nil {
		schema = map[string]any{}
	}
	setDefault(schema, "type", "object")
	if preserve {
		makeStructural(schema, true)
	}
	holder["openAPIV3Schema"], version["schema"] = schema, holder
}

// makeStructural adds what a structural schema requires, so that it accepts and keeps what it did before. Under the metadata of an object,
// at the root, nothing can be added.
func makeStructural(schema map[string]any, root bool) {
	if isIntOrString(schema) {
		makeIntOrString(schema)
		return
	}
	if root {
		restrictRoot(schema)
	}
	makeValidationsStructural(schema)
	setType(schema)
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		if property, ok := p.(map[string]any); ok && !(root && name == "metadata") {
			makeStructural(property, false)
		}
	}
	for _, field := range []string{"items", "additionalProperties"} {
		if value, ok := schema[field].(map[string]any); ok {
			makeStructural(value, false)
		}
	}
	keepUnknown(schema)
}

// keepUnknown lets a schema keep what it does not describe.
func keepUnknown(schema map[string]any) {
	switch {
	case schema["type"] == "array":
		setDefault(schema, "items", map[string]any{preserveUnknown: true})
	case schema["type"] == "object" && schema["additionalProperties"] == nil, schema["type"] == nil:
		schema[preserveUnknown] = true
	}
}

// setType sets the type that the other fields of a schema imply.
func setType(schema map[string]any) {
	if schema["type"] == "" {
		delete(schema, "type")
	}
	switch {
	case schema["properties"] != nil, schema["additionalProperties"] != nil:
		setDefault(schema, "type", "object")
	case schema["items"] != nil:
		setDefault(schema, "type", "array")
	}
}

// makeIntOrString makes the schema of an integer or a string structural: its alternatives are in the only order that v1 accepts.
func makeIntOrString(schema map[string]any) {
	hasTypes := false
	for _, field := range []string{"anyOf", "oneOf"} {
		if areIntAndString(schema[field]) {
			hasTypes = true
			delete(schema, field)
		}
	}
	makeValidationsStructural(schema)
	delete(schema, "type")
	schema[intOrString] = true
	if hasTypes && schema["anyOf"] == nil {
		schema["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	}
}

// isIntOrString reports whether a schema describes an integer or a string, in one of the forms that generators wrote.
func isIntOrString(schema map[string]any) bool {
	if schema["format"] == "int-or-string" || schema[intOrString] == true {
		return true
	}
	return areIntAndString(schema["anyOf"]) || areIntAndString(schema["oneOf"])
}

// areIntAndString reports whether alternatives are an integer and a string.
func areIntAndString(value any) bool {
	alternatives, _ := value.([]any)
	if len(alternatives) != 2 {
		return false
	}
	types := map[any]bool{}
	for _, a := range alternatives {
		if alternative, ok := a.(map[string]any); ok && len(alternative) == 1 {
			types[alternative["type"]] = true
		}
	}
	return types["integer"] && types["string"]
}
