package ui

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// explanationOf explains the state of an add-on, as far as the user may read the definitions.
func explanationOf(cluster fleet.Cluster, name string, now time.Time) why.Data {
	if cluster.Definitions == nil {
		return why.Data{AddOn: name, Cluster: cluster.Name,
			Explanation: "Its dependencies are unknown, because you are not allowed to list ClusterManagementAddOns. The conditions below are what it reports."}
	}
	return why.Of(cluster, name, now).Data(name)
}

// whyView is what page Why shows.
type whyView struct {
	why.Data
	fleet.Glimpse
	Installed  bool
	Planned    bool
	Conditions []conditionRow
	Dependents []string
	Command    string
	// Fixes are the commands that fix the causes. Cancel cancels the plan that runs or is requested; nil if the user may not, or if there is none.
	Fixes  []fixRow
	Cancel *fixForm
	// Stuck are rollouts that wait for each other.
	Stuck []rolloutRow
	// Disable is the path that disables the add-on, empty if the user may not; Token is the value that its form has to contain.
	Disable, Token string
	Enable         enableForm
}

// fixRow is a command that fixes a cause, with a form that does the same or sets the parameters that it names. Without permission to act,
// there are none.
type fixRow struct {
	Command string
	Form    *fixForm
	Change  parameterForm
}

// fixForm asks for the preview of an action.
type fixForm struct {
	Path, Label, Token string
	Danger             bool
	Fields             map[string]string
}

// cancelForm returns the form that cancels a plan; nil if there is none.
func (f planForms) cancelForm() *fixForm {
	if f.Cancel == "" {
		return nil
	}
	return &fixForm{Path: f.Path + "/cancel", Label: "Cancel plan " + f.Cancel, Token: f.Token, Danger: true}
}

// fix is a command that an action of the dashboard replaces.
type fix struct {
	verb, name string
	// plan and namespace are words of the command; empty if it has none, or a placeholder for one. now is set if the plan ignores the windows of the hub.
	plan, namespace string
	now             bool
	// parameters are the names of parameters that the command sets.
	parameters []string
}

// The parts of commands that actions replace. Messages of agents become words of commands: only plain names are taken from them.
var (
	fixCommand   = regexp.MustCompile(`^kubectl addon (plan run|plan cancel|plan resume|resume|update|enable) ([a-z0-9][a-z0-9.-]*) (?:([a-z0-9]\S*) )?--cluster (\S+)(?: |$)`)
	fixNamespace = regexp.MustCompile(` --namespace ([a-z0-9-]+)(?: |$)`)
	fixParameter = regexp.MustCompile(` -p '?([A-Za-z0-9_.-]+)=`)
)

// fixOf returns what a command does on the cluster; false if it does something else.
func fixOf(cluster, line string) (fix, bool) {
	found := fixCommand.FindStringSubmatch(line)
	if found == nil || found[4] != cluster || (found[3] != "") != (found[1] == "plan run") {
		return fix{}, false
	}
	f := fix{verb: found[1], name: found[2], plan: found[3], now: found[1] == "plan run" && strings.HasSuffix(line, " --now")}
	if namespace := fixNamespace.FindStringSubmatch(line); namespace != nil {
		f.namespace = namespace[1]
	}
	for _, parameter := range fixParameter.FindAllStringSubmatch(line, -1) {
		f.parameters = append(f.parameters, parameter[1])
	}
	return f, true
}

// fixRows returns the commands that fix what is wrong with an add-on, with the forms that the user may send. The page has another form that enables
// the add-on itself.
func (v visit) fixRows(ctx context.Context, cluster fleet.Cluster, addOn string, commands []string) []fixRow {
	rows := make([]fixRow, len(commands))
	for i, line := range commands {
		rows[i].Command = line
		f, replaced := fixOf(cluster.Name, line)
		if !replaced || v.acts == nil || f.verb == "enable" && f.name == addOn {
			continue
		}
		if f.verb == "enable" {
			rows[i].Form = v.enableFix(ctx, cluster, f)
		} else if instance := cluster.Instances[f.name]; instance != nil {
			rows[i].Form, rows[i].Change = v.instanceFix(ctx, read.View(ctx, v.reader, instance), f)
		} else if future, version, err := futureInstance(ctx, v.reader, cluster, f.name); future != nil && err == nil && f.verb == "update" {
			rows[i].Change = v.withoutValues(ctx, progress.View{Instance: future, Version: version}, f)
		}
	}
	return rows
}

// withoutValues returns the form for the parameters of an add-on that has no Instance yet. Its current values are in a config, which pages do not read.
func (v visit) withoutValues(ctx context.Context, p progress.View, f fix) parameterForm {
	_, form := v.instanceFix(ctx, p, f)
	for i := range form.Plain {
		form.Plain[i].Value = ""
	}
	for i := range form.Sensitive {
		form.Sensitive[i].Value = ""
	}
	return form
}

// enableFix returns the form that enables an add-on; nil if the user may not, or if it is enabled.
func (v visit) enableFix(ctx context.Context, cluster fleet.Cluster, f fix) *fixForm {
	if _, defined := cluster.Definitions[f.name]; !defined || cluster.AddOns[f.name] != nil || !v.may(ctx, createAddOn(cluster.Name, f.name)) {
		return nil
	}
	form := &fixForm{Path: "/enable", Label: "Enable " + f.name, Token: v.token, Fields: map[string]string{"cluster": cluster.Name, "addon": f.name}}
	if f.namespace != "" {
		form.Fields["namespace"] = f.namespace
	}
	return form
}

// instanceFix returns the form that runs or cancels a plan of an Instance, or the form for its parameters.
func (v visit) instanceFix(ctx context.Context, p progress.View, f fix) (*fixForm, parameterForm) {
	if f.verb == "update" {
		form := v.parameterForm(ctx, p).limitedTo(f.parameters)
		form.Reset = false
		return nil, form
	}
	return v.planForms(ctx, p).fixForm(f), parameterForm{}
}

// fixForm returns the form that does the same as a command about the plans of the Instance; nil if there is none.
func (f planForms) fixForm(of fix) *fixForm {
	if f.Path == "" {
		return nil
	}
	switch of.verb {
	case "plan run":
		return f.runForm(of)
	case "plan cancel":
		return f.cancelForm()
	case "plan resume":
		if f.Resume != "" {
			return &fixForm{Path: f.Path + "/resume-plan", Label: "Resume plan " + f.Resume + " of " + of.name, Token: f.Token}
		}
	case "resume":
		if f.Suspended {
			return &fixForm{Path: f.Path + "/resume", Label: "Resume " + of.name, Token: f.Token}
		}
	}
	return nil
}

// runForm returns the form that runs a plan, also outside of the windows of the hub if the plan waits for one; nil if there is none.
func (f planForms) runForm(of fix) *fixForm {
	form := &fixForm{Path: f.Path + "/run", Label: "Run plan " + of.plan + " of " + of.name, Token: f.Token, Fields: map[string]string{"plan": of.plan}}
	if !slices.Contains(f.Plans, of.plan) || of.now && f.Now != of.plan {
		return nil
	}
	if of.now {
		form.Label, form.Fields["now"] = form.Label+" now", "yes"
	}
	return form
}

// maxSlots is the number of clusters that page Why names for a rollout.
const maxSlots = 10

// rolloutRow is a rollout that waits for others, with clusters that occupy its slots; More is the number of those that are not shown.
type rolloutRow struct {
	AddOn string
	Slots []dependency.Slot
	More  int
}

func rolloutRows(deadlocks []dependency.SlotDeadlock) []rolloutRow {
	var rows []rolloutRow
	for _, deadlock := range deadlocks {
		for _, rollout := range deadlock.Rollouts {
			shown := min(len(rollout.Slots), maxSlots)
			rows = append(rows, rolloutRow{AddOn: rollout.AddOn, Slots: rollout.Slots[:shown], More: len(rollout.Slots) - shown})
		}
	}
	return rows
}

// rollouts reads what explains why rollouts have not reached the cluster. A user who does not see all clusters gets no rollouts that wait for each other: any of
// the others may release a slot.
func (v visit) rollouts(ctx context.Context, cluster fleet.Cluster) (fleet.Rollouts, error) {
	rollouts, err := read.Rollouts(ctx, v.reader, v.now, cluster)
	if err != nil || len(rollouts.Deadlocks) == 0 {
		return rollouts, err
	}
	listsAll, err := v.listsAll(ctx, &addonv1alpha1.ManagedClusterAddOn{})
	if !listsAll {
		rollouts.Deadlocks = nil
	}
	return rollouts, err
}

func whyPage(ctx context.Context, v visit) (frame, error) {
	cluster, err := v.cluster(ctx, v.PathValue("cluster"))
	if err != nil {
		return frame{}, err
	}
	name := v.PathValue("addon")
	if cluster.CheckAddOn(name) != nil {
		return frame{}, errAbsent
	}
	if cluster.Rollouts, err = v.rollouts(ctx, cluster); err != nil {
		return frame{}, err
	}
	view := whyView{
		Data: explanationOf(cluster, name, v.now), Glimpse: fleet.Glimpse{State: fleet.NotEnabled, Reason: "not enabled"},
		Planned: cluster.Instances[name] != nil, Command: command("why %s --cluster %s", name, cluster.Name),
	}
	view.Fixes, view.Stuck = v.fixRows(ctx, cluster, name, view.Commands), rolloutRows(view.Deadlocks)
	if instance := cluster.Instances[name]; instance != nil {
		view.Cancel = v.planForms(ctx, read.View(ctx, v.reader, instance)).cancelForm()
	}
	if addOn := cluster.Current().AddOns[name]; addOn != nil {
		view.Installed, view.Glimpse, view.Conditions = true, fleet.GlimpseOf(addOn), conditionRows(addOn.Status.Conditions, v.now)
		if addOn.DeletionTimestamp.IsZero() && v.may(ctx, deleteAddOn(cluster.Name, name)) {
			view.Disable, view.Token = whyPath(cluster.Name, name)+"/disable", v.token
		}
	}
	if !view.Installed {
		view.Enable = v.enableForm(ctx, enableForm{Cluster: cluster.Name, AddOns: []string{name}})
	}
	for _, dependent := range cluster.Dependents(name) {
		view.Dependents = append(view.Dependents, dependent.Name)
	}
	return frame{Title: name + " on " + cluster.Name, Template: "why", View: view}, nil
}
