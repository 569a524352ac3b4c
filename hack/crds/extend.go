package main

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// field is the field that Tandem adds to the spec of ClusterManagementAddOn.
const field = "dependencies"

// versions are the API versions that Tandem's webhook converts; the first is the storage version.
var versions = []string{"v1alpha1", "v1beta1"}

// change returns OCM's definition, converted by Tandem's webhook and, if own is not nil, extended with the dependencies that own declares.
func change(document []byte, own map[string]any) ([]byte, error) {
	definition, err := parse(document)
	if err != nil {
		return nil, err
	}
	if own != nil {
		if err := extend(definition, own); err != nil {
			return nil, err
		}
	}
	if err := convert(definition); err != nil {
		return nil, err
	}
	return yaml.Marshal(definition)
}

// extend adds the schema of spec.dependencies from each version of own to the same version of base. The rest of base is unchanged. It
// returns an error if the versions differ, or if base already has a field of that name: in that case OCM has adopted dependencies, and its
// schema must be reviewed first.
func extend(base, own map[string]any) error {
	specs, err := specProperties(base)
	if err != nil {
		return fmt.Errorf("OCM's definition: %w", err)
	}
	ownSpecs, err := specProperties(own)
	if err != nil {
		return fmt.Errorf("the generated definition: %w", err)
	}
	for _, version := range versions {
		schema, found := ownSpecs[version][field]
		if !found {
			return fmt.Errorf("the generated definition has no field spec.%s in version %s", field, version)
		}
		if _, found := specs[version][field]; found {
			return fmt.Errorf("OCM's definition already has a field spec.%s in version %s", field, version)
		}
		specs[version][field] = schema
	}
	return nil
}

// convert configures addon-manager's webhook to convert between the versions of a definition. The label marks definitions whose webhook CA
// bundle Tandem keeps current; other definitions of the same name, such as OCM's own, are not changed. It returns an error if the
// definition has other versions or another storage version.
func convert(definition map[string]any) error {
	if _, err := specProperties(definition); err != nil {
		return err
	}
	for _, version := range versionsOf(definition) {
		if stored := version["storage"] == true; stored != (version["name"] == versions[0]) {
			return fmt.Errorf("version %s is not the storage version", versions[0])
		}
	}
	err := unstructured.SetNestedField(definition, "tandem", "metadata", "labels", "app.kubernetes.io/part-of")
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(definition, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"service": map[string]any{
				"namespace": "tandem-system", "name": "addon-manager", "path": "/convert", "port": int64(443),
			}},
		},
	}, "spec", "conversion")
}

// parse reads a CustomResourceDefinition.
func parse(document []byte) (map[string]any, error) {
	var definition map[string]any
	if err := yaml.Unmarshal(document, &definition); err != nil {
		return nil, err
	}
	return definition, nil
}

// specProperties returns the properties of the spec in each version, as references into the definition.
func specProperties(definition map[string]any) (map[string]map[string]any, error) {
	found := map[string]map[string]any{}
	for _, version := range versionsOf(definition) {
		name, _, err := unstructured.NestedString(version, "name")
		if err != nil {
			return nil, err
		}
		properties, _, err := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
		if err != nil {
			return nil, err
		}
		object, ok := properties.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("no schema of a spec in version %s", name)
		}
		found[name] = object
	}
	if names := slices.Sorted(maps.Keys(found)); !slices.Equal(names, versions) {
		return nil, fmt.Errorf("versions %q, want %q", names, versions)
	}
	return found, nil
}

// versionsOf returns the versions of a definition.
func versionsOf(definition map[string]any) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "versions")
	entries, _ := list.([]any)
	var found []map[string]any
	for _, entry := range entries {
		if version, ok := entry.(map[string]any); ok {
			found = append(found, version)
		}
	}
	return found
}
