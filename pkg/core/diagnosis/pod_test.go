package diagnosis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func parse(t *testing.T, object string) *unstructured.Unstructured {
	t.Helper()
	parsed := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(object))
	if err == nil {
		err = parsed.UnmarshalJSON(encoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// podNamed returns a pod with a status.
func podNamed(t *testing.T, name, status string) unstructured.Unstructured {
	t.Helper()
	return *parse(t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: %s}, "+
		"spec: {containers: [{name: app, image: 'app:1'}, {name: proxy}]}, status: {%s}}", name, status))
}

const ready = "phase: Running, conditions: [{type: Ready, status: 'True'}]"

func TestChoose(t *testing.T) {
	pods := []unstructured.Unstructured{podNamed(t, "c", ready), podNamed(t, "b", "phase: Failed"), podNamed(t, "a", ready), podNamed(t, "d", "phase: Pending"), podNamed(t, "a", ready)}
	chosen, omitted := Choose(pods)
	var names []string
	for _, pod := range chosen {
		names = append(names, pod.GetName())
	}
	if diff := cmp.Diff([]string{"b", "d", "a", "c"}, names); diff != "" || omitted {
		t.Error(omitted, diff)
	}
	for i := range maxPods + 1 {
		pods = append(pods, podNamed(t, fmt.Sprintf("z%d", i), ready))
	}
	if chosen, omitted := Choose(pods); len(chosen) != maxPods || !omitted {
		t.Errorf("%d pods, omitted %t", len(chosen), omitted)
	}
}

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   kudo.DiagnosedPod
	}{
		"no status": {"", kudo.DiagnosedPod{Ready: "0/2", Reason: "has not started yet"}},
		"ready": {ready + ", containerStatuses: [{name: app, ready: true, restartCount: 2}, {name: proxy, ready: true, restartCount: 1}]",
			kudo.DiagnosedPod{Phase: "Running", Ready: "2/2", Restarts: 3}},
		"one failed": {"phase: Running, containerStatuses: [{name: app, ready: false, restartCount: 4, lastState: {terminated: {exitCode: 1}}, state: {waiting: {reason: CrashLoopBackOff}}}, {name: proxy, ready: true}]",
			kudo.DiagnosedPod{Phase: "Running", Ready: "1/2", Restarts: 4, Reason: "container app restarts: CrashLoopBackOff (image app:1, more than 3 restarts): exited with code 1"}},
		"control characters": {`phase: Failed, reason: "a\x1b[2Jb", message: "c\u202ed\ne"`, kudo.DiagnosedPod{Phase: "Failed", Ready: "0/2", Reason: "failed: a[2Jb: cd e"}},
		"malformed":          {"phase: 7, containerStatuses: [7, {ready: 'yes'}]", kudo.DiagnosedPod{Ready: "0/2", Reason: "status.phase is not a string"}},
	} {
		pod := podNamed(t, "app-1", test.status)
		test.want.Namespace, test.want.Name, test.want.Image = "shop", "app-1", "app:1"
		if diff := cmp.Diff(test.want, Describe(&pod)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLogs(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   []kudo.DiagnosedLog
	}{
		"none":             {"", nil},
		"not started":      {"containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull}}}]", nil},
		"runs":             {"containerStatuses: [{name: app, ready: true, state: {running: {}}}]", []kudo.DiagnosedLog{{Container: "app"}}},
		"waits to restart": {"containerStatuses: [{name: app, state: {waiting: {}}, lastState: {terminated: {exitCode: 1}}}]", []kudo.DiagnosedLog{{Container: "app", Previous: true}}},
		"not ready first":  {"containerStatuses: [{name: app, ready: true, state: {running: {}}}, {name: proxy, state: {running: {}}}]", []kudo.DiagnosedLog{{Container: "proxy"}, {Container: "app"}}},
		"complete init":    {"initContainerStatuses: [{name: init, ready: true, state: {terminated: {exitCode: 0}}}]", nil},
		"failed init":      {"initContainerStatuses: [{name: init, state: {terminated: {exitCode: 2}}}]", []kudo.DiagnosedLog{{Container: "init"}}},
		"four": {"containerStatuses: [{name: a, state: {running: {}}}, {name: b, state: {running: {}}}, {name: c, state: {running: {}}}, {name: d, state: {running: {}}}]",
			[]kudo.DiagnosedLog{{Container: "a"}, {Container: "b"}, {Container: "c"}}},
	} {
		pod := podNamed(t, "app-1", test.status)
		if diff := cmp.Diff(test.want, Logs(&pod)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLines(t *testing.T) {
	mask := func(s string) string { return strings.NewReplacer("geheim", "*****", "two\nlines", "*****").Replace(s) }
	got := Lines("starts\n\x1b[2J\n \n a\tb \r\nkey ge\x00heim\nis two\nlines", mask)
	if diff := cmp.Diff([]string{"starts", "[2J", "a b", "key *****", "is *****"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEvents(t *testing.T) {
	at := func(clock string) metav1.Time {
		parsed, err := time.Parse(time.RFC3339, "2026-01-02T"+clock+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return metav1.NewTime(parsed)
	}
	event := func(fields string) unstructured.Unstructured {
		return *parse(t, "{apiVersion: v1, kind: Event, involvedObject: {kind: Pod, name: app-1}, "+fields+"}")
	}
	got := Events([]unstructured.Unstructured{
		event("reason: Old, lastTimestamp: '2026-01-02T03:04:05Z', count: 7"),
		event(`reason: Odd, eventTime: yesterday, message: "ge\x00heim\u200b\nb"`),
		event("reason: New, message: why, eventTime: '2026-01-02T03:04:06.123456Z', series: {count: 3, lastObservedTime: '2026-01-02T03:04:07.5Z'}"),
	})
	want := []kudo.DiagnosedEvent{
		{Object: "Pod app-1", Reason: "New", Message: "why", Count: 3, Time: at("03:04:07")}, {Object: "Pod app-1", Reason: "Old", Count: 7, Time: at("03:04:05")},
		{Object: "Pod app-1", Reason: "Odd", Message: "geheim b", Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
