package change

import (
	"fmt"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/preview"
	"github.com/tandem-addons/tandem/pkg/text"
)

// text returns a paragraph for each group of clusters. With wide it includes all clusters and complete created objects.
func (d changesData) text(wide bool) string {
	var b strings.Builder
	for i, group := range d.Changes {
		if i > 0 {
			b.WriteString("\n")
		}
		group.write(&b, wide)
	}
	for i, r := range d.Refused {
		if i > 0 || len(d.Changes) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s: refused: %s\n", heading(r.Clusters, wide), r.Message)
	}
	return b.String()
}

// heading returns the clusters at the beginning of a paragraph.
func heading(clusters []string, wide bool) string {
	text := terminal.ClustersText(clusters, wide)
	if len(clusters) == 1 {
		text = "cluster " + clusters[0]
	} else {
		text = strings.Replace(text, " (", " clusters (", 1)
	}
	return text
}

// writeTexts describes the effects on the hub.
var writeTexts = map[preview.Effect]string{
	preview.Created: "would be created", preview.Changed: "would be changed", preview.Unchanged: "is unchanged",
	preview.Removed: "would be removed",
}

func (d changeData) write(b *strings.Builder, wide bool) {
	fmt.Fprintf(b, "%s: %s %s", heading(d.Clusters, wide), d.subject(), writeTexts[d.Write])
	switch {
	case d.From != "" && d.To != "" && d.From != d.To:
		fmt.Fprintf(b, ", %s -> %s", d.From, d.To)
	case d.To != "":
		fmt.Fprintf(b, ", %s", d.To)
	case d.From != "":
		fmt.Fprintf(b, ", %s", d.From)
	}
	b.WriteString("\n")
	if len(d.Writes) > 0 {
		fmt.Fprintf(b, "  writes on the hub: %s\n", strings.Join(d.Writes, ", "))
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", warning)
	}
	d.comingData.write(b, "  ", wide)
	b.WriteString(d.comingData.diffs(wide))
}

// subject returns the name of the changed object.
func (d changeData) subject() string {
	if d.Instance == "" {
		return strings.Join(d.Writes, ", ")
	}
	return "Instance " + text.Word(d.Instance)
}

func (d comingData) write(b *strings.Builder, indent string, wide bool) {
	if d.WaitingFor != "" {
		fmt.Fprintf(b, "%splan %s is running and must end first\n", indent, d.WaitingFor)
	}
	for _, p := range d.Plans {
		p.write(b, indent, wide)
	}
	if d.Problem != "" {
		fmt.Fprintf(b, "%sno plan can run: %s\n", indent, d.Problem)
	} else if len(d.Plans) == 0 {
		fmt.Fprintf(b, "%sno plan runs\n", indent)
	}
	writeObjects(b, indent, d.Removed, wide)
	writeGone(b, indent, d.Children, wide)
}

func (p planData) write(b *strings.Builder, indent string, wide bool) {
	fmt.Fprintf(b, "%splan %s runs: %s\n", indent, p.Plan, p.causeText())
	if text := p.podsText(); text != "" {
		fmt.Fprintf(b, "%s  %s\n", indent, text)
	}
	for _, t := range p.Tasks {
		t.write(b, indent+"  ", wide)
	}
	if len(p.Removed)+len(p.Children) > 0 {
		fmt.Fprintf(b, "%s  objects and children of tasks that no longer exist\n", indent)
		writeObjects(b, indent+"    ", p.Removed, wide)
		writeGone(b, indent+"    ", p.Children, wide)
	}
}

// causeText returns the reason why a plan runs.
func (p planData) causeText() string {
	changed := "parameter " + strings.Join(p.Parameters, ", ")
	if len(p.Parameters) > 1 {
		changed = "parameters " + strings.Join(p.Parameters, ", ")
	}
	switch p.Cause {
	case plan.Installation:
		return "no plan has run yet"
	case plan.OtherVersion:
		if len(p.Parameters) == 0 {
			return "change of OperatorVersion"
		}
		return "change of OperatorVersion and " + changed
	case plan.OtherParameters:
		return "change of " + changed
	case plan.StillOwed:
		return "not complete yet for the current configuration"
	case plan.RemovalRequested:
		return "before the objects of the Instance are removed"
	default:
		return "requested manually"
	}
}

// podsText states whether pods restart, unless that is obvious.
func (p planData) podsText() string {
	switch {
	case p.Cause == plan.Installation || p.Cause == plan.RemovalRequested:
		return ""
	case p.RestartsPods:
		return "all pods of the applied objects restart"
	case len(p.NoRestart) > 0:
		return "pods restart only where they change (forcePodRestart is false)"
	default:
		return ""
	}
}

func (t taskData) write(b *strings.Builder, indent string, wide bool) {
	fmt.Fprintf(b, "%s%s, %s: task %s (%s)", indent, text.Word(t.Phase), text.Word(t.Step), text.Word(t.Task), t.kindText())
	if t.Child != nil {
		fmt.Fprintf(b, ": child Instance %s %s", text.Word(t.Child.Instance), t.Child.Effect)
		if t.Child.OperatorVersion != "" {
			fmt.Fprintf(b, ", %s", t.Child.OperatorVersion)
		}
	} else if t.Action.HasObjects() && len(t.Objects) == 0 && t.Problem == "" {
		b.WriteString(": no objects")
	}
	b.WriteString("\n")
	if t.Problem != "" {
		fmt.Fprintf(b, "%s  fails: %s\n", indent, text.Joined(t.Problem))
	}
	writeObjects(b, indent+"  ", t.Objects, wide)
	if t.Child != nil && t.Child.comingData != nil {
		t.Child.comingData.write(b, indent+"  ", wide)
	}
}

// kindText returns the kind of a task, with its action if that depends on a parameter or a pod.
func (t taskData) kindText() string {
	switch t.Kind {
	case kudo.TaskToggle:
		return fmt.Sprintf("%s: %s", t.Kind, strings.ToLower(string(t.Action)))
	case kudo.TaskPipe:
		return fmt.Sprintf("%s: a pod writes the files", t.Kind)
	default:
		return string(t.Kind)
	}
}

// writeObjects lists objects. Objects in which only the version changes are counted, unless wide is set.
func writeObjects(b *strings.Builder, indent string, objects []objectData, wide bool) {
	annotated := 0
	for _, o := range objects {
		if o.Effect == preview.Annotated && !wide {
			annotated++
			continue
		}
		fmt.Fprintf(b, "%s%-9s  %s\n", indent, o.Effect, o.name())
	}
	if annotated > 0 {
		fmt.Fprintf(b, "%s%-9s  %s: only the version in an annotation changes\n",
			indent, preview.Annotated, text.Counted(annotated, "object"))
	}
}

func writeGone(b *strings.Builder, indent string, children []childData, wide bool) {
	for _, child := range children {
		fmt.Fprintf(b, "%s%-9s  Instance %s\n", indent, child.Effect, text.Word(child.Instance))
		if child.comingData != nil {
			child.comingData.write(b, indent+"  ", wide)
		}
	}
}

func (o objectData) name() string {
	return kudo.InventoryEntry{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// diffs returns the differences of objects, including created objects if wide is set.
func (d comingData) diffs(wide bool) string {
	var b strings.Builder
	for _, p := range d.Plans {
		for _, t := range p.Tasks {
			for _, o := range t.Objects {
				if o.Diff != "" && (wide || o.Effect == preview.Changed) {
					b.WriteString("\n" + o.Diff)
				}
			}
			if t.Child != nil && t.Child.comingData != nil {
				b.WriteString(t.Child.diffs(wide))
			}
		}
	}
	return b.String()
}

// comingText describes the plans that would run.
func (c *change) comingText() string {
	var b strings.Builder
	coming := comingOf(preview.Of(c.Change))
	for _, p := range coming.Plans {
		fmt.Fprintf(&b, "  plan %s runs: %s\n", p.Plan, p.causeText())
	}
	if problem := coming.problem(); problem != nil {
		fmt.Fprintf(&b, "  would fail: %v\n", problem)
	}
	return b.String()
}
