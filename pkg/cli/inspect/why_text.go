package inspect

import (
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/text"
)

// fleetWhy is the output of `why` for several clusters.
type fleetWhy struct {
	AddOn  string      `json:"addOn"`
	Groups []why.Group `json:"groups"`
}

// text returns the groups with the explanation for the first cluster of each, wrapped to a width unless that is 0; wide names all clusters.
func (w fleetWhy) text(wide bool, width int) string {
	const indent = "  "
	var b strings.Builder
	available, all := 0, 0
	for _, group := range w.Groups {
		all += len(group.Clusters)
		if group.State.IsAvailable() {
			available += len(group.Clusters)
		}
	}
	fmt.Fprintf(&b, "Add-on %s is available on %d of %s.\n", text.Word(w.AddOn), available, text.Plural(all, "cluster"))
	for _, group := range w.Groups {
		if group.State == fleet.Available {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s: %s\n", terminal.ClustersTitle(group.Clusters, wide), group.State.Text(), w.reasonsText(group))
		for line := range strings.Lines(group.Text()) {
			if width > 0 && !strings.HasPrefix(line, " ") { // commands stay on one line
				line = text.Wrap(line, width-len(indent), indent)
			}
			b.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
		}
	}
	return b.String()
}

// reasonsText lists the reasons of a group, with the add-ons that are the root causes.
func (w fleetWhy) reasonsText(group why.Group) string {
	texts := make([]string, len(group.Reasons))
	for i, reason := range group.Reasons {
		if texts[i] = reason.Reason; reason.AddOn != w.AddOn {
			texts[i] = reason.AddOn + ": " + reason.Reason
		}
	}
	return strings.Join(texts, "; ")
}
