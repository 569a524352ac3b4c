// Package parameter decides which values an Instance's parameters have, and whether they are valid: the definitions of an
// OperatorVersion joined with the strings that were given. It is pure and touches no cluster.
package parameter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Values validates given against the definitions and returns what templates see as .Params.
//
// An array is a []any and a map is a map[string]any, as Decode says; a value of every other type is the string that was
// given or defaulted. A parameter without value and default is "", or an empty list or map; so is one that was emptied.
// The error is an *InvalidError that lists every fault.
func Values(defs []kudo.Parameter, given map[string]string) (map[string]any, error) {
	values := make(map[string]any, len(defs))
	var faults []Fault
	for i := range defs {
		value, fault := valueOf(&defs[i], given)
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		values[defs[i].Name] = value
	}
	faults = append(faults, undefined(defs, given)...)
	if len(faults) > 0 {
		return nil, &InvalidError{Faults: faults}
	}
	return values, nil
}

// Validate is Values without the values.
func Validate(defs []kudo.Parameter, given map[string]string) error {
	_, err := Values(defs, given)
	return err
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
		return false, &InvalidError{Faults: []Fault{{Parameter: name, Reason: notDefined(defs)}}}
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, &InvalidError{Faults: []Fault{{Parameter: name, Value: value, Reason: wantBoolean}}}
	}
	return b, nil
}

// Fault is one thing that is wrong with one parameter.
type Fault struct {
	// Parameter is its name.
	Parameter string
	// Value that was given or defaulted; empty where there is none.
	Value string
	// Reason says what is wrong and what would be right.
	Reason string
}

// String names the parameter, the value (cut where it is long) and what would be right.
func (f Fault) String() string {
	if f.Value == "" {
		return fmt.Sprintf("parameter %q: %s", f.Parameter, f.Reason)
	}
	return fmt.Sprintf("parameter %q: value %s: %s", f.Parameter, quote(f.Value), f.Reason)
}

// InvalidError lists every fault: those of defined parameters in the order of their definition, then the names that are
// not defined, sorted.
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
		return nil, &Fault{Parameter: def.Name, Value: value, Reason: err.Error()}
	}
	return typed, nil
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
		quoted[i] = quote(e)
	}
	return fmt.Errorf("want one of %s", strings.Join(bounded(quoted), ", "))
}

// undefined are the given names without a definition, sorted.
func undefined(defs []kudo.Parameter, given map[string]string) []Fault {
	defined := byName(defs)
	var names []string
	for name := range given {
		if defined[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	faults, reason := make([]Fault, len(names)), notDefined(defs)
	for i, name := range names {
		faults[i] = Fault{Parameter: name, Reason: reason}
	}
	return faults
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

// notDefined says which parameters there are.
func notDefined(defs []kudo.Parameter) string {
	if len(defs) == 0 {
		return "it is not defined: the operator has no parameters"
	}
	names := make([]string, len(defs))
	for i := range defs {
		names[i] = defs[i].Name
	}
	return "it is not defined: the operator has " + strings.Join(bounded(names), ", ")
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

// Bounds of what a message shows, so that a condition stays readable.
const (
	maxShownItems = 12
	maxShownRunes = 60
)

func bounded(items []string) []string {
	if len(items) <= maxShownItems {
		return items
	}
	return append(slices.Clone(items[:maxShownItems]), fmt.Sprintf("and %d more", len(items)-maxShownItems))
}

func quote(value string) string {
	if runes := []rune(value); len(runes) > maxShownRunes {
		return strconv.Quote(string(runes[:maxShownRunes])) + "…"
	}
	return strconv.Quote(value)
}
