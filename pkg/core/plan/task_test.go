package plan_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

var owner = plan.Owner{Namespace: "apps", Name: "kafka"}

// object returns an object as the owner applies it in step p/s of execution x, with changes.
func object(kind, name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	o.SetNamespace("apps")
	o.SetName(name)
	o.SetLabels(map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: "kafka"})
	o.SetAnnotations(map[string]string{kudo.AnnotationExecution: "x", kudo.AnnotationPhase: "p", kudo.AnnotationStep: "s",
		kudo.AnnotationInstanceNamespace: "apps"})
	for _, c := range change {
		c(o)
	}
	return o
}

func withAnnotation(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[key] = value
		if value == "" {
			delete(annotations, key)
		}
		o.SetAnnotations(annotations)
	}
}

func phase(value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, value, "status", "phase")
	}
}

func version(apiVersion string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAPIVersion(apiVersion) }
}

func withDeletion(finalizers ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetDeletionTimestamp(&metav1.Time{Time: noon})
		o.SetFinalizers(finalizers)
	}
}

func TestAppliedBy(t *testing.T) {
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want bool
	}{
		"what is absent is not":                                  {nil, false},
		"what this execution applied is":                         {object("ConfigMap", "c"), true},
		"what another execution applied is not, however healthy": {object("ConfigMap", "c", withAnnotation(kudo.AnnotationExecution, "w")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (plan.Object{Live: test.live}).AppliedBy("x"); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestHasApplied(t *testing.T) {
	bare := withAnnotation(kudo.AnnotationExecution, "")
	ownedBy := func(uid types.UID) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Instance", UID: uid}})
		}
	}
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want bool
	}{
		"an object that is absent":                              {nil, false},
		"an object that an execution applied":                   {object("ConfigMap", "c"), true},
		"an object that the Instance owns":                      {object("ConfigMap", "c", bare, ownedBy("uid")), true},
		"a claim of a StatefulSet":                              {object("PersistentVolumeClaim", "c", bare), true},
		"an object with the labels only":                        {object("ConfigMap", "c", bare), false},
		"an object with the labels only, that another one owns": {object("ConfigMap", "c", bare, ownedBy("other")), false},
		"an object with the labels only, that no uid owns":      {object("ConfigMap", "c", bare, ownedBy("")), false},
		"an object of another API with the name of claims": {
			object("PersistentVolumeClaim", "c", bare, version("example.com/v1")), false},
		"an object that an Instance of the name in another namespace applied": {
			object("ConfigMap", "c", withAnnotation(kudo.AnnotationInstanceNamespace, "other")), false},
		"an object that an execution applied, and that has lost its labels": {
			object("ConfigMap", "c", func(o *unstructured.Unstructured) { o.SetLabels(nil) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			by := owner
			by.UID = "uid"
			if got := by.HasApplied(plan.Object{Live: test.live}); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
	if owner.HasApplied(plan.Object{Live: object("ConfigMap", "c", bare, ownedBy(""))}) {
		t.Error("without a uid, any owner counts")
	}
}

func TestProvisional(t *testing.T) {
	job := func(seconds int64) *unstructured.Unstructured {
		return object("Job", "j", version("batch/v1"), func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, seconds, "spec", "ttlSecondsAfterFinished")
		})
	}
	const day = 24 * 60 * 60
	for name, test := range map[string]struct {
		rendered *unstructured.Unstructured
		want     int64
		short    bool
	}{
		"a Job that is deleted at once":        {job(0), day, true},
		"a Job that is deleted after a minute": {job(60), day, true},
		"a Job that stays longer":              {job(2 * day), 2 * day, false},
		"a Job that stays":                     {object("Job", "j", version("batch/v1")), 0, false},
		"a resource with the field of a Job":   {object("Job", "j", version("example.com/v1")), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.rendered.DeepCopy()
			applied := plan.Provisional(test.rendered)
			seconds, _, _ := unstructured.NestedInt64(applied.Object, "spec", "ttlSecondsAfterFinished")
			if seconds != test.want || plan.IsShortLived(test.rendered) != test.short {
				t.Errorf("got a time to live of %d, short-lived: %v", seconds, plan.IsShortLived(test.rendered))
			}
			if got := (plan.Object{Want: test.rendered, Live: applied}).IsProvisional(); got != test.short {
				t.Errorf("provisional: %v", got)
			}
			if (plan.Object{Want: test.rendered, Live: test.rendered}).IsProvisional() || (plan.Object{Want: test.rendered}).IsProvisional() {
				t.Error("an object with its own time to live, or none at all, is provisional")
			}
			if !equality.Semantic.DeepEqual(before, test.rendered) {
				t.Error("the input has changed")
			}
		})
	}
}

func TestIsExpired(t *testing.T) {
	expiring := object("Job", "j", version("batch/v1"), func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "ttlSecondsAfterFinished")
	})
	for name, test := range map[string]struct {
		object plan.Object
		want   bool
	}{
		"a Job that is gone and was to go has expired": {plan.Object{Want: expiring}, true},
		"one that is there has not":                    {plan.Object{Want: expiring, Live: expiring}, false},
		"one that was to stay was deleted":             {plan.Object{Want: object("Job", "j", version("batch/v1"))}, false},
		"an object of another API was deleted":         {plan.Object{Want: object("Job", "j")}, false},
	} {
		if got := test.object.IsExpired(); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestClaim(t *testing.T) {
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		says string // part of the error, empty for none
	}{
		"what is absent may be made": {nil, ""},
		"what it made is its own":    {object("ConfigMap", "c"), ""},
		"an object without KUDO's labels has another owner": {
			object("ConfigMap", "c", func(o *unstructured.Unstructured) { o.SetLabels(nil) }), "ConfigMap apps/c: already exists and was not created by this Instance"},
		"an object of a Helm release": {foreign(map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "apps"}),
			"ConfigMap apps/c: already exists and was not created by this Instance, but belongs to Helm release apps/shop; it stays as it is: " +
				"use another name in the package, or another install namespace"},
		"an object that Flux installs with Helm": {foreign(map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "flux"},
			map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "apps"}), "belongs to HelmRelease flux/shop of Flux;"},
		"an object that Flux applies": {foreign(map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"}, nil),
			"belongs to Kustomization flux/apps of Flux;"},
		"an object that Argo CD tracks": {foreign(nil, map[string]string{"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:apps/c"}),
			"belongs to Application shop of Argo CD;"},
		"an object that Argo CD labels": {foreign(map[string]string{"argocd.argoproj.io/instance": "shop"}, nil), "belongs to Application shop of Argo CD;"},
		"an object of a controller": {foreign(nil, nil, func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Gadget", Name: "g"}, {Kind: "AppliedManifestWork", Name: "w", Controller: ptr.To(true)}})
		}), "was not created by this Instance, but belongs to AppliedManifestWork w;"},
		"an object that somebody has applied": {foreign(nil, nil, func(o *unstructured.Unstructured) {
			at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl-create", Time: at(1)}, {Manager: "kubectl-edit", Time: at(3)},
				{Manager: "helm", Time: at(2)}, {Manager: "kubelet", Subresource: "status", Time: at(4)}, {Manager: "unknown"}})
		}), "was not created by this Instance, but by field manager kubectl-edit;"},
		"a hostile name": {foreign(map[string]string{"argocd.argoproj.io/instance": "a\x1b[31m\n" + strings.Repeat("x", 1000)}, nil), "xxx…; it stays"},
		"what another Instance made is that one's": {
			object("ConfigMap", "c", func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: "redis"})
			}), "belongs to Instance apps/redis"},
		"what an Instance of this name in another namespace made is that one's": {
			object("ClusterRole", "c", func(o *unstructured.Unstructured) { o.SetNamespace("") }, withAnnotation(kudo.AnnotationInstanceNamespace, "other")),
			"ClusterRole c: already exists and belongs to Instance other/kafka"},
		"a volume claim that a StatefulSet made from its template is its own": {
			object("PersistentVolumeClaim", "c", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if has, want := owner.Has(plan.Object{Live: test.live}), test.live != nil && test.says == ""; has != want {
				t.Errorf("it belongs to the owner: want %v, got %v", want, has)
			}
			err := owner.Claim(plan.Object{Live: test.live})
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("want %q, got %v", test.says, err)
			}
		})
	}
}

// foreign is a ConfigMap with labels and annotations of others.
func foreign(labels, annotations map[string]string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return object("ConfigMap", "c", append(edits, func(o *unstructured.Unstructured) {
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
	})...)
}

func TestApplyOutcome(t *testing.T) {
	of := func(kind, name, state string) plan.Object {
		o := object(kind, name, phase(state))
		return plan.Object{Want: o, Live: o}
	}
	const pod, claim = "Pod", "PersistentVolumeClaim"
	classes := []health.StorageClass{{Name: "slow", WaitsForConsumer: true}, {Name: "fast"}}
	ofClass := func(name, class string) plan.Object {
		o := of(claim, name, "Pending")
		_ = unstructured.SetNestedField(o.Live.Object, class, "spec", "storageClassName")
		o.Classes = classes
		return o
	}
	for name, test := range map[string]struct {
		objects []plan.Object
		want    kudo.ExecutionStatus
		says    string
	}{
		"nothing to apply is complete":                               {nil, kudo.Complete, ""},
		"all healthy is complete":                                    {[]plan.Object{of(claim, "a", "Bound"), of(pod, "b", "Succeeded")}, kudo.Complete, ""},
		"the first that is not healthy is waited for":                {[]plan.Object{of(claim, "a", "Bound"), of(pod, "b", "Pending"), of(pod, "c", "Pending")}, kudo.InProgress, "apps/b"},
		"a failure counts, also behind one that waits":               {[]plan.Object{of(pod, "a", "Pending"), of(claim, "b", "Lost")}, kudo.FatalError, "apps/b"},
		"a claim that waits for its pod does not block the step":     {[]plan.Object{ofClass("a", "slow")}, kudo.Complete, ""},
		"a claim that is bound at once blocks the step until then":   {[]plan.Object{ofClass("a", "fast")}, kudo.InProgress, "apps/a: is not bound yet (StorageClass fast)"},
		"a claim without a StorageClass that was read is waited for": {[]plan.Object{of(claim, "a", "Pending")}, kudo.InProgress, "apps/a"},
		"a claim whose StorageClass does not exist is an error":      {[]plan.Object{of(pod, "a", "Pending"), ofClass("b", "nope")}, kudo.Error, "apps/b: is not bound: StorageClass nope does not exist"},
		"a failure comes before a claim that is blocked":             {[]plan.Object{ofClass("a", "nope"), of(claim, "b", "Lost")}, kudo.FatalError, "apps/b"},
		"an object that was deleted meanwhile is applied again":      {[]plan.Object{{Want: object("ConfigMap", "c")}}, kudo.InProgress, "apps/c"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.ApplyOutcome(test.objects)
			if got.Status != test.want || !strings.Contains(got.Message, test.says) {
				t.Errorf("want %s %q, got %s %q", test.want, test.says, got.Status, got.Message)
			}
		})
	}
}

func TestDeleteOutcome(t *testing.T) {
	gone := plan.Object{Want: object("Job", "a")}
	there := plan.Object{Want: object("Job", "b"), Live: object("Job", "b", withDeletion(metav1.FinalizerDeleteDependents))}
	held := plan.Object{Want: object("Job", "c"), Live: object("Job", "c", withDeletion("example.com/one", "example.com/two"))}
	refused := func(o plan.Object) plan.Object {
		o.Refusal = `failed calling webhook "dead.example.com"`
		return o
	}
	for name, test := range map[string]struct {
		objects []plan.Object
		want    plan.Outcome
	}{
		"nothing to delete is complete":   {nil, plan.Outcome{Status: kudo.Complete}},
		"what is gone is complete":        {[]plan.Object{gone}, plan.Outcome{Status: kudo.Complete}},
		"what is still there is named":    {[]plan.Object{gone, there}, plan.Outcome{Status: kudo.InProgress, Message: "Job apps/b: is being deleted"}},
		"what is held is named before it": {[]plan.Object{there, held}, plan.Outcome{Status: kudo.InProgress, Message: "Job apps/c: is being deleted, held by finalizer example.com/one, example.com/two"}},
		"why its finalizers stay is named": {[]plan.Object{there, refused(held)}, plan.Outcome{Status: kudo.InProgress, Message: "Job apps/c: is being deleted, " +
			`held by finalizer example.com/one, example.com/two, whose removal is refused: failed calling webhook "dead.example.com"`}},
		"so it is for that of the garbage collector": {[]plan.Object{refused(there)}, plan.Outcome{Status: kudo.InProgress, Message: "Job apps/b: is being deleted, " +
			`held by finalizer foregroundDeletion, whose removal is refused: failed calling webhook "dead.example.com"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.DeleteOutcome(test.objects)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindStuck(t *testing.T) {
	gone, kept := plan.Object{Want: object("Job", "a")}, plan.Object{Live: object("Job", "a")}
	slow := plan.Object{Live: object("Job", "b", withDeletion(metav1.FinalizerDeleteDependents))}
	held := plan.Object{Live: object("Job", "c", withDeletion("example.com/one"))}
	free := plan.Object{Live: object("Pod", "d", withDeletion())}
	began := slow.Live.GetDeletionTimestamp().Time
	for name, test := range map[string]struct {
		objects []plan.Object
		after   time.Duration
		want    int
	}{
		"nothing that is not being deleted": {[]plan.Object{gone, kept}, time.Hour, -1},
		"not what has just been deleted":    {[]plan.Object{slow, held}, time.Second, -1},
		"what takes long":                   {[]plan.Object{gone, slow}, time.Minute, 1},
		"what others hold before the rest":  {[]plan.Object{slow, held}, time.Minute, 1},
		"not what no finalizer holds":       {[]plan.Object{free}, time.Minute, -1},
	} {
		if got := plan.FindStuck(test.objects, began.Add(test.after)); got != test.want {
			t.Errorf("%s: want %d, got %d", name, test.want, got)
		}
	}
}

func TestActionOf(t *testing.T) {
	version := versionOf()
	version.Parameters = append(version.Parameters, kudo.Parameter{Name: "ON", Type: kudo.BooleanType})
	toggle := kudo.Task{Kind: kudo.TaskToggle}
	toggle.Spec.Parameter = "ON"
	for name, test := range map[string]struct {
		task  kudo.Task
		value string
		want  plan.TaskAction
		fails bool
	}{
		"Apply applies":                         {kudo.Task{Kind: kudo.TaskApply}, "", plan.Apply, false},
		"Delete deletes":                        {kudo.Task{Kind: kudo.TaskDelete}, "", plan.Delete, false},
		"Dummy has no objects":                  {kudo.Task{Kind: kudo.TaskDummy}, "", plan.Nothing, false},
		"Toggle applies when true":              {toggle, "true", plan.Apply, false},
		"Toggle takes what ParseBool takes":     {toggle, "F", plan.Delete, false},
		"Toggle fails on anything else":         {toggle, "maybe", plan.Nothing, true},
		"an unknown kind is an error":           {kudo.Task{Kind: "Fly"}, "", plan.Nothing, true},
		"Pipe makes objects of files":           {kudo.Task{Kind: kudo.TaskPipe}, "", plan.Pipe, false},
		"a Toggle of no parameter is, likewise": {kudo.Task{Kind: kudo.TaskToggle}, "", plan.Nothing, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.TaskActionOf(test.task, version, map[string]string{"ON": test.value})
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("want %s, got %s, %v", test.want, got, err)
			}
		})
	}
}

func TestDummyOutcome(t *testing.T) {
	for want, spec := range map[kudo.ExecutionStatus]kudo.DummyTaskSpec{
		kudo.Complete:   {Done: true},
		kudo.InProgress: {},
		kudo.Error:      {WantErr: true, Done: true},
		kudo.FatalError: {WantErr: true, Fatal: true},
	} {
		if got := plan.DummyOutcome(spec); got.Status != want {
			t.Errorf("%+v: want %s, got %v", spec, want, got)
		}
	}
}

func TestReady(t *testing.T) {
	there := object("ConfigMap", "c")
	for name, test := range map[string]struct {
		listed []plan.Object
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"complete and all there":                {[]plan.Object{{Want: there, Live: there}}, metav1.ConditionTrue, kudo.ReasonHealthy, "all applied objects are healthy"},
		"an object that is gone, with its name": {[]plan.Object{{Want: there}}, metav1.ConditionFalse, kudo.ReasonUnhealthy, "ConfigMap apps/c: is missing"},
		"a Job that is gone has done its work":  {[]plan.Object{{Want: object("Job", "j", version("batch/v1"))}}, metav1.ConditionTrue, kudo.ReasonHealthy, ""},
		"so has a Pod":                          {[]plan.Object{{Want: object("Pod", "p")}}, metav1.ConditionTrue, kudo.ReasonHealthy, ""},
		"another group's Job has not":           {[]plan.Object{{Want: object("Job", "j", version("example.com/v1"))}}, metav1.ConditionFalse, kudo.ReasonUnhealthy, "Job apps/j: is missing"},
		"a cluster-scoped object that is gone": {[]plan.Object{{Want: object("ClusterRole", "r", func(o *unstructured.Unstructured) { o.SetNamespace("") })}},
			metav1.ConditionFalse, kudo.ReasonUnhealthy, "ClusterRole r: is missing"},
		"an object that was replaced by another owner's": {[]plan.Object{{Want: there, Live: object("ConfigMap", "c", func(o *unstructured.Unstructured) { o.SetLabels(nil) })}},
			metav1.ConditionFalse, kudo.ReasonUnhealthy, "ConfigMap apps/c: already exists and was not created by this Instance"},
		"an object that is on its way out, with what holds it": {[]plan.Object{{Want: there, Live: object("ConfigMap", "c", withDeletion("example.com/hold"))}},
			metav1.ConditionFalse, kudo.ReasonUnhealthy, "ConfigMap apps/c: is being deleted, held by finalizer example.com/hold"},
		"an object that is broken, with its cause": {[]plan.Object{{Want: there, Live: object("PersistentVolumeClaim", "v", phase("Lost"))}}, metav1.ConditionFalse, kudo.ReasonUnhealthy, "apps/v"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Ready(owner, test.listed, nil)
			if got.Status != test.status || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %s %s %q", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func TestMessagesAboutOpaqueObjectsHaveNoDetails(t *testing.T) {
	failed := object("Pod", "a", phase("Failed"), func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "it does not know a part", "status", "message")
	})
	const shown = "Pod apps/a: is not healthy, and the message is not shown, because the object holds a part of a sensitive value that cannot be masked: " +
		"it is a number, or shorter than 4 characters"
	opaque := plan.Object{Want: failed, Live: failed, Opaque: true}
	if got := plan.ApplyOutcome([]plan.Object{opaque}); got != (plan.Outcome{Status: kudo.FatalError, Message: shown}) {
		t.Errorf("got %v", got)
	}
	if got := plan.Ready(owner, []plan.Object{opaque}, nil); got.Message != shown {
		t.Errorf("got %v", got)
	}
	going := object("Pod", "a", withDeletion("a-part/x"))
	if got := plan.DeleteOutcome([]plan.Object{{Live: going, Opaque: true}}); strings.Contains(got.Message, "a-part") || !strings.Contains(got.Message, "finalizers") {
		t.Errorf("got %v", got)
	}
	if got := plan.ApplyOutcome([]plan.Object{{Want: failed, Opaque: true}}); !strings.Contains(got.Message, "no longer exists") {
		t.Errorf("got %v", got)
	}
}

func TestWhatAnAPIServerAnswersIsCutToALine(t *testing.T) {
	got := plan.OneLine("refused:\n" + strings.Repeat("ö", 1<<20))
	if !strings.HasPrefix(got, "refused: ö") || len(got) > 4096 || !utf8.ValidString(got) {
		t.Errorf("got %d bytes: %.20q", len(got), got)
	}
}
