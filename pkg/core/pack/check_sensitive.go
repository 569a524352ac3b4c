package pack

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
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
		task, switching := switches[p.Name]
		for _, rule := range []struct {
			broken      bool
			field, text string
		}{
			{p.Default != nil, "default", "cannot have a default, which everyone can read: remove it, and set required: false if it is optional"},
			{p.Type != "" && p.Type != kudo.StringType, "value-type", "must be of type string: parts of a value of another type could not be masked in messages"},
			{len(p.Enum) > 0, "enum", "cannot have an enum, which everyone can read: remove it"},
			{isTrue(p.Immutable), "immutable", "cannot be immutable, because its Secret can change at any time: remove one of the two"},
			{isTrue(p.Structure), "structure", "cannot insert structure, which could become the name of an object: remove one of the two"},
			{switching, "sensitive", fmt.Sprintf("cannot enable task %s, whose effect everyone can see: use another parameter", text.Quote(task))},
		} {
			if rule.broken {
				problems = append(problems, problemAt(parameterField(i, rule.field), "parameter %s is sensitive and %s", text.Quote(p.Name), rule.text))
			}
		}
	}
	return problems
}
