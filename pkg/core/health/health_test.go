package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// cases maps a sentence to an object and its expected result. An object is written without metadata.name and namespace.
type cases map[string]struct {
	object  string
	status  Status
	message string
}

// run judges objects of one kind, named ns/x, and checks that they stay unmodified.
func (cs cases) run(t *testing.T, apiVersion, kind string) {
	t.Helper()
	for name, test := range cs {
		t.Run(name, func(t *testing.T) {
			obj := object(t, apiVersion, kind, test.object)
			before := obj.DeepCopy()
			got := Of(obj)
			want := Result{Status: test.status, Message: kind + " ns/x: " + test.message}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object was changed (-want +got)\n%s", diff)
			}
		})
	}
}

func object(t *testing.T, apiVersion, kind, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if err := utiljson.Unmarshal(encoded, &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	if _, ok := obj.Object["metadata"].(map[string]any); ok || obj.Object["metadata"] == nil {
		obj.SetNamespace("ns")
		obj.SetName("x")
	}
	return obj
}

func TestDeployment(t *testing.T) {
	cases{
		"a new one has not been seen": {
			"{metadata: {generation: 1}, spec: {replicas: 3}}", Progressing, "waiting for its controller to observe it",
		},
		"a stale status does not count": {
			"{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}",
			Progressing, "generation 2 has not been observed yet",
		},
		"pods are being replaced": {
			"{spec: {replicas: 3}, status: {replicas: 4, updatedReplicas: 1, availableReplicas: 3}}", Progressing, "1 of 3 replicas updated",
		},
		"paused in the middle": {
			"{spec: {replicas: 3, paused: true}, status: {replicas: 3, updatedReplicas: 1, availableReplicas: 3}}",
			Progressing, "1 of 3 replicas updated, rollout is paused",
		},
		"old pods are left": {
			"{spec: {replicas: 3}, status: {replicas: 5, updatedReplicas: 3, availableReplicas: 3}}", Progressing, "2 old replicas are pending termination",
		},
		"scaled down, pods are left": {
			"{spec: {replicas: 1}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 3}}", Progressing, "2 surplus replicas are pending termination",
		},
		"pods are not available": {
			"{spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 2}}", Progressing, "2 of 3 replicas available",
		},
		"pods cannot be made": {
			"{spec: {replicas: 1}, status: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota exceeded}]}}",
			Progressing, "0 of 1 replicas updated: FailedCreate: quota exceeded",
		},
		"past its deadline": {
			"{spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: timed out}]}}",
			Failed, "ProgressDeadlineExceeded: timed out",
		},
		"past its deadline, beside replicas of an older template that are available": {
			"{spec: {replicas: 3}, status: {replicas: 6, updatedReplicas: 3, availableReplicas: 3, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			Failed, "ProgressDeadlineExceeded",
		},
		"all there, beside the deadline that an earlier rollout missed": {
			"{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			Healthy, "2 of 2 replicas available",
		},
		"old pods are left, beside the deadline that an earlier rollout missed": {
			"{spec: {replicas: 2}, status: {replicas: 3, updatedReplicas: 2, availableReplicas: 3, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			Progressing, "1 old replicas are pending termination",
		},
		"scaled to zero after a missed deadline": {
			"{spec: {replicas: 0}, status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			Healthy, "0 of 0 replicas available",
		},
		"a deadline of an older generation does not count": {
			"{metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			Progressing, "generation 2 has not been observed yet",
		},
		"one replica is the default": {"{status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}", Healthy, "1 of 1 replicas available"},
		"scaled to zero":             {"{metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}", Healthy, "0 of 0 replicas available"},
		"all there": {
			"{metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}",
			Healthy, "3 of 3 replicas available",
		},
		"a deleted one": {
			"{metadata: {deletionTimestamp: '2024-01-01T00:00:00Z'}, spec: {replicas: 0}}", Progressing, "is being deleted",
		},
		"a number that is text": {
			"{spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1, availableReplicas: '1'}}", Unknown, "status.availableReplicas is not an integer",
		},
		"a fraction":                    {"{spec: {replicas: 1.5}}", Unknown, "spec.replicas is not an integer"},
		"a status that is text":         {"{status: healthy}", Unknown, "status.observedGeneration is not reachable"},
		"conditions that are an object": {"{status: {conditions: {}}}", Unknown, "status.conditions is not a list"},
		"conditions that are text":      {"{status: {conditions: [a]}}", Unknown, "status.conditions is not a list of objects"},
		"a condition whose status is a boolean": {
			"{spec: {replicas: 0}, status: {conditions: [{type: Progressing, status: false}]}}", Unknown, "status.conditions: status is not a string",
		},
		"a flag that is text": {"{spec: {replicas: 1, paused: 'yes'}}", Unknown, "spec.paused is not true or false"},
	}.run(t, "apps/v1", "Deployment")
}

func TestStatefulSet(t *testing.T) {
	cases{
		"a new one has not been seen": {"{metadata: {generation: 1}}", Progressing, "waiting for its controller to observe it"},
		"its first pods come one after the other": {
			"{spec: {replicas: 3}, status: {replicas: 1, readyReplicas: 0, updatedReplicas: 1, currentRevision: a, updateRevision: a}}",
			Progressing, "0 of 3 pods ready",
		},
		"some pods are ready": {
			"{spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 2, updatedReplicas: 3, currentRevision: a, updateRevision: a}}",
			Progressing, "2 of 3 pods ready",
		},
		"pods are being replaced": {
			"{spec: {replicas: 3}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}",
			Progressing, "1 of 3 pods updated",
		},
		"rolled back in the middle of an update": {
			"{spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 2, currentRevision: a, updateRevision: a}}",
			Progressing, "2 of 3 pods updated",
		},
		"an update up to its partition": {
			"{spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 1, currentRevision: a, updateRevision: b}}",
			Healthy, "3 of 3 pods ready",
		},
		"an update not yet at its partition": {
			"{spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 1, currentRevision: a, updateRevision: b}}",
			Progressing, "1 of 2 pods updated",
		},
		"a partition beyond the replicas": {
			"{spec: {replicas: 1, updateStrategy: {rollingUpdate: {partition: 5}}}, status: {replicas: 1, readyReplicas: 1, currentRevision: a, updateRevision: b}}",
			Healthy, "1 of 1 pods ready",
		},
		"OnDelete does not wait for an update": {
			"{spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {replicas: 2, readyReplicas: 2, currentRevision: a, updateRevision: b}}",
			Healthy, "2 of 2 pods ready",
		},
		"OnDelete waits for pods": {
			"{spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {replicas: 2, readyReplicas: 1}}", Progressing, "1 of 2 pods ready",
		},
		"scaled down, pods are left": {
			"{spec: {replicas: 1}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2}}", Progressing, "1 surplus pods are pending termination",
		},
		"ready, but not for long enough": {
			"{spec: {replicas: 1, minReadySeconds: 10}, status: {replicas: 1, readyReplicas: 1, updatedReplicas: 1, availableReplicas: 0}}",
			Progressing, "0 of 1 pods available",
		},
		"all there": {
			"{metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 3}}",
			Healthy, "3 of 3 pods ready",
		},
		"a partition that is text": {
			"{spec: {replicas: 0, updateStrategy: {rollingUpdate: {partition: all}}}}", Unknown, "spec.updateStrategy.rollingUpdate.partition is not an integer",
		},
		"a revision that is a number": {"{spec: {replicas: 1}, status: {currentRevision: 1}}", Unknown, "status.currentRevision is not a string"},
	}.run(t, "apps/v1", "StatefulSet")
}

func TestDaemonSet(t *testing.T) {
	cases{
		"a new one has not been seen": {"{metadata: {generation: 1}}", Progressing, "waiting for its controller to observe it"},
		"pods are being replaced": {
			"{status: {desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}}", Progressing, "1 of 3 pods updated",
		},
		"pods are not available": {
			"{status: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}", Progressing, "2 of 3 pods available",
		},
		"OnDelete does not wait for an update": {
			"{spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}}",
			Healthy, "3 of 3 pods available",
		},
		"no node wants it": {"{metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 0}}", Healthy, "0 of 0 pods available"},
	}.run(t, "apps/v1", "DaemonSet")
}

func TestReplicaSet(t *testing.T) {
	cases{
		"pods are missing":           {"{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 1}}", Progressing, "1 of 2 replicas available"},
		"pods cannot be made":        {"{status: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}}", Progressing, "0 of 1 replicas available: FailedCreate"},
		"scaled down, pods are left": {"{spec: {replicas: 1}, status: {replicas: 2, availableReplicas: 2}}", Progressing, "1 surplus replicas are pending termination"},
		"all there":                  {"{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2}}", Healthy, "2 of 2 replicas available"},
	}.run(t, "apps/v1", "ReplicaSet")
	cases{"all there": {"{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2}}", Healthy, "2 of 2 replicas available"}}.
		run(t, "v1", "ReplicationController")
}

func TestJob(t *testing.T) {
	cases{
		"a new one":                     {"{}", Progressing, "0 of 1 completions"},
		"a part is done":                {"{spec: {completions: 5, parallelism: 2}, status: {succeeded: 3}}", Progressing, "3 of 5 completions"},
		"pods have failed":              {"{spec: {completions: 1}, status: {failed: 2}}", Progressing, "0 of 1 completions, 2 failed pods"},
		"suspended":                     {"{spec: {suspend: true}}", Progressing, "0 of 1 completions, suspended"},
		"that runs nothing":             {"{spec: {parallelism: 0}}", Progressing, "0 of 1 completions, parallelism is 0"},
		"all succeeded, not yet closed": {"{spec: {completions: 2}, status: {succeeded: 2}}", Progressing, "2 of 2 completions"},
		"complete":                      {"{spec: {completions: 2}, status: {succeeded: 2, conditions: [{type: Complete, status: 'True'}]}}", Healthy, "complete: 2 of 2 completions"},
		"its criteria are met": {
			"{spec: {completions: 5}, status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: 'True'}]}}", Healthy, "complete: 1 of 5 completions",
		},
		"about to fail": {
			"{status: {conditions: [{type: FailureTarget, status: 'True', reason: PodFailurePolicy}]}}",
			Progressing, "0 of 1 completions, failing: PodFailurePolicy",
		},
		"failed": {
			"{status: {failed: 7, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: \"too\\n many\"}]}}",
			Failed, "failed: BackoffLimitExceeded: too many",
		},
		"a condition that is not true": {"{status: {conditions: [{type: Complete, status: 'False'}]}}", Progressing, "0 of 1 completions"},
		"a count that is text":         {"{status: {succeeded: x, conditions: [{type: Complete, status: 'True'}]}}", Unknown, "status.succeeded is not an integer"},
	}.run(t, "batch/v1", "Job")
}

func TestPod(t *testing.T) {
	cases{
		"a new one":     {"{}", Progressing, "has not started yet"},
		"not scheduled": {"{status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: no nodes}]}}", Progressing, "is not scheduled: Unschedulable: no nodes"},
		"an image that cannot be pulled": {
			"{status: {phase: Pending, containerStatuses: [{name: a, state: {running: {}}}, {name: b, state: {waiting: {reason: ErrImagePull, message: at 12:00}}}]}}",
			Progressing, "container b is waiting: ImagePullBackOff",
		},
		"an init container that crashes": {
			"{status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: CrashLoopBackOff}}}], containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}}",
			Progressing, "container i is waiting: CrashLoopBackOff",
		},
		"the image that cannot be pulled": {
			"{spec: {initContainers: [{name: b, image: wrong}], containers: [{name: a, image: other}, {name: b, image: 'none:1'}]}, " +
				"status: {phase: Pending, containerStatuses: [{name: b, state: {waiting: {reason: ImagePullBackOff}}}]}}",
			Progressing, "container b is waiting: ImagePullBackOff: image none:1",
		},
		"crashed, waiting for its restart": {
			"{status: {phase: Running, containerStatuses: [{name: a, ready: false, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff, message: 20s}}, " +
				"lastState: {terminated: {exitCode: 3, reason: Error}}}]}}",
			Progressing, "container a restarts: CrashLoopBackOff (more than 1 restart): exited with code 3 (Error)",
		},
		"crashed, with its image": {
			"{spec: {containers: [{name: b, image: other}, {name: a, image: 'shop:1'}]}, status: {phase: Running, containerStatuses: " +
				"[{name: a, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]}}",
			Progressing, "container a restarts: CrashLoopBackOff (image shop:1): exited with code 3 (Error)",
		},
		"crashed often, with its image": {
			"{spec: {containers: [{name: a, image: 'shop:1'}]}, status: {phase: Running, containerStatuses: " +
				"[{name: a, ready: false, restartCount: 31, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]}}",
			Progressing, "container a restarts: CrashLoopBackOff (image shop:1, more than 30 restarts): exited with code 3 (Error)",
		},
		"crashed a number of times that is a text": {
			"{status: {phase: Running, containerStatuses: [{name: a, ready: false, restartCount: many, state: {waiting: {reason: CrashLoopBackOff}}, " +
				"lastState: {terminated: {exitCode: 3, reason: Error}}}]}}",
			Unknown, "status.containerStatuses: restartCount is not an integer",
		},
		"crashed, running again": {
			"{status: {phase: Running, containerStatuses: [{name: a, ready: false, restartCount: 2, state: {running: {}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]}}",
			Progressing, "container a restarts: CrashLoopBackOff (more than 1 restart): exited with code 3 (Error)",
		},
		"crashed again just now": {
			"{status: {phase: Running, containerStatuses: [{name: a, ready: false, restartCount: 2, state: {terminated: {exitCode: 137, reason: OOMKilled}}, " +
				"lastState: {terminated: {exitCode: 3, reason: Error}}}]}}",
			Progressing, "container a restarts: CrashLoopBackOff (more than 1 restart): exited with code 137 (OOMKilled)",
		},
		"crashed once, ready since, and another container is not ready": {
			"{status: {phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady, message: 'unready: [b]'}], " +
				"containerStatuses: [{name: a, ready: true, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}, {name: b, state: {running: {}}}]}}",
			Progressing, "is not ready: ContainersNotReady: unready: [b]",
		},
		"a command that does not exist": {
			"{status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}, " +
				"lastState: {terminated: {exitCode: 128, reason: StartError, message: \"no file\\n x\"}}}]}}",
			Progressing, "container a restarts: CrashLoopBackOff: exited with code 128 (StartError): no file x",
		},
		"failed by a container": {
			"{status: {phase: Failed, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: a, state: {terminated: {exitCode: 2, reason: Error}}}]}}",
			Failed, "failed: container a exited with code 2 (Error)",
		},
		"failed by its node": {
			"{status: {phase: Failed, reason: Evicted, message: no disk, containerStatuses: [{name: a, state: {terminated: {exitCode: 137}}}]}}",
			Failed, "failed: Evicted: no disk",
		},
		"running, not ready": {
			"{status: {phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady, message: 'unready: [a]'}]}}",
			Progressing, "is not ready: ContainersNotReady: unready: [a]",
		},
		"ready":                   {"{status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}", Healthy, "is ready"},
		"succeeded":               {"{status: {phase: Succeeded, conditions: [{type: Ready, status: 'False'}]}}", Healthy, "succeeded"},
		"failed":                  {"{status: {phase: Failed, reason: Evicted, message: no disk}}", Failed, "failed: Evicted: no disk"},
		"its node is gone":        {"{status: {phase: Unknown}}", Unknown, "its node is unreachable"},
		"a name that is a number": {"{status: {containerStatuses: [{name: 1}]}}", Unknown, "status.containerStatuses: name is not a string"},
		"a stale status":          {"{metadata: {generation: 2}, status: {observedGeneration: 1, phase: Running, conditions: [{type: Ready, status: 'True'}]}}", Progressing, "generation 2 has not been observed yet"},
	}.run(t, "v1", "Pod")
}

func TestFailedContainer(t *testing.T) {
	for name, test := range map[string]struct {
		pod, want string
		previous  bool
	}{
		"none":                   {"{status: {containerStatuses: [{name: a, state: {running: {}}}, {name: b, state: {terminated: {exitCode: 0}}}]}}", "", false},
		"one that has ended":     {"{status: {containerStatuses: [{name: a, state: {running: {}}}, {name: b, state: {terminated: {exitCode: 1}}}]}}", "b", false},
		"one that waits":         {"{status: {initContainerStatuses: [{name: a, state: {waiting: {}}, lastState: {terminated: {exitCode: 1}}}]}}", "a", true},
		"one that has recovered": {"{status: {containerStatuses: [{name: a, ready: true, lastState: {terminated: {exitCode: 1}}}]}}", "", false},
		"one that says why":      {"{status: {containerStatuses: [{name: a, state: {terminated: {exitCode: 1, message: gone}}}, {name: b, state: {terminated: {exitCode: 1}}}]}}", "", false},
		"malformed":              {"{status: {containerStatuses: [1, {name: a, state: {terminated: {exitCode: x}}}]}}", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			container, previous := FailedContainer(object(t, "v1", "Pod", test.pod))
			if container != test.want || previous != test.previous {
				t.Errorf("got %q, %t", container, previous)
			}
		})
	}
}

func TestStorage(t *testing.T) {
	cases{
		"bound":       {"{status: {phase: Bound}}", Healthy, "is bound"},
		"pending":     {"{spec: {storageClassName: fast}, status: {phase: Pending}}", Progressing, "is not bound yet (StorageClass fast)"},
		"a new one":   {"{}", Progressing, "is not bound yet (no StorageClass)"},
		"of a volume": {"{spec: {storageClassName: fast, volumeName: v}}", Progressing, "is not bound yet (PersistentVolume v)"},
		"of a StorageClass in an annotation": {
			"{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: slow}}, spec: {storageClassName: fast}}", Progressing, "is not bound yet (StorageClass slow)",
		},
		"lost":      {"{status: {phase: Lost}}", Failed, "has lost its volume"},
		"malformed": {"{status: {phase: 1}}", Unknown, "status.phase is not a string"},
	}.run(t, "v1", "PersistentVolumeClaim")
	cases{
		"free":     {"{status: {phase: Available}}", Healthy, "is Available"},
		"released": {"{status: {phase: Released}}", Healthy, "is Released"},
		"pending":  {"{status: {phase: Pending}}", Progressing, "is not available yet"},
		"failed":   {"{status: {phase: Failed, message: no plugin}}", Failed, "failed: no plugin"},
	}.run(t, "v1", "PersistentVolume")
}

func TestOfClaim(t *testing.T) {
	slow, fast := StorageClass{Name: "slow", WaitsForConsumer: true}, StorageClass{Name: "fast"}
	byDefault := StorageClass{Name: "slow", WaitsForConsumer: true, Default: true}
	for name, test := range map[string]struct {
		claim   string
		classes []StorageClass
		status  Status
		message string
		blocked bool
	}{
		"its StorageClass waits for a pod": {"{spec: {storageClassName: slow}}", []StorageClass{fast, slow}, Healthy, "waits for its first consumer (StorageClass slow)", false},
		"its StorageClass binds at once":   {"{spec: {storageClassName: fast}}", []StorageClass{fast, slow}, Progressing, "is not bound yet (StorageClass fast)", false},
		"its StorageClass does not exist":  {"{spec: {storageClassName: nope}}", []StorageClass{fast, slow}, Progressing, "is not bound: StorageClass nope does not exist", true},
		"none exists":                      {"{spec: {storageClassName: nope}}", []StorageClass{}, Progressing, "is not bound: StorageClass nope does not exist", true},
		"it has none, and there is no default": {
			"{}", []StorageClass{fast, slow}, Progressing, "is not bound: it has no StorageClass, and the cluster has no default StorageClass", true,
		},
		"it is about to get the default": {"{}", []StorageClass{byDefault}, Progressing, "is not bound yet (no StorageClass)", false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := object(t, "v1", "PersistentVolumeClaim", test.claim)
			want := Result{Status: test.status, Message: "PersistentVolumeClaim ns/x: " + test.message, Blocked: test.blocked}
			if diff := cmp.Diff(want, OfClaim(claim, test.classes)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDependsOnStorageClass(t *testing.T) {
	for name, test := range map[string]struct {
		kind, object string
		want         bool
	}{
		"a claim that is not bound":            {"PersistentVolumeClaim", "{spec: {storageClassName: fast}, status: {phase: Pending}}", true},
		"a claim that names no StorageClass":   {"PersistentVolumeClaim", "{}", true},
		"a claim of existing volumes only":     {"PersistentVolumeClaim", "{spec: {storageClassName: ''}}", false},
		"a claim of a certain volume":          {"PersistentVolumeClaim", "{spec: {storageClassName: fast, volumeName: v}}", false},
		"a claim that is bound":                {"PersistentVolumeClaim", "{status: {phase: Bound}}", false},
		"a claim that has lost its volume":     {"PersistentVolumeClaim", "{status: {phase: Lost}}", false},
		"a claim that is being deleted":        {"PersistentVolumeClaim", "{metadata: {deletionTimestamp: '2024-01-01T00:00:00Z'}}", false},
		"a claim that cannot be judged at all": {"PersistentVolumeClaim", "{status: {phase: 1}}", false},
		"another kind":                         {"Pod", "{}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DependsOnStorageClass(object(t, "v1", test.kind, test.object)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if DependsOnStorageClass(nil) {
		t.Error("an object that does not exist depends on one")
	}
}

func TestService(t *testing.T) {
	cases{
		"without a type":                     {"{}", Healthy, "exists"},
		"headless":                           {"{spec: {type: ClusterIP, clusterIP: None}}", Healthy, "exists"},
		"of an external name":                {"{spec: {type: ExternalName}}", Healthy, "exists"},
		"a load balancer without an address": {"{spec: {type: LoadBalancer}, status: {loadBalancer: {}}}", Progressing, "its load balancer has no address yet"},
		"a load balancer with an address":    {"{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}}", Healthy, "its load balancer has an address"},
		"addresses that are text":            {"{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: x}}}", Unknown, "status.loadBalancer.ingress is not a list"},
	}.run(t, "v1", "Service")
}

func TestExtensionsOfTheAPI(t *testing.T) {
	cases{
		"a new one":           {"{}", Progressing, "is not established yet"},
		"installing":          {"{status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'False'}]}}", Progressing, "is not established yet"},
		"its names are taken": {"{status: {conditions: [{type: NamesAccepted, status: 'False', reason: ListKindConflict, message: in use}]}}", Failed, "its names are not accepted: ListKindConflict: in use"},
		"established":         {"{status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}}", Healthy, "is established"},
	}.run(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
	cases{
		"a new one":            {"{}", Progressing, "is not available yet"},
		"no endpoint is ready": {"{status: {conditions: [{type: Available, status: 'False', reason: FailedDiscoveryCheck}]}}", Progressing, "is not available: FailedDiscoveryCheck"},
		"an endpoint is ready": {"{status: {conditions: [{type: Available, status: 'True', reason: Passed}]}}", Healthy, "is available"},
	}.run(t, "apiregistration.k8s.io/v1", "APIService")
	cases{
		"a new one":   {"{}", Progressing, "is not active yet"},
		"active":      {"{status: {phase: Active}}", Healthy, "is active"},
		"terminating": {"{status: {phase: Terminating}}", Progressing, "is being deleted"},
	}.run(t, "v1", "Namespace")
}

func TestInstance(t *testing.T) {
	cases{
		"a new one":                     {"{metadata: {generation: 1}}", Progressing, "no plan has run yet"},
		"ready":                         {"{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}}", Healthy, "is ready"},
		"ready for an older generation": {"{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}}", Progressing, "generation 2 has not been observed yet"},
		"a mirror counts the generations of the hub": {
			"{metadata: {generation: 1, annotations: {kudo.dev/hub-generation: '7'}}, status: {observedGeneration: 7, conditions: [{type: Ready, status: 'True'}]}}", Healthy, "is ready",
		},
		"a stale mirror": {
			"{metadata: {generation: 9, annotations: {kudo.dev/hub-generation: '8'}}, status: {observedGeneration: 7, conditions: [{type: Ready, status: 'True'}]}}",
			Progressing, "generation 8 has not been observed yet",
		},
		"a mirror of no generation": {"{metadata: {annotations: {kudo.dev/hub-generation: x}}}", Unknown, "annotation kudo.dev/hub-generation is not a number"},
		"a plan runs":               {"{status: {conditions: [{type: Ready, status: 'False', reason: PlanInProgress, message: waits}]}}", Progressing, "is not ready: PlanInProgress: waits"},
		"a plan failed":             {"{status: {conditions: [{type: Ready, status: 'False', reason: PlanFailed, message: task a}]}}", Failed, "PlanFailed: task a"},
	}.run(t, "kudo.dev/v1beta1", "Instance")
}

func TestOtherKinds(t *testing.T) {
	cases{"exists": {"{data: {a: b}}", Healthy, "exists"}}.run(t, "v1", "ConfigMap")
	cases{"exists": {"{metadata: {generation: 1}}", Healthy, "exists"}}.run(t, "batch/v1", "CronJob")
	cases{"exists": {"{metadata: {generation: 1}}", Healthy, "exists"}}.run(t, "networking.k8s.io/v1", "Ingress")
	cases{
		"a new one has not been seen":        {"{metadata: {generation: 1}}", Progressing, "waiting for its controller to observe it"},
		"a budget that its pods do not meet": {"{metadata: {generation: 1}, status: {observedGeneration: 1, currentHealthy: 0, desiredHealthy: 2}}", Healthy, "exists"},
	}.run(t, "policy/v1", "PodDisruptionBudget")
	cases{
		"without a status": {"{metadata: {generation: 1}}", Healthy, "exists"},
		"ready":            {"{status: {conditions: [{type: Ready, status: 'True'}]}}", Healthy, "is ready"},
		"not ready":        {"{status: {conditions: [{type: Ready, status: 'False', reason: Waits, message: for it}]}}", Progressing, "is not ready: Waits: for it"},
		"it is not known":  {"{status: {conditions: [{type: Ready, status: Unknown, reason: Waits}]}}", Progressing, "is not ready: Waits"},
		"reconciling":      {"{status: {conditions: [{type: Ready, status: 'True'}, {type: Reconciling, status: 'True', reason: New}]}}", Progressing, "is not ready: New"},
		"stalled":          {"{status: {conditions: [{type: Stalled, status: 'True', reason: Broken, message: for good}]}}", Failed, "Broken: for good"},
		"stalled in an older generation": {
			"{metadata: {generation: 2}, status: {conditions: [{type: Stalled, status: 'True', reason: Broken, observedGeneration: 1}]}}",
			Progressing, "generation 2 has not been observed yet",
		},
		"no longer stalled in an older generation": {
			"{metadata: {generation: 2}, status: {conditions: [{type: Stalled, status: 'False', observedGeneration: 1}, {type: Ready, status: 'True', observedGeneration: 2}]}}",
			Healthy, "is ready",
		},
		"a stale status":    {"{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}}", Progressing, "generation 2 has not been observed yet"},
		"a stale condition": {"{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}}", Progressing, "generation 2 has not been observed yet"},
		"a generation from before a restore": {
			"{metadata: {generation: 1}, status: {observedGeneration: 2}}", Progressing,
			"is not ready: LatestGenerationNotObserved: Custom generation is 1, but latest observed generation is 2",
		},
		"being deleted":               {"{metadata: {deletionTimestamp: '2024-01-01T00:00:00Z'}, status: {conditions: [{type: Ready, status: 'True'}]}}", Progressing, "is being deleted"},
		"a condition of a wrong type": {"{status: {conditions: [{type: Ready, status: true}]}}", Unknown, "status.conditions: status is not a string"},
		"a generation that is text":   {"{metadata: {generation: x}}", Unknown, "metadata.generation is not an integer"},
	}.run(t, "example.com/v1", "Custom")
}

func TestWhatIsNoObjectIsUnknown(t *testing.T) {
	for name, obj := range map[string]*unstructured.Unstructured{
		"nothing":               nil,
		"no fields":             {},
		"metadata that is text": object(t, "apps/v1", "Deployment", "{metadata: x, status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(obj); got.Status != Unknown || got.Message == "" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestALongMessageIsCut(t *testing.T) {
	obj := object(t, "v1", "Pod", "{status: {phase: Failed, message: "+strings.Repeat("ä", 5000)+"}}")
	got := Of(obj).Message
	if want := "Pod ns/x: failed: " + strings.Repeat("ä", maxForeignRunes) + "…"; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestAMessageIsOneLine(t *testing.T) {
	obj := object(t, "v1", "Pod", `{status: {phase: Failed, reason: "out\nof", message: "memory\r\n\tor\u2028disk\n"}}`)
	if got, want := Of(obj).Message, "Pod ns/x: failed: out of: memory or disk"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAClusterScopedObjectIsNamedWithoutNamespace(t *testing.T) {
	obj := object(t, "v1", "Namespace", "{status: {phase: Active}}")
	obj.SetNamespace("")
	if got, want := Of(obj).Message, "Namespace x: is active"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
