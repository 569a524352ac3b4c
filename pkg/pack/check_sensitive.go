package pack

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// sensitiveParameters: nothing in the package reveals the value of a sensitive parameter, and nothing requires that it is known on the hub.
func sensitiveParameters(s *subject) []Problem {
	switches := map[string]string{}
	for i := range s.Tasks {
		for _, name := range parameter.SwitchesOf(&s.Tasks[i]) {
			switches[name] = s.Tasks[i].Name
		}
	}
	var problems []Problem
	for i := range s.Parameters {
		p := &s.Parameters[i]
		if !p.IsSensitive() {
			continue
		}
		add := func(field, format string, args ...any) {
			problems = append(problems, problemAt(parameterField(i, field), "parameter %s is sensitive%s", text.Quote(p.Name), fmt.Sprintf(format, args...)))
		}
		if p.Default != nil {
			add("default", " and cannot have a default, which everyone can read: remove it, and set required: false if it is optional")
		}
		if p.Type != "" && p.Type != kudo.StringType {
			add("value-type", " and must be of type string: parts of a value of another type could not be masked in messages")
		}
		if len(p.Enum) > 0 {
			add("enum", " and cannot have an enum, which everyone can read: remove it")
		}
		if isTrue(p.Immutable) {
			add("immutable", " and cannot be immutable, because its Secret can change at any time: remove one of the two")
		}
		if isTrue(p.Structure) {
			add("structure", " and cannot insert structure, which could become the name of an object: remove one of the two")
		}
		if task, switching := switches[p.Name]; switching {
			add("sensitive", " and cannot enable task %s, whose effect everyone can see: use another parameter", text.Quote(task))
		}
	}
	return problems
}
