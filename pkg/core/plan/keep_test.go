package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// keeping returns an entry of an object that the package keeps.
func keeping(entry kudo.InventoryEntry) kudo.InventoryEntry {
	entry.Keep = true
	return entry
}

// kept annotates an object as one to keep.
func kept(o *unstructured.Unstructured) { withAnnotation(kudo.AnnotationKeep, "true")(o) }

func TestKeeps(t *testing.T) {
	const keep, helm = kudo.AnnotationKeep, kudo.AnnotationHelmPolicy
	for name, test := range map[string]struct {
		annotations map[string]string
		keeps       bool
		problem     string // part of it, empty for none
	}{
		"no annotation":                 {},
		"true":                          {annotations: map[string]string{keep: "true"}, keeps: true},
		"false, as from a parameter":    {annotations: map[string]string{keep: "false"}},
		"another word":                  {annotations: map[string]string{keep: "yes"}, problem: `annotation kudo.dev/keep is "yes", which has no effect: set it to "true" or "false", or remove it`},
		"no word":                       {annotations: map[string]string{keep: ""}, problem: `annotation kudo.dev/keep is ""`},
		"Helm's":                        {annotations: map[string]string{helm: "keep"}, keeps: true},
		"Helm's, as Helm reads it":      {annotations: map[string]string{helm: " Keep\n"}, keeps: true},
		"another policy":                {annotations: map[string]string{helm: "delete"}, problem: `annotation helm.sh/resource-policy is "delete", which has no effect: set it to "keep", or remove it`},
		"false, which overrides Helm's": {annotations: map[string]string{keep: "false", helm: "keep"}},
		"another word beside Helm's":    {annotations: map[string]string{keep: "yes", helm: "keep"}, keeps: true, problem: keep},
	} {
		t.Run(name, func(t *testing.T) {
			o := object("ConfigMap", "c")
			o.SetAnnotations(test.annotations)
			if got := plan.Keeps(o); got != test.keeps {
				t.Errorf("keeps: got %v", got)
			}
			annotation, problem := plan.KeepProblem(o)
			if (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) || !strings.Contains(problem, annotation) {
				t.Errorf("want %q, got %q about %q", test.problem, problem, annotation)
			}
		})
	}
}

// The package decides whether an object is kept, by what was last applied: a plan that has only started changes nothing.
func TestKeptObjectsAreRecordedOnceTheyAreApplied(t *testing.T) {
	is, isNot := object("ConfigMap", "a", kept), object("ConfigMap", "a")
	entry := config("a", "t")
	for name, test := range map[string]struct {
		before  entries
		tracked *unstructured.Unstructured
		started kudo.InventoryEntry
		applied kudo.InventoryEntry
	}{
		"a new object":                   {nil, is, asPending(keeping(entry)), keeping(entry)},
		"an object that is kept now":     {entries{entry}, is, keeping(entry), keeping(entry)},
		"an object that is kept no more": {entries{keeping(entry)}, isNot, keeping(entry), entry},
		"an object that never was":       {entries{entry}, isNot, entry, entry},
	} {
		t.Run(name, func(t *testing.T) {
			started := plan.Track(test.before, "t", false, wants{test.tracked})
			if diff := cmp.Diff(entries{test.started}, started); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			applied := plan.MarkApplied(started, plan.Entry(test.tracked, ""), plan.Keeps(test.tracked))
			if diff := cmp.Diff(entries{test.applied}, applied); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(entries{test.started}, started); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
		})
	}
}

// Anyone who may write an object may annotate it: that alone keeps nothing.
func TestIsKept(t *testing.T) {
	clusterWide := func(o *unstructured.Unstructured) { o.SetNamespace("") }
	elsewhere := func(o *unstructured.Unstructured) { o.SetNamespace("other") }
	for name, test := range map[string]struct {
		entry    kudo.InventoryEntry
		live     *unstructured.Unstructured
		rendered wants
		want     bool
	}{
		"as recorded":                               {keeping(config("a", "t")), object("ConfigMap", "a"), nil, true},
		"as recorded, and gone":                     {keeping(config("a", "t")), nil, nil, true},
		"what somebody has annotated":               {config("a", "t"), object("ConfigMap", "a", kept), wants{object("ConfigMap", "a")}, false},
		"what somebody has annotated, unrendered":   {config("a", "t"), object("ConfigMap", "a", kept), nil, false},
		"what an earlier release applied":           {config("a", "t"), object("ConfigMap", "a", kept), wants{object("ConfigMap", "a", kept, clusterWide)}, true},
		"what an earlier release applied elsewhere": {config("a", "t"), object("ConfigMap", "a", kept), wants{object("ConfigMap", "a", kept, elsewhere)}, false},
		"what only the rendering keeps":             {config("a", "t"), object("ConfigMap", "a"), wants{object("ConfigMap", "a", kept)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.IsKept(test.entry, test.live, "apps", func() []*unstructured.Unstructured { return test.rendered }); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestClaimsThatARemovalLeaves(t *testing.T) {
	set := func(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := object("StatefulSet", "db", change...)
		_ = unstructured.SetNestedSlice(o.Object, []any{
			map[string]any{"metadata": map[string]any{"name": "data"}},
			map[string]any{"metadata": map[string]any{"name": "log", "annotations": map[string]any{kudo.AnnotationHelmPolicy: "keep"}}},
		}, "spec", "volumeClaimTemplates")
		return plan.Outline(o)
	}
	policy := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "Retain", "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	}
	claim := func(name, task string) kudo.InventoryEntry {
		return kudo.InventoryEntry{Kind: "PersistentVolumeClaim", Namespace: "apps", Name: name, Task: task}
	}
	claims := entries{claim("data-db-0", ""), claim("log-db-0", ""), claim("own", "t")}
	for name, test := range map[string]struct {
		rendered *unstructured.Unstructured
		problem  error
		removed  entries
	}{
		"a template that says keep": {rendered: set(), removed: entries{claims[0], claims[2]}},
		"a policy":                  {rendered: set(policy), removed: entries{claims[2]}},
		"a StatefulSet that stays":  {rendered: set(kept), removed: entries{claims[2]}},
		"an unknown package: a claim that it rendered itself loses its owner": {
			rendered: set(), problem: errors.New("unrenderable"), removed: entries{keeping(claims[2])}},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.WithoutRetained(claims, plan.RetainedClaims(wants{test.rendered}, test.problem))
			if diff := cmp.Diff(test.removed, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeptNote(t *testing.T) {
	space := kudo.InventoryEntry{Kind: "Namespace", Name: "apps"}
	definition := keeping(kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"})
	for name, test := range map[string]struct {
		entry   kudo.InventoryEntry
		removed entries
		stays   bool
		says    string
	}{
		"an object":                      {keeping(config("a", "t")), nil, true, "the package keeps it"},
		"an object in a Namespace":       {keeping(config("a", "t")), entries{keeping(space)}, true, "the package keeps it"},
		"an object whose Namespace goes": {keeping(config("a", "t")), entries{space}, false, "the package keeps it, but not its Namespace"},
		"a definition":                   {definition, nil, true, "the package keeps it, and with it the objects of its kind that the package has not applied"},
		"a Namespace":                    {keeping(space), nil, true, "the package keeps it, and with it the objects in it that the package has not applied"},
	} {
		t.Run(name, func(t *testing.T) {
			if note, stays := plan.KeptNote(test.entry, test.removed); note != test.says || stays != test.stays {
				t.Errorf("got %q, %v", note, stays)
			}
		})
	}
}
