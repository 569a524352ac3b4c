package ui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/diagnosis"
)

// instanceView is what page Instance shows.
type instanceView struct {
	progress.Status
	fleet.Glimpse
	Version corev1.ObjectReference
	Plans   []planRow
	// History has the last executions, the latest first. Runs has the last run of each plan, for an agent that keeps no history.
	// NoHistory is set if it cannot be read.
	History    []revisionRow
	NoHistory  bool
	Runs       []runRow
	Conditions []conditionRow
	Parent     string
	Children   []instanceRow
	Parameters []parameterRow
	Inventory  []kudo.InventoryEntry
	// Unread is set if the OperatorVersion cannot be read.
	Unread bool
	Forms  planForms
	// Diagnosis is the last answer of the agent about the pods.
	Diagnosis diagnosisView
	// Upgrade is the form for the version, Change that for parameters, WhatIf the path of page What if.
	Upgrade  upgradeForm
	Change   parameterForm
	WhatIf   string
	Commands []string
	// Notices have the commands and the forms that end what they report.
	Notices []instanceNotice
}

// instanceNotice is a notice on page Instance.
type instanceNotice struct {
	notice.Notice
	Fixes []fixRow
}

// diagnosisView is a request for a diagnosis and the last answer.
type diagnosisView struct {
	// Waits is set while the request is not answered. Asked is when it was sent; zero if that is not known.
	Waits bool
	Asked moment
	// Answer is clean and bounded; nil if there is none. Time is when it was made.
	Answer *kudo.Diagnosis
	Time   moment
	Events []eventRow
}

// eventRow is an Event in a diagnosis.
type eventRow struct {
	kudo.DiagnosedEvent
	Seen moment
}

// diagnosisOf returns the diagnosis of an Instance. What a cluster reports is untrusted.
func diagnosisOf(instance *kudo.Instance, now time.Time) diagnosisView {
	var view diagnosisView
	request, answer := diagnosis.RequestOf(instance), instance.Status.Diagnosis
	if view.Waits = request != "" && (answer == nil || answer.Request != request); view.Waits {
		if asked, err := time.Parse(time.RFC3339, request); err == nil {
			view.Asked = moment{asked, now}
		}
	}
	if answer == nil {
		return view
	}
	view.Answer, view.Time = new(diagnosis.Bound(*answer)), momentOf(&answer.Time, now)
	for _, event := range view.Answer.Events {
		view.Events = append(view.Events, eventRow{event, momentOf(&event.Time, now)})
	}
	return view
}

// planRow is a plan with its phases.
type planRow struct {
	kudo.PlanStatus
	Took string
	// Open is set if the phases are shown at once.
	Open bool
	// Hooks are the hooks of charts that its last run has started, by task.
	Hooks map[string][]progress.Hook
}

// revisionRow is an execution in the history.
type revisionRow struct {
	progress.Revision
	Started moment
	Took    string
}

// revisionRows returns a history, the latest execution first.
func revisionRows(history []kudo.HistoryEntry, now time.Time) []revisionRow {
	rows := make([]revisionRow, 0, len(history))
	for _, entry := range slices.Backward(history) {
		rows = append(rows, revisionRow{
			progress.Revision{HistoryEntry: entry}, momentOf(entry.StartedTimestamp, now), progress.DurationText(entry.StartedTimestamp, entry.EndedTimestamp, now),
		})
	}
	return rows
}

// runRow is the last run of a plan.
type runRow struct {
	progress.LastRun
	Started moment
	Took    string
}

func instancePage(ctx context.Context, v visit) (frame, error) {
	key := client.ObjectKey{Namespace: v.PathValue("cluster"), Name: v.PathValue("instance")}
	instance := &kudo.Instance{}
	if err := v.Get(ctx, key, instance); err != nil {
		return frame{}, err
	}
	progressing := read.View(ctx, v.reader, instance)
	if err := read.Children(ctx, v.reader, &progressing); err != nil && !isHidden(err) {
		return frame{}, err
	}
	view := instanceOf(progressing, v)
	history, err := v.history(ctx, instance)
	view.History, view.NoHistory = revisionRows(history, v.now), err != nil
	view.Forms, view.Change = v.planForms(ctx, progressing), v.parameterForm(ctx, progressing)
	view.offer()
	if view.Upgrade, err = v.upgradeForm(ctx, progressing); err != nil {
		return frame{}, err
	}
	if v.foresees(ctx) {
		view.WhatIf = instancePath(key.Namespace, key.Name) + "/what-if"
	}
	return frame{Title: key.Name + " on " + key.Namespace, Template: "instance", View: view}, nil
}

// instanceOf returns what the page shows of an Instance.
func instanceOf(p progress.View, v visit) instanceView {
	instance := p.Instance
	version := instance.Spec.OperatorVersion
	version.Namespace = cmp.Or(version.Namespace, instance.Namespace)
	view := instanceView{
		Status: progress.StatusOf(p), Glimpse: fleet.GlimpseOfInstance(instance), Version: version,
		Inventory: instance.Status.Inventory, Unread: p.Version == nil, Commands: []string{
			command("plan status %s --cluster %s", instance.Name, instance.Namespace), command("history %s --cluster %s", instance.Name, instance.Namespace),
			command("events %s --cluster %s", instance.Name, instance.Namespace),
			command("logs %s --cluster %s --cluster-context CONTEXT", instance.Name, instance.Namespace),
		},
	}
	for _, about := range notice.Of(instance) {
		shown := instanceNotice{Notice: about}
		for _, line := range about.Commands {
			shown.Fixes = append(shown.Fixes, fixRow{Command: line})
		}
		view.Notices = append(view.Notices, shown)
	}
	view.Diagnosis = diagnosisOf(instance, v.now)
	view.Conditions = conditionRows(view.Status.Conditions, v.now)
	if parent := instance.Parent(); parent != nil {
		view.Parent = parent.Name
	}
	for _, status := range view.Status.Plans {
		view.Plans = append(view.Plans, planRow{
			PlanStatus: withMessagesOnce(status), Took: progress.DurationText(status.StartedTimestamp, endOf(status), v.now), Open: status.Name == view.LastPlan || status.Status.IsRunning(),
			Hooks: p.Hooks(status),
		})
	}
	slices.SortStableFunc(view.Plans, func(a, b planRow) int { return first(b.Open) - first(a.Open) })
	for _, last := range progress.HistoryOf(p).Plans {
		view.Runs = append(view.Runs, runRow{last, momentOf(last.Started, v.now), progress.DurationText(last.Started, last.Ended, v.now)})
	}
	for _, child := range p.Children {
		view.Children = append(view.Children, instanceRowOf(child.Instance))
	}
	set := parametersOf(instance.Spec, p.Version)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		view.Parameters = append(view.Parameters, parameterRow{name, set[name]})
	}
	return view
}

// offer adds the forms that the user may send to the commands of notices.
func (v *instanceView) offer() {
	for _, about := range v.Notices {
		for i, row := range about.Fixes {
			if f, replaced := fixOf(v.Cluster, row.Command); replaced && f.name == v.Instance {
				about.Fixes[i].Form = v.Forms.fixForm(f)
			}
		}
	}
}

// withMessagesOnce returns the status of a plan without the messages that an item below repeats: that of a plan ends in that of its task.
func withMessagesOnce(status kudo.PlanStatus) kudo.PlanStatus {
	status = *status.DeepCopy()
	var inPlan []string
	for i := range status.Phases {
		phase, inPhase := &status.Phases[i], []string(nil)
		for k := range phase.Steps {
			step, inStep := &phase.Steps[k], []string(nil)
			for _, task := range step.Tasks {
				inStep = append(inStep, task.Message)
			}
			step.Message = unlessRepeated(step.Message, inStep)
			inPhase = append(append(inPhase, step.Message), inStep...)
		}
		phase.Message = unlessRepeated(phase.Message, inPhase)
		inPlan = append(append(inPlan, phase.Message), inPhase...)
	}
	status.Message = unlessRepeated(status.Message, inPlan)
	return status
}

// unlessRepeated returns a message, or nothing if it ends in one of those below.
func unlessRepeated(message string, below []string) string {
	for _, repeated := range below {
		if repeated != "" && strings.HasSuffix(message, repeated) {
			return ""
		}
	}
	return message
}

func first(open bool) int { return map[bool]int{true: 1}[open] }

// endOf returns the end of the last run of a plan; nil while it runs.
func endOf(status kudo.PlanStatus) *metav1.Time {
	if status.Status.IsTerminal() {
		return status.LastUpdatedTimestamp
	}
	return nil
}
