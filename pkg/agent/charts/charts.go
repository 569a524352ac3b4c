// Package charts renders the charts of Helm tasks for the managed cluster: with its version and kinds, and with the objects that templates look up.
package charts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

// TransientError is why a chart could not be rendered now: of the chart, nothing is known.
type TransientError struct{ Err error }

func (e *TransientError) Error() string { return e.Err.Error() }
func (e *TransientError) Unwrap() error { return e.Err }

// Request is a chart to render.
type Request struct {
	// Archive is the chart, and Digest its digest.
	Archive []byte
	Digest  string
	// Values is the JSON of the values that override the chart's.
	Values  string
	Release chart.Release
	// Trial is true if the chart's definitions are still to be applied: their kinds count as known, and so do those of Assumed, which others define.
	Trial   bool
	Assumed []string
	// Owned are the versions of API groups that APIServices of the Instance serve: while they do not work, the chart is rendered without their kinds,
	// because it may be what repairs them.
	Owned []schema.GroupVersion
	// Reader reads what templates look up, with the permissions of the Instance.
	Reader client.Reader
	// Since is a time after which the cluster serves everything that the chart may depend on: what is discovered later is fresh.
	Since time.Time
}

// Renderer renders charts.
type Renderer struct {
	charts    *chart.Renderer
	discovery discovery.DiscoveryInterface
	// namespace is the agent's own.
	namespace string
	// measure receives the duration and the error of each rendering.
	measure func(took time.Duration, err error)

	// discovered is the last discovery. It is locked while another one runs, so that Instances that need one at the same time share it.
	mutex      sync.Mutex
	discovered discovered

	// trials holds the last trials of charts that look nothing up: the rendering that follows is the same, unless a definition was applied in
	// between, and takes it.
	trials *lru.Cache
}

// discovered is what the cluster serves, and when its discovery began.
type discovered struct {
	began        time.Time
	capabilities chart.Capabilities
}

// The limits of the trials that are held: their number, and the bytes of each, in JSON. A forgotten one is made again.
const (
	maxTrials     = 8
	maxTrialBytes = 1 << 20
)

// New returns a Renderer for the cluster of the discovery, with the agent in a namespace. measure receives the duration and the error of each rendering.
func New(
	renderer *chart.Renderer, cluster discovery.DiscoveryInterface, namespace string, measure func(took time.Duration, err error),
) *Renderer {
	return &Renderer{charts: renderer, discovery: cluster, namespace: namespace, measure: measure, trials: lru.New(maxTrials)}
}

// Render renders a chart. The error is a *TransientError if the cluster could not answer; all others are of the chart.
func (r *Renderer) Render(ctx context.Context, q Request) (*release.Rendering, error) {
	capabilities, unknown, err := r.capabilitiesSince(q.Since, q.Owned)
	if err != nil {
		return nil, &TransientError{Err: err}
	}
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, q.Assumed)
	in := chart.Input{
		Archive: q.Archive, Values: []byte(q.Values), Release: q.Release, Capabilities: capabilities, AssumeDefinitions: q.Trial,
	}
	key := keyOf(in, q.Digest)
	if trial, made := r.trials.Get(key); made {
		if !q.Trial {
			r.trials.Remove(key)
		}
		return trial.(*release.Rendering), nil
	}
	looked, started := false, time.Now()
	out, err := r.charts.Render(ctx, in, func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		looked = true
		return r.lookUp(ctx, q.Reader, apiVersion, kind, namespace, name)
	})
	r.measure(time.Since(started), err)
	if err != nil {
		return nil, classify(err)
	}
	if len(unknown) > 0 {
		out.Unknown = unknown
		out.Warnings = append(out.Warnings, fmt.Sprintf("the kinds of %s are unknown, because the API does not work that this Instance serves: "+
			"objects that are no longer rendered are not deleted", strings.Join(unknown, ", ")))
	}
	if q.Trial && !looked && len(out.Definitions) == 0 && isSmall(out) {
		r.trials.Add(key, out)
	}
	return out, nil
}

// isSmall reports whether a trial may be held.
func isSmall(trial *release.Rendering) bool {
	encoded, err := json.Marshal(trial)
	return err == nil && len(encoded) <= maxTrialBytes
}

// classify wraps all errors but those of the chart.
func classify(err error) error {
	var ofChart *chart.Error
	var limit *chart.LimitError
	var version *chart.VersionError
	if errors.As(err, &ofChart) || errors.As(err, &limit) || errors.As(err, &version) {
		return err
	}
	return &TransientError{Err: err}
}

// keyOf identifies an input without definitions to assume.
func keyOf(in chart.Input, digest string) [sha256.Size]byte {
	in.Archive, in.AssumeDefinitions = []byte(digest), false
	encoded, _ := json.Marshal(in) // consists of strings
	return sha256.Sum256(encoded)
}

// capabilitiesSince returns what the cluster serves, discovered after a time. Of owned versions that cannot be discovered, it returns what they served
// before, and those whose kinds are unknown.
func (r *Renderer) capabilitiesSince(since time.Time, owned []schema.GroupVersion) (capabilities chart.Capabilities, unknown []string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.discovered.began.After(since) {
		return r.discovered.capabilities, nil, nil
	}
	began := time.Now()
	capabilities, err = r.capabilities()
	switch failed, isPartial := discovery.GroupDiscoveryFailedErrorGroups(err); {
	case err == nil:
		r.discovered = discovered{began: began, capabilities: capabilities}
	case isPartial && len(failed) > 0 && containsAll(owned, failed):
		capabilities.APIVersions, unknown = withVersions(capabilities.APIVersions, failed, r.discovered.capabilities.APIVersions)
		return capabilities, unknown, nil
	}
	return capabilities, nil, err
}

// withVersions adds versions that cannot be discovered, with the kinds that they had before, and returns those of which no kind is known.
func withVersions(versions []string, failed map[schema.GroupVersion]error, before []string) (all, unknown []string) {
	all = slices.Clone(versions)
	for version := range failed {
		all = append(all, version.String())
		isKnown := false
		for _, name := range before {
			if strings.HasPrefix(name, version.String()+"/") {
				all, isKnown = append(all, name), true
			}
		}
		if !isKnown {
			unknown = append(unknown, version.String())
		}
	}
	slices.Sort(all)
	slices.Sort(unknown)
	return slices.Compact(all), unknown
}

// containsAll reports whether all versions that cannot be discovered are owned.
func containsAll(owned []schema.GroupVersion, failed map[schema.GroupVersion]error) bool {
	for version := range failed {
		if !slices.Contains(owned, version) {
			return false
		}
	}
	return true
}

// capabilities discovers what the cluster serves: everything, or there is an error, because a chart would render less. What was found is returned with it.
func (r *Renderer) capabilities() (chart.Capabilities, error) {
	version, err := r.discovery.ServerVersion()
	if err != nil {
		return chart.Capabilities{}, fmt.Errorf("discovering the version of the managed cluster: %w", err)
	}
	groups, resources, err := r.discovery.ServerGroupsAndResources()
	if err != nil {
		err = fmt.Errorf("discovering the kinds of the managed cluster, which charts depend on: %w", err)
	}
	known := map[string]bool{}
	for _, group := range groups {
		for _, v := range group.Versions {
			known[v.GroupVersion] = true
		}
	}
	for _, list := range resources {
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				known[list.GroupVersion+"/"+resource.Kind] = true
			}
		}
	}
	all := make([]string, 0, len(known))
	for name := range known {
		all = append(all, name)
	}
	slices.Sort(all)
	return chart.Capabilities{KubeVersion: version.GitVersion, APIVersions: all}, err
}

// The limits of what one call of lookup may return: 500 objects a page, and 16 MiB.
const (
	pageSize       = 500
	maxLookupBytes = 16 << 20
)

// lookUp returns an object, or a list of all if name is empty; nothing if there is none. It reads nothing in the agent's namespace: its Secrets hold keys,
// and values of sensitive parameters of all Instances.
func (r *Renderer) lookUp(ctx context.Context, reader client.Reader, apiVersion, kind, namespace, name string) (map[string]any, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if namespace != "" && namespace == r.namespace {
		return nil, &chart.Error{Message: fmt.Sprintf("lookup of %s in namespace %q, which belongs to the agent, is not allowed", kind, namespace)}
	}
	if name == "" {
		return r.listAll(ctx, reader, gv.WithKind(kind), namespace)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gv.WithKind(kind))
	err = reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return map[string]any{}, nil
	}
	return object.Object, nil
}

func (r *Renderer) listAll(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace string) (map[string]any, error) {
	all, size := &unstructured.UnstructuredList{}, 0
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := reader.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next))
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil {
			return map[string]any{}, nil
		}
		encoded, err := page.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if size += len(encoded); size > maxLookupBytes {
			return nil, &chart.Error{Message: fmt.Sprintf("the objects of kind %s have more than %d MiB: look up fewer, by namespace or name", kind.Kind, maxLookupBytes>>20)}
		}
		page.Items = append(all.Items, slices.DeleteFunc(page.Items, func(o unstructured.Unstructured) bool {
			return r.namespace != "" && o.GetNamespace() == r.namespace
		})...)
		all = page
		if next = page.GetContinue(); next == "" {
			return all.UnstructuredContent(), nil
		}
	}
}
