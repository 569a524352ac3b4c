package plans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	helm "github.com/tandem-addons/tandem/pkg/chart"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
)

// chart is the life of an Instance whose package has a Helm task. Its chart has a definition that gains a version, hooks of all events with each
// delete policy and with a time to live, random values, volume claims, and an object to keep. The definition, which stays, is deleted before the
// next run.
func chart() scenario {
	installs, upgrades := []string{"pre-install migrate", "post-install seed"}, []string{"pre-upgrade migrate", "post-upgrade seed"}
	deletes := []string{"pre-delete bye", "post-delete gone"}
	return scenario{
		name: "chart",
		open: []string{"fail", "off"},
		prepare: func(ctx context.Context, w *world) error {
			for _, version := range []string{"1.0.0", "2.0.0"} {
				packaged, archive := depot(version)
				if err := w.pushWith(ctx, packaged, archive); err != nil {
					return err
				}
			}
			return nil
		},
		actions: []action{
			{"clear", deleteDefinition, definitionGone},
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("depot-1.0.0")) }, installed(installs...)},
			{"update", set("VALUE", "two"), installed(upgrades...)},
			{"fail", set("RESULT", "fail"), func(ctx context.Context, r *run) error {
				return errors.Join(fails("deploy")(ctx, r), r.haveRun(upgrades[0]))
			}},
			{"retry", set("RESULT", "ok"), installed(upgrades...)},
			{"upgrade", move("depot-2.0.0"), installed(upgrades...)},
			{"downgrade", move("depot-1.0.0"), installed(upgrades...)},
			{"off", set("ENABLED", "false"), func(ctx context.Context, r *run) error {
				return errors.Join(ready(ctx, r), r.haveRun(deletes...), r.remains(ctx))
			}},
			{"on", set("ENABLED", "true"), installed(installs...)},
			{"remove", remove, func(ctx context.Context, r *run) error {
				return errors.Join(expectGone(ctx, r), r.haveRun(deletes...), r.remains(ctx))
			}},
		},
		onHub: []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: []kind{
			kudo.GroupVersion.WithKind("Instance"), kudo.GroupVersion.WithKind("OperatorVersion"), kudo.GroupVersion.WithKind("OperatorContent"),
			{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "batch", Version: "v1", Kind: "Job"},
			{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
			{Group: "faults.test", Version: "v1", Kind: "Depot"},
			{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		},
	}
}

// depot returns a version of the package and the archive of its chart.
func depot(version string) (*kudo.OperatorVersion, []byte) {
	archive, err := helm.Pack(depotChart(version))
	if err != nil {
		panic(err) // it has all files that a chart needs
	}
	web := kudo.Task{Name: "web", Kind: kudo.TaskHelm}
	web.Spec.Chart, web.Spec.ValuesFile, web.Spec.EnablingParameter = "depot.tgz", "values.yaml", "ENABLED"
	packaged := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "depot-" + version, Namespace: packages},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "depot"}, Version: version,
			Parameters: []kudo.Parameter{
				{Name: "VALUE", Default: ptr.To("one")}, {Name: "RESULT", Default: ptr.To("ok")},
				{Name: "ENABLED", Type: kudo.BooleanType, Default: ptr.To("true")},
			},
			Templates: map[string]string{"values.yaml": "value: {{ .Params.VALUE | quote }}\nresult: {{ .Params.RESULT | quote }}\n"},
			Tasks:     []kudo.Task{web},
			Plans:     map[string]kudo.Plan{"deploy": serial("web")},
		},
	}
	corecontent.Add(&packaged.Spec, "depot.tgz", archive)
	return packaged, archive
}

// pushWith stores a package and its content on the hub.
func (w *world) pushWith(ctx context.Context, version *kudo.OperatorVersion, file []byte) error {
	if err := w.push(ctx, version); err != nil {
		return err
	}
	if err := w.hub.Get(ctx, client.ObjectKeyFromObject(version), version); err != nil {
		return err
	}
	for _, part := range corecontent.Split(file) {
		if err := w.hub.Create(ctx, corecontent.New(version, part)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// depotChart returns the files of a version of the chart. The second version has another version of the definition, uses it, and changes hooks.
func depotChart(version string) fstest.MapFS {
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: depot\nversion: " + version + "\n", "crds/depots.yaml": depotDefinition,
		"templates/token.yaml": tokenTemplate, "templates/password.yaml": passwordTemplate, "templates/kept.yaml": keptTemplate,
		"templates/app.yaml": workloadsTemplate, "templates/depot.yaml": depotObject("v1"),
		"templates/only.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-web.only." + version[:1] + "\"}\n",
		"templates/migrate.yaml": hookJob("migrate", `"pre-install,pre-upgrade"`, "before-hook-creation", "ttlSecondsAfterFinished: 0"),
		"templates/seed.yaml":    hookJob("seed", `"post-install,post-upgrade"`, "before-hook-creation", ""),
		"templates/bye.yaml":     hookJob("bye", "pre-delete", "before-hook-creation", ""),
		"templates/gone.yaml":    hookJob("gone", "post-delete", "hook-succeeded", ""),
	}
	if version == "2.0.0" {
		files["crds/depots.yaml"] += strings.ReplaceAll(strings.ReplaceAll(depotVersion, "v1", "v2"), "storage: true", "storage: false")
		files["templates/depot.yaml"] = depotObject("v2")
		files["templates/migrate.yaml"] = hookJob("migrate", `"pre-install,pre-upgrade"`, "before-hook-creation", "backoffLimit: 1")
		files["templates/seed.yaml"] = hookJob("seed", `"post-install,post-upgrade"`, `"before-hook-creation,hook-succeeded"`, "backoffLimit: 1")
	}
	packed := fstest.MapFS{}
	for name, text := range files {
		packed[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return packed
}

const depotVersion = `  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const depotDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: depots.faults.test}
spec:
  group: faults.test
  scope: Namespaced
  names: {kind: Depot, plural: depots}
  versions:
` + depotVersion

func depotObject(version string) string {
	return "apiVersion: faults.test/" + version + "\nkind: Depot\nmetadata: {name: \"{{ .Release.Name }}-web\"}\nspec: {value: {{ .Values.value | quote }}}\n"
}

// hookJob returns a hook that is a Job with a field of its spec. Its result is the tag of its image.
func hookJob(name, events, policy, field string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-web.%[1]s"
  annotations: {helm.sh/hook: %[2]s, helm.sh/hook-delete-policy: %[3]s}
spec:
  %[4]s
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "{{ .Release.Revision }}:{{ .Values.result }}"}]}}
`, name, events, policy, field)
}

// A hook and a manifest with the same random value, which stays the same in an execution only if the chart is rendered once. Texts like a SHA-256 are
// not compared with other runs.
const tokenTemplate = `{{- $token := randAlphaNum 20 | sha256sum -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-web.token", annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
data: {token: {{ $token }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-web.config"}
data: {token: {{ $token }}, value: {{ .Values.value | quote }}, release: "{{ .Release.IsUpgrade }} {{ .Release.Revision }}"}
`

const passwordTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-web.password", annotations: {helm.sh/hook: pre-install}}
data: {password: {{ randAlphaNum 20 | sha256sum }}}
`

const keptTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-web.kept", annotations: {helm.sh/resource-policy: keep}}
data: {value: {{ .Values.value | quote }}}
`

const workloadsTemplate = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:{{ .Values.value }}"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:{{ .Values.value }}"}]}
  volumeClaimTemplates:
  - metadata: {name: data, labels: {app: web}}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

func (r *run) depotDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "depots.faults.test"}}
}

// deleteDefinition deletes the definition that an earlier run has left.
func deleteDefinition(ctx context.Context, r *run) error {
	return client.IgnoreNotFound(r.managed.Delete(ctx, r.depotDefinition()))
}

func definitionGone(ctx context.Context, r *run) error {
	definition := r.depotDefinition()
	err := r.managed.Get(ctx, client.ObjectKeyFromObject(definition), definition)
	if err == nil {
		return fmt.Errorf("CustomResourceDefinition %s still exists", definition.Name)
	}
	return client.IgnoreNotFound(err)
}

// noteHook records that the Job of a hook has ended. The world's mutex is not held.
func (w *world) noteHook(job *batchv1.Job) {
	event := job.Annotations[kudo.AnnotationHook]
	if event == "" {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if r := w.run; r != nil && r.name == job.Namespace {
		_, name, _ := strings.Cut(job.Name, "-web.")
		r.hooks = append(r.hooks, event+" "+name)
	}
}

// haveRun returns an error unless the Jobs of these hooks, in this order, have ended since the action began: each of them once.
func (r *run) haveRun(want ...string) error {
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	if !slices.Equal(r.hooks, want) {
		return fmt.Errorf("hooks %q have run, want %q", r.hooks, want)
	}
	return nil
}

// installed returns a check that the Instance is ready after these hooks, and that its execution has used one rendering, the only one that is kept.
func installed(hooks ...string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return errors.Join(ready(ctx, r), r.haveRun(hooks...), r.expectOneRendering(ctx, hooks[0] == "pre-install migrate"), r.expectRenderings(ctx, 1))
	}
}

// expectOneRendering returns an error unless all objects of the last execution are of one rendering, and the hook that an installation runs alone
// is of that execution only if it is an installation.
func (r *run) expectOneRendering(ctx context.Context, installation bool) error {
	i := &kudo.Instance{}
	if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: r.name}, i); err != nil {
		return err
	}
	found := map[string]*corev1.ConfigMap{"token": {}, "config": {}, "password": {}, "kept": {}}
	for name, config := range found {
		if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: r.name + "-web." + name}, config); err != nil {
			return err
		}
	}
	if hook, manifest := found["token"].Data, found["config"].Data; hook["token"] != manifest["token"] {
		return fmt.Errorf("the hook has token %s, and the manifest %s", hook["token"], manifest["token"])
	}
	if of := found["password"].Annotations[kudo.AnnotationExecution]; (of == string(i.Status.Execution.UID)) != installation {
		return fmt.Errorf("the pre-install hook is of execution %s, the last one is %s, of an installation: %t", of, i.Status.Execution.UID, installation)
	}
	return nil
}

// remains returns an error unless what a chart leaves is left of it, and no more: the definition, volume claims, and objects to keep, but no rendering.
func (r *run) remains(ctx context.Context) error {
	if err := r.managed.Get(ctx, client.ObjectKeyFromObject(r.depotDefinition()), r.depotDefinition()); err != nil {
		return err
	}
	left := map[string]bool{}
	for kind, version := range map[string]string{"ConfigMap": "v1", "PersistentVolumeClaim": "v1", "Job": "batch/v1"} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind + "List"}}
		if err := r.managed.List(ctx, list, client.InNamespace(r.name)); err != nil {
			return err
		}
		for i := range list.Items {
			left[kind+" "+list.Items[i].Name] = list.Items[i].DeletionTimestamp == nil
		}
	}
	want := map[string]bool{"ConfigMap " + r.name + "-web.kept": true, "PersistentVolumeClaim data-" + r.name + "-web-0": true}
	if !maps.Equal(left, want) {
		return fmt.Errorf("%v is left, want %v", left, want)
	}
	return r.expectRenderings(ctx, 0)
}

// expectRenderings returns an error unless so many renderings of the run are kept.
func (r *run) expectRenderings(ctx context.Context, want int) error {
	kept := &corev1.SecretList{}
	if err := r.managed.List(ctx, kept, client.HasLabels{"kudo.dev/rendering-of"}); err != nil {
		return err
	}
	if len(kept.Items) != want {
		return fmt.Errorf("%d renderings are kept, want %d", len(kept.Items), want)
	}
	return nil
}
