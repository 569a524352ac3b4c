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

	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// Redacted replaces a value that may be a secret.
const Redacted = "REDACTED"

var (
	// plainValue matches values that cannot be secrets: a number, a quantity, a duration or a boolean.
	plainValue = regexp.MustCompile(`^(?i)(-?[0-9]{1,9}(\.[0-9]{1,6})?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei|ms|s|h|d|%)?|([0-9]+[hms])+|true|false|yes|no|on|off)?$`)
	keyWithin  = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	// within matches secrets inside a line. The first group is kept.
	within = []*regexp.Regexp{
		regexp.MustCompile(`()eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`),
		regexp.MustCompile(`(://)[^/\s:@"']*:[^/\s@"']+@`),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)?\s*|\b(?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`),
		regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|` +
			`client-key-data)[a-z0-9_.-]*\\?["']?\s*[=:]\s*)(?:\\?"[^"\n]*"|'[^'\n]*'|[^\s"',;&}]+)`),
	}
	// secretParts are the fields of Secrets and ConfigMaps that hold values.
	secretParts = []string{"data", "stringData", "binaryData"}
	// hints lists lower-case substrings, one of which is in every line that within matches. Searching for them is much faster.
	hints = []string{"eyj", "://", "authorization", "bearer", "basic", "passw", "passphrase", "secret", "token", "credential", "key"}
)

// Redaction removes secrets from collected data: first from all objects, and then the values found in objects from all texts, such as a
// password in a controller's log.
type Redaction struct {
	// secrets holds values to remove everywhere; doubtful holds values that may be anything.
	secrets, doubtful map[string]bool
	// names holds the names of objects, which are never treated as secrets.
	names map[string]bool
	known *strings.Replacer
}

// NewRedaction returns a Redaction without known secrets.
func NewRedaction() *Redaction {
	return &Redaction{secrets: map[string]bool{}, doubtful: map[string]bool{}, names: map[string]bool{}}
}

const (
	// shortestSecret is the minimum length in bytes of a value to search for in texts; shorter values occur in too many of them.
	shortestSecret = 6
	// doubtfulLimit is the number of doubtful values to search for.
	doubtfulLimit = 2000
)

// hide records a secret, including its encoded forms.
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

// Seal ends the collection of secrets from objects.
func (r *Redaction) Seal() {
	for name := range r.names {
		delete(r.secrets, name)
	}
	names := strings.Join(slices.Sorted(maps.Keys(r.names)), "\n")
	for i, value := range slices.Sorted(maps.Keys(r.doubtful)) {
		if i < doubtfulLimit && !strings.Contains(names, value) {
			r.secrets[value] = true
		}
	}
	all := slices.SortedFunc(maps.Keys(r.secrets), func(a, b string) int { // the longer one first if one is a prefix of another
		return cmp.Or(len(b)-len(a), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(all))
	for _, value := range all {
		pairs = append(pairs, value, Redacted)
	}
	r.known = strings.NewReplacer(pairs...)
}

// Text returns a text without the recorded secrets and without secrets recognized by the text before them.
func (r *Redaction) Text(text string) string { return inline(r.known.Replace(text)) }

// Texts removes the recorded secrets from every text of an object, in place.
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

// inline removes secrets recognized by the text before them.
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

// Object removes secrets and useless fields from an object, in place.
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

// fields redacts the fields of an object or of a part of one. Objects may contain others, as ManifestWorks do. secret is true below a field
// with a secret name.
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
			fields[key] = r.redactNamed(name, value, secret)
		} else {
			fields[key] = r.value(key, value, secret)
		}
	}
}

// value redacts the value of a field, or of a list item, which has no key.
func (r *Redaction) value(key string, value any, secret bool) any {
	secret = (secret || secretField(key)) && key != "key" && !sensitive.IsReference(key)
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

// redactNamed redacts the value next to a name: of a variable, or the default of a parameter.
func (r *Redaction) redactNamed(name string, value any, secret bool) any {
	switch text, isText := value.(string); {
	case isText:
		return r.parameter(name, text)
	default:
		return r.value("", value, secret || sensitive.IsSecretName(name))
	}
}

// below redacts the fields below a field.
func (r *Redaction) below(key string, fields map[string]any, secret bool) {
	switch key {
	case "parameters", "params":
		for name, value := range fields {
			fields[name] = r.redactNamed(name, value, secret)
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
	if strings.Contains(name, "last-applied") { // a copy of the whole object
		return Redacted
	}
	return r.value("", value, sensitive.IsSecretName(name))
}

// list redacts a list. A value that follows a flag, as in a container's arguments, is secret if the flag has a secret name.
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

// all replaces every value below, and keeps the keys.
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

// parameter redacts the value of a parameter or variable. Names and values are arbitrary, so only values that cannot be secrets are kept.
func (r *Redaction) parameter(name, value string) string {
	switch {
	case value == "":
		return value
	case sensitive.IsSecretName(name) || sensitive.IsSecretText(value):
		return r.hide(value)
	case plainValue.MatchString(value):
		return value
	default:
		return remember(r.doubtful, value)
	}
}

// field redacts a text that may be a secret or contain one.
func (r *Redaction) field(value string, secret bool) string {
	if value != "" && (secret || sensitive.IsSecretText(value)) {
		return r.hide(value)
	}
	return inline(value)
}

// secretField reports whether a field of that name holds a secret.
func secretField(key string) bool {
	return key != "key" && sensitive.IsSecretName(key) && !sensitive.IsReference(key)
}

// templates replaces the templates of a package, which may contain anything, by digests.
func templates(version map[string]any) {
	spec, _ := version["spec"].(map[string]any)
	files, _ := spec["templates"].(map[string]any)
	for name, value := range files {
		text, _ := value.(string)
		files[name] = fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256([]byte(text)))
	}
}
