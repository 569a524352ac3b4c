package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// patchInstance and the following functions return the requests that actions send.
func patchInstance(cluster, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "patch", Group: kudo.GroupVersion.Group, Resource: "instances", Namespace: cluster, Name: name}
}

func deleteAddOn(cluster, name string) authorizationv1.ResourceAttributes {
	return onAddOn("delete", "managedclusteraddons", cluster, name)
}

func createAddOn(cluster, name string) authorizationv1.ResourceAttributes {
	return onAddOn("create", "managedclusteraddons", cluster, name)
}

func onAddOn(verb, resource, cluster, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: addonv1alpha1.GroupVersion.Group, Resource: resource, Namespace: cluster, Name: name}
}

// ownedByAddOn reports whether an add-on owns the Instance.
func ownedByAddOn(instance *kudo.Instance) bool {
	owner := metav1.GetControllerOf(instance)
	return owner != nil && owner.Kind == "ManagedClusterAddOn"
}

// writesOf returns the requests that change the parameters of an Instance: those of an add-on are in its configuration.
func writesOf(instance *kudo.Instance) []authorizationv1.ResourceAttributes {
	cluster, name := instance.Namespace, instance.Name
	if !ownedByAddOn(instance) {
		return []authorizationv1.ResourceAttributes{patchInstance(cluster, name)}
	}
	config := install.OwnConfig(cluster, name).Name
	return []authorizationv1.ResourceAttributes{
		onAddOn("patch", "managedclusteraddons", cluster, name),
		onAddOn("create", "addondeploymentconfigs", cluster, config), onAddOn("patch", "addondeploymentconfigs", cluster, config),
	}
}

// planForms are the forms of page Instance.
type planForms struct {
	// Path is the path of the page, Token the value that forms have to contain.
	Path, Token string
	// Plans are the plans that can be requested; Cancel is the running or requested one that can be cancelled.
	Plans  []string
	Cancel string
	// Resume is the plan that can be resumed, and Now the one that waits for a window of the hub; both are empty if there is none.
	Resume, Now string
	// Suspended is set if the Instance's own spec suspends it.
	Suspended bool
}

// planForms returns the forms about an Instance that the user may send.
func (v visit) planForms(ctx context.Context, p progress.View) planForms {
	instance := p.Instance
	if !instance.DeletionTimestamp.IsZero() || !v.may(ctx, patchInstance(instance.Namespace, instance.Name)) {
		return planForms{}
	}
	forms := planForms{
		Path: instancePath(instance.Namespace, instance.Name), Token: v.token, Suspended: instance.Spec.Suspend, Now: notice.PlanToStart(instance),
	}
	if resumption, err := change.Resume(p, "", "", nil); err == nil {
		forms.Resume = resumption.Plan
	}
	if p.Version != nil {
		forms.Plans = slices.Sorted(maps.Keys(p.Version.Spec.Plans))
	}
	if cancellation, err := change.Cancel(instance); err == nil {
		forms.Cancel = cmp.Or(cancellation.Running, cancellation.Pending)
	}
	return forms
}

// instanceOfRequest reads the Instance of a request and its OperatorVersion.
func instanceOfRequest(ctx context.Context, c client.Client, r *http.Request) (progress.View, error) {
	key := client.ObjectKey{Namespace: r.PathValue("cluster"), Name: r.PathValue("instance")}
	instance, err := read.ReadInstance(ctx, c, key)
	if err != nil {
		return progress.View{}, err
	}
	return read.View(ctx, c, instance), nil
}

// seenOf identifies the state of an Instance that requests for plans depend on. Progress within a plan does not change it.
func seenOf(instance *kudo.Instance) string {
	execution := types.UID("")
	if last := instance.Status.Execution; last != nil {
		execution = last.UID
	}
	return fmt.Sprintf("%s/%d/%s/%s", instance.UID, instance.Generation, execution, progress.RunningPlan(instance))
}

// runPlan requests a plan, as `kubectl addon plan run` does.
func runPlan(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	view, err := instanceOfRequest(ctx, c, r)
	if err != nil {
		return proposal{}, err
	}
	name, instance := r.PostFormValue("plan"), view.Instance
	wanted, warnings, err := change.Run(view, name, types.UID(uuid.NewString()), nil)
	if err != nil {
		return proposal{}, err
	}
	p := proposal{
		Title: fmt.Sprintf("Run plan %s of %s on %s", name, instance.Name, instance.Namespace), Button: "Run plan " + name, Warnings: warnings,
		Command: command("plan run %s %s --cluster %s", instance.Name, name, instance.Namespace), Fields: map[string]string{"plan": name},
		Seen: seenOf(instance), Back: instancePath(instance.Namespace, instance.Name),
		Effects: []string{fmt.Sprintf("Plan %s is requested with the current version and parameters.", name)},
		do:      func(ctx context.Context) error { return change.RequestUnchanged(ctx, c, instance, wanted) },
	}
	p.Path = p.Back + "/run"
	if r.PostFormValue("now") != "" {
		p.ignoreWindows(&wanted, instance)
	}
	asked := view
	asked.Instance = instance.DeepCopy()
	asked.Instance.Spec = wanted
	if preceding := change.PrecedingText(asked, name); preceding != "" {
		p.Effects = append(p.Effects, preceding)
	}
	if view.Version != nil {
		p.Plan = new(progress.View{Instance: &kudo.Instance{}, Version: view.Version}.Plan(name))
	}
	return p, nil
}

// ignoreWindows makes a request for a plan ignore the maintenance windows of the hub, as `kubectl addon plan run --now` does.
func (p *proposal) ignoreWindows(wanted *kudo.InstanceSpec, instance *kudo.Instance) {
	change.IgnoreWindows(wanted, time.Now())
	p.Title, p.Button, p.Command, p.Fields["now"] = p.Title+" now", p.Button+" now", p.Command+" --now", "yes"
	p.Effects = append(p.Effects, fmt.Sprintf("All plans of the Instance ignore the maintenance windows that the hub sets until %s. Those of the managed cluster apply.",
		stamp(wanted.IgnoreWindowsUntil.Time)))
	if parent := instance.Parent(); parent != nil {
		p.Refusal = fmt.Sprintf("Instance %s has the maintenance windows of its parent: run the plan of Instance %s", instance.Name, parent.Name)
	}
}

// cancelPlan cancels the running plan and withdraws a request, as `kubectl addon plan cancel` does.
func cancelPlan(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	view, err := instanceOfRequest(ctx, c, r)
	if err != nil {
		return proposal{}, err
	}
	instance := view.Instance
	cancellation, err := change.Cancel(instance)
	if err != nil {
		return proposal{}, err
	}
	name := cmp.Or(cancellation.Running, cancellation.Pending)
	p := proposal{
		Title: fmt.Sprintf("Cancel plan %s of %s on %s", name, instance.Name, instance.Namespace), Button: "Cancel plan " + name, Danger: true,
		Command: command("plan cancel %s --cluster %s", instance.Name, instance.Namespace),
		Seen:    seenOf(instance), Back: instancePath(instance.Namespace, instance.Name),
		do: func(ctx context.Context) error { return change.RequestUnchanged(ctx, c, instance, cancellation.Spec) },
	}
	p.Path = p.Back + "/cancel"
	if running := cancellation.Running; running != "" {
		p.Effects = append(p.Effects, fmt.Sprintf("The running plan %s stops and counts as failed. Objects that were already applied stay "+
			"unchanged until a plan runs again.", running))
	}
	if pending := cancellation.Pending; pending != "" {
		p.Effects = append(p.Effects, fmt.Sprintf("Plan %s is no longer requested.", pending))
	}
	return p, nil
}

// maxSteps is the number of steps that the preview of a resumption names in a list.
const maxSteps = 20

// resumePlan runs the last plan again without the steps that have completed, as `kubectl addon plan resume` does.
func resumePlan(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	view, err := instanceOfRequest(ctx, c, r)
	if err != nil {
		return proposal{}, err
	}
	instance := view.Instance
	resumption, err := change.Resume(view, "", types.UID(uuid.NewString()), nil)
	if err != nil {
		return proposal{}, err
	}
	p := proposal{
		Title: fmt.Sprintf("Resume plan %s of %s on %s", resumption.Plan, instance.Name, instance.Namespace), Button: "Resume plan " + resumption.Plan,
		Command: notice.ResumePlanCommand(instance.Name, instance.Namespace), Warnings: resumption.Warnings,
		Seen: seenOf(instance), Back: instancePath(instance.Namespace, instance.Name),
		Effects: []string{fmt.Sprintf("Plan %s is requested again, without the steps that have completed.", resumption.Plan)},
		do:      func(ctx context.Context) error { return change.RequestUnchanged(ctx, c, instance, resumption.Spec) },
	}
	p.Path = p.Back + "/resume-plan"
	for _, of := range []struct {
		text  string
		steps []string
	}{
		{"Skipped if their rendered output is unchanged and their objects are healthy: ", resumption.Skipped},
		{"Complete, but run again: ", resumption.Reruns},
		{"Run: ", resumption.Steps},
	} {
		if len(of.steps) > 0 {
			p.Effects = append(p.Effects, of.text+text.List(of.steps, maxSteps)+".")
		}
	}
	return p, nil
}

// suspendInstance suspends a single Instance, as `kubectl addon suspend NAME --cluster CLUSTER` does.
func suspendInstance(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	p, instance, err := suspensionProposal(ctx, c, r, true)
	if err != nil {
		return p, err
	}
	p.Title, p.Button = fmt.Sprintf("Suspend %s on %s", instance.Name, instance.Namespace), "Suspend "+instance.Name
	p.Command, p.Path, p.Danger = command("suspend %s --cluster %s", instance.Name, instance.Namespace), p.Back+"/suspend", true
	p.Effects = []string{
		"No plan starts, and drift is not repaired, until it is resumed. A running plan finishes the steps that it has started.",
		"Health is still reported, plans can be cancelled, and the Instance can be removed.",
	}
	if instance.Spec.Suspend {
		p.Refusal = fmt.Sprintf("Instance %s is suspended already", instance.Name)
	}
	return p, nil
}

// resumeInstance ends the suspension of a single Instance by its own spec, as `kubectl addon resume NAME --cluster CLUSTER` does.
func resumeInstance(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	p, instance, err := suspensionProposal(ctx, c, r, false)
	if err != nil {
		return p, err
	}
	p.Title, p.Button = fmt.Sprintf("Resume %s on %s", instance.Name, instance.Namespace), "Resume "+instance.Name
	p.Command, p.Path = notice.ResumeCommand(instance.Name, instance.Namespace), p.Back+"/resume"
	p.Effects = []string{"Plans continue, and changes that were made in the meantime are applied."}
	if wider := suspension.Parse(instance.Spec.SuspendedBy); len(wider) > 0 {
		p.Effects = []string{"It stays suspended by " + suspension.Describe(wider) + "."}
	}
	if !instance.Spec.Suspend {
		p.Refusal = fmt.Sprintf("Instance %s is not suspended by its own spec", instance.Name)
	}
	return p, nil
}

// suspensionProposal returns the proposal to suspend or resume the Instance of a request, without its texts.
func suspensionProposal(ctx context.Context, c client.Client, r *http.Request, suspend bool) (proposal, *kudo.Instance, error) {
	view, err := instanceOfRequest(ctx, c, r)
	if err != nil {
		return proposal{}, nil, err
	}
	instance := view.Instance
	wanted, _, err := change.Suspend(instance, suspend)
	return proposal{
		Seen: seenOf(instance), Back: instancePath(instance.Namespace, instance.Name),
		do: func(ctx context.Context) error { return change.RequestUnchanged(ctx, c, instance, wanted) },
	}, instance, err
}

// diagnose asks the agent for a diagnosis.
func diagnose(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	view, err := instanceOfRequest(ctx, c, r)
	if err != nil {
		return proposal{}, err
	}
	instance, now := view.Instance, time.Now()
	p := proposal{
		Title: fmt.Sprintf("Ask the agent about %s on %s", instance.Name, instance.Namespace), Button: "Ask the agent",
		Command: text.Command("kubectl annotate instances.kudo.dev %s --namespace %s --overwrite %s", instance.Name, instance.Namespace,
			kudo.AnnotationDiagnose+"="+now.UTC().Format(time.RFC3339)),
		Effects: []string{
			"The agent reports the pods of the Instance, their Events and the last lines of their logs to the hub, once. Values of sensitive parameters are masked.",
			"Anyone who may read the Instance on the hub can read the answer, which is dropped after one hour.",
		},
		Seen: string(instance.UID), Back: instancePath(instance.Namespace, instance.Name),
		do: func(ctx context.Context) error { return change.RequestDiagnosis(ctx, c, instance, now) },
	}
	p.Path = p.Back + "/diagnose"
	return p, nil
}

// disableAddOn deletes an add-on, as `kubectl addon disable` does.
func disableAddOn(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	cluster, name := r.PathValue("cluster"), r.PathValue("addon")
	view, err := read.Cluster(ctx, c, cluster)
	if err != nil {
		return proposal{}, err
	}
	addOn := view.AddOns[name]
	if addOn == nil {
		return proposal{}, change.NotEnabledError(view, name)
	}
	if err := change.CheckRecreation(view.Definitions[name].Object, "cluster "+cluster); err != nil {
		return proposal{}, fmt.Errorf("add-on %q would be enabled again: %w", name, err)
	}
	detached, err := read.DetachedClusters(ctx, c, []string{cluster})
	if err != nil {
		return proposal{}, err
	}
	removal := change.RemovalOf(view, name)
	effects := []string{"The add-on is deleted. This removes its applied objects, including their data."}
	if detached.Has(cluster) {
		effects = []string{"The add-on is deleted on the hub. The cluster is detached, so its objects stay there."}
	} else {
		if err := removal.CheckUnprotected(); err != nil {
			return proposal{}, err
		}
		lost, err := losses(ctx, c, addOn)
		if err != nil {
			return proposal{}, err
		}
		effects = append(effects, lost...)
	}
	affected, required := removal.Effects()
	p := proposal{
		Title: fmt.Sprintf("Disable %s on %s", name, cluster), Button: "Disable " + name, Danger: true, Command: command("disable %s --cluster %s", name, cluster),
		Effects: effects,
		Seen:    fmt.Sprintf("%s/%d/%s", addOn.UID, addOn.Generation, strings.Join(affected, "/")), Back: whyPath(cluster, name),
		do: func(ctx context.Context) error { return change.Delete(ctx, c, addOn) },
	}
	p.Path = p.Back + "/disable"
	if len(affected) == 0 {
		p.Effects = append(p.Effects, "No other add-on on this cluster depends on it.")
	}
	if p.Warnings = affected; required { // without a terminal, or with --yes, the command requires the flag
		p.Button, p.Command = p.Button+" anyway", p.Command+" --force"
	}
	if !addOn.DeletionTimestamp.IsZero() {
		p.Effects = []string{"The add-on is already being removed; nothing changes."}
	}
	return p, nil
}

// losses states what the removal of an add-on deletes besides its objects, and what it keeps.
func losses(ctx context.Context, c client.Client, addOn *addonv1alpha1.ManagedClusterAddOn) ([]string, error) {
	var list kudo.InstanceList
	switch err := c.List(ctx, &list, client.InNamespace(addOn.Namespace)); {
	case meta.IsNoMatchError(err):
		return nil, nil
	case isHidden(err):
		return []string{"What else is deleted is unknown: you are not permitted to list the Instances of the cluster."}, nil
	case err != nil:
		return nil, read.ListingProblem("Instances", addOn.Namespace, err)
	}
	var sentences []string
	for _, loss := range (change.Removal{ObjectKey: client.ObjectKeyFromObject(addOn), AddOn: addOn}).Losses(list.Items) {
		sentence := loss.String()
		sentences = append(sentences, strings.ToUpper(sentence[:1])+sentence[1:]+".")
	}
	return sentences, nil
}
