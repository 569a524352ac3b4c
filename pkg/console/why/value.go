package why

import (
	"cmp"
	"maps"
	"regexp"
	"slices"

	"github.com/tandem-addons/tandem/pkg/text"
)

// maxValues is the maximum number of parameters in a suggested command. A command that corrects only some of them is refused.
const maxValues = 32

// badValue matches the beginning of a message about an invalid parameter.
var badValue = regexp.MustCompile(`(?:parameter "([^"]+)"|variable ([A-Za-z_][A-Za-z0-9_]*)): `)

// valuesFor returns the flags that set the missing and invalid parameters that a message names, each with a value that it gives as an example; empty if
// it names none.
func valuesFor(message string) (flags string) {
	found := badValue.FindAllStringSubmatchIndex(message, -1)
	names := map[string]bool{}
	for at, match := range found {
		problem := message[match[1]:]
		if at+1 < len(found) {
			problem = message[match[1]:found[at+1][0]]
		}
		name := message[max(match[2], match[4]):max(match[3], match[5])]
		if names[name] || len(names) == maxValues {
			continue
		}
		names[name] = true
		flags += " -p " + text.ShellWord(name+"="+exampleOf(problem))
	}
	return flags
}

// valuesWith returns the flags that replace a value of parameters; empty if none has it.
func valuesWith(parameters map[string]string, value string) (flags string) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if parameters[name] == value {
			flags += " -p " + text.ShellWord(name+"=STORAGECLASS")
		}
	}
	return flags
}

// example matches a valid value in the problem of a parameter.
var example = regexp.MustCompile(`must be one of "([^"]*)"|must be (true) or false|(?:must be |=)(secret:NAME/KEY)|, such as ([A-Za-z0-9.+-]+)`)

// exampleOf returns a valid value of a parameter; VALUE if its problem names none. The problem comes last, after a value that may contain anything.
func exampleOf(problem string) string {
	found := example.FindAllStringSubmatch(problem, -1)
	if len(found) == 0 {
		return "VALUE"
	}
	return cmp.Or(append(found[len(found)-1][1:], "VALUE")...)
}
