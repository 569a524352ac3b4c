package details

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/text"
)

// driftsText returns the Instances that have drifted or could not be compared as a table, and the numbers of the others.
func driftsText(list progress.FleetDrift, wide bool) string {
	others := othersText(list)
	switch {
	case len(list.Instances) == 0 && others == "":
		return "The selected clusters have no Instances.\n"
	case len(list.Instances) == 0:
		return "No Instance is known to have drifted: " + others + ".\n"
	}
	header := []string{"CLUSTER", "INSTANCE", "STATE", "OBJECTS", "GONE", "FIELDS", "SINCE"}
	if wide {
		header = append(header, "MESSAGE")
	}
	rows := make([][]string, 0, len(list.Instances))
	for _, found := range list.Instances {
		state := "drifted"
		if found.State != progress.DriftFound {
			state = "comparison failed"
		}
		row := []string{text.Word(found.Cluster), text.Word(found.Instance), state, "-", "-", "-", timeText(found.Since)}
		if len(found.Objects) > 0 {
			row[3], row[4], row[5] = objectsText(found), strconv.Itoa(found.Gone()), strconv.Itoa(found.Fields())
		}
		if wide {
			row = append(row, text.OneLine(found.Message))
		}
		rows = append(rows, row)
	}
	shown := terminal.Table(header, rows)
	if others != "" {
		shown += "\nOther Instances: " + others + ".\n"
	}
	first := list.Instances[0]
	return shown + "\nTo see the fields:\n\n  " + text.Command("kubectl addon drift %s --cluster %s", first.Instance, first.Cluster) + "\n"
}

// objectsText returns the number of objects that differ. An agent reports a limited number.
func objectsText(found progress.Drift) string {
	if len(found.Objects) >= drift.MaxObjects {
		return strconv.Itoa(len(found.Objects)) + "+"
	}
	return strconv.Itoa(len(found.Objects))
}

// othersText returns the numbers of Instances without drift, by what is known about them; empty if there are none.
func othersText(list progress.FleetDrift) string {
	var parts []string
	for _, of := range []struct {
		number int
		state  string
	}{{list.InSync, "in sync"}, {list.NotCompared, "not compared yet"}, {list.ModeOff, "with spec.drift.mode Off"}} {
		if of.number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.number, of.state))
		}
	}
	return strings.Join(parts, ", ")
}

// driftText returns the drift of an Instance: a diff of each object, and the commands that end it.
func driftText(found progress.Drift) string {
	subject := fmt.Sprintf("Instance %s on cluster %s", text.Word(found.Instance), text.Word(found.Cluster))
	switch found.State {
	case progress.DriftNone:
		return subject + " has not drifted: all objects are as they were applied.\n"
	case progress.DriftOff:
		return subject + " is not compared: its spec.drift.mode is Off.\n"
	case progress.DriftNotCompared:
		return subject + " was not compared yet. The agent compares an Instance whose plans are complete, within its\n" +
			"--drift-interval (10 minutes by default). Agents of earlier versions do not.\n"
	case progress.DriftUnknown:
		return subject + " could not be compared: " + text.OneLine(found.Message) + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s has drifted since %s.\n", subject, timeText(found.Since))
	if len(found.Objects) == 0 { // the hub's CustomResourceDefinition drops them
		b.WriteString("\n" + text.OneLine(found.Message) + "\n")
	}
	for _, object := range found.Objects {
		b.WriteString("\n" + objectText(object))
	}
	if len(found.Objects) >= drift.MaxObjects {
		fmt.Fprintf(&b, "\nAgents report at most %d objects: there may be more.\n", drift.MaxObjects)
	}
	b.WriteString("\n" + repairText(found) + " To keep a change, add its path to spec.drift.ignore:\n\n")
	for _, command := range []string{"kubectl addon plan run %s deploy --cluster %s", "kubectl edit instance.kudo.dev %s --namespace %s"} {
		b.WriteString("  " + text.Command(command, found.Instance, found.Cluster) + "\n")
	}
	return b.String()
}

// repairText returns how the drift of an Instance ends.
func repairText(found progress.Drift) string {
	switch {
	case found.Suspended:
		return "The Instance is suspended. To put everything back, resume it and run plan deploy."
	case found.Mode == kudo.DriftRepair:
		return "The agent puts it back, and waits longer each time if another writer repeats its change. What it cannot put back needs plan deploy."
	default:
		return "To put everything back, run plan deploy."
	}
}

// objectText returns a heading with an object and the field managers that have changed it, and its fields.
func objectText(object kudo.DriftedObject) string {
	name := text.Word(object.Name)
	if object.Namespace != "" {
		name = text.Word(object.Namespace) + "/" + name
	}
	heading := text.Word(object.Kind) + " " + name
	if object.Gone {
		return heading + ": gone\n"
	}
	if managers := managersOf(object); len(managers) > 0 {
		heading += ", changed by " + strings.Join(managers, ", ")
	}
	lines := []string{heading}
	for _, field := range object.Fields {
		path := "  " + text.OneLine(field.Path)
		switch {
		case field.Removed:
			lines = append(lines, path+": removed")
		case field.Applied == "" || field.Live == "":
			lines = append(lines, path+": changed")
		default:
			lines = append(lines, path, "  - "+text.OneLine(field.Applied), "  + "+text.OneLine(field.Live))
		}
	}
	if object.More > 0 {
		lines = append(lines, "  and "+text.Plural(object.More, "more field"))
	}
	return terminal.Lines(lines)
}

// managersOf returns the field managers that own fields of an object, sorted.
func managersOf(object kudo.DriftedObject) []string {
	var managers []string
	for _, field := range object.Fields {
		for _, manager := range field.Managers {
			managers = append(managers, text.Word(manager))
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}
