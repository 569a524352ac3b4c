// Package parameter computes and validates the parameter values of an Instance: the definitions of an OperatorVersion combined with the
// given strings. It is pure and touches no cluster.
package parameter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MaxBytes limits the parameters of an Instance, names and values together, in bytes of JSON. etcd rejects objects over 1.5 MiB, and an
// Instance holds its parameters twice: in its spec, and in its status as last started.
const MaxBytes = 512 << 10

// Values validates given against the definitions and returns the .Params of templates.
//
// An array is a []any and a map is a map[string]any, as decoded by Decode; a value of any other type is the given or default string. A
// parameter without value and default, or with an empty value, is "", or an empty list or map. The error is an *InvalidError that lists
// every problem.
func Values(defs []kudo.Parameter, given map[string]string) (map[string]any, error) {
	return judge(defs, given, nil)
}

// Validate validates the given parameters for an OperatorVersion: it reports the problems of Values, and parameters that switch a task (a
// Toggle's, KEP-23; an enablingParameter's, KEP-36) and are not boolean or not defined. Admission, the controllers and the verification of
// packages all use it. Sensitive parameters must be given by reference, and no others. The error is an *InvalidError.
func Validate(version *kudo.OperatorVersionSpec, given map[string]string, from []kudo.ParameterFrom) error {
	switches := map[string]string{}
	for i := range version.Tasks {
		for _, name := range SwitchesOf(&version.Tasks[i]) {
			switches[name] = version.Tasks[i].Name
		}
	}
	all, problems := withReferences(version.Parameters, given, from)
	var invalid *InvalidError
	if _, err := judge(version.Parameters, all, switches); errors.As(err, &invalid) {
		problems = append(problems, invalid.Problems...)
	}
	if len(problems) > 0 {
		return &InvalidError{Problems: problems}
	}
	return nil
}

// withReferences returns values for validation in which references count as values, and the problems of references.
func withReferences(defs []kudo.Parameter, given map[string]string, from []kudo.ParameterFrom) (map[string]string, []Problem) {
	defined := byName(defs)
	var problems []Problem
	for i := range defs {
		if _, plain := given[defs[i].Name]; plain && defs[i].IsSensitive() {
			problems = append(problems, Problem{Parameter: defs[i].Name, Reason: "sensitive: a value in spec.parameters is rejected: " +
				"remove it, and refer to a Secret on the managed cluster (spec.parametersFrom, or -p " + defs[i].Name + "=secret:NAME/KEY)"})
		}
	}
	if len(from) == 0 {
		return given, problems
	}
	all := make(map[string]string, len(given)+len(from))
	for name, value := range given {
		all[name] = value
	}
	seen := map[string]bool{}
	for _, f := range from {
		switch def := defined[f.Name]; {
		case seen[f.Name]:
			problems = append(problems, Problem{Parameter: f.Name, Reason: "spec.parametersFrom lists it twice: remove one"})
		case def == nil:
			problems = append(problems, Problem{Parameter: f.Name, Reason: notDefined(f.Name, namesOf(defs))})
		case !def.IsSensitive():
			problems = append(problems, Problem{Parameter: f.Name, Reason: "not sensitive: only a sensitive parameter can refer to a Secret " +
				"(spec.parametersFrom): set a value in spec.parameters"})
		default:
			all[f.Name] = text.Quote(f.SecretKeyRef.Name) // any value that is not empty
		}
		seen[f.Name] = true
	}
	return all, problems
}

// enabled are the kinds of tasks that a parameter can enable.
var enabled = []string{kudo.TaskKudoOperator, kudo.TaskOperator, kudo.TaskHelm}

// SwitchesOf returns the parameters that enable the task; none if it is always enabled.
func SwitchesOf(task *kudo.Task) []string {
	switch {
	case task.Kind == kudo.TaskToggle && task.Spec.Parameter != "":
		return []string{task.Spec.Parameter}
	case slices.Contains(enabled, task.Kind) && task.Spec.EnablingParameter != "":
		return []string{task.Spec.EnablingParameter}
	default:
		return nil
	}
}

// judge is Values with switches: the parameters that switches names, each with a task that it switches, must be defined and boolean,
// whatever their type.
func judge(defs []kudo.Parameter, given, switches map[string]string) (map[string]any, error) {
	values := make(map[string]any, len(defs))
	var problems []Problem
	for i := range defs {
		value, problem := valueOf(&defs[i], given)
		if _, isSwitch := switches[defs[i].Name]; isSwitch && problem == nil {
			problem = switchProblem(defs[i].Name, InForce(&defs[i], given))
		}
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		values[defs[i].Name] = value
	}
	problems = append(problems, undefinedProblems(defs, given, switches)...)
	problems = append(problems, sizeProblems(given)...)
	if len(problems) > 0 {
		return nil, &InvalidError{Problems: problems}
	}
	return values, nil
}

// Effective returns the effective value of one parameter (given, else its default, else ""), and whether the parameter is defined.
func Effective(defs []kudo.Parameter, given map[string]string, name string) (value string, defined bool) {
	def := find(defs, name)
	if def == nil {
		return "", false
	}
	return InForce(def, given), true
}

// InForce returns the effective value of the parameter with that definition; "" if there is none.
func InForce(def *kudo.Parameter, given map[string]string) string {
	if value, ok := given[def.Name]; ok {
		return value
	}
	if def.Default != nil {
		return *def.Default
	}
	return ""
}

// Bool parses a parameter like Toggle and enablingParameter do (KEP-23, KEP-36): with strconv.ParseBool, whatever its type. The error, an
// *InvalidError, names the parameter and its value.
func Bool(defs []kudo.Parameter, given map[string]string, name string) (bool, error) {
	value, defined := Effective(defs, given, name)
	if !defined {
		return false, &InvalidError{Problems: []Problem{{Parameter: name, Reason: notDefined(name, namesOf(defs))}}}
	}
	if problem := switchProblem(name, value); problem != nil {
		return false, &InvalidError{Problems: []Problem{*problem}}
	}
	return strconv.ParseBool(value)
}

// switchProblem reports a switching value that is neither true nor false.
func switchProblem(name, value string) *Problem {
	if _, err := strconv.ParseBool(value); err != nil {
		return &Problem{Parameter: name, Value: value, Reason: wantBoolean}
	}
	return nil
}

// Problem is one problem of one parameter.
type Problem struct {
	// Parameter is the name of the parameter.
	Parameter string
	// Value is the given or default value; empty if there is none, or if it may be a secret.
	Value string
	// Reason describes the problem and a valid value.
	Reason string
	// Whole is true if all parameters together are too large, and this one is the largest.
	Whole bool
}

// String formats the parameter, the value (truncated if long) and the reason.
func (f Problem) String() string {
	if f.Value == "" {
		return fmt.Sprintf("parameter %q: %s", f.Parameter, f.Reason)
	}
	return fmt.Sprintf("parameter %q: value %s: %s", f.Parameter, text.Quote(f.Value), f.Reason)
}

// InvalidError lists every problem: first those of defined parameters in the order of their definition, then given names without a
// definition, sorted, then those that switch a task, and last the largest value if all together are too large.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	sentences := make([]string, len(e.Problems))
	for i, f := range e.Problems {
		sentences[i] = f.String()
	}
	return strings.Join(sentences, "; ")
}

// The valid values of each type.
const (
	wantInteger = `must be an integer, such as 3`
	wantNumber  = `must be a decimal number, such as 0.5 or 1e6`
	wantBoolean = `must be true or false`
)

// valueOf returns the value of one parameter for templates. An empty value is no value, whatever the type or enum (KUDO's rule).
func valueOf(def *kudo.Parameter, given map[string]string) (any, *Problem) {
	value := InForce(def, given)
	if value == "" {
		return emptyValue(def)
	}
	typed, err := typedValue(def.Type, value)
	if err == nil {
		err = checkEnum(def, value, typed)
	}
	if err != nil {
		return nil, &Problem{Parameter: def.Name, Value: presentable(def, value), Reason: err.Error()}
	}
	return typed, nil
}

// presentable returns a value as messages may show it. Conditions, events and warnings have more readers than the Instance: text, lists and
// maps, which may hold a password, are replaced by "", and so are sensitive values of any type. Numbers, booleans, enum values and the
// package's own default are shown.
func presentable(def *kudo.Parameter, value string) string {
	if def.IsSensitive() {
		return ""
	}
	if len(def.Enum) > 0 || (def.Default != nil && value == *def.Default) {
		return value
	}
	switch def.Type {
	case kudo.IntegerType, kudo.NumberType, kudo.BooleanType:
		return value
	default:
		return ""
	}
}

func emptyValue(def *kudo.Parameter) (any, *Problem) {
	if def.Required != nil && *def.Required && def.Default == nil {
		reason := "required, but has neither a value nor a default: set it"
		if def.IsSensitive() {
			reason = "required and sensitive: refer to a Secret on the managed cluster (spec.parametersFrom, or -p " + def.Name + "=secret:NAME/KEY)"
		}
		return nil, &Problem{Parameter: def.Name, Reason: reason}
	}
	switch def.Type {
	case kudo.ArrayType:
		return []any{}, nil
	case kudo.MapType:
		return map[string]any{}, nil
	default:
		return "", nil
	}
}

// typedValue checks value against a type.
func typedValue(t kudo.ParameterType, value string) (any, error) {
	switch t {
	case "", kudo.StringType:
		return value, nil
	case kudo.IntegerType:
		return value, require(isInteger(value), wantInteger)
	case kudo.NumberType:
		return value, require(isNumber(value), wantNumber)
	case kudo.BooleanType:
		_, err := strconv.ParseBool(value)
		return value, require(err == nil, wantBoolean)
	case kudo.ArrayType, kudo.MapType:
		return Decode(t, value)
	default:
		return nil, fmt.Errorf("unknown type %q: the package must use one of string, integer, number, boolean, array, map", t)
	}
}

// checkEnum checks value against the definition's enum. Lists and maps are compared by content, everything else by text.
func checkEnum(def *kudo.Parameter, value string, typed any) error {
	if len(def.Enum) == 0 || slices.ContainsFunc(def.Enum, func(e string) bool {
		return e == value || sameContent(def.Type, e, typed)
	}) {
		return nil
	}
	quoted := make([]string, len(def.Enum))
	for i, e := range def.Enum {
		quoted[i] = text.Quote(e)
	}
	return fmt.Errorf("must be one of %s", strings.Join(text.Limit(quoted, maxShownItems, "more"), ", "))
}

// undefinedProblems returns the names without a definition that are given or switch a task, each kind sorted.
func undefinedProblems(defs []kudo.Parameter, given, switches map[string]string) []Problem {
	defined, names := byName(defs), namesOf(defs)
	isDefined := func(name string) bool { return defined[name] != nil }
	var problems []Problem
	for i, name := range slices.DeleteFunc(slices.Sorted(maps.Keys(given)), isDefined) {
		meant := name
		if i >= maxShownItems {
			meant = "" // long lists are not useful, and there may be thousands
		}
		problems = append(problems, Problem{Parameter: name, Reason: notDefined(meant, names)})
	}
	for _, name := range slices.DeleteFunc(slices.Sorted(maps.Keys(switches)), isDefined) {
		problems = append(problems, Problem{Parameter: name, Reason: fmt.Sprintf(
			"enables task %q, but is not defined in the OperatorVersion: push a corrected version", switches[name])})
	}
	return problems
}

// sizeProblems reports the largest value if all together exceed the limit of an Instance.
func sizeProblems(given map[string]string) []Problem {
	text, err := json.Marshal(given)
	if err != nil || len(text) <= MaxBytes { // plain text always marshals
		return nil
	}
	largest := ""
	for name, value := range given {
		longer := cmp.Compare(len(value), len(given[largest]))
		if longer > 0 || (longer == 0 && name < largest) {
			largest = name
		}
	}
	return []Problem{{Whole: true, Parameter: largest, Reason: fmt.Sprintf("all parameters together have %d bytes, more than the limit of %d "+
		"for an Instance, and this one is the largest with %d: shorten it, or store it in a Secret or ConfigMap and pass the name of that object",
		len(text), MaxBytes, len(given[largest]))}}
}

// byName returns the first definition of each name.
func byName(defs []kudo.Parameter) map[string]*kudo.Parameter {
	found := make(map[string]*kudo.Parameter, len(defs))
	for i := range defs {
		if _, twice := found[defs[i].Name]; !twice {
			found[defs[i].Name] = &defs[i]
		}
	}
	return found
}

// notDefined suggests which of the defined parameters was meant.
func notDefined(name string, names []string) string {
	if len(names) == 0 {
		return "not defined: the operator has no parameters"
	}
	if meant := text.ClosestMatch(name, names); meant != "" {
		return fmt.Sprintf("not defined: did you mean %s?", meant)
	}
	return "not defined: the operator has " + strings.Join(text.Limit(names, maxShownItems, "more"), ", ")
}

func namesOf(defs []kudo.Parameter) []string {
	names := make([]string, len(defs))
	for i := range defs {
		names[i] = defs[i].Name
	}
	return names
}

func find(defs []kudo.Parameter, name string) *kudo.Parameter {
	i := slices.IndexFunc(defs, func(d kudo.Parameter) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &defs[i]
}

func require(ok bool, want string) error {
	if ok {
		return nil
	}
	return errors.New(want)
}

// maxShownItems limits the items in a message, so that a condition stays readable.
const maxShownItems = 12
