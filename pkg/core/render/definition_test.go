package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestConvertDefinition(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"a single version, validation and columns": {
			`{group: a.com, version: v1, scope: Cluster, subresources: {status: {}}, additionalPrinterColumns: [{name: A, JSONPath: .a}],
			 preserveUnknownFields: false, validation: {openAPIV3Schema: {type: object, properties: {a: {type: object}}}}}`,
			`{group: a.com, scope: Cluster, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
			 additionalPrinterColumns: [{name: A, jsonPath: .a}], schema: {openAPIV3Schema: {type: object, properties: {a: {type: object}}}}}]}`,
		},
		"several versions, one with its own columns": {
			`{group: a.com, version: v1, versions: [{name: v1, served: true, storage: true, additionalPrinterColumns: [{name: B, JSONPath: .b}]},
			 {name: v2, served: false, storage: false}], additionalPrinterColumns: [{name: A, JSONPath: .a}]}`,
			`{group: a.com, scope: Namespaced, versions: [{name: v1, served: true, storage: true, additionalPrinterColumns: [{name: B, jsonPath: .b}],
			 schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
			 {name: v2, served: false, storage: false, additionalPrinterColumns: [{name: A, jsonPath: .a}],
			 schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}`,
		},
		"a conversion webhook": {
			`{group: a.com, versions: [], version: v1, conversion: {strategy: Webhook, webhookClientConfig: {url: u}}}`,
			`{group: a.com, scope: Namespaced, conversion: {strategy: Webhook, webhook: {clientConfig: {url: u}, conversionReviewVersions: [v1beta1]}},
			 versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}`,
		},
		"a schema that is not structural": {
			`{group: a.com, version: v1, validation: {openAPIV3Schema: {properties: {metadata: {type: object}, a: {}, b: {items: {}}, c: {type: array},
			 d: {anyOf: [{type: integer}, {type: string}]}, e: {additionalProperties: {type: string}}, f: {type: string}}}}}`,
			`{group: a.com, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
			 x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object}, a: {x-kubernetes-preserve-unknown-fields: true},
			 b: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}, c: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}},
			 d: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]},
			 e: {type: object, additionalProperties: {type: string}}, f: {type: string}}}}}]}`,
		},
		"an integer or a string in each form": {
			`{group: a.com, version: v1, validation: {openAPIV3Schema: {properties: {a: {anyOf: [{type: string}, {type: integer}], description: d},
			 b: {oneOf: [{type: string}, {type: integer}]}, c: {type: string, format: int-or-string}, d: {x-kubernetes-int-or-string: true, anyOf: [{minimum: 1}]},
			 e: {anyOf: [{type: string}, {type: integer}], allOf: [{pattern: x, description: d}]}}}}}`,
			`{group: a.com, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
			 x-kubernetes-preserve-unknown-fields: true, properties: {
			 a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], description: d},
			 b: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, c: {x-kubernetes-int-or-string: true, format: int-or-string},
			 d: {x-kubernetes-int-or-string: true, anyOf: [{minimum: 1}]},
			 e: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], allOf: [{pattern: x}]}}}}}]}`,
		},
		"a root that is restricted": {
			`{group: a.com, version: v1, validation: {openAPIV3Schema: {nullable: true, additionalProperties: true, properties: {apiVersion: {}, kind: {description: d},
			 metadata: {description: d, properties: {name: {maxLength: 3}, labels: {type: object}}}}}}}`,
			`{group: a.com, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
			 x-kubernetes-preserve-unknown-fields: true, properties: {apiVersion: {type: string}, kind: {type: string, description: d},
			 metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}}}}}]}`,
		},
		"alternatives": {
			`{group: a.com, version: v1, validation: {openAPIV3Schema: {properties: {a: {type: object, oneOf: [{required: [x]}, {title: t, properties: {y: {pattern: z, description: d}}}]},
			 b: {anyOf: [{type: string}, {type: object}]}, c: {type: string, allOf: [{type: string}, {minLength: 1}]}, d: {type: string, not: {type: integer}},
			 e: {type: array, items: {type: string}, not: {items: {enum: [x]}}}}}}}`,
			`{group: a.com, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
			 x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true,
			 properties: {y: {x-kubernetes-preserve-unknown-fields: true}}, oneOf: [{required: [x]}, {properties: {y: {pattern: z}}}]},
			 b: {x-kubernetes-preserve-unknown-fields: true}, c: {type: string, allOf: [{minLength: 1}]}, d: {type: string},
			 e: {type: array, items: {type: string}, not: {items: {enum: [x]}}}}}}}]}`,
		},
		"a conversion without review versions": {
			`{group: a.com, version: v1, conversion: {strategy: Webhook, webhookClientConfig: {url: u}, conversionReviewVersions: []}}`,
			`{group: a.com, scope: Namespaced, conversion: {strategy: Webhook, webhook: {clientConfig: {url: u}, conversionReviewVersions: [v1beta1]}},
			 versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}`,
		},
		"a spec that is none": {`5`, `5`},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
			var spec, want any
			if err := yaml.Unmarshal([]byte(test.spec), &spec); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			obj.Object["spec"] = spec
			if err := convertDefinition(obj); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"spec": want}, obj.Object); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestFieldsThatADefinitionNeverHad(t *testing.T) {
	rendered, err := Templates(newContext("t", `{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: as.a.com}, spec: {group: a.com, foo: x,
		names: {kind: A, plural: as, foo: x}, versions: [{name: v1, served: true, storage: true, foo: x, additionalPrinterColumns: [{name: A, type: string, JSONPath: .a, foo: x}]}],
		validation: {openAPIV3Schema: {$schema: x, properties: {a: {readOnly: true, type: string}, b: , foo: {type: string}}, anyOf: [{foo: x, required: [a]}]}}}}`), "t")
	if err != nil {
		t.Fatal(err)
	}
	var omitted []string
	for _, o := range rendered.Omissions {
		omitted = append(omitted, o.Field)
	}
	const schema = "spec.validation.openAPIV3Schema."
	want := []string{
		"spec.foo", "spec.names.foo", schema + "$schema", schema + "properties.a.readOnly", schema + "anyOf[].foo", "spec.versions[].foo",
		"spec.versions[].additionalPrinterColumns[].foo",
	}
	if diff := cmp.Diff(want, omitted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wanted := object(t, `{group: a.com, scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true,
		additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}], schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true,
		properties: {a: {type: string}, b: {x-kubernetes-preserve-unknown-fields: true}, foo: {type: string}}, anyOf: [{required: [a]}]}}}]}`)
	if diff := cmp.Diff(wanted.Object, rendered.Objects[0].Object["spec"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
