package manifests

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WebhooksAt makes object, as it is read from FS, call addon-manager at url instead of its Service: for a hub whose API server
// reaches no Service, because addon-manager runs beside it and in no pod. Only the webhooks of CustomResourceDefinitions and webhook
// configurations name a Service; every other object stays as it is.
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

// callAt replaces the Service of a clientConfig by url and the Service's path.
func callAt(configuration map[string]any, url string) {
	service, found := inside(configuration, "service")
	if !found {
		return
	}
	path, _ := service["path"].(string)
	configuration["url"] = strings.TrimSuffix(url, "/") + path
	delete(configuration, "service")
}

// inside is the map at the end of the path; not found where there is none.
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
