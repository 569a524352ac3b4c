package sensitive

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Mask replaces sensitive values in messages.
const Mask = "*****"

// Masker replaces values, their lines, and their usual encodings in messages. The zero value replaces nothing.
type Masker struct {
	// forms are the texts to replace, the longest first.
	forms    []string
	replacer *strings.Replacer
}

// NewMasker returns a masker of values.
func NewMasker(values ...Values) Masker {
	var all []string
	for _, set := range values {
		for _, value := range set {
			all = append(all, value)
		}
	}
	return Masker{}.With(all...)
}

// With returns a masker that also replaces texts.
func (m Masker) With(texts ...string) Masker {
	forms := slices.Clone(m.forms)
	for _, text := range texts {
		forms = append(forms, formsOf(text)...)
	}
	if len(forms) == 0 {
		return Masker{}
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, Mask)
	}
	return Masker{forms: forms, replacer: strings.NewReplacer(pairs...)}
}

// formsOf returns the texts by which messages may quote a value, or a line of it.
func formsOf(value string) []string {
	var forms []string
	plain := append([]string{value, strings.TrimSpace(value), text.OneLine(value)}, strings.Split(value, "\n")...)
	for _, p := range plain {
		p = strings.TrimSpace(p)
		quoted, _ := json.Marshal(p) // text always marshals
		forms = append(forms, p, strings.Trim(strconv.Quote(p), `"`), strings.Trim(string(quoted), `"`), toPlainJSON(p),
			strings.ReplaceAll(p, "'", "''"), url.QueryEscape(p), url.PathEscape(p))
	}
	for _, p := range []string{value, strings.TrimSpace(value), strings.TrimSpace(value) + "\n"} {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(p)), base64.URLEncoding.EncodeToString([]byte(p)))
		forms = append(forms, base64Forms(p)...)
	}
	return slices.DeleteFunc(forms, func(f string) bool { return len(f) < MinBytes })
}

// toPlainJSON returns the text in JSON without HTML escapes, as the API server writes it.
func toPlainJSON(s string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // text always encodes
	return strings.Trim(strings.TrimSpace(out.String()), `"`)
}

// base64Forms returns the base64 of the value inside a longer text, for each of the three places where it may begin in a group of three
// bytes: without the characters at both ends that also depend on the text around it.
func base64Forms(value string) []string {
	var forms []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			begin := (before*8 + 5) / 6
			end := (before + len(value)) * 8 / 6
			if begin < end {
				forms = append(forms, encoded[begin:end])
			}
		}
	}
	return forms
}

// Text returns a message without values. A message may have been shortened inside of a value, at its end or at an ellipsis: a sufficiently long
// rest of the value is replaced there.
func (m Masker) Text(message string) string { return m.text(message, false) }

// Foreign is Text for a message that others may have shortened at its beginning, too.
func (m Masker) Foreign(message string) string { return m.text(message, true) }

func (m Masker) text(message string, shortened bool) string {
	if m.replacer == nil || message == "" {
		return message
	}
	var out strings.Builder
	for first, more := true, true; more; first = false {
		var part string
		part, message, more = strings.Cut(message, text.Ellipsis)
		out.WriteString(m.rests(part, shortened || !first))
		if more {
			out.WriteString(text.Ellipsis)
		}
	}
	return m.replacer.Replace(out.String())
}

// rests replaces the rests of values at the end of a text, also before a quotation mark, and at its beginning if that is shortened.
func (m Masker) rests(part string, shortened bool) string {
	body := strings.TrimRight(part, "\"'`")
	begin, end := 0, 0
	for _, form := range m.forms {
		end = max(end, overlap(body, form, len(form)-1))
		if shortened {
			begin = max(begin, overlap(form, body, len(form)-1))
		}
	}
	switch {
	case begin == 0 && end == 0:
		return part
	case begin+end >= len(body):
		return Mask + part[len(body):]
	}
	return maskOf(begin) + body[begin:len(body)-end] + maskOf(end) + part[len(body):]
}

func maskOf(length int) string {
	if length == 0 {
		return ""
	}
	return Mask
}

// overlap returns the number of bytes at the end of a text that are the beginning of another one, at most limit; 0 if they are too few to
// matter.
func overlap(before, after string, limit int) int {
	for length := min(len(before), len(after), limit); length >= MinBytes; length-- {
		if before[len(before)-length:] == after[:length] {
			return length
		}
	}
	return 0
}

// Error returns an error whose message has no values. It wraps the original one, whose message still has them.
func (m Masker) Error(err error) error {
	if err == nil || m.replacer == nil {
		return err
	}
	masked := m.Text(err.Error())
	if masked == err.Error() {
		return err
	}
	return &maskedError{message: masked, err: err}
}

type maskedError struct {
	message string
	err     error
}

func (e *maskedError) Error() string { return e.message }
func (e *maskedError) Unwrap() error { return e.err }

// Status returns a status whose messages have no values.
func (m Masker) Status(status kudo.InstanceStatus) kudo.InstanceStatus {
	if m.replacer == nil {
		return status
	}
	status = *status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].Message = m.Text(status.Conditions[i].Message)
	}
	for name, plan := range status.PlanStatus {
		m.plan(&plan)
		status.PlanStatus[name] = plan
	}
	if status.Returned != nil {
		status.Returned.Cause = m.Text(status.Returned.Cause)
	}
	for i := range status.History {
		status.History[i].Message = m.Text(status.History[i].Message)
	}
	if status.Diagnosis != nil {
		status.Diagnosis = new(m.Diagnosis(*status.Diagnosis))
	}
	return status
}

// Diagnosis returns a copy of a diagnosis without values in its texts, most of which others have written.
func (m Masker) Diagnosis(d kudo.Diagnosis) kudo.Diagnosis {
	if m.replacer == nil {
		return d
	}
	d = *d.DeepCopy()
	d.Message = m.Foreign(d.Message)
	for i := range d.Pods {
		pod := &d.Pods[i]
		for _, field := range []*string{&pod.Namespace, &pod.Name, &pod.Phase, &pod.Ready, &pod.Reason, &pod.Image} {
			*field = m.Foreign(*field)
		}
		for k := range pod.Logs {
			log := &pod.Logs[k]
			log.Container = m.Foreign(log.Container)
			for n, line := range log.Lines {
				log.Lines[n] = m.Foreign(line)
			}
		}
	}
	for i := range d.Events {
		event := &d.Events[i]
		event.Object, event.Reason, event.Message = m.Foreign(event.Object), m.Foreign(event.Reason), m.Foreign(event.Message)
	}
	return d
}

// Drift returns copies of drifted objects without values in the texts that others have written.
func (m Masker) Drift(objects []kudo.DriftedObject) []kudo.DriftedObject {
	masked := slices.Clone(objects)
	for i := range masked {
		masked[i] = *masked[i].DeepCopy()
		for k := range masked[i].Fields {
			field := &masked[i].Fields[k]
			field.Path, field.Applied, field.Live = m.Text(field.Path), m.Text(field.Applied), m.Text(field.Live)
			for n, manager := range field.Managers {
				field.Managers[n] = m.Text(manager)
			}
		}
	}
	return masked
}

func (m Masker) plan(plan *kudo.PlanStatus) {
	plan.Message = m.Text(plan.Message)
	for p := range plan.Phases {
		phase := &plan.Phases[p]
		phase.Message = m.Text(phase.Message)
		for s := range phase.Steps {
			step := &phase.Steps[s]
			step.Message = m.Text(step.Message)
			for t := range step.Tasks {
				step.Tasks[t].Message = m.Text(step.Tasks[t].Message)
			}
		}
	}
}

// Object returns a copy of an object without values in its messages, and in those inside of it. Everything else is unchanged.
func (m Masker) Object(o *unstructured.Unstructured) *unstructured.Unstructured {
	if m.replacer == nil || o == nil {
		return o
	}
	masked := o.DeepCopy()
	m.messages(masked.Object)
	return masked
}

// Texts returns a copy of an object without values in any of its texts: what an expression computes from it contains no part of one.
func (m Masker) Texts(o *unstructured.Unstructured) *unstructured.Unstructured {
	if m.replacer == nil || o == nil {
		return o
	}
	masked := make(map[string]any, len(o.Object))
	for field, value := range o.Object { // such as status, which may also be a value
		masked[field] = m.texts(value)
	}
	return &unstructured.Unstructured{Object: masked}
}

// texts returns a copy of a value without values in its texts and in the names of its fields.
func (m Masker) texts(value any) any {
	switch v := value.(type) {
	case string:
		return m.Foreign(v)
	case map[string]any:
		masked := make(map[string]any, len(v))
		for key, field := range v {
			masked[m.Foreign(key)] = m.texts(field)
		}
		return masked
	case []any:
		masked := make([]any, len(v))
		for i, item := range v {
			masked[i] = m.texts(item)
		}
		return masked
	default:
		return value
	}
}

// messages masks the fields of the name message in a value.
func (m Masker) messages(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if message, isText := field.(string); isText && key == "message" {
				v[key] = m.Foreign(message)
				continue
			}
			m.messages(field)
		}
	case []any:
		for _, item := range v {
			m.messages(item)
		}
	}
}
