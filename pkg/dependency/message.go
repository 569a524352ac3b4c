package dependency

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// MessageLimit is the length of Message in bytes at most: what the API server takes as a condition's message.
const MessageLimit = 32768

// remainderFormat is the last line of a message that had to be cut; remainderRoom is kept free for it, in bytes.
const (
	remainderFormat = "%d more dependencies are not satisfied."
	remainderRoom   = 64
)

// Message is the message of condition Degraded: one sentence for each dependency that is not satisfied, joined by newlines, in the
// proposal's wording, or "circular dependency: a -> b -> a" for one on a circle. A message beyond MessageLimit is cut after the last
// sentence that fits (inside of the first one if that alone is too long) and then says how many dependencies it leaves out.
func (v Verdict) Message() string {
	unmet := v.Unmet()
	sentences := make([]string, 0, len(unmet))
	for _, j := range unmet {
		sentences = append(sentences, j.sentence())
	}
	if message := strings.Join(sentences, "\n"); len(message) <= MessageLimit {
		return message
	}
	return cut(sentences)
}

// cut joins as many of sentences as fit, and counts the others.
func cut(sentences []string) string {
	var message strings.Builder
	for i, sentence := range sentences {
		if i == 0 {
			sentence = text.Truncate(sentence, MessageLimit-remainderRoom)
		}
		if message.Len()+1+len(sentence) > MessageLimit-remainderRoom && i > 0 {
			message.WriteString("\n" + fmt.Sprintf(remainderFormat, len(sentences)-i))
			break
		}
		if i > 0 {
			message.WriteString("\n")
		}
		message.WriteString(sentence)
	}
	return message.String()
}

// sentence reports that the dependency is not satisfied, and what is lost; of one on a circle, which way that goes.
func (j Judgement) sentence() string {
	switch {
	case j.Cause == Circular:
		return circularOpening + Way(j.Cycle)
	case j.Message == "":
		return opening(j.Type, j.Name)
	default:
		return opening(j.Type, j.Name) + " " + j.Message
	}
}

// An opening goes from the type to openingMiddle, the name and openingEnd.
const (
	openingMiddle = " addon '"
	openingEnd    = "' is not installed or not available."
)

// opening is how the sentence about a dependency begins.
func opening(t addonv1alpha1.DependencyType, name string) string {
	return string(t) + openingMiddle + oneLine(name) + openingEnd
}

// oneLine is text on one line and in valid UTF-8, so that a message has exactly one line for each dependency.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text))
}

// memory is the last verdict as the add-on's own condition Degraded tells it.
type memory struct {
	reason string
	lines  []string
	// incomplete is true if the message was cut, so that a dependency may be unmet that it does not name.
	incomplete bool
}

// recall reads the last verdict; a condition that carries none of the dependency reasons says that nothing was unmet.
func recall(previous *metav1.Condition) memory {
	if previous == nil || previous.Status != metav1.ConditionTrue || !IsReason(previous.Reason) {
		return memory{}
	}
	last := memory{reason: previous.Reason, lines: strings.Split(previous.Message, "\n")}
	var left int
	n, err := fmt.Sscanf(last.lines[len(last.lines)-1], remainderFormat, &left)
	last.incomplete = err == nil && n == 1
	return last
}

// unmet reports whether the dependency was not satisfied in the last verdict; its type may have been another one then.
func (m memory) unmet(j Judgement) bool {
	required := opening(addonv1alpha1.DependencyTypeRequired, j.Name)
	optional := opening(addonv1alpha1.DependencyTypeOptional, j.Name)
	for _, line := range m.lines {
		if strings.HasPrefix(line, required) || strings.HasPrefix(line, optional) || circularOver(line, j.Name) {
			return true
		}
	}
	if !m.incomplete {
		return false
	}
	// Left out of a message that was cut: unmet, unless the reason says that no Required dependency was.
	return j.Type == addonv1alpha1.DependencyTypeOptional || m.reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// Recalled are the dependencies that condition Degraded, as it stands, says are not satisfied, for whoever has nothing but that: a declaration
// that has become malformed cannot be judged. Why they were not is not told any more: the cause is Unknown. What a message that was cut
// leaves out is missing.
func Recalled(degraded *metav1.Condition) []Judgement {
	last := recall(degraded)
	// Of a circle the type is not told either: Required ones stand first, wherever the reason says that there are any.
	t := addonv1alpha1.DependencyTypeOptional
	if last.reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied {
		t = addonv1alpha1.DependencyTypeRequired
	}
	var unmet []Judgement
	for _, line := range last.lines {
		var name string
		if way, circular := strings.CutPrefix(line, circularOpening); circular {
			_, way, _ = strings.Cut(way, arrow)
			name, _, _ = strings.Cut(way, arrow)
		}
		for _, kind := range []addonv1alpha1.DependencyType{addonv1alpha1.DependencyTypeRequired, addonv1alpha1.DependencyTypeOptional} {
			if rest, told := strings.CutPrefix(line, string(kind)+openingMiddle); told {
				t = kind
				name, _, _ = strings.Cut(rest, openingEnd)
			}
		}
		if name != "" {
			unmet = append(unmet, Judgement{Name: name, Type: t, Cause: Unknown})
		}
	}
	return unmet
}

// circularOver reports whether the line tells of a circle that begins with the dependency of that name.
func circularOver(line, name string) bool {
	way, circular := strings.CutPrefix(line, circularOpening)
	steps := strings.SplitN(way, arrow, 3)
	return circular && len(steps) > 1 && steps[1] == oneLine(name)
}

// IsReason reports whether reason is one of those that a verdict gives condition Degraded.
func IsReason(reason string) bool {
	return reason == addonv1alpha1.ReasonDependencyNotSatisfied || reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}
