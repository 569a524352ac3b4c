package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Output is what a chart renders.
type Output struct {
	// Definitions are the objects in crds/ of the chart and of its enabled subcharts.
	Definitions []Object
	// Hooks are in the order in which Helm runs those of one event.
	Hooks []Hook
	// Objects are all others, in the order in which Helm installs them.
	Objects []Object
	// Warnings are problems with which Helm renders the chart all the same.
	Warnings []string
}

// Object is an object of a chart, and the file that it comes from.
type Object struct {
	Source string
	Object *unstructured.Unstructured
}

// Hook is an object of a chart that is applied when something happens to its release.
type Hook struct {
	Object
	Events []Event
	Weight int
	// DeletePolicies are those of the annotation helm.sh/hook-delete-policy; before-hook-creation if it has none.
	DeletePolicies []DeletePolicy
}

// Event is what a hook is applied at.
type Event string

// The events at which hooks are applied. Helm has further ones, for rollbacks and for tests.
const (
	PreInstall  = Event(release.HookPreInstall)
	PostInstall = Event(release.HookPostInstall)
	PreUpgrade  = Event(release.HookPreUpgrade)
	PostUpgrade = Event(release.HookPostUpgrade)
	PreDelete   = Event(release.HookPreDelete)
	PostDelete  = Event(release.HookPostDelete)
)

// events are all that Helm knows.
var events = []string{
	string(PreInstall), string(PostInstall), string(PreUpgrade), string(PostUpgrade), string(PreDelete), string(PostDelete),
	string(release.HookPreRollback), string(release.HookPostRollback), string(release.HookTest), "test-success",
}

// DeletePolicy states when a hook is deleted.
type DeletePolicy string

// The delete policies of hooks.
const (
	Succeeded          = DeletePolicy(release.HookSucceeded)
	Failed             = DeletePolicy(release.HookFailed)
	BeforeHookCreation = DeletePolicy(release.HookBeforeHookCreation)
)

// outputOf returns the objects of rendered files, by name, and of the definitions of a chart.
func outputOf(loaded *helm.Chart, files map[string]string) (*Output, error) {
	hooks, manifests, err := util.SortManifests(files, nil, util.InstallOrder)
	if err != nil {
		return nil, err
	}
	out := &Output{Warnings: unknownHooks(files)}
	crds := loaded.CRDObjects()
	slices.SortStableFunc(crds, func(a, b helm.CRD) int { return strings.Compare(a.Filename, b.Filename) }) // subcharts have no order
	for _, crd := range crds {
		if err := decode(crd.Filename, string(crd.File.Data), &out.Definitions); err != nil {
			return nil, err
		}
	}
	for _, manifest := range manifests {
		if err := decode(manifest.Name, manifest.Content, &out.Objects); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(hooks, func(a, b *release.Hook) int {
		if a.Weight != b.Weight {
			return a.Weight - b.Weight
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, hook := range hooks {
		var objects []Object
		if err := decode(hook.Path, hook.Manifest, &objects); err != nil {
			return nil, err
		}
		for _, object := range objects {
			out.Hooks = append(out.Hooks, hookOf(object, hook))
		}
	}
	return out, nil
}

func hookOf(object Object, hook *release.Hook) Hook {
	h := Hook{Object: object, Weight: hook.Weight}
	for _, event := range hook.Events {
		h.Events = append(h.Events, Event(event))
	}
	for _, policy := range hook.DeletePolicies {
		h.DeletePolicies = append(h.DeletePolicies, DeletePolicy(policy))
	}
	if len(h.DeletePolicies) == 0 {
		h.DeletePolicies = []DeletePolicy{BeforeHookCreation}
	}
	return h
}

// decode adds the objects of a manifest: the items of a list are objects of their own, and documents without content none.
func decode(source, manifest string, to *[]Object) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifest), len(manifest)+1)
	for {
		object, err := next(decoder)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: invalid YAML: %w", source, err)
		case len(object.Object) == 0:
			continue
		case object.GetKind() == "" || object.GetAPIVersion() == "":
			return fmt.Errorf("%s: an object has no apiVersion or no kind", source)
		}
		if !object.IsList() {
			*to = append(*to, Object{Source: source, Object: object})
			continue
		}
		list, err := object.ToList()
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		for i := range list.Items {
			*to = append(*to, Object{Source: source, Object: &list.Items[i]})
		}
	}
}

// next returns the next document; its whole numbers are integers.
func next(decoder *utilyaml.YAMLOrJSONDecoder) (*unstructured.Unstructured, error) {
	var document json.RawMessage
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if len(document) == 0 {
		return object, nil
	}
	return object, utiljson.Unmarshal(document, &object.Object)
}

// unknownHooks returns a warning for each object with a hook that Helm does not know, and omits.
func unknownHooks(files map[string]string) []string {
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		documents := util.SplitManifests(files[name])
		keys := slices.Collect(maps.Keys(documents))
		sort.Sort(util.BySplitManifestsOrder(keys))
		for _, key := range keys {
			var head util.SimpleHead
			if yaml.Unmarshal([]byte(documents[key]), &head) != nil || head.Metadata == nil { // SortManifests returns the error
				continue
			}
			for event := range strings.SplitSeq(head.Metadata.Annotations[release.HookAnnotation], ",") {
				if event = strings.ToLower(strings.TrimSpace(event)); event != "" && !slices.Contains(events, event) {
					warnings = append(warnings, fmt.Sprintf("%s: %s %q is omitted, because Helm has no hook %q", name, head.Kind, head.Metadata.Name, event))
				}
			}
		}
	}
	return warnings
}
