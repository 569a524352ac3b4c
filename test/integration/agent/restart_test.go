package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing/fstest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// workloads is the package of these specs: one workload of every kind with pods, behind a gate that can fail or block. Only VALUE restarts
// pods, and no pod template contains a parameter.
var workloads = fstest.MapFS{
	"operator.yaml": file(`
apiVersion: kudo.dev/v1beta1
name: workloads
operatorVersion: 1.0.0
tasks:
- {name: gate, kind: Apply, spec: {resources: [gate.yaml]}}
- {name: all, kind: Apply, spec: {resources: [all.yaml]}}
- {name: last, kind: Apply, spec: {resources: [last.yaml]}}
- {name: noop, kind: Dummy, spec: {done: true}}
plans:
  deploy: {phases: [{name: main, steps: [{name: gate, tasks: [gate]}, {name: all, tasks: [all]}, {name: last, tasks: [last]}]}]}
  noop: {phases: [{name: main, steps: [{name: noop, tasks: [noop]}]}]}
`),
	"params.yaml": file(`
apiVersion: kudo.dev/v1beta1
parameters:
- {name: VALUE, default: one}
- {name: SIZE, type: integer, default: 1, forcePodRestart: "false"}
- {name: KIND, default: ConfigMap, forcePodRestart: "false", structure: true}
- {name: PLACE, default: "", forcePodRestart: false}
- {name: LAST, default: ConfigMap, forcePodRestart: false, structure: true}
`),
	"templates/gate.yaml": file(`
apiVersion: v1
kind: {{ .Params.KIND }}
metadata: {name: "{{ .Name }}-gate"{{ with .Params.PLACE }}, namespace: {{ . }}{{ end }}}
data: {value: "{{ .Params.VALUE }}"}
`),
	"templates/last.yaml": file(`
apiVersion: v1
kind: {{ .Params.LAST }}
metadata: {name: "{{ .Name }}-last"}
`),
	"templates/all.yaml": file(`
{{ define "template" }}{metadata: {labels: {app: "{{ .Name }}"}}, spec: {containers: [{name: app, image: "app:1"}]}}{{ end }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec: {replicas: {{ .Params.SIZE }}, selector: {matchLabels: {app: "{{ .Name }}"}}, template: {{ template "template" . }}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}"}
spec: {replicas: {{ .Params.SIZE }}, selector: {matchLabels: {app: "{{ .Name }}"}}, template: {{ template "template" . }}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: "{{ .Name }}"}
spec: {replicas: {{ .Params.SIZE }}, selector: {matchLabels: {app: "{{ .Name }}"}}, template: {{ template "template" . }}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: "{{ .Name }}"}
spec: {selector: {matchLabels: {app: "{{ .Name }}"}}, template: {{ template "template" . }}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: "{{ .Name }}"}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {metadata: {labels: {app: x}}, spec: {restartPolicy: Never, containers: [{name: app, image: "app:1"}]}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "app:1"}]}}}
`),
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// loadPackage returns the spec of the package's OperatorVersion.
func loadPackage(files fstest.MapFS) kudo.OperatorVersionSpec {
	GinkgoHelper()
	p, problems := pack.Load(files)
	Expect(pack.Errors(problems)).To(BeEmpty())
	Expect(pack.Errors(p.Verify())).To(BeEmpty())
	_, version := p.Objects(packages)
	return version.Spec
}

// templatePaths are the paths of the workloads' pod templates.
var templatePaths = map[string][]string{
	"apps/v1 Deployment":  {"spec", "template"},
	"apps/v1 StatefulSet": {"spec", "template"},
	"apps/v1 ReplicaSet":  {"spec", "template"},
	"apps/v1 DaemonSet":   {"spec", "template"},
	"batch/v1 CronJob":    {"spec", "jobTemplate", "spec", "template"},
	"batch/v1 Job":        {"spec", "template"},
}

// workloadState holds the compared fields of a workload: the bytes of its pod template, its UID, and its generation.
type workloadState struct {
	Template, Stamp string
	UID             types.UID
	Generation      int64
}

// readWorkloads reads the Instance's workloads.
func (h *hubPart) readWorkloads(ctx context.Context) map[string]workloadState {
	GinkgoHelper()
	all := map[string]workloadState{}
	for kind, path := range templatePaths {
		o := blank(kind)
		Expect(h.local(ctx, "", o)).To(BeTrue(), kind)
		template, _, err := unstructured.NestedMap(o.Object, path...)
		Expect(err).NotTo(HaveOccurred())
		text, err := json.Marshal(template)
		Expect(err).NotTo(HaveOccurred())
		stamp, _, err := unstructured.NestedString(template, "metadata", "annotations", kudo.AnnotationExecution)
		Expect(err).NotTo(HaveOccurred())
		all[kind] = workloadState{string(text), stamp, o.GetUID(), o.GetGeneration()}
	}
	return all
}

// expectRestarted expects the state after an execution has restarted pods: only the annotation of pod templates has changed, in all kinds
// except Job.
func expectRestarted(before, after map[string]workloadState, execution types.UID) {
	GinkgoHelper()
	for kind, was := range before {
		is := after[kind]
		if kind == "batch/v1 Job" {
			Expect(is).To(Equal(was), "the template of a Job cannot change")
			continue
		}
		Expect(was.Stamp).NotTo(BeEquivalentTo(execution), kind)
		Expect(is.Stamp).To(BeEquivalentTo(execution), kind)
		Expect(is.UID).To(Equal(was.UID), kind)
		Expect(withoutStamp(is.Template)).To(Equal(withoutStamp(was.Template)), kind)
	}
}

// expectUntouched expects unchanged workloads. Of Deployments only the pod templates are compared: their generation also changes with the
// annotations that identify the last apply.
func expectUntouched(before, after map[string]workloadState) {
	GinkgoHelper()
	Expect(templates(after)).To(Equal(templates(before)))
	for kind, was := range before {
		if kind != "apps/v1 Deployment" {
			Expect(after[kind]).To(Equal(was), kind)
		}
	}
}

// withoutStamp returns a pod template without the annotation that restarts pods.
func withoutStamp(template string) string {
	GinkgoHelper()
	var object map[string]any
	Expect(json.Unmarshal([]byte(template), &object)).To(Succeed())
	unstructured.RemoveNestedField(object, "metadata", "annotations", kudo.AnnotationExecution)
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// templates returns only the pod templates.
func templates(all map[string]workloadState) map[string]string {
	texts := map[string]string{}
	for kind, s := range all {
		texts[kind] = s.Template
	}
	return texts
}

func blank(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	apiVersion, name, _ := strings.Cut(kind, " ")
	o.SetAPIVersion(apiVersion)
	o.SetKind(name)
	return o
}

// playWorkloads acts as the workload controllers for a name until the spec ends: each generation is immediately rolled out, and Jobs are
// complete.
func (h *hubPart) playWorkloads() {
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		for kind := range templatePaths {
			o := blank(kind)
			if managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: h.name}, o) != nil {
				continue
			}
			observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			_, ended, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			if status := healthyStatus(o); status != nil && observed < o.GetGeneration() && !ended {
				o.Object["status"] = status
				_ = managed.Status().Update(ctx, o) // a conflict is retried
			}
		}
	}, 20*time.Millisecond)
}

// healthyStatus returns the status that the kind's controller writes for a healthy object; nil if the kind has none.
func healthyStatus(o *unstructured.Unstructured) map[string]any {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	switch o.GetKind() {
	case "Deployment", "StatefulSet":
		return map[string]any{"observedGeneration": o.GetGeneration(),
			"replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n}
	case "ReplicaSet":
		return map[string]any{"observedGeneration": o.GetGeneration(), "replicas": n, "readyReplicas": n, "availableReplicas": n}
	case "DaemonSet":
		return map[string]any{"observedGeneration": o.GetGeneration(),
			"currentNumberScheduled": int64(0), "desiredNumberScheduled": int64(0), "numberMisscheduled": int64(0), "numberReady": int64(0)}
	case "Job":
		at := time.Now().UTC().Format(time.RFC3339)
		return map[string]any{"succeeded": int64(1), "startTime": at, "completionTime": at, "uncountedTerminatedPods": map[string]any{},
			"conditions": []any{
				map[string]any{"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": at},
				map[string]any{"type": "Complete", "status": "True", "lastTransitionTime": at},
			}}
	default:
		return nil
	}
}

// set changes parameters; an empty value resets one to its default.
func (h *hubPart) set(ctx context.Context, values map[string]string) {
	GinkgoHelper()
	h.change(ctx, func(s *kudo.InstanceSpec) {
		if s.Parameters == nil {
			s.Parameters = map[string]string{}
		}
		for name, value := range values {
			s.Parameters[name] = value
			if value == "" {
				delete(s.Parameters, name)
			}
		}
	})
}

var _ = Describe("Pods restart", func() {
	var h *hubPart
	var before map[string]workloadState
	BeforeEach(func(ctx context.Context) {
		DeferCleanup(runAgent())
		h = newInstance(ctx, loadPackage(workloads), nil)
		h.playWorkloads()
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before = h.readWorkloads(ctx)
	})
	AfterEach(func(ctx context.Context) { h.finish(ctx) })

	// afterwards applies one change, waits for the end of its plan and reads the workloads.
	afterwards := func(ctx context.Context, plan string, change func()) map[string]workloadState {
		GinkgoHelper()
		execution := h.plan(ctx, plan)
		change()
		h.completes(ctx, plan, execution)
		return h.readWorkloads(ctx)
	}
	// execution returns the UID of the last started execution.
	execution := func(ctx context.Context) types.UID {
		GinkgoHelper()
		return h.get(ctx).Status.Execution.UID
	}

	It("not for parameters whose forcePodRestart is false, whose change leaves pod templates byte by byte", func(ctx context.Context) {
		after := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"SIZE": "3"}) })
		Expect(templates(after)).To(Equal(templates(before)))
		for _, kind := range []string{"apps/v1 DaemonSet", "batch/v1 CronJob", "batch/v1 Job"} {
			Expect(after[kind]).To(Equal(before[kind]), "nothing of its spec has changed")
		}
		for _, kind := range []string{"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 ReplicaSet"} {
			Expect(after[kind].Generation).To(Equal(before[kind].Generation+1), "%s: its replicas have", kind)
		}
	})

	It("for one parameter among others whose forcePodRestart is not false", func(ctx context.Context) {
		after := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"SIZE": "3", "VALUE": "two"}) })
		expectRestarted(before, after, execution(ctx))
	})

	It("not for a plan that is run by hand", func(ctx context.Context) {
		after := afterwards(ctx, "deploy", func() {
			h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "by-hand"} })
		})
		Expect(execution(ctx)).To(BeEquivalentTo("by-hand"))
		expectUntouched(before, after)
	})

	It("for an upgrade, and after it as the new version's flags say", func(ctx context.Context) {
		turned := loadPackage(workloads)
		for i, p := range turned.Parameters {
			switch p.Name {
			case "VALUE":
				turned.Parameters[i].ForcePodRestart = new(kudo.Flag(false))
			case "SIZE":
				turned.Parameters[i].ForcePodRestart = nil
			}
		}
		push(ctx, h.name+"-2.0.0", turned)
		upgraded := afterwards(ctx, "deploy", func() {
			h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		})
		expectRestarted(before, upgraded, execution(ctx))

		unmoved := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"VALUE": "two"}) })
		expectUntouched(upgraded, unmoved)

		after := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"SIZE": "2"}) })
		expectRestarted(upgraded, after, execution(ctx))
	})

	It("although another plan completes before the one that was to restart them", func(ctx context.Context) {
		h.set(ctx, map[string]string{"KIND": "Nonsense", "VALUE": "two"})
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		due := execution(ctx)
		h.change(ctx, requests("noop", "by-hand"))
		h.expectEnded(ctx, "noop", "by-hand")
		after := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"KIND": "", "SIZE": "2"}) })
		expectRestarted(before, after, due)
	})

	It("once, if the execution that restarted them has failed afterwards", func(ctx context.Context) {
		h.set(ctx, map[string]string{"LAST": "Nonsense", "VALUE": "two"})
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		failed := h.readWorkloads(ctx)
		expectRestarted(before, failed, execution(ctx))
		after := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"LAST": "", "SIZE": "2"}) })
		Expect(templates(after)).To(Equal(templates(failed)))
	})

	DescribeTable("later, where they were due when their plan",
		func(ctx context.Context, stuck map[string]string, state kudo.ExecutionStatus, end func(context.Context)) {
			stuck["VALUE"] = "two"
			h.set(ctx, stuck)
			Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(state))
			due := execution(ctx)
			if end != nil {
				end(ctx)
			}
			Expect(h.readWorkloads(ctx)).To(Equal(before), "the gate is shut")

			after := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"KIND": "", "PLACE": "", "SIZE": "2"}) })
			expectRestarted(before, after, due)

			again := afterwards(ctx, "deploy", func() { h.set(ctx, map[string]string{"SIZE": "1"}) })
			Expect(templates(again)).To(Equal(templates(after)), "they have restarted by now")
		},
		Entry("failed", map[string]string{"KIND": "Nonsense"}, kudo.FatalError, nil),
		Entry("was superseded", map[string]string{"PLACE": "nowhere"}, kudo.Error, nil),
		Entry("was cancelled", map[string]string{"PLACE": "nowhere"}, kudo.Error, func(ctx context.Context) {
			h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{UID: execution(ctx), Cancel: true} })
			Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		}),
	)
})
