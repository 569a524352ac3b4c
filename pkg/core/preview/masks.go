package preview

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maskSecrets returns the objects without the values of Secrets, in a way that still shows which values change.
func maskSecrets(before, after *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	if after.GetKind() != "Secret" || after.GroupVersionKind().Group != "" {
		return before, after
	}
	after = after.DeepCopy()
	if before != nil {
		before = before.DeepCopy()
	}
	for _, field := range []string{"data", "stringData"} {
		now, _ := after.Object[field].(map[string]any)
		var was map[string]any
		if before != nil {
			was, _ = before.Object[field].(map[string]any)
		}
		maskValues(was, now)
	}
	return before, after
}

// maskValues replaces values by placeholders that differ where the values differ.
func maskValues(was, now map[string]any) {
	for key, value := range now {
		stood, had := was[key]
		if had && !equality.Semantic.DeepEqual(stood, value) {
			was[key], now[key] = "*** (before)", "*** (after)"
			continue
		}
		now[key] = "***"
		if had {
			was[key] = "***"
		}
	}
	for key := range was {
		if _, stays := now[key]; !stays {
			was[key] = "***"
		}
	}
}
