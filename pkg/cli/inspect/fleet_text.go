package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/text"
)

// groupsShown is the number of lines of clusters shown unless wide is set.
const groupsShown = 20

// summary is a fleet.Summary with its output for people.
type summary struct{ fleet.Summary }

// SummaryText returns the summary as tables; wide includes everything.
func SummaryText(data fleet.Summary, wide bool) string {
	s := summary{data}
	if len(s.rows()) == 0 {
		return fmt.Sprintf("No add-ons are enabled on %s.\n", text.Plural(s.Clusters, "managed cluster"))
	}
	text := s.headline() + "\n" + s.addOnTable()
	if len(s.Reasons) > 0 {
		text += "\n" + s.reasonTable(wide)
	}
	text += "\n" + s.matrix(wide)
	if len(s.Reasons) > 0 && s.Reasons[0].State != fleet.Removing {
		text += "\nTo see why:\n\n  " + s.Reasons[0].Command() + "\n"
	}
	return text
}

// fleetRow is an add-on or Instance, and its number of clusters by state.
type fleetRow struct {
	of fleet.Subject
	fleet.StateSum
}

// rows returns the add-ons, then the Instances.
func (s summary) rows() []fleetRow {
	rows := make([]fleetRow, 0, len(s.AddOns)+len(s.Instances))
	for _, of := range s.AddOns {
		rows = append(rows, fleetRow{fleet.Subject{Name: of.AddOn}, of.StateSum})
	}
	for _, of := range s.Instances {
		rows = append(rows, fleetRow{fleet.Subject{Instance: true, Name: of.Instance}, of.StateSum})
	}
	return rows
}

// title returns the title of the column with the names of add-ons, or of add-ons and Instances.
func (s summary) title(addOns, all string) string {
	if len(s.Instances) == 0 {
		return addOns
	}
	return all
}

func (s summary) headline() string {
	total, counts := 0, map[fleet.State]int{}
	for _, of := range s.rows() {
		total += of.Clusters
		for state, count := range of.States {
			counts[state] += count
		}
	}
	line := text.Plural(s.Clusters, "managed cluster") + ", " + text.Plural(len(s.AddOns), "add-on")
	if len(s.Instances) > 0 {
		line += ", " + text.Plural(len(s.Instances), "Instance")
	}
	return line + countsText(total, counts)
}

// countsText returns how many add-ons are available, how many of these in a state with a limit, and how many are in each other state.
func countsText(total int, counts map[fleet.State]int) string {
	available, others := 0, ""
	var limits []string
	for _, state := range fleet.States {
		number := counts[state]
		if state.IsAvailable() {
			available += number
		}
		switch {
		case number == 0:
		case !state.IsAvailable():
			others += fmt.Sprintf(", %d %s", number, state.Text())
		case state != fleet.Available:
			limits = append(limits, fmt.Sprintf("%d %s", number, state.Text()))
		}
	}
	if len(limits) > 0 {
		limits[0] = strings.Replace(limits[0], " ", " of them ", 1)
		others = " (" + strings.Join(limits, ", ") + ")" + others
	}
	return fmt.Sprintf(": %d of %d are available%s\n", available, total, others)
}

// addOnTable returns the table of add-ons and Instances, with the letters that name them in the lines of clusters.
func (s summary) addOnTable() string {
	rows := make([][]string, 0, len(s.AddOns)+len(s.Instances))
	for i, of := range s.rows() {
		row := []string{letters(i), text.Word(of.of.String()), strconv.Itoa(of.Clusters)}
		for _, state := range columns {
			row = append(row, strconv.Itoa(of.States[state]))
		}
		rows = append(rows, row)
	}
	header := []string{"", s.title("ADD-ON", "NAME"), "CLUSTERS"}
	for _, state := range columns {
		header = append(header, strings.ToUpper(state.Text()))
	}
	return terminal.Table(header, rows)
}

// columns are the states of an installed add-on, best first.
var columns = []fleet.State{fleet.Available, fleet.Waiting, fleet.Degraded, fleet.Blocked, fleet.NotAvailable, fleet.Unknown, fleet.Removing}

func (s summary) reasonTable(wide bool) string {
	rows := make([][]string, 0, len(s.Reasons))
	for _, of := range s.Reasons {
		names := slices.Clone(of.AddOns)
		for _, name := range of.Instances {
			names = append(names, fleet.Subject{Instance: true, Name: name}.String())
		}
		rows = append(rows, []string{of.ReasonText(), of.State.Text(), terminal.ClustersText(names, wide), terminal.ClustersText(of.Clusters, wide)})
	}
	return terminal.Table([]string{"REASON", "STATE", s.title("ADD-ONS", "NAMES"), "CLUSTERS"}, rows)
}

// matrix returns a line for each group of clusters, with a mark for each add-on.
func (s summary) matrix(wide bool) string {
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
			fmt.Fprintf(&b, "%s%s", state.Mark(), strings.Repeat(" ", width))
		}
		fmt.Fprintf(&b, "  %s\n", terminal.ClustersText(group.Clusters, wide))
	}
	if left := s.Groups[len(groups):]; len(left) > 0 {
		clusters := 0
		for _, group := range left {
			clusters += len(group.Clusters)
		}
		fmt.Fprintf(&b, "… and %s in other states (-o wide shows all)\n", text.Plural(clusters, "cluster"))
	}
	return b.String() + "\n" + s.legend()
}

// legend explains the used marks.
func (s summary) legend() string {
	var used []string
	for _, state := range append(slices.Clone(columns), fleet.NotEnabled) {
		if slices.ContainsFunc(s.Groups, func(g fleet.Group) bool { return slices.Contains(g.States, state) }) {
			used = append(used, state.Mark()+" "+state.Text())
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
