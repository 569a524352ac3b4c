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
	if len(s.rows()) == 0 {
		return fmt.Sprintf("No add-ons are enabled on %s.\n", terminal.Counted(s.Clusters, "managed cluster"))
	}
	text := s.headline() + "\n" + s.addOnTable()
	if len(s.Reasons) > 0 {
		text += "\n" + s.reasonTable(wide)
	}
	text += "\n" + s.matrix(wide)
	if len(s.Reasons) > 0 && s.Reasons[0].State != stateRemoving {
		text += "\nTo see why:\n\n  " + s.Reasons[0].command() + "\n"
	}
	return text
}

// command returns the command that explains the example.
func (r reasonSum) command() string {
	if r.example.instance {
		return fmt.Sprintf("kubectl addon plan status %s --cluster %s", r.example.name, r.Clusters[0])
	}
	return fmt.Sprintf("kubectl addon why %s --cluster %s", r.example.name, r.Clusters[0])
}

// fleetRow is an add-on or Instance, and its number of clusters by state.
type fleetRow struct {
	of subject
	stateSum
}

// rows returns the add-ons, then the Instances.
func (s fleetSum) rows() []fleetRow {
	rows := make([]fleetRow, 0, len(s.AddOns)+len(s.Instances))
	for _, of := range s.AddOns {
		rows = append(rows, fleetRow{subject{name: of.AddOn}, of.stateSum})
	}
	for _, of := range s.Instances {
		rows = append(rows, fleetRow{subject{instance: true, name: of.Instance}, of.stateSum})
	}
	return rows
}

// title returns the title of the column with the names of add-ons, or of add-ons and Instances.
func (s fleetSum) title(addOns, all string) string {
	if len(s.Instances) == 0 {
		return addOns
	}
	return all
}

func (s fleetSum) headline() string {
	total, counts := 0, map[addOnState]int{}
	for _, of := range s.rows() {
		total += of.Clusters
		for state, count := range of.States {
			counts[state] += count
		}
	}
	text := terminal.Counted(s.Clusters, "managed cluster") + ", " + terminal.Counted(len(s.AddOns), "add-on")
	if len(s.Instances) > 0 {
		text += ", " + terminal.Counted(len(s.Instances), "Instance")
	}
	text += fmt.Sprintf(": %d of %d are available", counts[stateAvailable], total)
	for _, state := range addOnStates {
		if state != stateAvailable && counts[state] > 0 {
			text += fmt.Sprintf(", %d %s", counts[state], texts[state])
		}
	}
	return text + "\n"
}

// addOnTable returns the table of add-ons and Instances, with the letters that name them in the lines of clusters.
func (s fleetSum) addOnTable() string {
	rows := make([][]string, 0, len(s.AddOns)+len(s.Instances))
	for i, of := range s.rows() {
		row := []string{letters(i), terminal.Word(of.of.String()), strconv.Itoa(of.Clusters)}
		for _, state := range columns {
			row = append(row, strconv.Itoa(of.States[state]))
		}
		rows = append(rows, row)
	}
	header := []string{"", s.title("ADD-ON", "NAME"), "CLUSTERS"}
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
		names := slices.Clone(of.AddOns)
		for _, name := range of.Instances {
			names = append(names, subject{instance: true, name: name}.String())
		}
		rows = append(rows, []string{of.Reason, texts[of.State], terminal.ClustersText(names, wide), terminal.ClustersText(of.Clusters, wide)})
	}
	return terminal.Table([]string{"REASON", "STATE", s.title("ADD-ONS", "NAMES"), "CLUSTERS"}, rows)
}

// matrix returns a line for each group of clusters, with a mark for each add-on.
func (s fleetSum) matrix(wide bool) string {
	count := len(s.AddOns) + len(s.Instances)
	width := len(letters(count - 1))
	var b strings.Builder
	for i := range count {
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
