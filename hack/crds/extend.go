package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// field is the field of a ClusterManagementAddOn's spec that Tandem adds.
const field = "dependencies"

// version is the only version of the API that is extended.
const version = "v1alpha1"

// extend returns the definition base with the schema of spec.dependencies taken from the definition own. Everything else of
// base stands as it was. It is an error if either has no version v1alpha1, or if base has a field of that name already: then
// OCM has adopted dependencies, and its own schema must be looked at first.
func extend(base, own []byte) ([]byte, error) {
	definition, properties, err := specProperties(base)
	if err != nil {
		return nil, fmt.Errorf("OCM's definition: %w", err)
	}
	_, ownProperties, err := specProperties(own)
	if err != nil {
		return nil, fmt.Errorf("the generated definition: %w", err)
	}
	schema, found := ownProperties[field]
	if !found {
		return nil, fmt.Errorf("the generated definition has no field spec.%s", field)
	}
	if _, found := properties[field]; found {
		return nil, fmt.Errorf("OCM's definition has a field spec.%s of its own", field)
	}
	properties[field] = schema
	return yaml.Marshal(definition)
}

// specProperties parses a CustomResourceDefinition and finds the properties of the spec in version v1alpha1; they are part of
// the returned definition.
func specProperties(document []byte) (definition, properties map[string]any, err error) {
	if err := yaml.Unmarshal(document, &definition); err != nil {
		return nil, nil, err
	}
	versions, _, err := unstructured.NestedFieldNoCopy(definition, "spec", "versions")
	if err != nil {
		return nil, nil, err
	}
	list, _ := versions.([]any)
	for _, entry := range list {
		candidate, ok := entry.(map[string]any)
		if !ok || candidate["name"] != version {
			continue
		}
		found, _, err := unstructured.NestedFieldNoCopy(candidate,
			"schema", "openAPIV3Schema", "properties", "spec", "properties")
		if err != nil {
			return nil, nil, err
		}
		if properties, ok = found.(map[string]any); ok {
			return definition, properties, nil
		}
	}
	return nil, nil, fmt.Errorf("no schema of a spec in version %s", version)
}
