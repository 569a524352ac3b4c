package plans

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// jobs is the life of an Instance whose package has a Pipe task, a Job, and a StatefulSet with volume claims: the Job fails, is
// retried by an update, and a plan that is started manually creates the file again.
func jobs() scenario {
	return scenario{
		name:    "jobs",
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, worker()) },
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("worker-1.0.0")) }, ready},
			{"update", set("VALUE", "two"), ready},
			{"fail", set("RESULT", "fail"), fails("update")},
			{"retry", set("RESULT", "ok"), ready},
			{"repeat", start("deploy"), expectStarted("deploy")},
			{"remove", remove, expectGone},
		},
		onHub: []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: append([]kind{
			{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "batch", Version: "v1", Kind: "Job"},
			{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		}, onCluster[:4]...),
	}
}

// worker returns the package.
func worker() *kudo.OperatorVersion {
	key := kudo.Task{Name: "key", Kind: kudo.TaskPipe}
	key.Spec.Pod, key.Spec.Pipe = "maker.yaml", []kudo.PipeSpec{{File: "/out/key", Kind: "Secret", Key: "Key"}}
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1.0.0", Namespace: packages},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "worker"}, Version: "1.0.0",
			Parameters: []kudo.Parameter{{Name: "VALUE", Default: ptr.To("one")}, {Name: "RESULT", Default: ptr.To("ok")}},
			Templates:  map[string]string{"maker.yaml": makerTemplate, "job.yaml": jobTemplate, "store.yaml": storeTemplate},
			Tasks:      []kudo.Task{key, task("job", kudo.TaskApply, "job.yaml"), task("store", kudo.TaskApply, "store.yaml")},
			Plans:      map[string]kudo.Plan{"deploy": serial("key", "store", "job"), "update": serial("store", "job")},
		},
	}
}

const makerTemplate = `apiVersion: v1
kind: Pod
spec:
  volumes: [{name: out, emptyDir: {}}]
  initContainers:
  - name: make
    image: maker:1
    volumeMounts: [{name: out, mountPath: /out}]
`

// The Job's result is the tag of its image.
const jobTemplate = `apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}-job"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "job:{{ .Params.RESULT }}", env: [{name: VALUE, value: "{{ .Params.VALUE }}"}]}]
`

const storeTemplate = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}-store"}
spec:
  replicas: 2
  serviceName: store
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      containers:
      - name: main
        image: "store:{{ .Params.VALUE }}"
        env: [{name: KEY, valueFrom: {secretKeyRef: {name: "{{ .Pipes.Key }}", key: key}}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// start returns an action that starts a plan manually.
func start(plan string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		request := kudo.PlanExecution{PlanName: plan, UID: r.request(plan)}
		return edit(func(i *kudo.Instance) { i.Spec.PlanExecution = request })(ctx, r)
	}
}

// request returns the uid of the run's request for a plan.
func (r *run) request(plan string) types.UID { return types.UID(r.name + "-" + plan) }

// expectStarted returns a check that the Instance is ready after a plan that was started manually.
func expectStarted(plan string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		i := &kudo.Instance{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.name}, i); err != nil {
			return err
		}
		if x := i.Status.Execution; x == nil || x.UID != r.request(plan) {
			return fmt.Errorf("the last execution is %+v, want plan %s", x, plan)
		}
		return ready(ctx, r)
	}
}

// fails returns a check that a plan has failed for the Instance's generation.
func fails(plan string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		i := &kudo.Instance{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.name}, i); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
		if condition == nil || condition.ObservedGeneration != i.Generation {
			return fmt.Errorf("generation %d is not judged: %+v", i.Generation, condition)
		}
		if x := i.Status.Execution; x == nil || x.Plan != plan || i.Status.PlanStatus[plan].Status != kudo.FatalError {
			return fmt.Errorf("the last execution is %+v, want plan %s to fail", x, plan)
		}
		return nil
	}
}
