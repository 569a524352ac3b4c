package manifests

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WebhooksAt replaces the Service of addon-manager in an object from FS with a URL, for a hub where addon-manager runs outside of the
// cluster and the API server reaches no Service. Only webhooks of CustomResourceDefinitions and webhook configurations have a Service; all
// other objects stay unchanged.
func WebhooksAt(object *unstructured.Unstructured, url string) {
	if conversion, found := inside(object.Object, "spec", "conversion", "webhook", "clientConfig"); found {
		callAt(conversion, url)
	}
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		if configuration, found := inside(webhook, "clientConfig"); found {
			callAt(configuration, url)
		}
	}
}

// callAt replaces the Service of a clientConfig with url and the Service's path.
func callAt(configuration map[string]any, url string) {
	service, found := inside(configuration, "service")
	if !found {
		return
	}
	path, _ := service["path"].(string)
	configuration["url"] = strings.TrimSuffix(url, "/") + path
	delete(configuration, "service")
}

// inside returns the map at the end of the path, if it exists.
func inside(value any, path ...string) (found map[string]any, ok bool) {
	found, ok = value.(map[string]any)
	for _, field := range path {
		if !ok {
			return nil, false
		}
		found, ok = found[field].(map[string]any)
	}
	return found, ok
}
