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
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/core/record"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/text"
)

// events are all that Helm knows.
var events = []string{
	string(release.PreInstall), string(release.PostInstall), string(release.PreUpgrade), string(release.PostUpgrade),
	string(release.PreDelete), string(release.PostDelete),
	string(helmrelease.HookPreRollback), string(helmrelease.HookPostRollback), string(helmrelease.HookTest), "test-success",
}

// definitionsOf returns the objects in crds/ of a chart and of its subcharts.
func definitionsOf(loaded *helm.Chart) (definitions []release.Object, err error) {
	crds := loaded.CRDObjects()
	slices.SortStableFunc(crds, func(a, b helm.CRD) int { return strings.Compare(a.Filename, b.Filename) }) // subcharts have no order
	for _, crd := range crds {
		if err := decode(crd.Filename, string(crd.File.Data), &definitions); err != nil {
			return nil, err
		}
	}
	return definitions, nil
}

// outputOf returns the definitions of a chart with the objects of its rendered files, by name.
func outputOf(definitions []release.Object, files map[string]string) (*release.Rendering, error) {
	hooks, manifests, err := util.SortManifests(files, nil, util.InstallOrder)
	if err != nil {
		return nil, err
	}
	out := &release.Rendering{Definitions: definitions, Warnings: unknownHooks(files)}
	for _, manifest := range manifests {
		if err := decode(manifest.Name, manifest.Content, &out.Objects); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(hooks, func(a, b *helmrelease.Hook) int {
		if a.Weight != b.Weight {
			return a.Weight - b.Weight
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, hook := range hooks {
		var objects []release.Object
		if err := decode(hook.Path, hook.Manifest, &objects); err != nil {
			return nil, err
		}
		for _, object := range objects {
			out.Hooks = append(out.Hooks, hookOf(object, hook))
		}
	}
	return out, nil
}

// Recorded returns what a release runs, as Helm has recorded it: without definitions, which records do not contain.
func Recorded(r *record.Record) (release.Rendering, error) {
	var out release.Rendering
	if err := decode("the manifest", r.Manifest, &out.Objects); err != nil {
		return out, err
	}
	for _, hook := range r.Hooks {
		var objects []release.Object
		if err := decode("hook "+text.Quote(hook.Path), hook.Manifest, &objects); err != nil {
			return out, err
		}
		for _, object := range objects {
			out.Hooks = append(out.Hooks, release.Hook{Object: object})
		}
	}
	return out, nil
}

// markInvalid returns an output, or its error as one of what the chart renders.
func markInvalid(out *release.Rendering, err error) (*release.Rendering, error) {
	if err != nil {
		return nil, &Error{Message: err.Error(), Cause: release.ErrInvalidOutput}
	}
	return out, nil
}

// Error is an error of a chart or of its values, as Helm reports it: rendering it again fails in the same way.
type Error struct {
	Message string
	// Cause is release.ErrInvalidOutput if the chart renders text that is not the YAML of objects, and nil otherwise.
	Cause error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

func hookOf(object release.Object, hook *helmrelease.Hook) release.Hook {
	h := release.Hook{Object: object, Weight: hook.Weight}
	for _, event := range hook.Events {
		h.Events = append(h.Events, release.Event(event))
	}
	for _, policy := range hook.DeletePolicies {
		h.DeletePolicies = append(h.DeletePolicies, release.DeletePolicy(policy))
	}
	if len(h.DeletePolicies) == 0 {
		h.DeletePolicies = []release.DeletePolicy{release.BeforeHookCreation}
	}
	return h
}

// decode adds the objects of a manifest: the items of a list are objects of their own, and documents without content none.
func decode(source, manifest string, to *[]release.Object) error {
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
			*to = append(*to, release.Object{Source: source, Object: object})
			continue
		}
		list, err := object.ToList()
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		for i := range list.Items {
			*to = append(*to, release.Object{Source: source, Object: &list.Items[i]})
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
			for event := range strings.SplitSeq(head.Metadata.Annotations[helmrelease.HookAnnotation], ",") {
				if event = strings.ToLower(strings.TrimSpace(event)); event != "" && !slices.Contains(events, event) {
					warnings = append(warnings, fmt.Sprintf("%s: %s %q is omitted, because Helm has no hook %q", name, head.Kind, head.Metadata.Name, event))
				}
			}
		}
	}
	return warnings
}
