package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(age time.Duration) string { return now.Add(-age).Format(time.RFC3339) }
	answer := func(request string, age time.Duration) *kudo.Diagnosis {
		return &kudo.Diagnosis{Request: request, Time: metav1.NewTime(now.Add(-age)), Pods: []kudo.DiagnosedPod{{Name: "app"}}}
	}
	without := func(request, message string, age time.Duration) *kudo.Diagnosis {
		return &kudo.Diagnosis{Request: request, Time: metav1.NewTime(now.Add(-age)), Message: message}
	}
	long := strings.Repeat("x", 1000)
	for name, test := range map[string]struct {
		annotation string
		last       *kudo.Diagnosis
		want       Decision
	}{
		"no request":                    {"", nil, Decision{}},
		"a withdrawn request":           {"", answer(at(0), time.Minute), Decision{}},
		"a request":                     {at(0), nil, Decision{Next: without(at(0), "", 0), Gather: true, After: Lifetime}},
		"a clock that is ahead":         {at(-4 * time.Minute), nil, Decision{Next: without(at(-4*time.Minute), "", 0), Gather: true, After: Lifetime}},
		"answered":                      {at(time.Minute), answer(at(time.Minute), time.Minute), Decision{Next: answer(at(time.Minute), time.Minute), After: Lifetime - time.Minute}},
		"another request":               {at(0), answer(at(time.Minute), time.Minute), Decision{Next: without(at(0), "", 0), Gather: true, After: Lifetime}},
		"another request too soon":      {at(0), answer(at(9*time.Second), 4*time.Second), Decision{Next: answer(at(9*time.Second), 4*time.Second), After: 6 * time.Second}},
		"an old answer":                 {at(Lifetime), answer(at(Lifetime), Lifetime), Decision{Next: without(at(Lifetime), dropped, Lifetime)}},
		"an answer that was dropped":    {at(Lifetime), without(at(Lifetime), dropped, 9*Lifetime), Decision{Next: without(at(Lifetime), dropped, 9*Lifetime)}},
		"an answer from the future":     {at(0), answer(at(0), -9*time.Hour), Decision{Next: without(at(0), dropped, -9*time.Hour)}},
		"an old request":                {at(Lifetime), nil, Decision{Next: without(at(Lifetime), expired, 0)}},
		"a request from the future":     {at(-time.Hour), nil, Decision{Next: without(at(-time.Hour), future, 0)}},
		"a malformed request":           {"now", nil, Decision{Next: without("now", malformed, 0)}},
		"a malformed request, answered": {"now", without("now", malformed, 9*Lifetime), Decision{Next: without("now", malformed, 9*Lifetime)}},
		"a long request":                {long, nil, Decision{Next: without(long[:64], malformed, 0)}},
		"a long request, answered":      {long, without(long[:64], malformed, 0), Decision{Next: without(long[:64], malformed, 0)}},
		"control characters":            {"\x1b[31m\u202e now\t ", nil, Decision{Next: without("[31m now", malformed, 0)}},
		"only control characters":       {" \t\u202e\n", nil, Decision{}},
		"a blank at the limit":          {long[:63] + " y", nil, Decision{Next: without(long[:63], malformed, 0)}},
	} {
		request := RequestOf(instanceWith(test.annotation))
		got := Decide(request, test.last, now)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.Next != nil && Bound(*got.Next).Request != got.Next.Request {
			t.Errorf("%s: once it is bounded, it answers request %q", name, Bound(*got.Next).Request)
		}
	}
}

// instanceWith returns an Instance with a request for a diagnosis.
func instanceWith(annotation string) *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kudo.AnnotationDiagnose: annotation}}}
}

// largeAnswer returns an answer that exceeds every limit.
func largeAnswer() kudo.Diagnosis {
	lines := make([]string, 100)
	for i := range lines {
		lines[i] = strings.Repeat("é\x00\x1b\u202e", 500)
	}
	lines[99] = "last\tline"
	d := kudo.Diagnosis{Request: strings.Repeat("r", 999), Message: strings.Repeat("m", 999)}
	for range 100 {
		pod := kudo.DiagnosedPod{Name: "a\x1b[31m", Restarts: -1}
		for range 9 {
			pod.Logs = append(pod.Logs, kudo.DiagnosedLog{Container: "app", Lines: lines})
		}
		d.Pods = append(d.Pods, pod)
		d.Events = append(d.Events, kudo.DiagnosedEvent{Message: strings.Repeat("e", 999), Count: -1})
	}
	return d
}

func TestBound(t *testing.T) {
	got := Bound(largeAnswer())
	if !got.Truncated || len(got.Pods) != maxPods || len(got.Events) != 16 || len(got.Request) != 64 || len(got.Message) > maxText {
		t.Errorf("%d pods, %d events, request %d, message %d", len(got.Pods), len(got.Events), len(got.Request), len(got.Message))
	}
	if pod := got.Pods[0]; pod.Name != "a[31m" || pod.Restarts != 0 || len(pod.Logs) != maxLogs {
		t.Errorf("pod %q, %d restarts, %d logs", pod.Name, pod.Restarts, len(pod.Logs))
	}
	if diff := cmp.Diff(got, Bound(got)); diff != "" {
		t.Error("it is not stable: ", diff)
	}
	small := kudo.Diagnosis{Request: "a", Pods: []kudo.DiagnosedPod{{Name: "app", Logs: []kudo.DiagnosedLog{{Container: "app", Lines: []string{"a"}}}}}}
	if diff := cmp.Diff(small, Bound(small)); diff != "" {
		t.Error(diff)
	}
}

func TestBoundLines(t *testing.T) {
	got := Bound(largeAnswer())
	var lines []string
	for _, pod := range got.Pods {
		for _, log := range pod.Logs {
			lines = append(lines, log.Lines...)
		}
	}
	for _, line := range lines {
		if len(line) > maxText || strings.ContainsAny(line, "\x00\x1b\u202e") {
			t.Errorf("line %q", line)
		}
	}
	if size := len(strings.Join(lines, "")); size > maxLineBytes {
		t.Errorf("the lines have %d bytes", size)
	}
	if first := got.Pods[0].Logs[0].Lines; len(first) != maxLines || first[maxLines-1] != "last line" {
		t.Errorf("got %q", first)
	}
}

func TestBoundContainers(t *testing.T) {
	d := largeAnswer()
	for i := range d.Pods {
		for k := range d.Pods[i].Logs {
			d.Pods[i].Logs[k].Container = strings.Repeat("c", 256)
		}
	}
	size := 0
	for _, pod := range Bound(d).Pods {
		size += len(pod.Name)
		for _, log := range pod.Logs {
			size += len(log.Container)
		}
	}
	if size > maxPodBytes || size < maxPodBytes/2 {
		t.Errorf("the names have %d bytes", size)
	}
}
