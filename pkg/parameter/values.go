// Package parameter decides which values an Instance's parameters have, and whether they are valid: the definitions of an
// OperatorVersion joined with the strings that were given. It is pure and touches no cluster.
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

// MaxBytes bounds what an Instance gives, names and values together, in bytes of JSON. etcd refuses objects over 1.5 MiB, and an
// Instance holds its parameters twice: in its spec, and in its status as they were last started.
const MaxBytes = 512 << 10

// Values validates given against the definitions and returns what templates see as .Params.
//
// An array is a []any and a map is a map[string]any, as Decode says; a value of every other type is the string that was
// given or defaulted. A parameter without value and default is "", or an empty list or map; so is one that was emptied.
// The error is an *InvalidError that lists every fault.
func Values(defs []kudo.Parameter, given map[string]string) (map[string]any, error) {
	return judge(defs, given, nil)
}

// Validate is everything that is wrong with what is given for an OperatorVersion: the faults of Values, and parameters that are to
// switch a task (a Toggle's, KEP-23; an enablingParameter's, KEP-36) and are not boolean, or not there. Admission, the controllers and
// the verification of packages all judge by it. The error is an *InvalidError.
func Validate(version *kudo.OperatorVersionSpec, given map[string]string) error {
	switches := map[string]string{}
	for i := range version.Tasks {
		for _, name := range SwitchesOf(&version.Tasks[i]) {
			switches[name] = version.Tasks[i].Name
		}
	}
	_, err := judge(version.Parameters, given, switches)
	return err
}

// SwitchesOf are the parameters that report whether the task does its work; none where it always does.
func SwitchesOf(task *kudo.Task) []string {
	switch {
	case task.Kind == kudo.TaskToggle && task.Spec.Parameter != "":
		return []string{task.Spec.Parameter}
	case (task.Kind == kudo.TaskKudoOperator || task.Kind == kudo.TaskOperator) && task.Spec.EnablingParameter != "":
		return []string{task.Spec.EnablingParameter}
	default:
		return nil
	}
}

// judge is Values; the parameters that switches names, each with a task that it switches, have to be there, and boolean, whatever their
// type.
func judge(defs []kudo.Parameter, given, switches map[string]string) (map[string]any, error) {
	values := make(map[string]any, len(defs))
	var faults []Fault
	for i := range defs {
		value, fault := valueOf(&defs[i], given)
		if _, isSwitch := switches[defs[i].Name]; isSwitch && fault == nil {
			fault = switchFault(defs[i].Name, InForce(&defs[i], given))
		}
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		values[defs[i].Name] = value
	}
	faults = append(faults, undefined(defs, given, switches)...)
	faults = append(faults, oversized(given)...)
	if len(faults) > 0 {
		return nil, &InvalidError{Faults: faults}
	}
	return values, nil
}

// Effective is the value in force of one parameter (given, else its default, else ""), and whether the parameter is defined.
func Effective(defs []kudo.Parameter, given map[string]string, name string) (value string, defined bool) {
	def := find(defs, name)
	if def == nil {
		return "", false
	}
	return InForce(def, given), true
}

// InForce is the value in force of the parameter with that definition, "" where there is none.
func InForce(def *kudo.Parameter, given map[string]string) string {
	if value, ok := given[def.Name]; ok {
		return value
	}
	if def.Default != nil {
		return *def.Default
	}
	return ""
}

// Bool reads a parameter as Toggle and enablingParameter do (KEP-23, KEP-36): by strconv.ParseBool, whatever its type.
// The error, an *InvalidError, names the parameter and its value.
func Bool(defs []kudo.Parameter, given map[string]string, name string) (bool, error) {
	value, defined := Effective(defs, given, name)
	if !defined {
		return false, &InvalidError{Faults: []Fault{{Parameter: name, Reason: notDefined(name, namesOf(defs))}}}
	}
	if fault := switchFault(name, value); fault != nil {
		return false, &InvalidError{Faults: []Fault{*fault}}
	}
	return strconv.ParseBool(value)
}

// switchFault: what is neither true nor false switches nothing.
func switchFault(name, value string) *Fault {
	if _, err := strconv.ParseBool(value); err != nil {
		return &Fault{Parameter: name, Value: value, Reason: wantBoolean}
	}
	return nil
}

// Fault is one thing that is wrong with one parameter.
type Fault struct {
	// Parameter is its name.
	Parameter string
	// Value that was given or defaulted; empty where there is none, and where it may be a secret.
	Value string
	// Reason says what is wrong and what would be right.
	Reason string
	// Whole is true if it is all parameters together that are wrong, and this one more than the others.
	Whole bool
}

// String names the parameter, the value (cut where it is long) and what would be right.
func (f Fault) String() string {
	if f.Value == "" {
		return fmt.Sprintf("parameter %q: %s", f.Parameter, f.Reason)
	}
	return fmt.Sprintf("parameter %q: value %s: %s", f.Parameter, text.Quote(f.Value), f.Reason)
}

// InvalidError lists every fault: those of defined parameters in the order of their definition, then the names that are
// given and not defined, sorted, then those that switch a task, and then the one that is to blame where all together are too large.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string {
	sentences := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		sentences[i] = f.String()
	}
	return strings.Join(sentences, "; ")
}

// What would be right, by type.
const (
	wantInteger = `want an integer, such as 3`
	wantNumber  = `want a decimal number, such as 0.5 or 1e6`
	wantBoolean = `want true or false`
)

// valueOf is what templates see for one parameter. An empty value is no value, whatever the type or enum (KUDO's rule).
func valueOf(def *kudo.Parameter, given map[string]string) (any, *Fault) {
	value := InForce(def, given)
	if value == "" {
		return emptyValue(def)
	}
	typed, err := typedValue(def.Type, value)
	if err == nil {
		err = allowed(def, value, typed)
	}
	if err != nil {
		return nil, &Fault{Parameter: def.Name, Value: presentable(def, value), Reason: err.Error()}
	}
	return typed, nil
}

// presentable is a value as messages may show it, for conditions, events and warnings are read by more people than the Instance
// is: "" for text, lists and maps, which may hold a password. What is to be a number, a boolean or one of an enum does not, nor does
// the package's own default.
func presentable(def *kudo.Parameter, value string) string {
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

func emptyValue(def *kudo.Parameter) (any, *Fault) {
	if def.Required != nil && *def.Required && def.Default == nil {
		return nil, &Fault{Parameter: def.Name, Reason: "it is required and has neither a value nor a default: set it"}
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
		return nil, fmt.Errorf("its type %q is not known: the package must use one of string, integer, number, boolean, array, map", t)
	}
}

// allowed checks value against the definition's enum. Lists and maps are compared by content, everything else by text.
func allowed(def *kudo.Parameter, value string, typed any) error {
	if len(def.Enum) == 0 || slices.ContainsFunc(def.Enum, func(e string) bool {
		return e == value || sameContent(def.Type, e, typed)
	}) {
		return nil
	}
	quoted := make([]string, len(def.Enum))
	for i, e := range def.Enum {
		quoted[i] = text.Quote(e)
	}
	return fmt.Errorf("want one of %s", strings.Join(text.Limit(quoted, maxShownItems, "more"), ", "))
}

// undefined are the names without a definition that are given or switch a task, each kind sorted.
func undefined(defs []kudo.Parameter, given, switches map[string]string) []Fault {
	defined, names := byName(defs), namesOf(defs)
	isDefined := func(name string) bool { return defined[name] != nil }
	var faults []Fault
	for i, name := range slices.DeleteFunc(slices.Sorted(maps.Keys(given)), isDefined) {
		meant := name
		if i >= maxShownItems {
			meant = "" // nobody reads so many, and there may be thousands
		}
		faults = append(faults, Fault{Parameter: name, Reason: notDefined(meant, names)})
	}
	for _, name := range slices.DeleteFunc(slices.Sorted(maps.Keys(switches)), isDefined) {
		faults = append(faults, Fault{Parameter: name, Reason: fmt.Sprintf(
			"it switches task %q, and the OperatorVersion does not define it: push a corrected version", switches[name])})
	}
	return faults
}

// oversized blames the largest value where all together are larger than an Instance can hold.
func oversized(given map[string]string) []Fault {
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
	return []Fault{{Whole: true, Parameter: largest, Reason: fmt.Sprintf("all parameters together have %d bytes, more than the %d that an Instance "+
		"can hold, and its %d are the most: shorten it, or put it into a Secret or ConfigMap and give the package its name",
		len(text), MaxBytes, len(given[largest]))}}
}

// byName is the first definition of each name.
func byName(defs []kudo.Parameter) map[string]*kudo.Parameter {
	found := make(map[string]*kudo.Parameter, len(defs))
	for i := range defs {
		if _, twice := found[defs[i].Name]; !twice {
			found[defs[i].Name] = &defs[i]
		}
	}
	return found
}

// notDefined says which of the parameters there are may be meant.
func notDefined(name string, names []string) string {
	if len(names) == 0 {
		return "it is not defined: the operator has no parameters"
	}
	if meant := text.ClosestMatch(name, names); meant != "" {
		return fmt.Sprintf("it is not defined: did you mean %q?", meant)
	}
	return "it is not defined: the operator has " + strings.Join(text.Limit(names, maxShownItems, "more"), ", ")
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

// maxShownItems bounds what a message shows, so that a condition stays readable.
const maxShownItems = 12
