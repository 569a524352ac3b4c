package parameter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// secretPrefix begins a reference in text.
const secretPrefix = "secret:"

var secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

// ParseReference parses a reference to a key of a Secret, secret:NAME/KEY. The error does not quote the text, which may be a secret itself.
func ParseReference(value string) (kudo.SecretKeyRef, error) {
	reference, marked := strings.CutPrefix(value, secretPrefix)
	name, key, separated := strings.Cut(reference, "/")
	if !marked || !separated || len(validation.IsDNS1123Subdomain(name)) > 0 || !secretKey.MatchString(key) {
		return kudo.SecretKeyRef{}, fmt.Errorf("sensitive: must be secret:NAME/KEY, which refers to a Secret in the install namespace on the managed cluster")
	}
	return kudo.SecretKeyRef{Name: name, Key: key}, nil
}

// ReferenceText returns a reference as ParseReference parses it.
func ReferenceText(ref kudo.SecretKeyRef) string { return secretPrefix + ref.Name + "/" + ref.Key }

// References splits the given texts of an OperatorVersion's parameters: those of sensitive parameters must be references. A problem does not
// quote a text.
func References(defs []kudo.Parameter, given map[string]string) (plain map[string]string, from []kudo.ParameterFrom, problems []Problem) {
	plain = make(map[string]string, len(given))
	for name, value := range given {
		plain[name] = value
	}
	for i := range defs {
		value, set := plain[defs[i].Name]
		if !set || !defs[i].IsSensitive() {
			continue
		}
		delete(plain, defs[i].Name)
		reference, err := ParseReference(value)
		if err != nil {
			problems = append(problems, Problem{Parameter: defs[i].Name, Reason: err.Error()})
			continue
		}
		from = append(from, kudo.ParameterFrom{Name: defs[i].Name, SecretKeyRef: reference})
	}
	slices.SortFunc(from, func(a, b kudo.ParameterFrom) int { return strings.Compare(a.Name, b.Name) })
	return plain, from, problems
}
