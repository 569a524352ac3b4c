package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestAwaitedPods(t *testing.T) {
	const (
		config     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
		claim      = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: slow}}"
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}, matchExpressions: [{key: b, operator: Exists}]}}}"
		healthy    = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 0, selector: {matchLabels: {app: a}}}}"
		failed     = "{apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {selector: {matchLabels: {job: b}}}, status: {conditions: [{type: Failed, status: 'True'}]}}"
		job        = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {matchLabels: {job: a}}}}"
	)
	for name, test := range map[string]struct {
		objects []string
		want    string
	}{
		"of a Deployment, behind what is healthy or no matter": {[]string{config, claim, healthy, deployment, job}, "app=a,b"},
		"of a Job":                             {[]string{job, deployment}, "job=a"},
		"of a Job that has failed, first":      {[]string{config, deployment, failed}, "job=b"},
		"everything is healthy":                {[]string{config, healthy}, ""},
		"something is missing, and re-created": {[]string{"", deployment}, ""},
		"what is waited for makes no pods":     {[]string{"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, selector: {app: a}}}", deployment}, ""},
		"a selector that is none":              {[]string{"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: [a]}}}"}, ""},
		"a selector that is text":              {[]string{"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: a}}"}, ""},
		"nothing":                              {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []plan.Object
			for _, o := range test.objects {
				objects = append(objects, plan.Object{Live: parseObject(t, o), Classes: []health.StorageClass{{Name: "slow", WaitsForConsumer: true}}})
			}
			got := ""
			if workload, pods := plan.AwaitedPods(objects); workload != nil {
				got = pods.String()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHoldup(t *testing.T) {
	const (
		ready   = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}"
		pulling = "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: ns}, status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff}}}]}}"
		pending = "{apiVersion: v1, kind: Pod, metadata: {name: c, namespace: ns}, status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: no nodes}]}}"
		failed  = "{apiVersion: v1, kind: Pod, metadata: {name: d, namespace: ns}, status: {phase: Failed, reason: Evicted}}"
		going   = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns, deletionTimestamp: '2024-01-01T00:00:00Z'}}"
	)
	restarted := func(at string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: e, namespace: ns}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}], containerStatuses: " +
			"[{name: app, ready: true, state: {running: {startedAt: '" + at + "'}}, lastState: {terminated: {exitCode: 7, reason: Error}}}]}}"
	}
	for name, test := range map[string]struct {
		pods []string
		want string
	}{
		"none":                               {nil, ""},
		"one runs again since a second":      {[]string{ready, restarted("2024-01-01T00:00:59Z")}, "Pod ns/e: container app restarts: CrashLoopBackOff: exited with code 7 (Error)"},
		"one runs again since a minute":      {[]string{restarted("2024-01-01T00:00:00Z")}, ""},
		"one runs again, another waits":      {[]string{restarted("2024-01-01T00:00:59Z"), pulling}, "Pod ns/b: container app is waiting: ImagePullBackOff"},
		"all are ready or on their way out":  {[]string{ready, going}, ""},
		"one waits for its image":            {[]string{ready, pulling, pending}, "Pod ns/b: container app is waiting: ImagePullBackOff"},
		"the order of the list is no matter": {[]string{pending, pulling}, "Pod ns/b: container app is waiting: ImagePullBackOff"},
		"one is not scheduled":               {[]string{pending, ready}, "Pod ns/c: is not scheduled: Unschedulable: no nodes"},
		"one has failed, which comes first":  {[]string{pulling, failed}, "Pod ns/d: failed: Evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []unstructured.Unstructured
			for _, p := range test.pods {
				pods = append(pods, *parseObject(t, p))
			}
			pod, got := plan.FirstUnhealthyPod(pods, time.Date(2024, 1, 1, 0, 1, 0, 0, time.UTC))
			if got != test.want || (pod == nil) != (test.want == "") {
				t.Errorf("got %v %q, want %q", pod, got, test.want)
			}
		})
	}
}

func TestProbeFailure(t *testing.T) {
	const (
		before = "{lastTimestamp: '2024-01-01T00:00:09Z', message: \"Readiness probe failed: not\\n yet\"}"
		after  = "{lastTimestamp: '2024-01-01T00:01:00Z', message: 'Readiness probe failed: never'}"
		alive  = "{lastTimestamp: '2024-01-01T00:00:10Z', message: 'Liveness probe failed: stuck'}"
	)
	for name, test := range map[string]struct {
		events    []string
		restarted bool
		want      string
	}{
		"none":         {nil, false, ""},
		"one":          {[]string{before}, false, "Readiness probe failed: not yet"},
		"the last one": {[]string{after, before, "{}"}, false, "Readiness probe failed: never"},
		"a failed readiness probe restarts nothing": {[]string{after, before}, true, ""},
		"a restart by its kubelet":                  {[]string{after, alive}, true, "Liveness probe failed: stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.ProbeFailure(parseAll(t, test.events), test.restarted); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCreationFailure(t *testing.T) {
	const quota = "{lastTimestamp: '2024-01-01T00:00:09Z', message: \"pods \\\"db-0\\\" is forbidden:\\n exceeded quota\"}"
	for name, test := range map[string]struct {
		events, pods []string
		want         string
	}{
		"none":                                 {},
		"one":                                  {events: []string{quota}, want: `pods "db-0" is forbidden: exceeded quota`},
		"the last one":                         {events: []string{"{lastTimestamp: '2024-01-01T00:01:00Z', message: later}", quota, "{}"}, want: "later"},
		"a long one":                           {events: []string{"{message: " + strings.Repeat("ä", 300) + "}"}, want: strings.Repeat("ä", 256) + "…"},
		"one after the last pod":               {events: []string{quota}, pods: []string{createdAt("00:00:08")}, want: `pods "db-0" is forbidden: exceeded quota`},
		"one before a pod that was created":    {events: []string{quota}, pods: []string{createdAt("00:00:08"), createdAt("00:00:10")}},
		"a pod whose time of creation is lost": {events: []string{quota}, pods: []string{"{metadata: {creationTimestamp: 7}}"}, want: `pods "db-0" is forbidden: exceeded quota`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.CreationFailure(parseAll(t, test.events), parseAll(t, test.pods)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func createdAt(clock string) string {
	return "{metadata: {creationTimestamp: '2024-01-01T" + clock + "Z'}}"
}

func parseAll(t *testing.T, texts []string) (all []unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		all = append(all, *parseObject(t, text))
	}
	return all
}

func TestLastLine(t *testing.T) {
	for log, want := range map[string]string{
		"":                        "",
		" \n\n":                   "",
		"one\r\ntwo \"2\"\t!\n\n": `"two \"2\" !"`,
		"unable to retrieve container logs for containerd://a": "",
		"\x1b[31mred\xff":        `"\x1b[31mred�"`,
		strings.Repeat("ä", 300): `"` + strings.Repeat("ä", 256) + `…"`,
	} {
		if got := plan.LastLine(log); got != want {
			t.Errorf("%q: got %s, want %s", log, got, want)
		}
	}
}

func TestClaimsOf(t *testing.T) {
	for name, test := range map[string]struct {
		pod  string
		want []string
	}{
		"without volumes":       {"{apiVersion: v1, kind: Pod}", nil},
		"among other volumes":   {"{spec: {volumes: [{emptyDir: {}}, {persistentVolumeClaim: {claimName: a}}, {persistentVolumeClaim: {claimName: b}}]}}", []string{"a", "b"}},
		"volumes that are text": {"{spec: {volumes: a}}", nil},
		"a volume that is text": {"{spec: {volumes: [a]}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.ClaimsOf(parseObject(t, test.pod))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestFirstUnboundClaim(t *testing.T) {
	const (
		bound     = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}"
		patient   = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: b}, spec: {storageClassName: slow}}"
		immediate = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {storageClassName: fast}}"
		nowhere   = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {storageClassName: nope}}"
	)
	for name, test := range map[string]struct {
		claims []string
		want   health.Result
	}{
		"none":                             {nil, health.Result{Status: health.Healthy}},
		"the first that is not bound":      {[]string{bound, patient, immediate}, health.Result{Status: health.Progressing, Message: "PersistentVolumeClaim b: is not bound yet (StorageClass slow)"}},
		"one without a StorageClass first": {[]string{immediate, nowhere}, health.Result{Status: health.Progressing, Message: "PersistentVolumeClaim d: is not bound: StorageClass nope does not exist", Blocked: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var claims []plan.Object
			for _, c := range test.claims {
				claims = append(claims, plan.Object{Live: parseObject(t, c), Classes: []health.StorageClass{{Name: "slow", WaitsForConsumer: true}, {Name: "fast"}}})
			}
			if diff := cmp.Diff(test.want, plan.FirstUnboundClaim(claims)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPodsOf(t *testing.T) {
	const (
		deployment  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, uid: d}}"
		statefulSet = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: app, uid: s}}"
		withoutUID  = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: app}}"
		pod         = "{apiVersion: v1, kind: Pod, metadata: {name: app-1, labels: {pod-template-hash: '%s'}, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: '%s', controller: %t}]}}"
	)
	for name, test := range map[string]struct {
		workload, pod string
		want          bool
	}{
		"of a StatefulSet":                           {statefulSet, fmt.Sprintf(pod, "", "apps/v1", "StatefulSet", "app", "s", true), true},
		"of another StatefulSet":                     {statefulSet, fmt.Sprintf(pod, "", "apps/v1", "StatefulSet", "app", "t", true), false},
		"of another controller":                      {statefulSet, fmt.Sprintf(pod, "", "apps/v1", "StatefulSet", "app", "s", false), false},
		"of none":                                    {statefulSet, "{apiVersion: v1, kind: Pod, metadata: {name: app-1}}", false},
		"of a StatefulSet without uid":               {withoutUID, fmt.Sprintf(pod, "", "apps/v1", "StatefulSet", "app", "", true), false},
		"of a Deployment":                            {deployment, fmt.Sprintf(pod, "5f6", "apps/v1", "ReplicaSet", "app-5f6", "r", true), true},
		"of another Deployment":                      {deployment, fmt.Sprintf(pod, "5f6", "apps/v1", "ReplicaSet", "shop-5f6", "r", true), false},
		"of a Deployment whose name begins with it":  {deployment, fmt.Sprintf(pod, "5f6", "apps/v1", "ReplicaSet", "app-shop-5f6", "r", true), false},
		"of a Deployment, without a hash":            {deployment, fmt.Sprintf(pod, "", "apps/v1", "ReplicaSet", "app-", "r", true), false},
		"of a kind of the name of another API group": {deployment, fmt.Sprintf(pod, "5f6", "example.com/v1", "ReplicaSet", "app-5f6", "r", true), false},
	} {
		kept := plan.PodsOf(parseObject(t, test.workload), []unstructured.Unstructured{*parseObject(t, test.pod)})
		if got := len(kept) == 1; got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
