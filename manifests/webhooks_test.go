package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

func TestWebhooksAt(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"the conversion of a resource definition": {
			`{kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: Webhook, webhook: {
				conversionReviewVersions: [v1], clientConfig: {service: {namespace: n, name: s, path: /convert, port: 443}}}}}}`,
			`{kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: Webhook, webhook: {
				conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:9443/convert"}}}}}`,
		},
		"a resource definition without conversion": {
			`{kind: CustomResourceDefinition, spec: {conversion: {strategy: None}}}`,
			`{kind: CustomResourceDefinition, spec: {conversion: {strategy: None}}}`,
		},
		"every webhook of a configuration": {
			`{kind: ValidatingWebhookConfiguration, webhooks: [
				{name: a, clientConfig: {caBundle: eA==, service: {namespace: n, name: s, path: /admit/a}}},
				{name: b, clientConfig: {service: {namespace: n, name: s}}}]}`,
			`{kind: ValidatingWebhookConfiguration, webhooks: [
				{name: a, clientConfig: {caBundle: eA==, url: "https://127.0.0.1:9443/admit/a"}},
				{name: b, clientConfig: {url: "https://127.0.0.1:9443"}}]}`,
		},
		"a webhook that is called by URL already": {
			`{kind: ValidatingWebhookConfiguration, webhooks: [{name: a, clientConfig: {url: "https://elsewhere"}}]}`,
			`{kind: ValidatingWebhookConfiguration, webhooks: [{name: a, clientConfig: {url: "https://elsewhere"}}]}`,
		},
		"another object": {
			`{kind: Role, rules: [{verbs: [get]}]}`,
			`{kind: Role, rules: [{verbs: [get]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object, want := decoded(t, test.object), decoded(t, test.want)
			WebhooksAt(object, "https://127.0.0.1:9443/")
			if diff := cmp.Diff(want.Object, object.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheWebhookOfAddOnsSeesReservedNamespaces(t *testing.T) {
	webhooks, err := FS.ReadFile("admission/webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range rights.ReservedExcept(nil) {
		if !strings.Contains(string(webhooks), `"`+namespace+`"`) {
			t.Errorf("no condition names %q", namespace)
		}
	}
}

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
