package terminal

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Redacted stands for a value that may be a secret.
const Redacted = "REDACTED"

var (
	// secretName is a name whose value may be a secret: of a parameter, a variable, a flag, a field, an annotation.
	secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase|code)?($|[^a-z])|passw|pwd|secret|token|credential|api[-_]?key|access[-_]?key|` +
		`private[-_]?key|client[-_]?key|encryption[-_]?key|signing[-_]?key|license|auth($|[^oe])|bearer|cookie|session|salt|kubeconfig|dsn|` +
		`connection[-_]?string|htpasswd|keystore|truststore|(^|[-_])(pin|key)$|certificate|tls[-_.](crt|key)`)
	// referenceName is of a field of the API that names where something is, and does not hold it.
	referenceName = regexp.MustCompile(`(?i)(name|namespace|ref|refs|path|file|type|kind|seconds|policy|mode|version|class)$`)
	// plainValue tells nothing that could be used: a number, a quantity, a duration or a boolean.
	plainValue = regexp.MustCompile(`^(?i)(-?[0-9]{1,9}(\.[0-9]{1,6})?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei|ms|s|h|d|%)?|([0-9]+[hms])+|true|false|yes|no|on|off)?$`)
	// secretValue is a text that is a secret by its looks: a private key, a token, a kubeconfig.
	secretValue = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.|client-key-data|client-certificate-data|` +
		`"auths"\s*:|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}`)
	keyWithin = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	// within are secrets inside of a line that is worth reading without them. What the first group holds stays.
	within = []*regexp.Regexp{
		regexp.MustCompile(`()eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`),
		regexp.MustCompile(`(://)[^/\s:@"']*:[^/\s@"']+@`),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)?\s*|\b(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`),
		regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|` +
			`client-key-data)[a-z0-9_.-]*\\?["']?\s*[=:]\s*)(?:\\?"[^"\n]*"|'[^'\n]*'|[^\s"',;&}]+)`),
	}
	// secretParts are the fields of Secrets and ConfigMaps that hold values.
	secretParts = []string{"data", "stringData", "binaryData"}
	// hints are in every line that has one of these in it, in lower case. To look for them is much faster.
	hints = []string{"eyj", "://", "authorization", "bearer", "basic", "passw", "passphrase", "secret", "token", "credential", "key"}
)

// Redaction takes secrets out of what is collected: first out of all objects, and then out of all texts what it has taken out of objects,
// as a password that somebody's controller has logged.
type Redaction struct {
	// secrets are values that are to be found nowhere; doubtful are those that may be anything.
	secrets, doubtful map[string]bool
	// names are those of objects, which are never taken for a secret.
	names map[string]bool
	known *strings.Replacer
}

func NewRedaction() *Redaction {
	return &Redaction{secrets: map[string]bool{}, doubtful: map[string]bool{}, names: map[string]bool{}}
}

const (
	// shortestSecret is how long a value has to be to be looked for in texts, in bytes: what is shorter stands in too many of them.
	shortestSecret = 6
	// doubtfulLimit bounds how many values that may be anything are looked for.
	doubtfulLimit = 2000
)

// hide remembers a secret, also as it is where it is encoded.
func (r *Redaction) hide(value string) string { return remember(r.secrets, value) }

func remember(values map[string]bool, value string) string {
	texts := []string{value, strings.TrimSpace(value)}
	if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
		texts = append(texts, string(decoded), strings.TrimSpace(string(decoded)))
	}
	for _, text := range texts {
		if len(text) >= shortestSecret && !plainValue.MatchString(text) {
			values[text] = true
		}
	}
	return Redacted
}

// Learnt ends what is learnt from objects.
func (r *Redaction) Learnt() {
	for name := range r.names {
		delete(r.secrets, name)
	}
	names := strings.Join(slices.Sorted(maps.Keys(r.names)), "\n")
	for i, value := range slices.Sorted(maps.Keys(r.doubtful)) {
		if i < doubtfulLimit && !strings.Contains(names, value) {
			r.secrets[value] = true
		}
	}
	all := slices.SortedFunc(maps.Keys(r.secrets), func(a, b string) int { // where one begins with another, the longer one
		return cmp.Or(len(b)-len(a), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(all))
	for _, value := range all {
		pairs = append(pairs, value, Redacted)
	}
	r.known = strings.NewReplacer(pairs...)
}

// Text is a text without the secrets that stand in it: those that were learnt, and those that can be told by what stands before them.
func (r *Redaction) Text(text string) string { return inline(r.known.Replace(text)) }

// Texts takes what was learnt out of every text of an object, in place.
func (r *Redaction) Texts(value any) any {
	switch value := value.(type) {
	case string:
		return r.known.Replace(value)
	case []any:
		for i := range value {
			value[i] = r.Texts(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = r.Texts(value[key])
		}
	}
	return value
}

// inline takes out secrets that can be told by what stands before them.
func inline(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		text = keyWithin.ReplaceAllString(text, Redacted)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
			for _, secret := range within {
				line = secret.ReplaceAllString(line, "${1}"+Redacted)
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// Object takes the secrets out of an object, in place, and what nobody reads.
func (r *Redaction) Object(content map[string]any) {
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		for _, key := range []string{"name", "namespace"} {
			if name, _ := metadata[key].(string); name != "" {
				r.names[name] = true
			}
		}
	}
	r.fields(content, false)
}

// fields walks down an object, or a part of one. Objects may hold others, as ManifestWorks do. Below a field that is called like a secret,
// secret is true.
func (r *Redaction) fields(fields map[string]any, secret bool) {
	switch kind, _ := fields["kind"].(string); kind {
	case "Secret", "ConfigMap":
		for _, part := range secretParts {
			r.all(fields[part])
		}
	case "OperatorVersion":
		templates(fields)
	}
	name, named := fields["name"].(string)
	for key, value := range fields {
		if named && (key == "value" || key == "default") {
			fields[key] = r.named(name, value, secret)
		} else {
			fields[key] = r.value(key, value, secret)
		}
	}
}

// value is that of a field, or of an item of a list, which has no key.
func (r *Redaction) value(key string, value any, secret bool) any {
	secret = (secret || secretField(key)) && key != "key" && !referenceName.MatchString(key)
	switch value := value.(type) {
	case map[string]any:
		r.below(key, value, secret)
	case []any:
		r.list(value, secret)
	case string:
		return r.field(value, secret)
	case int64, float64:
		if secret {
			return r.hide(fmt.Sprint(value))
		}
	}
	return value
}

// named is the value that stands beside a name: of a variable, of a parameter's default.
func (r *Redaction) named(name string, value any, secret bool) any {
	switch text, isText := value.(string); {
	case isText:
		return r.parameter(name, text)
	default:
		return r.value("", value, secret || secretName.MatchString(name))
	}
}

// below goes down into a field.
func (r *Redaction) below(key string, fields map[string]any, secret bool) {
	switch key {
	case "parameters", "params":
		for name, value := range fields {
			fields[name] = r.named(name, value, secret)
		}
	case "annotations":
		for name, value := range fields {
			fields[name] = r.annotation(name, value)
		}
	default:
		r.fields(fields, secret)
	}
}

func (r *Redaction) annotation(name string, value any) any {
	if strings.Contains(name, "last-applied") { // the whole object again, as somebody wrote it
		return Redacted
	}
	return r.value("", value, secretName.MatchString(name))
}

// list goes down into a list. Of a flag that is followed by its value, as in a container's arguments, the value is a secret by the flag.
func (r *Redaction) list(items []any, secret bool) {
	awaited := false
	for i, item := range items {
		text, _ := item.(string)
		flag, value, joined := strings.Cut(text, "=")
		flagged := strings.HasPrefix(flag, "-") && secretField(flag)
		if flagged && joined {
			items[i] = flag + "=" + r.hide(value)
		} else {
			items[i] = r.value("", item, secret || awaited && !strings.HasPrefix(text, "-"))
		}
		awaited = flagged && !joined
	}
}

// all replaces every value below, and keeps the names.
func (r *Redaction) all(value any) {
	fields, _ := value.(map[string]any)
	for name, value := range fields {
		switch value := value.(type) {
		case string:
			fields[name] = r.hide(value)
		case map[string]any:
			r.all(value)
		default:
			fields[name] = Redacted
		}
	}
}

// parameter is the value of a parameter or variable. People give them what they like and call it as they like, so only what can be no
// secret stays.
func (r *Redaction) parameter(name, value string) string {
	switch {
	case value == "":
		return value
	case secretName.MatchString(name) || secretValue.MatchString(value):
		return r.hide(value)
	case plainValue.MatchString(value):
		return value
	default:
		return remember(r.doubtful, value)
	}
}

// field is a text, which may be a secret by its looks, or have one in it.
func (r *Redaction) field(value string, secret bool) string {
	if value != "" && (secret || secretValue.MatchString(value)) {
		return r.hide(value)
	}
	return inline(value)
}

// secretField says whether a field of that name holds a secret.
func secretField(key string) bool {
	return key != "key" && secretName.MatchString(key) && !referenceName.MatchString(key)
}

// templates replaces the templates of a package, in which anything may stand, by what tells one from another.
func templates(version map[string]any) {
	spec, _ := version["spec"].(map[string]any)
	files, _ := spec["templates"].(map[string]any)
	for name, value := range files {
		text, _ := value.(string)
		files[name] = fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256([]byte(text)))
	}
}

// RedactChange returns the objects without what Secrets hold: that it changes is told, and not what it is.
func RedactChange(before, after *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	if after.GetKind() != "Secret" || after.GroupVersionKind().Group != "" {
		return before, after
	}
	after = after.DeepCopy()
	if before != nil {
		before = before.DeepCopy()
	}
	for _, field := range secretParts {
		now, _ := after.Object[field].(map[string]any)
		var was map[string]any
		if before != nil {
			was, _ = before.Object[field].(map[string]any)
		}
		redactValues(was, now)
	}
	return before, after
}

// redactValues puts something else in the place of values, by which those that change are known.
func redactValues(was, now map[string]any) {
	for key, value := range now {
		stood, had := was[key]
		if had && !equality.Semantic.DeepEqual(stood, value) {
			was[key], now[key] = "*** (before)", "*** (after)"
			continue
		}
		now[key] = "***"
		if had {
			was[key] = "***"
		}
	}
	for key := range was {
		if _, stays := now[key]; !stays {
			was[key] = "***"
		}
	}
}
