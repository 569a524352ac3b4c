package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAKindIsLookedUpOnceAMinute(t *testing.T) {
	const pod = "Pod"
	cluster := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m := remembering(cluster, func() time.Time { return now })
	scope := func(versions ...string) meta.RESTScopeName {
		t.Helper()
		found, err := m.RESTMapping(schema.GroupKind{Kind: pod}, versions...)
		if err != nil {
			return ""
		}
		scope := found.Scope.Name()
		found.Scope = nil // by a careless caller
		return scope
	}
	if got := scope("v1"); got != "" {
		t.Fatalf("a kind that does not exist has scope %q", got)
	}
	cluster.Add(corev1.SchemeGroupVersion.WithKind(pod), meta.RESTScopeNamespace)
	if got := scope("v1"); got != meta.RESTScopeNameNamespace {
		t.Fatalf("a kind that was just defined has scope %q", got)
	}
	cluster.Add(corev1.SchemeGroupVersion.WithKind(pod), meta.RESTScopeRoot)
	if got := scope("v1"); got != meta.RESTScopeNameNamespace {
		t.Errorf("it is looked up again, and has scope %q", got)
	}
	if got := scope(); got != meta.RESTScopeNameRoot {
		t.Errorf("without a version, which was not looked up before, it has scope %q", got)
	}
	now = now.Add(mappingPeriod)
	if got := scope("v1"); got != meta.RESTScopeNameRoot {
		t.Errorf("after a minute it still has scope %q", got)
	}
}
