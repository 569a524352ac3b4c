package dependency

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MessageLimit is the maximum length of Message in bytes: the API server's limit for a condition's message.
const MessageLimit = 32768

// remainderFormat is the last line of a truncated message; remainderRoom is the space reserved for it, in bytes.
const (
	remainderFormat = "%d more dependencies are not satisfied."
	remainderRoom   = 64
)

// Message returns the message of condition Degraded: one sentence per unsatisfied dependency, joined by newlines, in the proposal's
// wording, or "circular dependency: a -> b -> a" for a dependency on a cycle. A message beyond MessageLimit is cut after the last sentence
// that fits (within the first one if that alone is too long) and ends with the number of omitted dependencies.
func (v Verdict) Message() string {
	unmet := v.Unmet()
	sentences := make([]string, 0, len(unmet))
	for _, j := range unmet {
		sentences = append(sentences, j.sentence())
	}
	if message := strings.Join(sentences, "\n"); len(message) <= MessageLimit {
		return message
	}
	return joinSentences(sentences)
}

// joinSentences joins as many sentences as fit, and appends the number of the others.
func joinSentences(sentences []string) string {
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

// sentence describes the unsatisfied dependency and its effect, or the path of its cycle.
func (j Judgement) sentence() string {
	if j.Cause == Circular && len(j.Candidates) == 0 {
		return circularOpening + Way(j.Cycle)
	}
	problem := j.problem()
	for i, candidate := range j.Candidates {
		if i == 0 {
			problem = candidate.problem()
			continue
		}
		problem += alternativeOpening + oneLine(candidate.By) + openingEnd + candidate.problem()
	}
	return strings.TrimSuffix(sentenceStart(j.Type, j.Name)+problem+". "+j.Message, " ")
}

// problem describes what a candidate lacks, after its name.
func (j Judgement) problem() string {
	switch j.Cause {
	case Circular:
		return cyclic + Way(j.Cycle)
	case VersionMismatch:
		return oneLine(j.Mismatch)
	default:
		return missing
	}
}

// A sentence consists of the type, openingMiddle, the name, openingEnd, the problem, the same of each alternative after alternativeOpening, and a full
// stop. A problem is missing, cyclic and a path, or a mismatch of versions.
const (
	openingMiddle      = " addon '"
	openingEnd         = "' "
	alternativeOpening = "; alternative '"
	missing            = "is not installed or not available"
	cyclic             = "is part of circular dependency "
)

// sentenceStart returns the beginning of the sentence about a dependency.
func sentenceStart(t addonv1alpha1.DependencyType, name string) string {
	return string(t) + openingMiddle + oneLine(name) + openingEnd
}

// parseSentence returns the name and what follows it in a sentence about a dependency of a type.
func parseSentence(line string, t addonv1alpha1.DependencyType) (name, problem string, is bool) {
	rest, is := strings.CutPrefix(line, string(t)+openingMiddle)
	if !is {
		return "", "", false
	}
	found := len(rest)
	for _, opening := range []string{missing, cyclic, runs, changes} {
		if at := strings.Index(rest, openingEnd+opening); at >= 0 {
			found = min(found, at)
		}
	}
	return rest[:found], strings.TrimPrefix(rest[found:], openingEnd), true
}

// oneLine returns text on one line and in valid UTF-8, so that a message has exactly one line per dependency.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text))
}

// memory is the last verdict, as recorded in the add-on's own condition Degraded.
type memory struct {
	reason string
	lines  []string
	// incomplete is true if the message was truncated and may omit unmet dependencies.
	incomplete bool
}

// recall reads the last verdict. A condition without a dependency reason means that all dependencies were satisfied.
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

// unmet reports whether the dependency was not satisfied in the last verdict. Its type may have been different then.
func (m memory) unmet(j Judgement) bool {
	if m.problem(j) != "" || slices.ContainsFunc(m.lines, func(line string) bool { return circularOver(line, j.Name) }) {
		return true
	}
	if !m.incomplete {
		return false
	}
	// The truncated message omits the dependency: it was unmet, unless the reason excludes unmet Required dependencies.
	return j.Type == addonv1alpha1.DependencyTypeOptional || m.reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// problem returns what the last verdict says of the dependency; empty if it was satisfied, or on a cycle. Its type may have been different then.
func (m memory) problem(j Judgement) string {
	for _, line := range m.lines {
		for _, t := range []addonv1alpha1.DependencyType{addonv1alpha1.DependencyTypeRequired, addonv1alpha1.DependencyTypeOptional} {
			problem, is := strings.CutPrefix(line, sentenceStart(t, j.Name))
			if is && (strings.HasPrefix(problem, missing) || strings.HasPrefix(problem, cyclic) || isMismatch(problem)) {
				return problem
			}
		}
	}
	return ""
}

// mismatch returns the mismatch of versions of a candidate in the last verdict; empty if there was none.
func (m memory) mismatch(j Judgement) string {
	problems := strings.TrimSuffix(strings.TrimSuffix(m.problem(j), " "+j.Message), ".")
	for i, problem := range strings.Split(problems, alternativeOpening) {
		by := j.Name
		if i > 0 {
			by, problem, _ = strings.Cut(problem, openingEnd)
		}
		if by == j.By && isMismatch(problem) {
			return problem
		}
	}
	return ""
}

func isMismatch(problem string) bool {
	return strings.HasPrefix(problem, runs) || strings.HasPrefix(problem, changes)
}

// UnmetFrom returns the unsatisfied dependencies that condition Degraded names, for callers that have no other source: a declaration that
// has become malformed cannot be judged. The condition does not record causes, so the cause is Unknown. Dependencies that a truncated
// message omits are missing.
func UnmetFrom(degraded *metav1.Condition) []Judgement {
	last := recall(degraded)
	// The line of a cycle does not record the type. Required dependencies are first if the reason includes them.
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
			if found, _, is := parseSentence(line, kind); is {
				t, name = kind, found
			}
		}
		if name != "" {
			unmet = append(unmet, Judgement{Name: name, By: name, Type: t, Cause: Unknown})
		}
	}
	return unmet
}

// circularOver reports whether the line describes a cycle that begins with the dependency of that name.
func circularOver(line, name string) bool {
	way, circular := strings.CutPrefix(line, circularOpening)
	steps := strings.SplitN(way, arrow, 3)
	return circular && len(steps) > 1 && steps[1] == oneLine(name)
}

// IsReason reports whether a verdict sets reason on condition Degraded.
func IsReason(reason string) bool {
	return reason == addonv1alpha1.ReasonDependencyNotSatisfied || reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}
