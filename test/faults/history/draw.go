package history

import (
	"slices"

	"pgregory.net/rapid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// immutable is the immutable parameter of the package.
const immutable = "REGION"

// Draw draws the arguments of a change.
func Draw(t *rapid.T, do string, definitions []kudo.Parameter) Change {
	c := Change{Do: do}
	switch do {
	case Install:
		c.Version, c.Set = DrawVersion(t), values(t, definitions, 3)
	case Update:
		c.Set = values(t, definitions, 2)
	case Upgrade:
		c.Version = DrawVersion(t)
	case Run:
		c.Plan = rapid.SampledFrom([]string{"deploy", "backup", "tune", "exporter", "cleanup", "none"}).Draw(t, "plan")
	}
	return c
}

// DrawVersion draws a version of the package.
func DrawVersion(t *rapid.T) string {
	return rapid.SampledFrom([]string{"1.0.0", "2.0.0"}).Draw(t, "version")
}

// DrawFirst draws the first installation, with any of the features.
func DrawFirst(t *rapid.T) Change {
	set := map[string]*string{}
	for _, name := range []string{"CACHE", "PERSIST", "METRICS"} {
		if rapid.Bool().Draw(t, name) {
			set[name] = new("true")
		}
	}
	return Change{Do: Install, Version: "1.0.0", Set: set}
}

// Definitions returns the parameters of the package. It repeats the parameters of children, which pass through more programs, so that they
// are drawn more often.
func Definitions(loaded []*kudo.OperatorVersion) []kudo.Parameter {
	var definitions []kudo.Parameter
	for _, version := range loaded {
		if version.Spec.Operator.Name == Operator {
			definitions = version.Spec.Parameters
		}
	}
	for _, p := range slices.Clone(definitions) {
		if slices.Contains([]string{"CACHE", "CACHE_SIZE", "PERSIST"}, p.Name) {
			definitions = append(slices.Clip(definitions), p, p)
		}
	}
	return definitions
}

// values draws values of parameters from their types, valid and invalid ones, and parameters to remove.
func values(t *rapid.T, definitions []kudo.Parameter, limit int) map[string]*string {
	set := map[string]*string{}
	for range rapid.IntRange(1, limit).Draw(t, "parameters") {
		p := rapid.SampledFrom(definitions).Draw(t, "parameter")
		choices := append([]string{""}, valid(p)...)
		if rapid.IntRange(0, 5).Draw(t, "invalid") == 5 {
			choices = invalid(p)
			if rapid.IntRange(0, 3).Draw(t, "undefined") == 3 {
				p.Name = "MISSPELT"
			}
		}
		value := rapid.SampledFrom(choices).Draw(t, "value")
		set[p.Name] = &value
		if rapid.IntRange(0, 4).Draw(t, "removed") == 4 {
			set[p.Name] = nil
		}
	}
	return set
}

// valid returns values of the parameter's type.
func valid(p kudo.Parameter) []string {
	switch {
	case len(p.Enum) > 0:
		return p.Enum
	case p.Name == "CACHE_SIZE":
		return []string{"2", "3", "13"}
	case p.Name == immutable:
		return []string{"eu", "us"} // a bad value of an immutable parameter stays: only a new Instance recovers
	}
	switch p.Type {
	case kudo.IntegerType:
		return []string{"1", "2", "3"}
	case kudo.NumberType:
		return []string{"0.5", "1e3", ".25"}
	case kudo.BooleanType:
		return []string{"true", "false", "T", "0"}
	case kudo.ArrayType:
		return []string{"[a]", "[b, a]", "[c]", "[]"}
	case kudo.MapType:
		return []string{"{a: b}", "{a: [1, 2.50]}", "{}"}
	default:
		return []string{"one", "two", "a: b", "text\n---\nkind: Secret"} // the last two change the structure of an unquoted scalar
	}
}

// invalid returns values that are not of the parameter's type.
func invalid(p kudo.Parameter) []string {
	switch p.Type {
	case kudo.IntegerType, kudo.NumberType, kudo.BooleanType:
		return []string{"many", "1,5"}
	case kudo.ArrayType:
		return []string{"{a: b}", "[", "*a"}
	case kudo.MapType:
		return []string{"[a]", "{", "{a: 1, a: 2}"}
	default:
		if len(p.Enum) > 0 {
			return []string{"none of them"}
		}
		return []string{""}
	}
}
