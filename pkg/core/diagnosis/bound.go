package diagnosis

import (
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The maximum numbers of an answer, and the bytes of a text, of all pods without the lines of their logs, of all Events, and of all lines.
const (
	maxPods, maxEvents, maxLogs, maxLines = 20, 20, 3, 10

	maxRequest    = 64
	maxText       = 256
	maxPodBytes   = 6 << 10
	maxEventBytes = 4 << 10
	maxLineBytes  = 6 << 10
)

// Clean returns a text on one line, without characters that control a terminal, or the order or visibility of others. Sensitive values are
// masked after that: such characters may separate the parts of a value.
func Clean(s string) string {
	return text.OneLine(strings.Map(func(r rune) rune {
		if !text.Visible(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")))
}

// Bound returns a clean copy of an answer within all limits. An answer from a cluster is untrusted.
func Bound(d kudo.Diagnosis) kudo.Diagnosis {
	b := bounder{pods: maxPodBytes, events: maxEventBytes, lines: maxLineBytes, truncated: d.Truncated}
	bounded := kudo.Diagnosis{Request: cleanRequest(d.Request), Time: d.Time, Message: shorten(d.Message)}
	for _, pod := range d.Pods {
		b.addPod(&bounded, pod)
	}
	for _, event := range d.Events {
		b.addEvent(&bounded, event)
	}
	bounded.Truncated = b.truncated
	return bounded
}

// cleanRequest returns a clean request within its limit.
func cleanRequest(request string) string {
	return strings.TrimSpace(text.Prefix(Clean(request), maxRequest))
}

func shorten(s string) string { return text.Truncate(Clean(s), maxText) }

// bounder holds how many bytes are left.
type bounder struct {
	pods, events, lines int
	truncated           bool
}

// take reports whether texts fit into the bytes that are left.
func (b *bounder) take(left *int, texts ...string) bool {
	size := 0
	for _, s := range texts {
		size += len(s)
	}
	if size > *left {
		b.truncated = true
		return false
	}
	*left -= size
	return true
}

func (b *bounder) addPod(to *kudo.Diagnosis, pod kudo.DiagnosedPod) {
	clean := kudo.DiagnosedPod{
		Namespace: shorten(pod.Namespace), Name: shorten(pod.Name), Phase: shorten(pod.Phase), Ready: shorten(pod.Ready),
		Restarts: max(pod.Restarts, 0), Reason: shorten(pod.Reason), Image: shorten(pod.Image),
	}
	if len(to.Pods) == maxPods || !b.take(&b.pods, clean.Namespace, clean.Name, clean.Phase, clean.Ready, clean.Reason, clean.Image) {
		b.truncated = true
		return
	}
	for _, log := range pod.Logs {
		if len(clean.Logs) == maxLogs || !b.take(&b.pods, shorten(log.Container)) {
			b.truncated = true
			break
		}
		clean.Logs = append(clean.Logs, b.boundLog(log))
	}
	to.Pods = append(to.Pods, clean)
}

// boundLog returns the last lines of a log that fit.
func (b *bounder) boundLog(log kudo.DiagnosedLog) kudo.DiagnosedLog {
	clean := kudo.DiagnosedLog{Container: shorten(log.Container), Previous: log.Previous}
	lines := log.Lines
	if len(lines) > maxLines {
		lines, b.truncated = lines[len(lines)-maxLines:], true
	}
	first := len(lines)
	for first > 0 && b.take(&b.lines, shorten(lines[first-1])) {
		first--
	}
	for _, line := range lines[first:] {
		clean.Lines = append(clean.Lines, shorten(line))
	}
	return clean
}

func (b *bounder) addEvent(to *kudo.Diagnosis, event kudo.DiagnosedEvent) {
	clean := kudo.DiagnosedEvent{
		Time: event.Time, Object: shorten(event.Object), Reason: shorten(event.Reason), Message: shorten(event.Message), Count: max(event.Count, 0),
	}
	if len(to.Events) == maxEvents || !b.take(&b.events, clean.Object, clean.Reason, clean.Message) {
		b.truncated = true
		return
	}
	to.Events = append(to.Events, clean)
}
