package soak

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is an Instance whose deploy plan is complete, its pods, and an agent that looks at it.
type world struct {
	t      *testing.T
	now    time.Time
	uptime time.Duration
	spec   time.Duration
	status kudo.InstanceStatus
	pods   []unstructured.Unstructured
	// unreadable is why the pods cannot be read.
	unreadable string
	memory     Memory
	reads      int
}

func newWorld(t *testing.T) *world {
	version := corev1.ObjectReference{Name: "v", UID: "v"}
	w := &world{t: t, now: noon, spec: 10 * time.Minute, status: kudo.InstanceStatus{
		Execution:  &kudo.Execution{UID: "e1", Plan: "deploy", OperatorVersion: version},
		Whole:      &kudo.WholeVersion{OperatorVersion: version},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": {Status: kudo.Complete, UID: "e1"}},
	}}
	w.setReady(true)
	w.pods = []unstructured.Unstructured{newPod("a", 0, time.Time{})}
	return w
}

func newPod(uid string, restarts int64, at time.Time) unstructured.Unstructured {
	status := map[string]any{"name": "app", "restartCount": restarts}
	if restarts > 0 {
		status["state"] = map[string]any{"running": map[string]any{"startedAt": at.Format(time.RFC3339)}}
		status["lastState"] = map[string]any{"terminated": map[string]any{
			"exitCode": int64(137), "reason": "OOMKilled", "finishedAt": at.Add(-time.Second).Format(time.RFC3339)}}
	}
	pod := unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"containerStatuses": []any{status}}}}
	pod.SetNamespace("ns")
	pod.SetName("pod-" + uid)
	pod.SetUID(types.UID(uid))
	return pod
}

func (w *world) condition(name string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.status.Conditions, metav1.Condition{Type: name, Status: status, Reason: reason, Message: message})
}

func (w *world) setReady(is bool) {
	if is {
		w.condition(kudo.ConditionReady, metav1.ConditionTrue, kudo.ReasonHealthy, "all is well")
		return
	}
	w.condition(kudo.ConditionReady, metav1.ConditionFalse, kudo.ReasonUnhealthy, "Deployment ns/x: 0 of 1 replicas available")
}

func (w *world) setDrifted(is bool) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	w.condition(kudo.ConditionDrifted, status, "Drifted", "ConfigMap ns/c: data.a was changed by kubectl")
}

// look decides once, and returns when to look again.
func (w *world) look() time.Duration {
	o := Observation{Now: w.now, Uptime: w.uptime, HealthyFor: w.spec, Status: w.status, Memory: w.memory}
	before := *w.status.DeepCopy()
	if NeedsPods(o) {
		w.reads++
		if o.Pods = PodsOf(w.pods); w.unreadable != "" {
			o.Pods = &Pods{Problem: w.unreadable}
		}
	}
	d := Decide(o)
	if diff := cmp.Diff(before, w.status); diff != "" {
		w.t.Fatalf("a decision changes what was observed (-before +after):\n%s", diff)
	}
	w.status.Soak, w.memory = d.Record, d.Memory
	if d.Condition == nil {
		meta.RemoveStatusCondition(&w.status.Conditions, kudo.ConditionSoaked)
	} else {
		meta.SetStatusCondition(&w.status.Conditions, *d.Condition)
	}
	return d.After
}

// pass lets time pass, and looks whenever that is due. It returns the number of writes.
func (w *world) pass(d time.Duration) (writes int) {
	for end := w.uptime + d; ; {
		before := *w.status.DeepCopy()
		after := w.look()
		if !cmp.Equal(before, w.status) {
			writes++
		}
		if after == 0 || w.uptime+after > end {
			w.now, w.uptime = w.now.Add(end-w.uptime), end
			return writes
		}
		w.now, w.uptime = w.now.Add(after), w.uptime+after
	}
}

// jump sets the clock of the node.
func (w *world) jump(d time.Duration) { w.now = w.now.Add(d) }

// restartAgent makes the agent forget what is not recorded.
func (w *world) restartAgent() { w.memory, w.uptime = Memory{}, 0 }

// restart restarts the container of the first pod now.
func (w *world) restart() {
	count := PodsOf(w.pods).Restarts["a/app"]
	w.pods = []unstructured.Unstructured{newPod("a", count+1, w.now)}
}

func (w *world) is() string {
	c := meta.FindStatusCondition(w.status.Conditions, kudo.ConditionSoaked)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func TestSoak(t *testing.T) {
	const minute = time.Minute
	for what, test := range map[string]struct {
		play func(w *world)
		want string // the beginning of the condition: status, reason, message
	}{
		"none without a time":            {func(w *world) { w.spec = 0; w.pass(minute) }, ""},
		"it counts after the plan":       {func(w *world) { w.pass(minute) }, "False Soaking: healthy since 2026-01-01T12:00:00Z, complete at 2026-01-01T12:10:00Z"},
		"it is not over a little before": {func(w *world) { w.pass(10*minute - time.Second) }, "False Soaking: "},
		"it is over": {func(w *world) { w.pass(10*minute + time.Second) },
			"True HealthyLongEnough: the Instance was healthy for long enough after its plan, at 2026-01-01T12:10:00Z"},
		"a plan that is owed": {func(w *world) { w.status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy"}}; w.pass(11 * minute) },
			"False PlanPending: the time counts from the end of the plan"},
		"a plan that runs": {func(w *world) {
			w.status.PlanStatus["deploy"] = kudo.PlanStatus{Status: kudo.InProgress}
			w.pass(11 * minute)
		}, "False PlanPending: "},
		"a version that is not complete": {func(w *world) { w.status.Whole.OperatorVersion.UID = "former"; w.pass(11 * minute) }, "False PlanPending: "},
		"a change that waits for a Secret": {func(w *world) {
			w.pass(5 * minute)
			w.condition(kudo.ConditionReady, metav1.ConditionFalse, kudo.ReasonSecretNotFound, "")
			w.pass(10 * minute)
		}, "False PlanPending: "},
		"another execution": {func(w *world) {
			w.pass(11 * minute)
			w.status.Execution.UID = "e2"
			w.pass(minute)
		}, "False Soaking: healthy since 2026-01-01T12:11:00Z"},
		"a backup later": {func(w *world) {
			w.pass(11 * minute)
			w.status.Execution = &kudo.Execution{UID: "e2", Plan: "backup", Request: "e2", OperatorVersion: w.status.Execution.OperatorVersion}
			w.status.PlanStatus["backup"] = kudo.PlanStatus{Status: kudo.InProgress}
			w.pass(minute)
		}, "True "},
		"a backup that fails meanwhile": {func(w *world) {
			w.pass(5 * minute)
			w.status.Execution = &kudo.Execution{UID: "e2", Plan: "backup", Request: "e2", OperatorVersion: w.status.Execution.OperatorVersion}
			w.status.PlanStatus["backup"] = kudo.PlanStatus{Status: kudo.FatalError, Message: "disk full", LastUpdatedTimestamp: &metav1.Time{Time: w.now}}
			w.pass(6 * minute)
		}, `False Soaking: healthy since 2026-01-01T12:05:00Z, complete at 2026-01-01T12:15:00Z; the time was interrupted: plan "backup" failed: disk full`},
		"a backup that had failed before": {func(w *world) {
			w.status.PlanStatus["backup"] = kudo.PlanStatus{Status: kudo.FatalError, LastUpdatedTimestamp: &metav1.Time{Time: w.now.Add(-minute)}}
			w.pass(10 * minute)
		}, "True "},
		"an unhealthy Instance": {func(w *world) { w.pass(minute); w.setReady(false); w.pass(minute) },
			"False Unhealthy: no time counts while the Instance is not ready: Deployment ns/x: 0 of 1 replicas available"},
		"an Instance that was unhealthy": {func(w *world) {
			w.pass(minute)
			w.setReady(false)
			w.pass(minute)
			w.setReady(true)
			w.pass(9 * minute)
		},
			"False Soaking: healthy since 2026-01-01T12:02:00Z, complete at 2026-01-01T12:12:00Z; the time was interrupted: Deployment ns/x: 0 of 1 replicas available"},
		"an Instance that was unhealthy, at the end": {func(w *world) {
			w.pass(minute)
			w.setReady(false)
			w.pass(minute)
			w.setReady(true)
			w.pass(10 * minute)
		}, "True "},
		"drift": {func(w *world) { w.pass(minute); w.setDrifted(true); w.pass(20 * minute) },
			"False Drifted: no time counts while objects differ from what was applied: ConfigMap ns/c: data.a was changed by kubectl"},
		"drift that is repaired": {func(w *world) {
			w.pass(minute)
			w.setDrifted(true)
			w.pass(minute)
			w.setDrifted(false)
			w.pass(9 * minute)
		}, "False Soaking: healthy since 2026-01-01T12:02:00Z"},
		"drift that has not been seen": {func(w *world) { w.setDrifted(false); w.pass(10 * minute) }, "True "},
		"a restart": {func(w *world) { w.pass(minute); w.restart(); w.pass(minute) },
			"False Restarted: container app of Pod ns/pod-a has restarted: exited with code 137 (OOMKilled); healthy since 2026-01-01T12:01:00Z, complete at 2026-01-01T12:11:00Z"},
		"a restart just before the end":   {func(w *world) { w.pass(10*minute - 1); w.restart(); w.pass(minute) }, "False Restarted: "},
		"a restart before the plan's end": {func(w *world) { w.restart(); w.now = w.now.Add(minute); w.pass(10 * minute) }, "True "},
		"a pod that was created": {func(w *world) {
			w.pass(minute)
			w.pods = append(w.pods, newPod("b", 0, time.Time{}))
			w.pass(9 * minute)
		}, "True "},
		"a pod that was evicted":           {func(w *world) { w.restart(); w.pass(minute); w.pods = nil; w.pass(9 * minute) }, "True "},
		"a new pod that has restarted":     {func(w *world) { w.pass(minute); w.pods = append(w.pods, newPod("b", 1, w.now)); w.pass(minute) }, "False Restarted: container app of Pod ns/pod-b"},
		"a restart while the agent is off": {func(w *world) { w.pass(minute); w.restart(); w.jump(minute); w.restartAgent(); w.pass(minute) }, "False Restarted: "},
		"a restart by a clock that is behind": {func(w *world) {
			w.restart()
			w.pass(minute)
			w.pods = []unstructured.Unstructured{newPod("a", 2, w.now.Add(-time.Hour))}
			w.pass(10 * minute)
		}, "False Restarted: "},
		"pods that cannot be read": {func(w *world) { w.unreadable = "refused"; w.pass(20 * minute) }, "False Soaking: the time does not count yet: pods cannot be read: refused"},
		"pods that cannot be read any more": {func(w *world) { w.pass(minute); w.unreadable = "refused"; w.pass(20 * minute) },
			"False Soaking: the Instance is healthy for long enough, but pods cannot be read: refused"},
		"the agent was restarted":         {func(w *world) { w.pass(5 * minute); w.restartAgent(); w.pass(5*minute - time.Second) }, "False Soaking: healthy since 2026-01-01T12:00:00Z"},
		"the agent was restarted, at end": {func(w *world) { w.pass(5 * minute); w.restartAgent(); w.pass(5 * minute) }, "True "},
		"a clock that was set forward":    {func(w *world) { w.pass(minute); w.jump(time.Hour); w.pass(9*minute - time.Second) }, "False Soaking: healthy since 2026-01-01T13:00:00Z"},
		"a clock that was set forward before the agent was restarted": {func(w *world) {
			w.pass(minute)
			w.jump(time.Hour)
			w.pass(minute)
			w.restartAgent()
			w.pass(8*minute - time.Second)
		}, "False Soaking: healthy since 2026-01-01T13:00:00Z"},
		"a clock that was set back": {func(w *world) { w.pass(minute); w.jump(-time.Hour); w.pass(9 * minute) }, "True "},
		"a clock that was set back while the agent was restarted": {func(w *world) {
			w.jump(time.Hour)
			w.pass(minute)
			w.jump(-time.Hour)
			w.restartAgent()
			w.pass(10*minute - 1)
		}, "False Soaking: "},
		"a longer time after the end":  {func(w *world) { w.pass(10 * minute); w.spec = time.Hour; w.pass(minute) }, "False Soaking: "},
		"the end of a longer time":     {func(w *world) { w.pass(10 * minute); w.spec = time.Hour; w.pass(51 * minute) }, "True "},
		"a shorter time after the end": {func(w *world) { w.pass(10 * minute); w.spec = minute; w.pass(minute) }, "True "},
		"unhealthy after the end":      {func(w *world) { w.pass(11 * minute); w.setReady(false); w.restart(); w.pass(time.Hour) }, "True "},
		"a longer time before the end": {func(w *world) { w.pass(9 * minute); w.spec = time.Hour; w.pass(50 * minute) }, "False Soaking: "},
		"a failure": {func(w *world) { w.pass(minute); w.setReady(false); w.pass(5 * minute) },
			"False SoakFailed: the Instance was unhealthy for 5m0s in total since its plan: Deployment ns/x: 0 of 1 replicas available; no time counts"},
		"a failure by parts": {func(w *world) {
			for range 6 {
				w.pass(minute)
				w.setReady(false)
				w.pass(minute)
				w.setReady(true)
			}
			w.look()
		}, "False SoakFailed: "},
		"no failure by a clock that is set": {func(w *world) {
			w.pass(minute)
			w.setReady(false)
			w.pass(minute)
			w.jump(time.Hour)
			w.pass(3 * minute)
		}, "False Unhealthy: "},
		"a failure within a short time": {func(w *world) { w.spec = 30 * time.Second; w.setReady(false); w.pass(30 * time.Second) }, "False SoakFailed: "},
		"a failure that recovers": {func(w *world) {
			w.pass(minute)
			w.setReady(false)
			w.pass(6 * minute)
			w.setReady(true)
			w.pass(minute)
		},
			"False SoakFailed: the Instance was unhealthy for 5m0s in total since its plan: Deployment ns/x: 0 of 1 replicas available; healthy since 2026-01-01T12:07:00Z"},
		"a failure that has recovered": {func(w *world) { w.setReady(false); w.pass(6 * minute); w.setReady(true); w.pass(10 * minute) }, "True "},
		"three restarts within a minute": {func(w *world) {
			for range 3 {
				w.restart()
				w.pass(20 * time.Second)
			}
		}, "False Restarted: "},
		"restarts again and again": {func(w *world) {
			w.look()
			for range 4 {
				w.restart()
				w.pass(2 * minute)
			}
		}, "False SoakFailed: containers have restarted 4 times since the plan: container app of Pod ns/pod-a has restarted: exited with code 137 (OOMKilled); healthy since"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			test.play(w)
			w.look()
			if is := w.is(); !strings.HasPrefix(is, test.want) || test.want == "" && is != "" {
				t.Errorf("it is\n%s\nwant\n%s", is, test.want)
			}
			if failed := strings.HasPrefix(w.is(), "False SoakFailed"); failed != (Failure(w.status) != "") {
				t.Errorf("its failure is %q, and the condition is %s", Failure(w.status), w.is())
			}
		})
	}
}

func TestSoakIsQuiet(t *testing.T) {
	w := newWorld(t)
	if writes := w.pass(9 * time.Minute); writes != 1 {
		t.Errorf("%d writes while time counts, want one", writes)
	}
	if w.reads > 9*4+1 {
		t.Errorf("the pods were read %d times in nine minutes", w.reads)
	}
	w.pass(2 * time.Minute)
	w.reads = 0
	if after := w.look(); after != 0 || w.reads > 0 {
		t.Errorf("a completed soak is looked at again after %s, and reads pods %d times", after, w.reads)
	}
	w = newWorld(t)
	w.setReady(false)
	w.pass(5*time.Minute - time.Second)
	w.now, w.uptime = w.now.Add(2*time.Second), w.uptime+2*time.Second
	if after := w.look(); Failure(w.status) == "" || after == 0 {
		t.Errorf("a failure that was just found, %q, is looked at again after %s", Failure(w.status), after)
	}
	w.pass(time.Minute)
	w.reads = 0
	if writes := w.pass(time.Hour); writes > 0 || w.reads > 0 {
		t.Errorf("a failed soak of an unhealthy Instance causes %d writes and %d reads of pods", writes, w.reads)
	}
	w = newWorld(t)
	w.unreadable = "refused"
	w.look()
	for range 100 { // something changes all the time
		w.look()
	}
	if w.reads > 1 {
		t.Errorf("the pods were read %d times at once", w.reads)
	}
}

func TestRestartsOfPods(t *testing.T) {
	pod := func(statuses string) unstructured.Unstructured {
		p := newPod("a", 0, time.Time{})
		var object map[string]any
		if err := json.Unmarshal([]byte(statuses), &object); err != nil {
			t.Fatal(err)
		}
		p.Object["status"] = object
		return p
	}
	for what, test := range map[string]struct {
		status string
		want   string // the latest restart: seconds after noon, and the container
	}{
		"none":               {`{"containerStatuses":[{"name":"app","restartCount":0,"state":{"running":{"startedAt":"2026-01-01T12:00:01Z"}}}]}`, ""},
		"a running one":      {`{"containerStatuses":[{"name":"app","restartCount":1,"state":{"running":{"startedAt":"2026-01-01T12:00:01Z"}}}]}`, "1 app"},
		"one that waits":     {`{"containerStatuses":[{"name":"app","restartCount":1,"state":{"waiting":{}},"lastState":{"terminated":{"finishedAt":"2026-01-01T12:00:02Z"}}}]}`, "2 app"},
		"an init container":  {`{"initContainerStatuses":[{"name":"init","restartCount":1,"state":{"terminated":{"startedAt":"2026-01-01T12:00:03Z"}}}]}`, "3 init"},
		"a sidecar":          {`{"initContainerStatuses":[{"name":"proxy","restartCount":2,"state":{"running":{"startedAt":"2026-01-01T12:00:04Z"}}}],"containerStatuses":[{"name":"app","restartCount":1,"state":{"running":{"startedAt":"2026-01-01T12:00:01Z"}}}]}`, "4 proxy"},
		"malformed times":    {`{"containerStatuses":[{"name":"app","restartCount":1,"state":{"running":{"startedAt":"yesterday"}}}]}`, ""},
		"malformed statuses": {`{"containerStatuses":[{"name":"app","restartCount":"1"},7]}`, ""},
	} {
		found := PodsOf([]unstructured.Unstructured{pod(test.status)})
		got := ""
		if !found.Latest.Time.IsZero() {
			got = fmt.Sprintf("%d %s", int(found.Latest.Time.Sub(noon).Seconds()), strings.Fields(found.Latest.Message)[1])
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", what, got, test.want)
		}
	}
}

func TestOnlyTheCurrentGenerationIsOver(t *testing.T) {
	w := newWorld(t)
	w.pass(11 * time.Minute)
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: w.status}
	for generation, want := range map[int64]bool{1: false, 2: true, 3: false} {
		meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionSoaked).ObservedGeneration = generation
		if IsOver(i) != want {
			t.Errorf("generation %d of 2: over is %t", generation, !want)
		}
	}
	meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionSoaked).ObservedGeneration = 2
	i.Status.Execution = i.Status.Execution.DeepCopy()
	if i.Status.Execution.UID = "e2"; IsOver(i) {
		t.Error("the soak of a former execution is over")
	}
}

// FuzzSoak plays events at random. A soak is over only after the Instance was healthy for as long as required, by a clock that nothing sets.
func FuzzSoak(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{1, 0x9f, 7, 2, 0x9f, 7, 5, 0x9f})
	f.Fuzz(func(t *testing.T, events []byte) {
		w := newWorld(t)
		w.spec = time.Minute
		var healthy time.Duration // since the last interruption
		for _, event := range events[:min(len(events), 200)] {
			if w.status.Soak != nil && w.status.Soak.CompletionTime != nil {
				if healthy < w.spec-maxClockError {
					t.Fatalf("it is over after %s: %s", healthy, w.is())
				}
				return
			}
			isReady := meta.IsStatusConditionTrue(w.status.Conditions, kudo.ConditionReady)
			switch event % 8 {
			case 1:
				w.setReady(!isReady)
				healthy = 0
			case 2:
				w.restart()
				healthy = 0
			case 3:
				w.jump(time.Duration(event) * time.Minute)
			case 4:
				w.jump(-time.Duration(event) * time.Minute)
			default:
				d := time.Duration(event/8) * time.Second
				healthy += d
				w.pass(d)
			}
			w.look()
		}
	})
}

func TestParse(t *testing.T) {
	for source, want := range map[string]time.Duration{
		"10m": 10 * time.Minute, " 1h30m\n": 90 * time.Minute, "24h": 24 * time.Hour, "0": 0, "0s": 0, "1s": time.Second,
		"": -1, "soon": -1, "10": -1, "-10m": -1, "24h1s": -1, "500ms": -1, "1.5s": -1, "10m" + strings.Repeat(" ", 64): -1,
		strings.Repeat("1h", 100): -1,
	} {
		got, err := Parse(source)
		if want < 0 {
			if err == nil || len(err.Error()) > 200 {
				t.Errorf("%.20q: got %s, and error %v", source, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%.20q: got %s, and error %v, want %s", source, got, err, want)
		}
	}
}
