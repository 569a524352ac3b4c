package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/text"
)

// layout is how the tables of add-ons and Instances are printed.
type layout struct {
	now             time.Time
	wide, noHeaders bool
}

// header returns the header of a table with these columns; nil if it is omitted.
func (l layout) header(columns ...string) []string {
	if l.noHeaders {
		return nil
	}
	if l.wide {
		columns = append(columns, "NOTICES", "MESSAGE")
	}
	return columns
}

// row returns a row with these cells, the age of an object, and the notices and the message if the table is wide.
func (l layout) row(created time.Time, notices []notice.Kind, message string, cells ...string) []string {
	cells = append(cells, duration.HumanDuration(l.now.Sub(created)))
	if l.wide {
		var names []string
		for _, kind := range notices {
			names = append(names, kind.Text())
		}
		cells = append(cells, orNone(strings.Join(names, ", ")), orNone(text.OneLine(message)))
	}
	return cells
}

// withoutAge returns the cells of a row except the age.
func (l layout) withoutAge(row []string) []string {
	age := len(row) - 1
	if l.wide {
		age -= 2
	}
	return slices.Delete(slices.Clone(row), age, age+1)
}

// text returns the list as a table of add-ons and a table of Instances; either is omitted if it is empty.
func (l addOnList) text(as layout) string {
	var tables []string
	if len(l.AddOns) > 0 {
		tables = append(tables, terminal.Table(as.addOnHeader(), l.addOnRows(as)))
	}
	if len(l.Instances) > 0 {
		tables = append(tables, terminal.Table(as.instanceHeader(), l.instanceRows(as)))
	}
	switch {
	case as.noHeaders:
		return strings.Join(tables, "")
	case len(tables) == 0:
		return "No add-ons are enabled.\n"
	default:
		return strings.Join(tables, "\n")
	}
}

// stateColumn is the index of column STATE in both tables.
const stateColumn = 3

func (l layout) addOnHeader() []string {
	return l.header("CLUSTER", "ADD-ON", "VERSION", "STATE", "AVAILABLE", "DEGRADED", "REASON", "AGE")
}

func (l layout) instanceHeader() []string {
	return l.header("CLUSTER", "INSTANCE", "VERSION", "STATE", "READY", "REASON", "AGE")
}

func (l addOnList) addOnRows(as layout) [][]string {
	rows := make([][]string, 0, len(l.AddOns))
	for _, i := range l.AddOns {
		rows = append(rows, as.row(i.Created.Time, i.Notices, i.Message, i.Cluster, i.AddOn, i.versionText(), i.State.Text(),
			cmp.Or(string(i.Available), "Unknown"), orNone(string(i.Degraded)), i.ReasonText()))
	}
	return rows
}

func (l addOnList) instanceRows(as layout) [][]string {
	rows := make([][]string, 0, len(l.Instances))
	for _, i := range l.Instances {
		rows = append(rows, as.row(i.Created.Time, i.Notices, i.Message, i.Cluster, i.Instance, orNone(i.OperatorVersion), i.State.Text(),
			cmp.Or(string(i.Ready), "Unknown"), i.ReasonText()))
	}
	return rows
}

// versionText returns the desired version, after the installed one if that is another one.
func (i addOnItem) versionText() string {
	if i.InstalledVersion == "" {
		return orNone(i.OperatorVersion)
	}
	return i.InstalledVersion + " -> " + orNone(i.OperatorVersion)
}

func orNone(text string) string { return cmp.Or(text, "-") }
