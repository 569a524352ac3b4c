package parameter

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Setting holds the parameters that an Instance sets, and their definitions in the OperatorVersion.
type Setting struct {
	Definitions []kudo.Parameter
	Given       map[string]string
}

// Immutable lists the immutable parameters whose effective value differs between before and after, in the order of their definition:
// parameters that were changed or unset, and parameters with another default or without a definition in the new OperatorVersion.
//
// An OperatorVersion may make a parameter mutable and change it from then on (KEP-30), which is also how a package removes one. Unlike in
// KUDO it may not drop one directly: the version after that could reintroduce it with another value.
func Immutable(before, after Setting) []Problem {
	var problems []Problem
	definitions := byName(after.Definitions)
	for i := range before.Definitions {
		was := &before.Definitions[i]
		if !isTrue(was.Immutable) {
			continue
		}
		kept := InForce(was, before.Given)
		now := definitions[was.Name]
		switch {
		case now == nil && kept != "":
			problems = append(problems, Problem{Parameter: was.Name, Reason: fmt.Sprintf(
				"immutable, and its current value is %s, but the other OperatorVersion does not define it: use one that does", shownValue(was, kept))})
		case now != nil && isTrue(now.Immutable) && !same(now.Type, InForce(now, after.Given), kept):
			problems = append(problems, Problem{Parameter: was.Name, Value: presentable(now, InForce(now, after.Given)), Reason: fmt.Sprintf(
				"immutable, and its current value is %s: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again", shownValue(was, kept))})
		}
	}
	return problems
}

// shownValue returns the effective value as messages may show it.
func shownValue(def *kudo.Parameter, kept string) string {
	if kept != "" && presentable(def, kept) == "" {
		return "not shown"
	}
	return text.Quote(kept)
}

// same reports whether two values are equivalent. Lists and maps are compared by content.
func same(t kudo.ParameterType, a, b string) bool {
	if a == b || (t != kudo.ArrayType && t != kudo.MapType) {
		return a == b
	}
	typed, err := Decode(t, a)
	return err == nil && sameContent(t, b, typed)
}

func isTrue(b *bool) bool { return b != nil && *b }
