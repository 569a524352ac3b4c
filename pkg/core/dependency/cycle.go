package dependency

import (
	"fmt"
	"strings"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Cycle returns the path from addOn over its dependency on need, or over that alternative of one, back to addOn, such as ["a", "b", "a"]; nil if it
// is on no cycle. Each candidate of a dependency counts as one: the add-on could come to depend on any of them. It returns the shortest path, and the one declared first among paths of equal length. A dependency on itself is ["a", "a"].
//
// needsOf returns the dependencies of an add-on. It is called once for each add-on that need leads to, and never for addOn.
func Cycle(addOn, need string, needsOf func(name string) []addonv1alpha1.AddonDependency) []string {
	if need == addOn {
		return []string{addOn, addOn}
	}
	cameFrom := map[string]string{need: addOn}
	for queue := []string{need}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		for _, next := range CandidatesOf(needsOf(name)) {
			if next == addOn {
				return wayTo(name, addOn, cameFrom)
			}
			if _, met := cameFrom[next]; !met {
				cameFrom[next] = name
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// wayTo returns the path from addOn to name and back.
func wayTo(name, addOn string, cameFrom map[string]string) []string {
	back := []string{addOn}
	for ; name != addOn; name = cameFrom[name] {
		back = append(back, name)
	}
	cycle := []string{addOn}
	for i := len(back) - 1; i >= 0; i-- {
		cycle = append(cycle, back[i])
	}
	return cycle
}

const (
	circularOpening = "circular dependency: "
	arrow           = " -> "
	// A longer path is shown by its first add-ons and its last two.
	wayLimit = 16
)

// Way formats a path of add-ons: "a -> b -> a". It shortens a path of more than 16 add-ons in the middle.
func Way(names []string) string {
	shown := make([]string, 0, wayLimit)
	for i, name := range names {
		switch left := len(names) - wayLimit; {
		case left <= 0 || i < wayLimit-3 || i >= len(names)-2:
			shown = append(shown, oneLine(name))
		case i == wayLimit-3:
			shown = append(shown, fmt.Sprintf("(%d more)", left+1))
		}
	}
	return strings.Join(shown, arrow)
}
