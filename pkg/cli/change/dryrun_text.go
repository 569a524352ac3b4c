package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dryRunText returns a paragraph for each group of clusters. With wide it includes all clusters and complete created objects.
func dryRunText(d change.DryRun, wide bool) string {
	var b strings.Builder
	for i, group := range d.Changes {
		if i > 0 {
			b.WriteString("\n")
		}
		writeChange(&b, group, wide)
	}
	for i, r := range d.Refused {
		if i > 0 || len(d.Changes) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s: refused: %s\n", clustersHeading(r.Clusters, wide), r.Message)
	}
	if footer := d.Footer(); footer != "" {
		fmt.Fprintf(&b, "\n%s\n", footer)
	}
	return b.String()
}

// clustersHeading returns the clusters at the beginning of a paragraph.
func clustersHeading(clusters []string, wide bool) string {
	text := terminal.ClustersText(clusters, wide)
	if len(clusters) == 1 {
		text = "cluster " + clusters[0]
	} else {
		text = strings.Replace(text, " (", " clusters (", 1)
	}
	return text
}

func writeChange(b *strings.Builder, d change.ChangeData, wide bool) {
	fmt.Fprintf(b, "%s: %s %s", clustersHeading(d.Clusters, wide), subject(d), d.WriteText())
	switch {
	case d.From != "" && d.To != "" && d.From != d.To:
		fmt.Fprintf(b, ", %s -> %s", d.From, d.To)
	case d.To != "":
		fmt.Fprintf(b, ", %s", d.To)
	case d.From != "":
		fmt.Fprintf(b, ", %s", d.From)
	}
	b.WriteString("\n")
	if d.Instance+d.AddOn != "" && len(d.Writes) > 0 {
		fmt.Fprintf(b, "  writes on the hub: %s\n", strings.Join(d.Writes, ", "))
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", warning)
	}
	if d.Unknown != "" {
		fmt.Fprintf(b, "  the plans are unknown: %s\n", d.Unknown)
		return
	}
	writeComing(b, d.Data, "  ", wide)
	b.WriteString(diffs(d.Data, wide))
}

// subject returns the name of the changed object.
func subject(d change.ChangeData) string {
	switch {
	case d.Instance != "":
		return "Instance " + text.Word(d.Instance)
	case d.AddOn != "":
		return "add-on " + text.Word(d.AddOn)
	default:
		return strings.Join(d.Writes, ", ")
	}
}

func writeComing(b *strings.Builder, d preview.Data, indent string, wide bool) {
	writeObjects(b, indent, d.Claims, wide)
	if d.WaitingFor != "" {
		fmt.Fprintf(b, "%splan %s is running and must end first\n", indent, d.WaitingFor)
	}
	for _, p := range d.Plans {
		writePlan(b, p, indent, wide)
	}
	if d.Problem != "" {
		fmt.Fprintf(b, "%sno plan can run: %s\n", indent, d.Problem)
	} else if len(d.Plans) == 0 {
		fmt.Fprintf(b, "%sno plan runs\n", indent)
	}
	writeObjects(b, indent, d.Removed, wide)
	writeGone(b, indent, d.Children, wide)
}

func writePlan(b *strings.Builder, p preview.PlanData, indent string, wide bool) {
	fmt.Fprintf(b, "%splan %s runs: %s\n", indent, p.Plan, p.CauseText())
	if pods := p.PodsText(); pods != "" {
		fmt.Fprintf(b, "%s  %s\n", indent, pods)
	}
	if p.Problem != "" {
		fmt.Fprintf(b, "%s  fails: %s\n", indent, text.JoinMessage(p.Problem))
	}
	for _, t := range p.Tasks {
		writeTask(b, t, indent+"  ", wide)
	}
	if len(p.Removed)+len(p.Children) > 0 {
		fmt.Fprintf(b, "%s  at the end: objects and children that no task has any longer\n", indent)
		writeObjects(b, indent+"    ", p.Removed, wide)
		writeGone(b, indent+"    ", p.Children, wide)
	}
}

func writeTask(b *strings.Builder, t preview.TaskData, indent string, wide bool) {
	fmt.Fprintf(b, "%s%s, %s: task %s (%s)", indent, text.Word(t.Phase), text.Word(t.Step), text.Word(t.Task), t.KindText())
	if t.Child != nil {
		fmt.Fprintf(b, ": child Instance %s %s", text.Word(t.Child.Instance), t.Child.Effect)
		if t.Child.OperatorVersion != "" {
			fmt.Fprintf(b, ", %s", t.Child.OperatorVersion)
		}
	} else if t.Action.HasObjects() && len(t.Objects)+len(t.Warnings) == 0 && t.Problem == "" {
		b.WriteString(": no objects")
	}
	b.WriteString("\n")
	if t.Problem != "" {
		fmt.Fprintf(b, "%s  fails: %s\n", indent, text.JoinMessage(t.Problem))
	}
	for _, warning := range t.Warnings {
		fmt.Fprintf(b, "%s  warning: %s\n", indent, text.JoinMessage(warning))
	}
	writeObjects(b, indent+"  ", t.Objects, wide)
	if t.Child != nil && t.Child.Data != nil {
		writeComing(b, *t.Child.Data, indent+"  ", wide)
	}
}

// writeObjects lists objects. Objects in which only the version changes are counted, unless wide is set.
func writeObjects(b *strings.Builder, indent string, objects []preview.ObjectData, wide bool) {
	annotated := 0
	for _, o := range objects {
		if o.Effect == preview.Annotated && !wide {
			annotated++
			continue
		}
		fmt.Fprintf(b, "%s%-9s  %s", indent, o.Effect.Verb(), o)
		if o.Note != "" {
			fmt.Fprintf(b, ": %s", text.JoinMessage(o.Note))
		}
		b.WriteString("\n")
	}
	if annotated > 0 {
		fmt.Fprintf(b, "%s%-9s  %s: only the version in an annotation changes\n",
			indent, preview.Annotated.Verb(), text.Plural(annotated, "object"))
	}
}

func writeGone(b *strings.Builder, indent string, children []preview.ChildData, wide bool) {
	for _, child := range children {
		fmt.Fprintf(b, "%s%-9s  Instance %s\n", indent, child.Effect.Verb(), text.Word(child.Instance))
		if child.Data != nil {
			writeComing(b, *child.Data, indent+"  ", wide)
		}
	}
}

// diffs returns the differences of objects, including created objects if wide is set.
func diffs(d preview.Data, wide bool) string {
	var b strings.Builder
	for _, p := range d.Plans {
		for _, t := range p.Tasks {
			for _, o := range t.Objects {
				if o.Diff != "" && (wide || o.Effect == preview.Changed) {
					b.WriteString("\n" + o.Diff)
				}
			}
			if t.Child != nil && t.Child.Data != nil {
				b.WriteString(diffs(*t.Child.Data, wide))
			}
		}
	}
	return b.String()
}

// comingText describes the plans that would run.
func comingText(c *change.Change) string {
	var b strings.Builder
	effects := preview.Of(c.Change)
	coming := preview.DataOf(effects)
	for _, p := range coming.Plans {
		fmt.Fprintf(&b, "  plan %s runs: %s\n", p.Plan, p.CauseText())
		for _, o := range p.Removed {
			if o.Note != "" {
				fmt.Fprintf(&b, "  at the end: %s %s: %s\n", o.Effect.Verb(), o, text.JoinMessage(o.Note))
			}
		}
	}
	if c.Before != nil && c.Before.IsSuspended() && len(coming.Plans) > 0 {
		fmt.Fprintf(&b, "  it waits: %s\n", suspension.Message(suspension.By(c.Before.Spec)))
	}
	for _, warning := range slices.Concat(effects.Waits(), coming.TaskWarnings()) {
		fmt.Fprintf(&b, "  warning: %s\n", text.JoinMessage(warning))
	}
	if problem := coming.Err(); problem != nil {
		fmt.Fprintf(&b, "  would fail: %s\n", text.JoinMessage(problem.Error()))
	}
	return b.String()
}
