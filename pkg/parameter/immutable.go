package parameter

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
// one. Unlike in KUDO it may not drop one at once: the version after that could bring it back with another value.
func Immutable(before, after Setting) []Fault {
	var faults []Fault
	definitions := byName(after.Definitions)
	for i := range before.Definitions {
		was := &before.Definitions[i]
		if !isTrue(was.Immutable) {
			continue
		}
		kept := InForce(was, before.Given)
		switch now := definitions[was.Name]; {
		case now == nil && kept != "":
			faults = append(faults, Fault{Parameter: was.Name, Reason: fmt.Sprintf(
				"it is immutable and stands at %s, and the other OperatorVersion does not define it: choose one that does", quote(kept))})
		case now != nil && isTrue(now.Immutable) && InForce(now, after.Given) != kept:
			faults = append(faults, Fault{Parameter: was.Name, Value: InForce(now, after.Given), Reason: fmt.Sprintf(
				"it is immutable and stands at %s: set that, or delete the Instance and create it anew", quote(kept))})
		}
	}
	return faults
}

func isTrue(b *bool) bool { return b != nil && *b }
