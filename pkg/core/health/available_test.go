package health

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAvailability(t *testing.T) {
	for name, test := range map[string]struct {
		kind, object string
		serves       bool
		unavailable  string
	}{
		"a Deployment whose pods are replaced": {kind: "Deployment", serves: true,
			object: `{metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1, availableReplicas: 2, unavailableReplicas: 2,
				conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True"}]}}`},
		"a Deployment below its minimum": {kind: "Deployment",
			object: `{spec: {replicas: 3}, status: {availableReplicas: 1, conditions: [{type: Available, status: "False",
				reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability.}]}}`,
			unavailable: "is not available: MinimumReplicasUnavailable: Deployment does not have minimum availability."},
		"a Deployment with an unknown condition": {kind: "Deployment", object: `{status: {availableReplicas: 1, conditions: [{type: Available, status: Unknown, reason: Odd}]}}`,
			unavailable: "is not available: Odd"},
		"a new Deployment":                   {kind: "Deployment", object: `{spec: {replicas: 1}}`, unavailable: "is not available yet"},
		"a Deployment without the condition": {kind: "Deployment", object: `{spec: {replicas: 1}, status: {availableReplicas: 1}}`, serves: true},
		"a Deployment scaled to zero": {kind: "Deployment",
			object: `{spec: {replicas: 0}, status: {conditions: [{type: Available, status: "False"}]}}`},
		"a StatefulSet with one ready pod":  {kind: "StatefulSet", object: `{spec: {replicas: 3}, status: {readyReplicas: 1, updatedReplicas: 0}}`, serves: true},
		"a StatefulSet without a ready pod": {kind: "StatefulSet", object: `{spec: {replicas: 3}, status: {replicas: 3}}`, unavailable: "is not available: no pod is ready"},
		"a StatefulSet scaled to zero":      {kind: "StatefulSet", object: `{spec: {replicas: 0}}`},
		"a DaemonSet with one ready pod":    {kind: "DaemonSet", object: `{status: {desiredNumberScheduled: 3, numberReady: 1}}`, serves: true},
		"a DaemonSet without a ready pod":   {kind: "DaemonSet", object: `{status: {desiredNumberScheduled: 3}}`, unavailable: "is not available: no pod is ready"},
		"a DaemonSet that no node runs":     {kind: "DaemonSet", object: `{status: {desiredNumberScheduled: 0}}`},
		"a new DaemonSet":                   {kind: "DaemonSet", object: `{}`, unavailable: "is not available: no pod is ready"},
		"one that is being deleted": {kind: "StatefulSet",
			object: `{metadata: {namespace: ns, name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {readyReplicas: 1}}`, unavailable: "is being deleted"},
		"a malformed one": {kind: "StatefulSet", object: `{status: {readyReplicas: many}}`, unavailable: "status.readyReplicas is not an integer"},
		"another kind":    {kind: "ReplicaSet", object: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			workload := object(t, "apps/v1", test.kind, test.object)
			want := ""
			if test.unavailable != "" {
				want = test.kind + " ns/x: " + test.unavailable
			}
			if got := Unavailable(workload); got != want {
				t.Errorf("unavailable: got %q, want %q", got, want)
			}
			if got := Serves(workload); got != test.serves {
				t.Errorf("serves: got %v, want %v", got, test.serves)
			}
		})
	}
}

func TestCrashLoop(t *testing.T) {
	for name, test := range map[string]struct{ pod, want string }{
		"no status": {pod: `{}`},
		"waiting after a failure": {
			pod:  `{status: {containerStatuses: [{name: app, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]}}`,
			want: "Pod ns/x: container app restarts: CrashLoopBackOff: exited with code 3 (Error)"},
		"running again for the third time": {
			pod:  `{status: {containerStatuses: [{name: app, ready: false, restartCount: 2, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}}`,
			want: "Pod ns/x: container app restarts: CrashLoopBackOff (more than 1 restart): exited with code 1"},
		"an init container": {
			pod:  `{status: {initContainerStatuses: [{name: init, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}}`,
			want: "Pod ns/x: container init restarts: CrashLoopBackOff: exited with code 1"},
		"restarted once": {pod: `{status: {containerStatuses: [{name: app, ready: false, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}}`},
		"ready again":    {pod: `{status: {containerStatuses: [{name: app, ready: true, restartCount: 7, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}}`},
		"pulling":        {pod: `{status: {containerStatuses: [{name: app, ready: false, restartCount: 0, state: {waiting: {reason: ImagePullBackOff}}}]}}`},
		"restarted without a failure": {
			pod: `{status: {containerStatuses: [{name: app, ready: false, restartCount: 3, state: {running: {}}, lastState: {terminated: {exitCode: 0}}}]}}`},
		"malformed": {pod: `{status: {containerStatuses: [{name: 1, restartCount: many, state: x}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CrashLoop(object(t, "v1", "Pod", test.pod)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRestartsRewriteMessagesRarely(t *testing.T) {
	var changes []int
	last := ""
	for restarts := range 1001 {
		pod := object(t, "v1", "Pod", fmt.Sprintf("{status: {phase: Running, containerStatuses: [{name: app, ready: false, restartCount: %d, "+
			"state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}}", restarts))
		message := Of(pod).Message
		if loop := CrashLoop(pod); loop != message {
			t.Errorf("got %q, and %q", message, loop)
		}
		if message != last {
			changes, last = append(changes, restarts), message
		}
	}
	if diff := cmp.Diff([]int{0, 2, 4, 11, 31, 101}, changes); diff != "" {
		t.Errorf("numbers of restarts with another message (-want +got)\n%s", diff)
	}
}
