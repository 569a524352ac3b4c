package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/tandem-addons/tandem/hack/kustomize"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

var deploy = filepath.Join("..", "..", "deploy")

// TestMain makes the program of the tests also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestChartRendersWhatDeployInstalls(t *testing.T) {
	for sentence, test := range map[string]struct {
		values              string
		folders, components []string
	}{
		"a hub": {folders: []string{"hub"}},
		"a hub with an API server that has no mutating policies": {
			values: "admission: {mutatingPolicies: false}", folders: []string{"hub"}, components: []string{"before-1.36"}},
		"a hub with OCM":              {values: "ocm: {enabled: true}", folders: []string{"hub-ocm"}},
		"a hub with the dashboard":    {values: "ui: {enabled: true}", folders: []string{"hub", "ui"}},
		"a hub that follows packages": {values: "packageSources: {enabled: true}", folders: []string{"hub", "packagesources"}},
		"the dashboard alone":         {values: "{hub: {enabled: false}, ui: {enabled: true}}", folders: []string{"ui"}},
		"a managed cluster":           {values: "{hub: {enabled: false}, agent: {enabled: true}}", folders: []string{"agent"}},
		"a hub that is also a managed cluster": {
			values: "agent: {enabled: true}", folders: []string{"hub", "agent"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := map[string]any{}
			for _, folder := range test.folders { // one by one: kustomize does not accept an object twice
				maps.Copy(want, byName(t, kustomized(t, folder, test.components)))
			}
			rendered := mustRender(t, "elsewhere", test.values)
			if diff := cmp.Diff(want, byName(t, objectsIn(rendered))); diff != "" {
				t.Errorf("objects (-kustomize +chart):\n%s", diff)
			}
			if len(rendered.Definitions)+len(rendered.Warnings) > 0 {
				t.Errorf("it has definitions that Helm never upgrades, or warnings: %v", rendered.Warnings)
			}
		})
	}
}

func TestOnlyTheNamespaceDependsOnTheNamespaceOfTheRelease(t *testing.T) {
	want := byName(t, objectsIn(mustRender(t, "elsewhere", "")))
	delete(want, "Namespace//tandem-system") // which Helm has created
	if diff := cmp.Diff(want, byName(t, objectsIn(mustRender(t, "tandem-system", "")))); diff != "" {
		t.Errorf("objects (-elsewhere +tandem-system):\n%s", diff)
	}
}

func TestUninstallationRunsBeforeTheHubIsDeleted(t *testing.T) {
	hooks := mustRender(t, "tandem-system", "").Hooks
	if len(hooks) != 1 {
		t.Fatalf("there are %d hooks, want one", len(hooks))
	}
	if diff := cmp.Diff([]release.Event{release.PreDelete}, hooks[0].Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want := kustomized(t, "uninstall", nil)
	if diff := cmp.Diff(byName(t, want), byName(t, []*unstructured.Unstructured{hooks[0].Object.Object})); diff != "" {
		t.Errorf("the hook (-kustomize +chart):\n%s", diff)
	}
	if hooks := mustRender(t, "tandem-system", "{hub: {enabled: false}, agent: {enabled: true}}").Hooks; len(hooks) > 0 {
		t.Errorf("a managed cluster has %d hooks, want none", len(hooks))
	}
}

func TestUserDataSurvivesTheRelease(t *testing.T) {
	kept := func(values string) []string {
		var names []string
		for _, object := range objectsIn(mustRender(t, "elsewhere", values)) {
			if object.GetAnnotations()[resourcePolicy] == "keep" {
				names = append(names, object.GetKind()+" "+object.GetName())
			}
		}
		slices.Sort(names)
		return names
	}
	definitions := []string{
		"CustomResourceDefinition addondeploymentconfigs.addon.open-cluster-management.io",
		"CustomResourceDefinition clustermanagementaddons.addon.open-cluster-management.io",
		"CustomResourceDefinition instances.kudo.dev",
		"CustomResourceDefinition managedclusteraddons.addon.open-cluster-management.io",
		"CustomResourceDefinition managedclusters.cluster.open-cluster-management.io",
		"CustomResourceDefinition operatorcontents.kudo.dev",
		"CustomResourceDefinition operators.kudo.dev",
		"CustomResourceDefinition operatorversions.kudo.dev",
		"CustomResourceDefinition packagesources.kudo.dev",
	}
	packages := []string{"Namespace addon-packages", "Namespace tandem-system"}
	if diff := cmp.Diff(append(definitions, packages...), kept("")); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(packages, kept("crds: {keep: false}")); diff != "" {
		t.Errorf("kept without definitions (-want +got):\n%s", diff)
	}
	for _, object := range objectsIn(mustRender(t, "elsewhere", "crds: {enabled: false}")) {
		if object.GetKind() == "CustomResourceDefinition" {
			t.Errorf("crds.enabled=false renders %s", object.GetName())
		}
	}
}

func TestValuesReachThePods(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	values := `
image: {repository: "registry.example.com:5000/tandem", tag: v9, pullPolicy: Always, pullSecrets: [{name: registry}]}
hub: {replicas: 3, extraArgs: [--concurrency=20], nodeSelector: {role: hub}, resources: {limits: {memory: 2Gi}}}
agent: {enabled: true, image: {digest: "` + digest + `"}, tolerations: [{operator: Exists}]}
ui: {enabled: true, extraArgs: ["--bind-address=:8443"], priorityClassName: high, affinity: {podAntiAffinity: {}}}`
	got := map[string]any{}
	for _, object := range objectsIn(mustRender(t, "elsewhere", values)) {
		if object.GetKind() != "Deployment" {
			continue
		}
		pod := object.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		container := pod["containers"].([]any)[0].(map[string]any)
		arguments := container["args"].([]any)
		got[object.GetName()] = map[string]any{
			"replicas": object.Object["spec"].(map[string]any)["replicas"], "image": container["image"], "policy": container["imagePullPolicy"],
			"last argument": arguments[len(arguments)-1], "limits": container["resources"].(map[string]any)["limits"],
			"secrets": pod["imagePullSecrets"], "selector": pod["nodeSelector"], "tolerations": pod["tolerations"],
			"affinity": pod["affinity"], "priority": pod["priorityClassName"],
		}
	}
	secrets := []any{map[string]any{"name": "registry"}}
	var none any
	if diff := cmp.Diff(map[string]any{
		"addon-manager": map[string]any{
			"replicas": int64(3), "image": "registry.example.com:5000/tandem/addon-manager:v9", "policy": "Always", "last argument": "--concurrency=20",
			"limits": map[string]any{"memory": "2Gi"}, "secrets": secrets, "selector": map[string]any{"role": "hub"}, "tolerations": none, "affinity": none, "priority": none,
		},
		"addon-agent": map[string]any{
			"replicas": int64(1), "image": "registry.example.com:5000/tandem/addon-agent@" + digest, "policy": "Always",
			"last argument": "--hub-kubeconfig-secret=$(NAMESPACE)/tandem-hub-kubeconfig", "limits": map[string]any{"memory": "1Gi"}, "secrets": secrets,
			"selector": none, "tolerations": []any{map[string]any{"operator": "Exists"}}, "affinity": none, "priority": none,
		},
		"addon-manager-ui": map[string]any{
			"replicas": int64(1), "image": "registry.example.com:5000/tandem/addon-manager:v9", "policy": "Always", "last argument": "--bind-address=:8443",
			"limits": map[string]any{"memory": "1Gi"}, "secrets": secrets, "selector": none, "tolerations": none,
			"affinity": map[string]any{"podAntiAffinity": map[string]any{}}, "priority": "high",
		},
	}, got); diff != "" {
		t.Errorf("Deployments (-want +got):\n%s", diff)
	}
}

func TestPullSecretsReachTheDeliveredAgent(t *testing.T) {
	for values, want := range map[string][]any{
		"{ocm: {enabled: true}}": {map[string]any{"name": "Image", "value": "localhost/tandem-addons/addon-agent:v0.0.0"}},
		"{ocm: {enabled: true}, image: {pullSecrets: [{name: registry}, {name: mirror}]}}": {
			map[string]any{"name": "Image", "value": "localhost/tandem-addons/addon-agent:v0.0.0"},
			map[string]any{"name": "ImagePullSecrets", "value": "registry,mirror"},
		},
	} {
		found := 0
		for _, object := range objectsIn(mustRender(t, "tandem-system", values)) {
			if object.GetKind() != "AddOnDeploymentConfig" {
				continue
			}
			found++
			if diff := cmp.Diff(want, object.Object["spec"].(map[string]any)["customizedVariables"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", values, diff)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d AddOnDeploymentConfigs", values, found)
		}
	}
}

func TestMistakesInValuesAreErrors(t *testing.T) {
	for sentence, test := range map[string]struct{ values, want string }{
		"an agent beside OCM":    {"{ocm: {enabled: true}, agent: {enabled: true}}", "addon-manager delivers the agent"},
		"a misspelt value":       {"hub: {replica: 3}", "replica"},
		"a misspelt section":     {"dashboard: {enabled: true}", "dashboard"},
		"a digest that is a tag": {"agent: {image: {digest: v1}}", "digest"},
		"an invalid tag":         {`image: {tag: "v1\nhostNetwork: true"}`, "tag"},
		"no repository":          {`image: {repository: ""}`, "image.repository is required"},
		"no flag":                {"hub: {extraArgs: [ui]}", "extraArgs"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := render(t, "tandem-system", test.values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	for sentence, test := range map[string]struct{ without, with, want string }{
		"a line more":            {"a\nc\n", "a\nb\nc\n", "a\n{{- if x }}\nb\n{{- end }}\nc\n"},
		"a line less":            {"a\nb\nc\n", "a\nc\n", "a\n{{- if not x }}\nb\n{{- end }}\nc\n"},
		"another line":           {"a\nb\nc\n", "a\nd\nc\n", "a\n{{- if x }}\nd\n{{- end }}\n{{- if not x }}\nb\n{{- end }}\nc\n"},
		"the same line repeated": {"a\na\n", "a\na\na\n", "a\na\n{{- if x }}\na\n{{- end }}\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, merge(test.without, test.with, "x")); diff != "" {
				t.Errorf("merge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentsDifferOnlyBetweenHubs(t *testing.T) {
	object := func(value string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": value},
		}}}
	}
	_, err := templatesOf(map[string][]*unstructured.Unstructured{"hub": object("1"), "agent": object("2")})
	if err == nil || !strings.Contains(err.Error(), "ConfigMap a: its content differs between the folders hub, agent") {
		t.Errorf("the error is %v", err)
	}
	templates, err := templatesOf(map[string][]*unstructured.Unstructured{"hub": object("{{ 1 }}")})
	if err != nil || !strings.Contains(templates["hub.yaml"], `k: '{{ "{{" }} 1 }}'`) {
		t.Errorf("braces are not escaped: %v\n%s", err, templates["hub.yaml"])
	}
}

func TestTemplatesAreCurrent(t *testing.T) {
	folder := t.TempDir()
	if err := run(deploy, folder); err != nil {
		t.Fatal(err)
	}
	committed := filepath.Join(deploy, "chart", "templates")
	if diff := cmp.Diff(contentsOf(t, folder), contentsOf(t, committed)); diff != "" {
		t.Errorf("run make generate (-want +got):\n%s", diff)
	}
}

// contentsOf returns the generated templates in a folder.
func contentsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[filepath.Base(file)] = string(content)
	}
	return contents
}

// kustomized returns the objects of a folder of deploy/, with the images that the chart has by default.
func kustomized(t *testing.T, folder string, components []string) []*unstructured.Unstructured {
	t.Helper()
	o := kustomize.Overlay{Resources: []string{filepath.Join(deploy, folder)}}
	for _, program := range []string{"addon-manager", "addon-agent", "package-controller"} {
		o.Images = append(o.Images, types.Image{Name: program, NewName: "localhost/tandem-addons/" + program, NewTag: "v0.0.0"})
	}
	for _, component := range components {
		o.Components = append(o.Components, filepath.Join(deploy, component))
	}
	objects, err := objectsOf(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func mustRender(t *testing.T, namespace, values string) *release.Rendering {
	t.Helper()
	rendered, err := render(t, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// render returns what Helm renders of the chart, without a cluster.
func render(t *testing.T, namespace, values string) (*release.Rendering, error) {
	t.Helper()
	archive, err := chart.Pack(os.DirFS(filepath.Join(deploy, "chart")))
	if err != nil {
		t.Fatal(err)
	}
	renderer, err := chart.NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	return renderer.Render(t.Context(), chart.Input{
		Archive: archive, Values: []byte(values), Release: chart.Release{Name: "tandem", Namespace: namespace, Revision: 1},
		Capabilities: chart.Capabilities{KubeVersion: "v1.37.0"},
	}, func(context.Context, string, string, string, string) (map[string]any, error) { return nil, nil })
}

func objectsIn(rendered *release.Rendering) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range rendered.Objects {
		objects = append(objects, object.Object)
	}
	return objects
}

// byName returns objects by kind, namespace and name, without the annotations of Helm.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	named := map[string]any{}
	for _, original := range objects {
		object := original.DeepCopy()
		annotations := object.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "helm.sh/") })
		object.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		}
		key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
		if named[key] != nil {
			t.Errorf("%s is rendered twice", key)
		}
		content, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		var plain any // numbers have one type
		if err := json.Unmarshal(content, &plain); err != nil {
			t.Fatal(err)
		}
		named[key] = plain
	}
	return named
}
