package change

import (
	"errors"
	"maps"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

// TextsOf returns all parameters in a spec as they are given on the command line.
func TextsOf(spec kudo.InstanceSpec) map[string]string {
	if len(spec.ParametersFrom) == 0 {
		return spec.Parameters
	}
	texts := make(map[string]string, len(spec.Parameters)+len(spec.ParametersFrom))
	maps.Copy(texts, spec.Parameters)
	for _, from := range spec.ParametersFrom {
		texts[from.Name] = parameter.ReferenceText(from.SecretKeyRef)
	}
	return texts
}

// SetParameters sets parameters in a spec as given on the command line: those that the version defines as sensitive by reference. It returns
// an error for a sensitive one that is not a reference. Without a version, which admission requires later, references stay references.
func SetParameters(spec *kudo.InstanceSpec, texts map[string]string, version *kudo.OperatorVersion) error {
	definitions := make([]kudo.Parameter, 0, len(spec.ParametersFrom))
	for _, from := range spec.ParametersFrom {
		definitions = append(definitions, kudo.Parameter{Name: from.Name, Sensitive: new(true)})
	}
	if version != nil {
		definitions = version.Spec.Parameters
	}
	plain, references, problems := parameter.References(definitions, texts)
	if len(problems) > 0 {
		return &parameter.InvalidError{Problems: problems}
	}
	if texts == nil {
		plain = nil
	}
	spec.Parameters, spec.ParametersFrom = plain, references
	return nil
}

// Merge returns the values of a overridden by the values of b.
func Merge(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	values := make(map[string]string, len(a)+len(b))
	maps.Copy(values, a)
	maps.Copy(values, b)
	return values
}

// WithChanges returns the existing parameters with the given ones set and the unset ones removed.
func WithChanges(existing, given map[string]string, unset []string) map[string]string {
	next := maps.Clone(Merge(existing, given))
	maps.DeleteFunc(next, func(name, _ string) bool { return slices.Contains(unset, name) })
	return next
}

// checkUnset returns an error that names the parameters to unset that are neither set nor defined by the version.
func checkUnset(version *kudo.OperatorVersion, unset []string, isSet func(string) bool) error {
	texts := map[string]string{}
	for _, name := range unset {
		if !isSet(name) {
			texts[name] = ""
		}
	}
	return checkParameters(version, texts)
}

// checkParameters returns an error that names the parameters that the version does not define; version is nil if it is unknown.
func checkParameters(version *kudo.OperatorVersion, texts map[string]string) error {
	if version == nil {
		return nil
	}
	var invalid *parameter.InvalidError
	plain, from, _ := parameter.References(version.Spec.Parameters, texts) // the hub checks the references
	if !errors.As(parameter.Validate(&version.Spec, plain, from), &invalid) {
		return nil
	}
	invalid.Problems = slices.DeleteFunc(invalid.Problems, func(p parameter.Problem) bool {
		return slices.ContainsFunc(version.Spec.Parameters, func(defined kudo.Parameter) bool { return defined.Name == p.Parameter })
	})
	if len(invalid.Problems) == 0 {
		return nil
	}
	return invalid
}

// SetsTo reports whether a spec sets a parameter to a value given on the command line.
func SetsTo(spec kudo.InstanceSpec, name, value string) bool {
	if at := slices.IndexFunc(spec.ParametersFrom, func(f kudo.ParameterFrom) bool { return f.Name == name }); at >= 0 {
		return parameter.ReferenceText(spec.ParametersFrom[at].SecretKeyRef) == value
	}
	return spec.Parameters[name] == value
}
