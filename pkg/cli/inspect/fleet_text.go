package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// marks are the symbols for states in the lines of clusters; texts are the names used elsewhere.
var (
	marks = map[addOnState]string{
		stateNotAvailable: "✗", stateUnknown: "?", stateRemoving: "-", stateDegraded: "!", stateAvailable: "✓", stateAbsent: "·",
	}
	texts = map[addOnState]string{
		stateNotAvailable: "not available", stateUnknown: "unknown", stateRemoving: "removing", stateDegraded: "degraded",
		stateAvailable: "available", stateAbsent: "not enabled",
	}
)

// groupsShown is the number of lines of clusters shown unless wide is set.
const groupsShown = 20

// Text returns the summary as tables; wide includes everything.
func (s fleetSum) Text(wide bool) string {
	if len(s.AddOns) == 0 {
		return fmt.Sprintf("No add-ons are enabled on %s.\n", terminal.Counted(s.Clusters, "managed cluster"))
	}
	text := s.headline() + "\n" + s.addOnTable()
	if len(s.Reasons) > 0 {
		text += "\n" + s.reasonTable(wide)
	}
	text += "\n" + s.matrix(wide)
	if len(s.Reasons) > 0 && s.Reasons[0].State != stateRemoving {
		text += fmt.Sprintf("\nTo see why:\n\n  kubectl addon why %s --cluster %s\n", s.Reasons[0].example, s.Reasons[0].Clusters[0])
	}
	return text
}

func (s fleetSum) headline() string {
	total, counts := 0, map[addOnState]int{}
	for _, of := range s.AddOns {
		total += of.Clusters
		for state, count := range of.States {
			counts[state] += count
		}
	}
	text := fmt.Sprintf("%s, %s: %d of %d are available", terminal.Counted(s.Clusters, "managed cluster"), terminal.Counted(len(s.AddOns), "add-on"),
		counts[stateAvailable], total)
	for _, state := range addOnStates {
		if state != stateAvailable && counts[state] > 0 {
			text += fmt.Sprintf(", %d %s", counts[state], texts[state])
		}
	}
	return text + "\n"
}

// addOnTable returns the table of add-ons, with the letters that name them in the lines of clusters.
func (s fleetSum) addOnTable() string {
	rows := make([][]string, 0, len(s.AddOns))
	for i, of := range s.AddOns {
		row := []string{letters(i), terminal.Word(of.AddOn), strconv.Itoa(of.Clusters)}
		for _, state := range columns {
			row = append(row, strconv.Itoa(of.States[state]))
		}
		rows = append(rows, row)
	}
	header := []string{"", "ADD-ON", "CLUSTERS"}
	for _, state := range columns {
		header = append(header, strings.ToUpper(texts[state]))
	}
	return terminal.Table(header, rows)
}

// columns are the states of an installed add-on, best first.
var columns = []addOnState{stateAvailable, stateDegraded, stateNotAvailable, stateUnknown, stateRemoving}

func (s fleetSum) reasonTable(wide bool) string {
	rows := make([][]string, 0, len(s.Reasons))
	for _, of := range s.Reasons {
		rows = append(rows, []string{of.Reason, texts[of.State], terminal.ClustersText(of.AddOns, wide), terminal.ClustersText(of.Clusters, wide)})
	}
	return terminal.Table([]string{"REASON", "STATE", "ADD-ONS", "CLUSTERS"}, rows)
}

// matrix returns a line for each group of clusters, with a mark for each add-on.
func (s fleetSum) matrix(wide bool) string {
	width := len(letters(len(s.AddOns) - 1))
	var b strings.Builder
	for i := range s.AddOns {
		fmt.Fprintf(&b, "%-*s ", width, letters(i))
	}
	b.WriteString("  CLUSTERS\n")
	groups := s.Groups
	if !wide && len(groups) > groupsShown {
		groups = groups[:groupsShown]
	}
	for _, group := range groups {
		for _, state := range group.States {
			fmt.Fprintf(&b, "%s%s", marks[state], strings.Repeat(" ", width))
		}
		fmt.Fprintf(&b, "  %s\n", terminal.ClustersText(group.Clusters, wide))
	}
	if left := s.Groups[len(groups):]; len(left) > 0 {
		clusters := 0
		for _, group := range left {
			clusters += len(group.Clusters)
		}
		fmt.Fprintf(&b, "… and %s in other states (-o wide shows all)\n", terminal.Counted(clusters, "cluster"))
	}
	return b.String() + "\n" + s.legend()
}

// legend explains the used marks.
func (s fleetSum) legend() string {
	var used []string
	for _, state := range append(slices.Clone(columns), stateAbsent) {
		if slices.ContainsFunc(s.Groups, func(g fleetGroup) bool { return slices.Contains(g.States, state) }) {
			used = append(used, marks[state]+" "+texts[state])
		}
	}
	return strings.Join(used, "   ") + "\n"
}

// letters returns A, B, … Z, AA, AB and so on.
func letters(i int) string {
	text := string(rune('A' + i%26))
	if i < 26 {
		return text
	}
	return letters(i/26-1) + text
}
