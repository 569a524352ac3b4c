package sensitive

import (
	"regexp"
	"slices"
)

var (
	secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase|code)?($|[^a-z])|passw|pwd|secret|token|credential|api[-_]?key|access[-_]?key|` +
		`private[-_]?key|client[-_]?key|encryption[-_]?key|signing[-_]?key|license|auth($|[^oe])|bearer|cookie|session|salt|kubeconfig|dsn|` +
		`connection[-_]?string|htpasswd|keystore|truststore|(^|[-_])(pin|key)$|certificate|tls[-_.](crt|key)`)
	referenceName = regexp.MustCompile(`(?i)(name|namespace|ref|refs|path|file|type|kind|seconds|policy|mode|version|class)$`)
	secretText    = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.|client-key-data|client-certificate-data|` +
		`"auths"\s*:|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}`)
	// urlPassword matches a URL with a password.
	urlPassword = regexp.MustCompile(`://[^/\s:@"']*:[^/\s@"']+@`)
	// secretMap matches a name of a map or a list whose values are secrets.
	secretMap = regexp.MustCompile(`(?i)(secret|credential|password|token)s?(data|env|values)?$|^(string|secret)data$`)
	// existing matches a name that charts use for a Secret on the cluster, or for a key of one.
	existing = regexp.MustCompile(`(?i)^existing|pullsecrets?$|secretkeys?$`)
)

// IsSecretName reports whether a value of that name may be a secret: that of a parameter, a variable, a flag, a field, an annotation.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

// IsReference reports whether a field of that name refers to something instead of holding it.
func IsReference(name string) bool { return referenceName.MatchString(name) }

// IsSecretText reports whether a text looks like a secret: a private key, a token, a kubeconfig.
func IsSecretText(text string) bool { return secretText.MatchString(text) }

// IsSuspect reports whether a value of a chart may be a secret. A value below others is also suspect because of their names.
func IsSuspect(names []string, value string) bool {
	if IsSecretText(value) || urlPassword.MatchString(value) {
		return true
	}
	if value == "" || len(names) == 0 || IsReference(names[len(names)-1]) {
		return false
	}
	if slices.ContainsFunc(names, existing.MatchString) {
		return false
	}
	if slices.ContainsFunc(names[:len(names)-1], secretMap.MatchString) {
		return true
	}
	last := names[len(names)-1]
	return last != "key" && IsSecretName(last)
}
