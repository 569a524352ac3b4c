package terminal

import (
	"fmt"
	"strconv"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Word is a name as one word on a terminal: as it is, or quoted.
func Word(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || strings.ContainsRune(name, ' ') {
		return quoted
	}
	return name
}

// listLimit is how many names an error lists; a fleet has thousands.
const listLimit = 20

func Listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return text.List(names, listLimit)
}

// DidYouMean says which of the names somebody may have meant; empty if none is like it.
func DidYouMean(name string, names []string) string {
	closest := text.ClosestMatch(name, names)
	if closest == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", closest)
}

// ObjectName is what kubectl calls an object.
func ObjectName(group, kind, name string) string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(kind), group, name)
}

func StrategyText(strategy kudo.Ordering) string {
	if strategy == "" {
		strategy = kudo.Serial
	}
	return fmt.Sprintf(" (%s strategy)", strategy)
}

// OneLine keeps a message in its place in the tree. Lines that are no sentences are told apart by semicolons.
func OneLine(message string) string {
	return strings.NewReplacer(".\n", ". ", "\n", "; ").Replace(strings.TrimSpace(message))
}

func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
