package preview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/preview"
)

const (
	app = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec: {replicas: {{ .Params.SIZE }}, template: {spec: {containers: [{name: app, image: "app:{{ .Params.MODE }}"}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "settings-{{ .Params.MODE }}"}
data: {mode: "{{ .Params.MODE }}"}
`
	extra = "apiVersion: v1\nkind: Service\nmetadata: {name: extra, namespace: other}\n"
	job   = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\n"
	pod   = "apiVersion: v1\nkind: Pod\n"

	wayOut = ": use a value without YAML syntax and line breaks, or quote it in the template (quote, toYaml)"
)

// shop returns a version of an operator with tasks of every kind.
func shop(change ...func(*kudo.OperatorVersionSpec)) *kudo.OperatorVersion {
	v := versionOf("shop", "1.0.0")
	v.Spec.Parameters = []kudo.Parameter{
		{Name: "SIZE", Default: ptr.To("1"), Trigger: "resize", ForcePodRestart: new(kudo.Flag(false))},
		{Name: "MODE", Default: ptr.To("a")},
		{Name: "EXTRA", Default: ptr.To("false"), Type: kudo.BooleanType},
		{Name: "DB", Default: ptr.To("true"), Type: kudo.BooleanType},
	}
	v.Spec.Templates = map[string]string{"app.yaml": app, "extra.yaml": extra, "job.yaml": job, "db.yaml": "ROWS: {{ .Params.SIZE }}\n", "pod.yaml": pod}
	v.Spec.Tasks = []kudo.Task{
		taskOf("app", kudo.TaskApply, func(s *kudo.TaskSpec) { s.Resources = []string{"app.yaml"} }),
		taskOf("extra", kudo.TaskToggle, func(s *kudo.TaskSpec) { s.Parameter, s.Resources = "EXTRA", []string{"extra.yaml"} }),
		taskOf("key", kudo.TaskPipe, func(s *kudo.TaskSpec) {
			s.Pod, s.Pipe = "pod.yaml", []kudo.PipeSpec{{File: "/tmp/key", Kind: "Secret", Key: "key"}}
		}),
		taskOf("db", kudo.TaskKudoOperator, func(s *kudo.TaskSpec) { s.Package, s.ParameterFile, s.EnablingParameter = "db", "db.yaml", "DB" }),
		taskOf("once", kudo.TaskApply, func(s *kudo.TaskSpec) { s.Resources = []string{"job.yaml"} }),
		taskOf("wipe", kudo.TaskDelete, func(s *kudo.TaskSpec) { s.Resources = []string{"job.yaml"} }),
		taskOf("never", kudo.TaskDummy, func(s *kudo.TaskSpec) { s.WantErr, s.Fatal = true, true }),
	}
	v.Spec.Plans = map[string]kudo.Plan{
		"deploy": planOf("app", "extra", "key", "db", "once"), "resize": planOf("app"), "cleanup": planOf("wipe"), "fail": planOf("never"),
	}
	for _, c := range change {
		c(&v.Spec)
	}
	return v
}

func versionOf(operator, version string) *kudo.OperatorVersion {
	name := operator + "-" + version
	v := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: name, UID: types.UID(name)}}
	v.Spec.Operator = corev1.ObjectReference{Name: operator}
	v.Spec.Version = version
	return v
}

func taskOf(name, kind string, of func(*kudo.TaskSpec)) kudo.Task {
	task := kudo.Task{Name: name, Kind: kind}
	of(&task.Spec)
	return task
}

// planOf returns a plan that runs the tasks one after the other.
func planOf(tasks ...string) kudo.Plan {
	return kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "all", Tasks: tasks}}}}}
}

// db returns a version of shop's child operator.
func db() kudo.OperatorVersion {
	v := versionOf("db", "2.0.0")
	v.Spec.Parameters = []kudo.Parameter{{Name: "ROWS", Type: kudo.IntegerType}}
	v.Spec.Templates = map[string]string{"db.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rows}\ndata: {rows: \"{{ .Params.ROWS }}\"}\n"}
	v.Spec.Tasks = []kudo.Task{taskOf("db", kudo.TaskApply, func(s *kudo.TaskSpec) { s.Resources = []string{"db.yaml"} })}
	v.Spec.Plans = map[string]kudo.Plan{"deploy": planOf("db")}
	return *v
}

// instance returns an Instance of a version, with those parameters.
func instance(version *kudo.OperatorVersion, parameters map[string]string) *kudo.Instance {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "shop", UID: "shop", Generation: 1}}
	i.Spec = kudo.InstanceSpec{
		OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}, Parameters: parameters, InstallNamespace: "ns",
	}
	return i
}

// withSecretReference returns the Instance with parameter KEY in a Secret.
func withSecretReference(i *kudo.Instance) *kudo.Instance {
	i.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "KEY", SecretKeyRef: kudo.SecretKeyRef{Name: "keys", Key: "key"}}}
	return i
}

// deployedInstance returns an Instance with a plan in that status, and its applied objects.
func deployedInstance(version *kudo.OperatorVersion, status kudo.ExecutionStatus, parameters map[string]string, applied ...kudo.InventoryEntry) *kudo.Instance {
	i := instance(version, parameters)
	i.Status.Execution = &kudo.Execution{
		UID: "before", Plan: "deploy", Generation: 1, Parameters: parameters,
		OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID},
	}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {UID: "before", Status: status}}
	i.Status.Inventory = applied
	return i
}

// withRunningPlan returns the Instance while it runs that plan.
func withRunningPlan(name string, i *kudo.Instance) *kudo.Instance {
	i.Status.Execution.Plan, i.Status.Execution.UID = name, "now"
	i.Status.PlanStatus[name] = kudo.PlanStatus{UID: "now", Status: kudo.InProgress}
	return i
}

func entry(group, kind, namespace, name, task string) kudo.InventoryEntry {
	return kudo.InventoryEntry{Group: group, Kind: kind, Namespace: namespace, Name: name, Task: task}
}

// applied lists the objects that plan deploy of shop applies with default parameters.
var applied = []kudo.InventoryEntry{
	entry("apps", "Deployment", "ns", "app", "app"), entry("", "ConfigMap", "ns", "settings-a", "app"), entry("batch", "Job", "ns", "once", "once"),
}

// TestAllTasksOfAPreviewShareTheirWork previews 80 tasks, each of which alone takes a fortieth of the work of all.
func TestAllTasksOfAPreviewShareTheirWork(t *testing.T) {
	version := versionOf("shop", "1.0.0")
	version.Spec.Templates = map[string]string{"a.yaml": "{{ range until 95000 }}{{ end }}"}
	var names []string
	for i := range 80 {
		names = append(names, fmt.Sprint("task-", i))
		version.Spec.Tasks = append(version.Spec.Tasks, taskOf(names[i], kudo.TaskApply, func(s *kudo.TaskSpec) { s.Resources = []string{"a.yaml"} }))
	}
	version.Spec.Plans = map[string]kudo.Plan{"deploy": planOf(names...)}
	p := preview.Of(preview.Change{After: instance(version, nil), Version: version})
	problem := ""
	for _, task := range p.Plans[0].Tasks {
		problem += task.Problem
	}
	if want := `template "a.yaml": rendering takes more than 8000000 steps`; !strings.Contains(problem, want) {
		t.Errorf("got %q, want %q", problem, want)
	}
}

func TestPreview(t *testing.T) {
	off := map[string]string{"DB": "false"}
	with := func(more map[string]string) map[string]string {
		values := map[string]string{"DB": "false"}
		for name, value := range more {
			values[name] = value
		}
		return values
	}
	v1 := shop(func(s *kudo.OperatorVersionSpec) { s.Plans["deploy"] = planOf("app", "extra", "db", "once") })
	v2 := shop(func(s *kudo.OperatorVersionSpec) {
		s.Version = "2.0.0"
		s.Templates["app.yaml"] = strings.ReplaceAll(app, "app:", "app2:")
		s.Tasks = append(s.Tasks[:4], s.Tasks[5:]...) // without once
		s.Plans["deploy"], s.Plans["upgrade"] = planOf("app"), planOf("app")
	})
	v2.Name, v2.UID = "shop-2.0.0", "shop-2.0.0"
	v3 := shop(func(s *kudo.OperatorVersionSpec) { s.Version, s.Plans = "3.0.0", v1.Spec.Plans })
	v3.Name, v3.UID = "shop-3.0.0", "shop-3.0.0"
	v4 := shop(func(s *kudo.OperatorVersionSpec) {
		s.Version = "4.0.0"
		s.Plans = map[string]kudo.Plan{"deploy": planOf("app"), "upgrade": planOf("app"), "update": planOf("extra"), "resize": planOf("extra")}
	})
	v4.Name, v4.UID = "shop-4.0.0", "shop-4.0.0"
	child := instance(new(db()), map[string]string{"ROWS": "1"})
	child.Name, child.UID = "shop.db", "shop.db"
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(instance(v1, nil), kudo.GroupVersion.WithKind("Instance"))}
	child.Labels = map[string]string{kudo.LabelRoot: "shop"}
	child.Status = deployedInstance(new(db()), kudo.Complete, map[string]string{"ROWS": "1"}, entry("", "ConfigMap", "ns", "rows", "db")).Status

	for name, test := range map[string]struct {
		before, after *kudo.Instance
		version       *kudo.OperatorVersion
		facts         *kudo.ClusterFacts
		want          []string
	}{
		"a first installation creates everything, and the child with what it applies": {
			after: instance(v1, nil), version: shop(),
			want: []string{"deploy (Installation)", "app Apply: created Deployment app, created ConfigMap settings-a", "extra Delete:",
				"key Pipe: created Secret shop-key-key-6b45ef50", "db ApplyChild: created shop.db", "  deploy (Installation)", "  db Apply: created ConfigMap rows",
				"once Apply: created Job once"},
		},
		"a value changes the structure of each kind of template": {
			after: instance(shop(), map[string]string{"MODE": "a\nb: c", "SIZE": "1\nROWS: 2"}),
			version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Templates["app.yaml"] = job
				s.Templates["pod.yaml"] = pod + "metadata:\n  annotations:\n    a: {{ .Params.MODE }}\n"
			}),
			want: []string{"deploy (Installation)", "app Apply: created Job once", "extra Delete:",
				`key Pipe: fails: template "pod.yaml", line 5: the value of parameter "MODE" changes the structure of the rendered YAML` + wayOut,
				`db ApplyChild: fails: template "db.yaml", line 1: the value of parameter "SIZE" changes the structure of the rendered YAML` + wayOut +
					"unchanged shop.db",
				"once Apply: unchanged Job once"},
		},
		"other image registries change objects with images, and reach the child": {
			before: deployedInstance(v1, kudo.Complete, nil, applied...), version: v1,
			after: func() *kudo.Instance {
				i := instance(v1, nil)
				i.Spec.ImageRegistries = []kudo.ImageRegistry{{Mirror: "mirror.corp"}}
				return i
			}(),
			want: []string{"deploy (OtherImageRegistries)", "app Apply: changed Deployment ns/app, unchanged ConfigMap ns/settings-a", "extra Delete:",
				"db ApplyChild: changed shop.db", "  deploy (OtherImageRegistries)", "  db Apply: unchanged ConfigMap ns/rows",
				"once Apply: unchanged Job ns/once"},
		},
		"a parameter with a trigger changes the objects of that plan only": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v1, with(map[string]string{"SIZE": "3"})), version: v1,
			want: []string{"resize (OtherParameters: SIZE), no restart for SIZE", "app Apply: changed Deployment ns/app, unchanged ConfigMap ns/settings-a"},
		},
		"what is rendered no more goes": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v1, with(map[string]string{"MODE": "b"})), version: v1,
			want: []string{"deploy (OtherParameters: MODE), restarts", "app Apply: changed Deployment ns/app, created ConfigMap settings-b",
				"extra Delete:", "db DeleteChild:", "once Apply: unchanged Job ns/once", "at its end: removed ConfigMap ns/settings-a"},
		},
		"a Toggle is switched on": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v1, with(map[string]string{"EXTRA": "true"})), version: v1,
			want: []string{"deploy (OtherParameters: EXTRA), restarts", "app Apply: restarted Deployment ns/app, unchanged ConfigMap ns/settings-a",
				"extra Apply: created Service other/extra", "db DeleteChild:", "once Apply: unchanged Job ns/once"},
		},
		"a Toggle is switched off": {
			before: deployedInstance(v1, kudo.Complete, with(map[string]string{"EXTRA": "true"}), append(applied, entry("", "Service", "other", "extra", "extra"))...),
			after:  instance(v1, off), version: v1,
			want: []string{"deploy (OtherParameters: EXTRA), restarts", "app Apply: restarted Deployment ns/app, unchanged ConfigMap ns/settings-a",
				"extra Delete: removed Service other/extra", "db DeleteChild:", "once Apply: unchanged Job ns/once"},
		},
		"two plans run one after the other, each from where the first has led": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v1, with(map[string]string{"SIZE": "3", "MODE": "b"})), version: v1,
			want: []string{"resize (OtherParameters: SIZE), no restart for SIZE", "app Apply: changed Deployment ns/app, unchanged ConfigMap ns/settings-a",
				"deploy (OtherParameters: MODE), restarts", "app Apply: changed Deployment ns/app, created ConfigMap settings-b",
				"extra Delete:", "db DeleteChild:", "once Apply: unchanged Job ns/once", "at its end: removed ConfigMap ns/settings-a"},
		},
		"a change restarts the plan that applies everything": {
			before: deployedInstance(v1, kudo.InProgress, off, applied...), after: instance(v1, with(map[string]string{"SIZE": "3"})), version: v1,
			want: []string{"deploy (OtherParameters: SIZE), no restart for SIZE", "app Apply: changed Deployment ns/app, unchanged ConfigMap ns/settings-a",
				"extra Delete:", "db DeleteChild:", "once Apply: unchanged Job ns/once"},
		},
		"another running plan is waited for": {
			before: withRunningPlan("resize", deployedInstance(v1, kudo.Complete, off, applied...)), after: instance(v1, with(map[string]string{"MODE": "b"})), version: v1,
			want: []string{"waits for resize",
				"deploy (OtherParameters: MODE), restarts", "app Apply: changed Deployment ns/app, created ConfigMap settings-b",
				"extra Delete:", "db DeleteChild:", "once Apply: unchanged Job ns/once", "at its end: removed ConfigMap ns/settings-a"},
		},
		"a version without a task releases its objects": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v2, off), version: v2,
			want: []string{"upgrade (OtherVersion), restarts", "app Apply: changed Deployment ns/app, annotated ConfigMap ns/settings-a", "at its end: removed Job ns/once"},
		},
		"a version without a Namespace keeps it": {
			before: deployedInstance(v1, kudo.Complete, off, append(slices.Clone(applied), entry("", "Namespace", "", "space", "once"))...),
			after:  instance(v2, off), version: v2,
			want: []string{"upgrade (OtherVersion), restarts", "app Apply: changed Deployment ns/app, annotated ConfigMap ns/settings-a",
				"at its end: removed Job ns/once, kept Namespace space"},
		},
		"a version that changes nothing restarts pods, and says its name": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v3, off), version: v3,
			want: []string{"deploy (OtherVersion), restarts", "app Apply: restarted Deployment ns/app, annotated ConfigMap ns/settings-a",
				"extra Delete:", "db DeleteChild:", "once Apply: annotated Job ns/once"},
		},
		"a version and a parameter without trigger run the plan of the version alone": {
			before: deployedInstance(v1, kudo.Complete, off, applied[:2]...), after: instance(v4, with(map[string]string{"MODE": "b"})), version: v4,
			want: []string{"upgrade (OtherVersion: MODE), restarts",
				"app Apply: changed Deployment ns/app, created ConfigMap settings-b", "at its end: removed ConfigMap ns/settings-a"},
		},
		"a version and a parameter with a trigger run both plans": {
			before: deployedInstance(v1, kudo.Complete, off, applied[:2]...), after: instance(v4, with(map[string]string{"SIZE": "2"})), version: v4,
			want: []string{"upgrade (OtherVersion: SIZE), restarts, no restart for SIZE", "app Apply: changed Deployment ns/app, annotated ConfigMap ns/settings-a",
				"resize (OtherParameters: SIZE), restarts, no restart for SIZE", "extra Delete:"},
		},
		"nothing that changes runs no plan": {before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v1, off), version: v1},
		"a child follows": {
			before: deployedInstance(v1, kudo.Complete, map[string]string{"MODE": "a", "SIZE": "1"}, applied...),
			after:  instance(v1, map[string]string{"EXTRA": "true", "SIZE": "1"}), version: v1,
			want: []string{"deploy (OtherParameters: EXTRA), restarts", "app Apply: restarted Deployment ns/app, unchanged ConfigMap ns/settings-a",
				"extra Apply: created Service other/extra", "db ApplyChild: unchanged shop.db", "once Apply: unchanged Job ns/once"},
		},
		"a child is switched off": {
			before: deployedInstance(v1, kudo.Complete, nil, applied...), after: instance(v1, off), version: v1,
			want: []string{"deploy (OtherParameters: DB), restarts", "app Apply: restarted Deployment ns/app, unchanged ConfigMap ns/settings-a",
				"extra Delete:", "db DeleteChild: removed shop.db", "  then: removed ConfigMap ns/rows", "once Apply: unchanged Job ns/once"},
		},
		"a child is changed": {
			before: deployedInstance(v1, kudo.Complete, map[string]string{"SIZE": "1"}, applied...), after: instance(v1, map[string]string{"SIZE": "3"}),
			version: shop(func(s *kudo.OperatorVersionSpec) { s.Plans["resize"] = planOf("db") }),
			want: []string{"resize (OtherParameters: SIZE), no restart for SIZE", "db ApplyChild: changed shop.db", "  deploy (OtherParameters: ROWS), restarts",
				"  db Apply: changed ConfigMap ns/rows"},
		},
		"a child is created by the first of two plans, and exists then": {
			before: deployedInstance(shop(), kudo.Complete, off, applied...), version: shop(func(s *kudo.OperatorVersionSpec) { s.Plans["resize"] = planOf("db"); s.Plans["deploy"] = planOf("db") }),
			after: instance(v1, map[string]string{"SIZE": "3"}),
			want:  []string{"resize (OtherParameters: SIZE), no restart for SIZE", "db DeleteChild:", "deploy (OtherParameters: DB), restarts", "db ApplyChild: created shop.db", "  deploy (Installation)", "  db Apply: created ConfigMap rows"},
		},
		"a removal runs cleanup, and takes what is left and the children": {
			before: deployedInstance(v1, kudo.Complete, nil, applied...),
			want: []string{"cleanup (RemovalRequested)", "wipe Delete: removed Job ns/once",
				"then: removed Deployment ns/app, removed ConfigMap ns/settings-a", "then: removed shop.db", "  then: removed ConfigMap ns/rows"},
		},
		"a removal of what never ran": {before: instance(v1, nil), want: []string{"then: removed shop.db", "  then: removed ConfigMap ns/rows"}},
		"a plan that is not there": {
			before: deployedInstance(v1, kudo.Complete, off), after: instance(v1, with(map[string]string{"SIZE": "2"})),
			version: shop(func(s *kudo.OperatorVersionSpec) { delete(s.Plans, "resize") }), want: []string{`problem: the OperatorVersion has no plan "resize"`},
		},
		"a task that cannot be rendered": {
			after: instance(v1, nil), version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("never", "gone", "extra")
				s.Tasks[1].Spec.Parameter = "SOME"
			}),
			want: []string{"deploy (Installation)", "never Nothing: fails: the Dummy task is configured to fail permanently",
				`extra : fails: parameter "SOME": not defined: the operator has SIZE, MODE, EXTRA, DB`},
		},
		"a task that waits": {
			after: instance(v1, nil), version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("never")
				s.Tasks[6].Spec.DummyTaskSpec = kudo.DummyTaskSpec{}
			}),
			want: []string{"deploy (Installation)", "never Nothing: warns: the Dummy task is configured to wait"},
		},
		"a template that may render with another sensitive value": {
			after: withSecretReference(instance(v1, map[string]string{"SIZE": "1, x: 2"})), version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("app", "once")
				s.Parameters = append(s.Parameters, kudo.Parameter{Name: "KEY", Sensitive: new(true)})
				s.Templates["job.yaml"] = job + "spec: {{ if lt (len .Params.KEY) 99 }}{{ fail \"too short\" }}{{ end }}\n"
			}),
			want: []string{"deploy (Installation)",
				`app Apply: fails: template "app.yaml", line 4: the value of parameter "SIZE" changes the structure of the rendered YAML` + wayOut,
				`once Apply: warns: may fail, depending on sensitive parameters: template "job.yaml", line 4: at <fail "too short">: error calling fail: too short`},
		},
		"a template that needs a label of the cluster, which is not known yet": {
			after: instance(v1, nil), version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("once")
				s.Templates["job.yaml"] = job + "spec: {{ .Cluster.Labels.region }}\n"
			}),
			want: []string{"deploy (Installation)", `once Apply: warns: may fail, depending on the cluster's labels, claims and version, which are not known here: ` +
				`template "job.yaml", line 4: at <.Cluster.Labels.region>: map has no entry for key "region": the cluster does not have it; ` +
				`index .Cluster.Labels "NAME" and index .Cluster.Claims "NAME" are empty then`},
		},
		"a template that may use facts of the cluster, which are not known yet": {
			after: instance(v1, nil), version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("once")
				s.Templates["job.yaml"] = job + "spec: {template: {metadata: {name: 'x{{ index .Cluster.Labels \"region\" }}'}}}\n"
			}),
			want: []string{"deploy (Installation)", "once Apply: created Job once warns: its objects depend on the cluster's labels, claims and version, which are not known here"},
		},
		"a template that needs a label of the cluster, which it has": {
			after: instance(v1, nil), facts: &kudo.ClusterFacts{Name: "c", Labels: map[string]string{"region": "eu"}}, version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("once")
				s.Templates["job.yaml"] = job + "spec: {template: {metadata: {name: {{ .Cluster.Labels.region }} }}}\n"
			}),
			want: []string{"deploy (Installation)", "once Apply: created Job once"},
		},
		"a template that needs a label of the cluster, which it lacks": {
			after: instance(v1, nil), facts: &kudo.ClusterFacts{Name: "c"}, version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"] = planOf("once")
				s.Templates["job.yaml"] = job + "spec: {{ .Cluster.Labels.region }}\n"
			}),
			want: []string{"deploy (Installation)", `once Apply: fails: ` +
				`template "job.yaml", line 4: at <.Cluster.Labels.region>: map has no entry for key "region": the cluster does not have it; ` +
				`index .Cluster.Labels "NAME" and index .Cluster.Claims "NAME" are empty then`},
		},
		"a value changes the structure of the cleanup plan alone": {
			before: deployedInstance(v1, kudo.Complete, off, applied...), after: instance(v1, with(map[string]string{"MODE": "a\nb: c", "SIZE": "2"})),
			version: shop(func(s *kudo.OperatorVersionSpec) {
				s.Plans["deploy"], s.Plans["resize"] = planOf("never"), planOf("never")
				s.Tasks[6].Spec.DummyTaskSpec = kudo.DummyTaskSpec{Done: true}
				s.Templates["job.yaml"] = job + "spec:\n  suspend: {{ .Params.MODE }}\n"
			}),
			want: []string{
				"resize (OtherParameters: SIZE), no restart for SIZE", "never Nothing:", "deploy (OtherParameters: MODE), restarts",
				`fails: plan "cleanup", phase "main": step "all": task "wipe": template "job.yaml", line 5: the value of parameter "MODE" changes the structure of the rendered YAML` + wayOut,
				"never Nothing:",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := preview.Change{Before: test.before, After: test.after, Version: test.version, Facts: test.facts, Candidates: []kudo.OperatorVersion{db()}}
			if test.before != nil {
				change.Instances, change.Started = []kudo.Instance{*test.before}, v1
				if test.before.Spec.Parameters["DB"] != "false" {
					change.Instances = append(change.Instances, *child)
				}
			}
			if diff := cmp.Diff(test.want, formatPreview(preview.Of(change))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// formatPreview formats a preview in lines.
func formatPreview(p preview.Preview) []string {
	var lines []string
	if p.WaitsFor != "" {
		lines = append(lines, "waits for "+p.WaitsFor)
	}
	for _, coming := range p.Plans {
		line := fmt.Sprintf("%s (%s", coming.Plan, coming.Cause)
		if len(coming.Changed) > 0 {
			line += ": " + strings.Join(coming.Changed, ", ")
		}
		line += ")"
		if coming.Restart && coming.Cause != "Installation" && coming.Cause != "RemovalRequested" {
			line += ", restarts"
		}
		if len(coming.NoRestart) > 0 {
			line += ", no restart for " + strings.Join(coming.NoRestart, ", ")
		}
		lines = append(lines, line)
		if coming.Problem != "" {
			lines = append(lines, "fails: "+coming.Problem)
		}
		for _, task := range coming.Tasks {
			lines = append(lines, describeTask(task)...)
		}
		lines = append(lines, describeRemoval("at its end", coming.Removed, coming.Children)...)
	}
	lines = append(lines, describeRemoval("then", p.Removed, p.Children)...)
	if p.Problem != "" {
		lines = append(lines, "problem: "+p.Problem)
	}
	return lines
}

func describeTask(task preview.Task) []string {
	line := fmt.Sprintf("%s %s: %s", task.Task.Name, task.Action, strings.Join(effects(task.Objects), ", "))
	if task.Problem != "" {
		line += "fails: " + task.Problem
	}
	if len(task.Warnings) > 0 {
		line = strings.TrimSuffix(line, " ") + " warns: " + strings.Join(task.Warnings, ", ")
	}
	if task.Child == nil {
		return []string{strings.TrimSuffix(line, " ")}
	}
	below := describeChild(*task.Child)
	return append([]string{line + below[0]}, below[1:]...)
}

// describeChild formats the effect on a child, including its own preview.
func describeChild(child preview.Child) []string {
	lines := []string{fmt.Sprintf("%s %s", child.Effect, child.Instance)}
	if child.Preview != nil {
		for _, below := range formatPreview(*child.Preview) {
			lines = append(lines, "  "+below)
		}
	}
	return lines
}

func describeRemoval(when string, objects []preview.Object, children []preview.Child) []string {
	var lines []string
	if len(objects) > 0 {
		lines = append(lines, when+": "+strings.Join(effects(objects), ", "))
	}
	for _, child := range children {
		below := describeChild(child)
		lines = append(append(lines, when+": "+below[0]), below[1:]...)
	}
	return lines
}

func effects(objects []preview.Object) []string {
	var texts []string
	for _, o := range objects {
		texts = append(texts, fmt.Sprintf("%s %s", o.Effect, o.InventoryEntry))
	}
	return texts
}

// A removal names what the deletion of a Namespace or a definition deletes beside the Instance's own objects.
func TestRemovalCountsWhatIsInside(t *testing.T) {
	gone := &kudo.Instance{Status: kudo.InstanceStatus{Inventory: []kudo.InventoryEntry{
		{Kind: "Namespace", Name: "space", Task: "t"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.com", Task: "t"},
		{Kind: "ConfigMap", Namespace: "space", Name: "a", Task: "t"},
	}}}
	other := kudo.Instance{Status: kudo.InstanceStatus{Inventory: []kudo.InventoryEntry{
		{Group: "example.com", Kind: "Gadget", Namespace: "space", Name: "b", Task: "t"},
		{Group: "example.com", Kind: "Gadget", Namespace: "space", Name: "c", Task: "t", Pending: true},
	}}}
	got := map[string]string{}
	for _, o := range preview.Of(preview.Change{Before: gone, Instances: []kudo.Instance{*gone, other}}).Removed {
		got[o.Name] = o.Note
	}
	want := map[string]string{
		"space": "with everything in it: 2 objects of Instances, and objects that the hub does not know",
		"gadgets.example.com": "with every object of its kind on the cluster, including those that users have created, which the hub does not know; " +
			"Instances have 1 object of API group example.com",
		"a": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A removal and an upgrade keep what the package keeps; a task deletes what it names.
func TestKeptObjects(t *testing.T) {
	keep := func(kind, namespace, name, task string) kudo.InventoryEntry {
		return kudo.InventoryEntry{Kind: kind, Namespace: namespace, Name: name, Task: task, Keep: true}
	}
	inventory := []kudo.InventoryEntry{
		keep("ConfigMap", "ns", "a", "app"), {Kind: "Namespace", Name: "space", Task: "app"}, keep("ConfigMap", "space", "b", "app"),
	}
	gone := &kudo.Instance{Status: kudo.InstanceStatus{Inventory: inventory}}
	got := map[string]string{}
	for _, o := range preview.Of(preview.Change{Before: gone}).Removed {
		got[o.Name] = string(o.Effect) + ": " + o.Note
	}
	want := map[string]string{
		"a": "kept: the package keeps it", "b": "removed: the package keeps it, but not its Namespace",
		"space": "removed: with everything in it: 0 objects of Instances, and objects that the hub does not know",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("removal (-want +got):\n%s", diff)
	}

	version, all := shop(), slices.Clone(applied)
	for i := range all {
		all[i].Keep = true
	}
	before := deployedInstance(version, kudo.Complete, nil, all...)
	changed := preview.Of(preview.Change{Before: before, After: instance(version, map[string]string{"MODE": "b"}), Version: version, Started: version})
	if diff := cmp.Diff([]string{"kept ConfigMap ns/settings-a"}, effects(changed.Plans[0].Removed)); diff != "" {
		t.Errorf("pruning (-want +got):\n%s", diff)
	}
	removed := preview.Of(preview.Change{Before: before, Version: version, Started: version})
	if diff := cmp.Diff([]string{"removed Job ns/once"}, effects(removed.Plans[0].Tasks[0].Objects)); diff != "" {
		t.Errorf("a task (-want +got):\n%s", diff)
	}
}

// A removal lists the volume claims of every replica, with their size, before all else, and as kept those that stay.
func TestRemovalListsVolumeClaims(t *testing.T) {
	const app = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: {{ .Params.NODES }}
  ordinals: {start: 1}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {resources: {requests: {storage: "{{ .Params.DISK }}"}}}
  - metadata: {name: logs, annotations: {kudo.dev/keep: "true"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {resources: {requests: {storage: 10Gi}}}
`
	v := versionOf("shop", "1.0.0")
	v.Spec.Parameters = []kudo.Parameter{{Name: "NODES"}, {Name: "DISK"}}
	v.Spec.Templates = map[string]string{"app.yaml": app}
	v.Spec.Tasks = []kudo.Task{
		taskOf("app", kudo.TaskApply, func(s *kudo.TaskSpec) { s.Resources = []string{"app.yaml"} }),
		taskOf("wipe", kudo.TaskDelete, func(s *kudo.TaskSpec) { s.Resources = []string{"app.yaml"} }),
	}
	v.Spec.Plans = map[string]kudo.Plan{"deploy": planOf("app"), "cleanup": planOf("wipe")}
	removed := func(nodes string, inventory ...kudo.InventoryEntry) preview.Data {
		before := deployedInstance(v, kudo.Complete, map[string]string{"NODES": nodes, "DISK": "2048Mi"}, inventory...)
		return preview.DataOf(preview.Of(preview.Change{Before: before, Started: v, Version: v}))
	}
	set := kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: "ns", Name: "db", Task: "app"}
	shared := kudo.InventoryEntry{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "shared", Task: "app"}
	shown := removed("2", set, shared)
	var got []string
	for _, o := range shown.Claims {
		got = append(got, fmt.Sprintf("%s %s: %s", o.Effect, o, o.Note))
	}
	want := []string{
		"removed PersistentVolumeClaim ns/data-db-1: 2Gi, with its data", "removed PersistentVolumeClaim ns/data-db-2: 2Gi, with its data",
		"removed PersistentVolumeClaim ns/shared: 10Gi, with its data",
		"kept PersistentVolumeClaim ns/logs-db-1: of unknown size", "kept PersistentVolumeClaim ns/logs-db-2: of unknown size",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(shown.Removed) > 0 {
		t.Errorf("the cleanup plan has deleted everything else, and there remains: %v", shown.Removed)
	}
	many := removed("100000000000", set).Claims
	if len(many) != plan.MaxClaims {
		t.Fatalf("%d claims are listed", len(many))
	}
	if note := many[len(many)-1].Note; !strings.HasSuffix(note, "; 199999999936 more volume claims of StatefulSet ns/db are not listed") {
		t.Errorf("the last one: %s", note)
	}
}

// A removal names the volume claims that it deletes with their data, and those that the package keeps.
func TestRemovalNamesVolumeClaims(t *testing.T) {
	const set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: %s}\nspec:\n  volumeClaimTemplates: [%s]\n---\n"
	v := versionOf("shop", "1.0.0")
	v.Spec.Templates = map[string]string{"app.yaml": fmt.Sprintf(set, "deleted", "{metadata: {name: data}}, {metadata: {name: logs}}") +
		fmt.Sprintf(set, "stays", "{metadata: {name: data}}]\n  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}\n  other: [") +
		fmt.Sprintf(set, "both", "{metadata: {name: data}}, {metadata: {name: logs, annotations: {kudo.dev/keep: 'true'}}}") + fmt.Sprintf(set, "none", "")}
	v.Spec.Tasks = []kudo.Task{taskOf("app", kudo.TaskApply, func(s *kudo.TaskSpec) { s.Resources = []string{"app.yaml"} })}
	v.Spec.Plans = map[string]kudo.Plan{"deploy": planOf("app")}
	var inventory []kudo.InventoryEntry
	for _, name := range []string{"deleted", "stays", "both", "none"} {
		inventory = append(inventory, kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: "ns", Name: name, Task: "app"})
	}
	inventory = append(inventory, kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: "ns", Name: "dropped", Task: "former"})
	got := map[string]string{}
	for _, o := range preview.Of(preview.Change{Before: deployedInstance(v, kudo.Complete, nil, inventory...), Version: v, Started: v}).Removed {
		got[o.Name] = o.Note
	}
	want := map[string]string{
		"deleted": "with its volume claims (data, logs) and their data",
		"stays":   "its volume claims (data) stay",
		"both":    "with its volume claims (data) and their data; its volume claims (logs) stay",
		"none":    "",
		"dropped": "with its volume claims and their data, unless the package keeps them",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
