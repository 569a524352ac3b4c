package chart

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

const namespace = "shops"

// helmCommand runs Helm's command with a home of its own, for releases in a namespace.
type helmCommand struct{ program, home, namespace string }

func (h helmCommand) run(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, h.program, append(arguments, "--namespace", h.namespace, "--kubeconfig", filepath.Join(h.home, "kubeconfig"))...)
	command.Env = append(os.Environ(), "HOME="+h.home, "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return nil, errors.New(strings.TrimSpace(problems.String()))
	}
	return out, nil
}

// helmRelease is what Helm prints of a release.
type helmRelease struct {
	Manifest string `json:"manifest"`
	Hooks    []struct {
		Path           string                 `json:"path"`
		Manifest       string                 `json:"manifest"`
		Events         []release.Event        `json:"events"`
		Weight         int                    `json:"weight"`
		DeletePolicies []release.DeletePolicy `json:"delete_policies"`
	} `json:"hooks"`
}

// render returns what Helm renders, with the definitions if there are any.
func (h helmCommand) render(ctx context.Context, action, name, path string, flags ...string) (release.Rendering, error) {
	out, err := h.run(ctx, append([]string{action, name, path, "--dry-run=server", "--output", "json"}, flags...)...)
	if err != nil {
		return release.Rendering{}, err
	}
	var printed helmRelease
	if err := json.Unmarshal(out, &printed); err != nil {
		return release.Rendering{}, err
	}
	r := release.Rendering{Objects: objectsIn(printed.Manifest)}
	for _, hook := range printed.Hooks {
		for _, object := range objectsIn(hook.Manifest) {
			object.Source = hook.Path
			if hook.DeletePolicies == nil { // Helm applies its default, and the order, when it runs them
				hook.DeletePolicies = []release.DeletePolicy{release.BeforeHookCreation}
			}
			r.Hooks = append(r.Hooks, release.Hook{Object: object, Events: hook.Events, Weight: hook.Weight, DeletePolicies: hook.DeletePolicies})
		}
	}
	slices.SortStableFunc(r.Hooks, func(a, b release.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Object.Object.GetName(), b.Object.Object.GetName()))
	})
	return r, nil
}

// isInvalid reports whether Helm refuses what a chart renders because it is invalid, or of a kind that is not served.
func isInvalid(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "unable to decode") || strings.Contains(err.Error(), "resource mapping not found"))
}

// template returns what Helm renders without having it checked by the API server, hooks too.
func (h helmCommand) template(ctx context.Context, r chart.Release, path string, flags ...string) (release.Rendering, error) {
	arguments := append([]string{"template", r.Name, path, "--kube-version", capabilities.KubeVersion}, flags...)
	if r.Upgrade {
		arguments = append(arguments, "--is-upgrade")
	}
	out, err := h.run(ctx, arguments...)
	if err != nil {
		return release.Rendering{}, err
	}
	return release.Rendering{Objects: sorted(release.Rendering{Objects: objectsIn(string(out))})}, nil
}

// definitions returns the definitions that Helm would create.
func (h helmCommand) definitions(ctx context.Context, path string, flags ...string) []release.Object {
	GinkgoHelper()
	with, err := h.run(ctx, append([]string{"template", "shop", path, "--include-crds", "--kube-version", capabilities.KubeVersion}, flags...)...)
	Expect(err).NotTo(HaveOccurred())
	var found []release.Object
	for _, object := range objectsIn(string(with)) {
		if strings.Contains(object.Source, "/crds/") && !strings.Contains(object.Source, "/templates/") {
			found = append(found, object)
		}
	}
	return found
}

// objectsIn returns the objects in Helm's output. Each document begins with a comment that names its file.
func objectsIn(manifests string) []release.Object {
	GinkgoHelper()
	var objects []release.Object
	for document := range strings.SplitSeq("\n"+manifests, "\n---\n# Source: ") {
		source, content, _ := strings.Cut(document, "\n")
		decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(content), len(content)+1)
		for {
			var raw json.RawMessage
			err := decoder.Decode(&raw)
			if errors.Is(err, io.EOF) {
				break
			}
			Expect(err).NotTo(HaveOccurred())
			object := &unstructured.Unstructured{}
			if len(raw) == 0 { // a comment
				continue
			}
			Expect(utiljson.Unmarshal(raw, &object.Object)).To(Succeed())
			objects = append(objects, itemsOf(source, object)...)
		}
	}
	return objects
}

// itemsOf returns an object, or those in a list.
func itemsOf(source string, object *unstructured.Unstructured) []release.Object {
	if len(object.Object) == 0 {
		return nil
	}
	if !object.IsList() {
		return []release.Object{{Source: source, Object: object}}
	}
	var objects []release.Object
	_ = object.EachListItem(func(item runtime.Object) error {
		objects = append(objects, release.Object{Source: source, Object: item.(*unstructured.Unstructured)})
		return nil
	})
	return objects
}

// ours returns what pkg/chart renders.
func ours(ctx context.Context, archive []byte, r chart.Release, values string) (release.Rendering, error) {
	GinkgoHelper()
	renderer, err := chart.NewRenderer()
	Expect(err).NotTo(HaveOccurred())
	out, err := renderer.Render(ctx, chart.Input{Archive: archive, Values: []byte(values), Release: r, Capabilities: capabilities}, lookup)
	if err != nil {
		return release.Rendering{}, err
	}
	return *out, nil
}

// lookup reads what a template looks up, as the agent does.
func lookup(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	if name != "" {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil {
			return map[string]any{}, nil
		}
		return object.Object, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := cluster.List(ctx, list, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return map[string]any{}, nil
	} else if err != nil {
		return nil, err
	}
	return list.UnstructuredContent(), nil
}

// discover returns what an API server serves, as Helm does.
func discover(config *rest.Config) chart.Capabilities {
	GinkgoHelper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	version, err := d.ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	_, resources, err := d.ServerGroupsAndResources()
	Expect(err).NotTo(HaveOccurred())
	found := chart.Capabilities{KubeVersion: version.GitVersion}
	for _, list := range resources {
		found.APIVersions = append(found.APIVersions, list.GroupVersion)
		for _, resource := range list.APIResources {
			found.APIVersions = append(found.APIVersions, list.GroupVersion+"/"+resource.Kind)
		}
	}
	return found
}

// different returns how two renderings differ.
func different(helm, ours release.Rendering) string {
	ours.Warnings = nil
	return gocmp.Diff(readable(helm), readable(ours))
}

// random matches what a chart in Helm's tests chooses at random.
var random = regexp.MustCompile(`(mariadb-(root-|replication-)?password":"|mariadb-test-)[A-Za-z0-9+/=]+`)

// sorted returns the objects and hooks of a rendering, in the order of their text.
func sorted(r release.Rendering) []release.Object {
	all := slices.Clone(r.Objects)
	for _, hook := range r.Hooks {
		all = append(all, hook.Object)
	}
	slices.SortFunc(all, func(a, b release.Object) int {
		return cmp.Compare(strings.Join(readable(release.Rendering{Objects: []release.Object{a}}), ""), strings.Join(readable(release.Rendering{Objects: []release.Object{b}}), ""))
	})
	return all
}

// readable returns a rendering as text, in which a difference is easy to see.
func readable(r release.Rendering) []string {
	var lines []string
	add := func(what string, o release.Object) {
		content, _ := json.Marshal(o.Object.Object)
		lines = append(lines, fmt.Sprintf("%s %s %s", what, o.Source, random.ReplaceAll(content, []byte("$1"))))
	}
	for _, o := range r.Definitions {
		add("definition", o)
	}
	for _, h := range r.Hooks {
		add(fmt.Sprint("hook ", h.Events, " ", h.Weight, " ", h.DeletePolicies), h.Object)
	}
	for _, o := range r.Objects {
		add("object", o)
	}
	return lines
}
