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
