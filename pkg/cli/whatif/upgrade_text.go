package whatif

import (
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/text"
)

// upgradesText returns a paragraph for each group of clusters; wide lists all clusters.
func upgradesText(d whatif.Upgrades, wide bool) string {
	var groups []string
	for _, group := range d.Groups {
		groups = append(groups, groupText(d.AddOn, group, wide))
	}
	if len(d.Without) > 0 {
		groups = append(groups, fmt.Sprintf("%s is not enabled on: %s\n", text.Word(d.AddOn), terminal.ClustersText(d.Without, wide)))
	}
	return strings.Join(groups, "\n")
}

// groupText returns the outcome on a group of clusters, then a line for each reason and each affected add-on.
func groupText(addOn string, g whatif.UpgradeGroup, wide bool) string {
	var b strings.Builder
	outcome := text.Word(addOn) + " " + g.Outcome.Text()
	if g.Outcome == whatif.NotKnown {
		outcome = g.Outcome.Text()
	}
	fmt.Fprintf(&b, "%s: %s%s\n", terminal.ClustersTitle(g.Clusters, wide), outcome, versionsText(g))
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if g.Problem != "" {
		line("%s", g.Problem)
	}
	for _, reason := range g.WaitsFor {
		line("%s", reason)
	}
	for _, row := range g.Requires {
		line("%s dependency %s %s", row.Type, text.Word(row.AddOn), row.Reason)
	}
	for _, row := range g.Dependents {
		line("%s dependent %s %s: %s", row.Type, text.Word(row.AddOn), row.Effect.Text(), mismatchText(addOn, row))
	}
	for _, warning := range g.Warnings {
		line("warning: %s", warning)
	}
	for _, missing := range g.NotRead {
		line("unknown: %s", missing)
	}
	return b.String()
}

// mismatchText names the version that does not satisfy the constraint of a dependent. That of a constraint that will hold is the present one.
func mismatchText(addOn string, row whatif.ConstraintRow) string {
	version, constraint, isKnown := strings.Cut(row.Reason, ", which does not satisfy ")
	version, runs := strings.CutPrefix(version, "runs version ")
	switch now := row.Effect == whatif.Met; {
	case isKnown && runs && now:
		return fmt.Sprintf("%s %s, which runs now, does not satisfy %s", text.Word(addOn), version, constraint)
	case isKnown && runs:
		return fmt.Sprintf("%s %s does not satisfy %s", text.Word(addOn), version, constraint)
	case now:
		return fmt.Sprintf("%s now %s", text.Word(addOn), row.Reason)
	default:
		return fmt.Sprintf("%s %s", text.Word(addOn), row.Reason)
	}
}

// versionsText names the version that runs and the one to change to.
func versionsText(g whatif.UpgradeGroup) string {
	switch {
	case g.To == "":
		return ""
	case g.From == "" || g.From == g.To:
		return fmt.Sprintf(" (%s)", text.Word(g.To))
	default:
		return fmt.Sprintf(" (%s -> %s)", text.Word(g.From), text.Word(g.To))
	}
}
