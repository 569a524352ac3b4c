package parameter

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Setting is what an Instance sets, and the definitions of the OperatorVersion that it sets it for.
type Setting struct {
	Definitions []kudo.Parameter
	Given       map[string]string
}

// Immutable lists the immutable parameters whose value in force is another one after than before, in the order of their
// definition: those that were set anew or unset, and those that the OperatorVersion after has another default for or does not
// define any more.
//
// An OperatorVersion may make a parameter mutable and change it from then on (KEP-30), which is also how a package gets rid of
// one. Unlike in KUDO it may not drop one immediately: the version after that could bring it back with another value.
func Immutable(before, after Setting) []Fault {
	var faults []Fault
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
			faults = append(faults, Fault{Parameter: was.Name, Reason: fmt.Sprintf(
				"it is immutable and stands at %s, and the other OperatorVersion does not define it: choose one that does", standing(was, kept))})
		case now != nil && isTrue(now.Immutable) && !same(now.Type, InForce(now, after.Given), kept):
			faults = append(faults, Fault{Parameter: was.Name, Value: presentable(now, InForce(now, after.Given)), Reason: fmt.Sprintf(
				"it is immutable and stands at %s: set that, or delete the Instance and create it anew", standing(was, kept))})
		}
	}
	return faults
}

// standing is the value in force as messages may show it.
func standing(def *kudo.Parameter, kept string) string {
	if kept != "" && presentable(def, kept) == "" {
		return "a value that is not shown"
	}
	return text.Quote(kept)
}

// same reports whether two values mean the same. Lists and maps do by their content, however they are written.
func same(t kudo.ParameterType, a, b string) bool {
	if a == b || (t != kudo.ArrayType && t != kudo.MapType) {
		return a == b
	}
	typed, err := Decode(t, a)
	return err == nil && sameContent(t, b, typed)
}

func isTrue(b *bool) bool { return b != nil && *b }
