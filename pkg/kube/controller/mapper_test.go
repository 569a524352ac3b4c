package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAKindIsLookedUpOnceAMinute(t *testing.T) {
	const pod = "Pod"
	cluster := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m := newMapper(func() (meta.RESTMapper, error) { return cluster, nil }, func() time.Time { return now })
	if err := m.replace(); err != nil {
		t.Fatal(err)
	}
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

func TestChangedKindsAreDiscoveredAgain(t *testing.T) {
	gadget := schema.GroupKind{Group: "bugs.example.org", Kind: "Gadget"}
	served := func(versions ...string) meta.RESTMapper {
		var groups []schema.GroupVersion
		for _, version := range versions {
			groups = append(groups, schema.GroupVersion{Group: gadget.Group, Version: version})
		}
		mapper := meta.NewDefaultRESTMapper(groups)
		for _, group := range groups {
			mapper.Add(group.WithKind(gadget.Kind), meta.RESTScopeNamespace)
		}
		return mapper
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cluster, discoveries := served("v1alpha1"), 0
	m := newMapper(func() (meta.RESTMapper, error) { discoveries++; return cluster, nil }, func() time.Time { return now })
	if err := m.replace(); err != nil {
		t.Fatal(err)
	}
	version := func() string {
		found, err := m.RESTMapping(gadget)
		if meta.IsNoMatchError(err) {
			return "none"
		}
		if err != nil {
			t.Fatal(err)
		}
		return found.GroupVersionKind.Version
	}
	expect := func(when, want string) {
		t.Helper()
		if got := version(); got != want {
			t.Errorf("%s: got version %s, want %s", when, got, want)
		}
	}
	expect("at first", "v1alpha1")
	cluster = served("v1")
	if m.Renew() {
		t.Error("kinds are discovered twice within a second")
	}
	expect("within a second", "v1alpha1")
	now = now.Add(renewalInterval)
	if !m.Renew() || m.Renewals() != 1 {
		t.Errorf("kinds were dropped %d times, want 1", m.Renewals())
	}
	expect("after a renewal", "v1")

	cluster, now = served(), now.Add(mappingPeriod)
	if !m.Renew() {
		t.Error("kinds are not discovered again")
	}
	expect("without a definition", "none")
	cluster, now = served("v1"), now.Add(renewalInterval)
	expect("once it is defined again, which nothing has reported", "v1")
	cluster, discoveries = served(), 0
	for range 100 {
		expect("while it is remembered", "v1")
	}
	if discoveries != 0 {
		t.Errorf("a kind that was found is discovered %d times", discoveries)
	}
	now = now.Add(renewalInterval)
	m.Renew()
	discoveries = 0
	counted := &countedMapper{RESTMapper: cluster}
	cluster = counted
	for range 100 {
		expect("a kind that is looked up all the time", "none")
		now = now.Add(renewalInterval / 50)
	}
	if discoveries != 1 || counted.lookups != 1 {
		t.Errorf("in two seconds all kinds were discovered %d times, and the missing one looked up %d times, want once", discoveries, counted.lookups)
	}
}

// countedMapper counts the lookups of kinds.
type countedMapper struct {
	meta.RESTMapper
	lookups int
}

func (c *countedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.lookups++
	return c.RESTMapper.RESTMapping(kind, versions...)
}

func TestOnlyTheAnswerOfNoObjectSaysThatItIsGone(t *testing.T) {
	gadgets := schema.GroupResource{Group: "bugs.example.org", Resource: "gadgets"}
	for sentence, test := range map[string]struct {
		err      error
		unserved bool
	}{
		"no error":                    {nil, false},
		"an object that is gone":      {apierrors.NewNotFound(gadgets, "g"), false},
		"a resource that is unserved": {apierrors.NewGenericServerResponse(404, "get", gadgets, "g", "404 page not found", 0, true), true},
		"wrapped": {fmt.Errorf("reading: %w",
			apierrors.NewGenericServerResponse(404, "get", gadgets, "g", "404 page not found", 0, true)), true},
		"a proxy that fails": {apierrors.NewGenericServerResponse(502, "get", gadgets, "g", "bad gateway", 0, true), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := IsUnserved(test.err); got != test.unserved {
				t.Errorf("got %t", got)
			}
		})
	}
}
