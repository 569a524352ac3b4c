package ui

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// parameterRow is a parameter with its value as it is shown.
type parameterRow struct{ Name, Value string }

// parameterForm sets parameters, one at a time. It asks for no value of a sensitive parameter, but for the Secret that has it.
type parameterForm struct {
	Path, Token string
	// Fields are the other fields, which have the parameters that are set already.
	Fields map[string]string
	// Plain are the parameters whose values are given, Sensitive those whose values are in Secrets.
	Plain, Sensitive []parameterRow
	// Reset is set if parameters can be reset to their defaults.
	Reset bool
}

// parametersOf returns the parameters of a spec, without plain values of sensitive ones: admission refuses those, but may not have been
// in place.
func parametersOf(spec kudo.InstanceSpec, version *kudo.OperatorVersion) map[string]string {
	texts := maps.Clone(change.TextsOf(spec))
	if version == nil {
		return texts
	}
	for _, defined := range version.Spec.Parameters {
		if _, plain := spec.Parameters[defined.Name]; plain && defined.IsSensitive() {
			texts[defined.Name] = "***"
		}
	}
	return texts
}

// maxValueLength is the number of characters that the form shows of a value.
const maxValueLength = 40

// parameterFormOf returns the form for the parameters that a version defines, with their values. Without a version, which defines the
// sensitive ones, it has none.
func parameterFormOf(version *kudo.OperatorVersion, spec kudo.InstanceSpec) parameterForm {
	form := parameterForm{}
	if version == nil {
		return form
	}
	texts := parametersOf(spec, version)
	for _, defined := range version.Spec.Parameters {
		value, set := texts[defined.Name]
		if !set && defined.Default != nil {
			value = *defined.Default
		}
		row := parameterRow{defined.Name, text.Head(text.OneLine(value), maxValueLength)}
		if defined.IsSensitive() {
			form.Sensitive = append(form.Sensitive, row)
		} else {
			form.Plain = append(form.Plain, row)
		}
	}
	return form
}

// limitedTo returns the form for some of its parameters, or for all if it has none of them.
func (f parameterForm) limitedTo(names []string) parameterForm {
	isOther := func(row parameterRow) bool { return !slices.Contains(names, row.Name) }
	limited := f
	limited.Plain = slices.DeleteFunc(slices.Clone(f.Plain), isOther)
	limited.Sensitive = slices.DeleteFunc(slices.Clone(f.Sensitive), isOther)
	if len(limited.Plain)+len(limited.Sensitive) == 0 {
		return f
	}
	return limited
}

// given are the parameters of a request, as they are given on the command line.
type given struct {
	set   map[string]string
	unset []string
}

// setField and unsetField begin the names of fields with parameters that a preview has shown. Their values are escaped: pages escape invisible
// characters of texts, and browsers send other line breaks than they receive.
const setField, unsetField = "set.", "unset."

var errUnknownVersion = errors.New("the OperatorVersion, which defines the sensitive parameters, cannot be read: " +
	"set parameters with the plugin")

// previousParameters returns the parameters that a preview has shown, without the one that the request sets.
func previousParameters(r *http.Request, name string) (given, error) {
	g := given{set: map[string]string{}}
	for field, values := range r.PostForm {
		if of, found := strings.CutPrefix(field, setField); found && of != name {
			value, err := url.PathUnescape(values[0])
			if err != nil {
				return given{}, fmt.Errorf("field %q is not one of the preview", field)
			}
			g.set[of] = value
		}
		if of, found := strings.CutPrefix(field, unsetField); found && of != name {
			g.unset = append(g.unset, of)
		}
	}
	slices.Sort(g.unset)
	return g, nil
}

// givenBy returns the parameters of a request. It returns an error for a sensitive parameter with a value instead of a Secret and a key; the
// error does not quote the value.
func givenBy(r *http.Request, version *kudo.OperatorVersion) (given, error) {
	name := r.PostFormValue("parameter")
	g, err := previousParameters(r, name)
	switch {
	case err != nil, name == "":
	case r.PostFormValue("reset") != "":
		g.unset = append(g.unset, name)
	default:
		g.set[name], err = valueOf(r, name, version)
	}
	if err != nil || len(g.set) == 0 {
		return g, err
	}
	if version == nil {
		return given{}, errUnknownVersion
	}
	if _, _, problems := parameter.References(version.Spec.Parameters, g.set); len(problems) > 0 {
		return given{}, &parameter.InvalidError{Problems: problems}
	}
	return g, nil
}

// valueOf returns the value of a parameter that a request sets: of a sensitive one, the reference to its Secret.
func valueOf(r *http.Request, name string, version *kudo.OperatorVersion) (string, error) {
	if version == nil {
		return "", errUnknownVersion
	}
	value, secret, key := r.PostFormValue("value"), r.PostFormValue("secret"), r.PostFormValue("key")
	sensitive := slices.ContainsFunc(version.Spec.Parameters, func(p kudo.Parameter) bool { return p.Name == name && p.IsSensitive() })
	switch {
	case sensitive && (value != "" || secret == "" || key == ""):
		return "", fmt.Errorf("parameter %q is sensitive: name a Secret on the managed cluster and the key of the value in it; "+
			"the value itself is not accepted", name)
	case sensitive:
		return parameter.ReferenceText(kudo.SecretKeyRef{Name: secret, Key: key}), nil
	case secret != "" || key != "":
		return "", fmt.Errorf("parameter %q is not sensitive: its value cannot be in a Secret", name)
	default:
		return strings.ReplaceAll(value, "\r\n", "\n"), nil // browsers send both
	}
}

// fields returns the fields that repeat the parameters.
func (g given) fields() map[string]string {
	fields := make(map[string]string, len(g.set)+len(g.unset))
	for name, value := range g.set {
		fields[setField+name] = url.PathEscape(value)
	}
	for _, name := range g.unset {
		fields[unsetField+name] = "yes"
	}
	return fields
}

// flags returns the flags of the plugin that set the parameters.
func (g given) flags() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(g.set)) {
		b.WriteString(" -p " + text.ShellWord(name+"="+g.set[name]))
	}
	if len(g.unset) > 0 {
		b.WriteString(" --unset " + text.ShellWord(strings.Join(g.unset, ",")))
	}
	return b.String()
}
