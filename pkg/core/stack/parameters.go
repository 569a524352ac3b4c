package stack

import (
	"errors"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Parameter is a value that a stack file sets.
type Parameter struct {
	Name, Value string
	Place
}

// ParametersOf returns the parameters of a package that an add-on sets, in the order of the file.
func ParametersOf(e Entry) (given []Parameter, problems []Problem) {
	if e.Parameters == nil {
		return nil, nil
	}
	d := &document{}
	d.entries(e.Parameters, "parameters", func(key, value *yamlv3.Node) {
		written, isSet, err := parameter.TextOf(value)
		switch {
		case err != nil:
			d.add(value, "parameter %s: %v", text.Quote(key.Value), err)
		case !isSet:
			d.add(value, "parameter %s has no value: leave it out to have the default of the package", text.Quote(key.Value))
		default:
			given = append(given, Parameter{Name: key.Value, Value: written, Place: placeOf(value)})
		}
	})
	return given, d.problems
}

// CheckParameters checks the parameters that an add-on sets against its OperatorVersion, and returns the problems in the stack file.
func CheckParameters(e Entry, version *kudo.OperatorVersionSpec, given []Parameter) []Problem {
	values, places := make(map[string]string, len(given)), make(map[string]Place, len(given))
	var problems []Problem
	for _, p := range given {
		values[p.Name], places[p.Name] = p.Value, p.Place
	}
	plain, from, wrong := parameter.References(version.Parameters, values)
	var invalid *parameter.InvalidError
	if errors.As(parameter.Validate(version, plain, from), &invalid) {
		wrong = append(wrong, invalid.Problems...)
	}
	met := map[string]bool{}
	for _, found := range wrong {
		if met[found.Parameter] {
			continue // a wrong reference also counts as missing
		}
		met[found.Parameter] = true
		place, isGiven := places[found.Parameter]
		if !isGiven {
			place = e.Name.Place
		}
		problems = append(problems, Problem{Place: place, Message: fmt.Sprintf("add-on %s: %s", text.Quote(e.Name.Value), found)})
	}
	return problems
}
