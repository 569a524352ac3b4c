package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// enableForm is a form that enables an add-on on a cluster. The page determines the add-on or the cluster, and the user chooses the other.
type enableForm struct {
	Token string
	// AddOn or Cluster is determined by the page; AddOns or Clusters are to choose from.
	AddOn, Cluster   string
	AddOns, Clusters []string
}

// enableForm returns the form that enables an add-on on a cluster, if the user may. One of the names is empty.
func (v visit) enableForm(ctx context.Context, form enableForm) enableForm {
	if len(form.AddOns)+len(form.Clusters) == 0 || !v.may(ctx, createAddOn(form.Cluster, form.AddOn)) {
		return enableForm{}
	}
	form.Token = v.token
	return form
}

// missingOn returns the add-ons that are defined and not enabled on a cluster.
func missingOn(cluster fleet.Cluster) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(cluster.Definitions)), func(name string) bool { return cluster.AddOns[name] != nil })
}

// maxChoices is the number of clusters that a form suggests.
const maxChoices = 200

// without returns clusters that do not have an add-on.
func without(addOn string, all fleet.Glance) []string {
	var clusters []string
	for _, cluster := range slices.Sorted(maps.Keys(all)) {
		if _, enabled := all[cluster][fleet.Subject{Name: addOn}]; !enabled {
			clusters = append(clusters, cluster)
		}
	}
	return clusters[:min(len(clusters), maxChoices)]
}

// enablingOf returns the add-on that a request enables, without its parameters.
func enablingOf(ctx context.Context, c client.Client, r *http.Request) (change.EnableRequest, error) {
	cluster, name := strings.TrimSpace(r.PostFormValue("cluster")), strings.TrimSpace(r.PostFormValue("addon"))
	if cluster == "" || name == "" {
		return change.EnableRequest{}, errors.New("name an add-on and a cluster")
	}
	view, err := read.Cluster(ctx, c, cluster)
	if err == nil {
		err = change.CheckDefined(view.Definitions, name)
	}
	if err != nil {
		return change.EnableRequest{}, err
	}
	e := change.EnableRequest{View: view, AddOn: name, Desired: change.Desired{
		Namespace: strings.TrimSpace(r.PostFormValue("namespace")), WithDependencies: r.PostFormValue("dependencies") != "",
	}}
	if going := e.Removals(); len(going) > 0 {
		return e, fmt.Errorf("add-on %q is being removed from cluster %s; enable it again once it is gone", going[0].Name, cluster)
	}
	return e, nil
}

// enableAddOn enables an add-on, as `kubectl addon enable` does.
func enableAddOn(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	e, err := enablingOf(ctx, c, r)
	if err != nil {
		return proposal{}, err
	}
	reader := change.NewReader(ctx, content.NewFillingReader(c))
	version, err := e.Version(ctx, reader)
	if err != nil {
		return proposal{}, err
	}
	g, err := givenBy(r, version)
	if err != nil {
		return proposal{}, err
	}
	e.Parameters = g.set
	p := enableProposal(e, g)
	p.Parameters = parameterFormOf(version, kudo.InstanceSpec{Parameters: g.set})
	found, err := e.Decide(ctx, reader)
	if problem := change.NamespaceProblem(e.Namespace); problem != "" {
		err = fmt.Errorf("namespace %q: %s", e.Namespace, problem)
	}
	p.describeEnabling(found, version)
	if err == nil {
		err = found.Validate()
	}
	if err != nil {
		return p.withRefusal(err)
	}
	p.do = func(ctx context.Context) error {
		if err := change.CheckParts(ctx, c, found.Changes); err != nil {
			return err
		}
		return writeAll(ctx, c, found.Steps())
	}
	return p, nil
}

// writeAll writes steps in their order, and stops at the first that fails.
func writeAll(ctx context.Context, c client.Client, steps []change.Step) error {
	var done []change.Written
	for _, step := range steps {
		written, err := step.Write(ctx, c)
		if done = append(done, written...); err != nil {
			return incomplete(done, err)
		}
	}
	return nil
}

// enableProposal returns the proposal without its effects.
func enableProposal(e change.EnableRequest, g given) proposal {
	cluster, name := e.View.Name, e.AddOn
	p := proposal{
		Title: fmt.Sprintf("Enable %s on %s", name, cluster), Button: "Enable " + name, Path: "/enable", Back: whyPath(cluster, name),
		Command: command("enable %s --cluster %s", name, cluster), Fields: g.fields(), Base: map[string]string{"cluster": cluster, "addon": name},
		Options: &enableOptions{Namespace: e.Namespace, Dependencies: e.WithDependencies, Missing: e.WithDependencies},
	}
	maps.Copy(p.Fields, p.Base)
	if e.Namespace != "" {
		p.Fields["namespace"] = e.Namespace
		p.Command += " --namespace " + text.ShellWord(e.Namespace)
	}
	if e.WithDependencies {
		p.Fields["dependencies"] = "yes"
		p.Command += " --with-dependencies"
	}
	p.Command += g.flags()
	p.Base = maps.Clone(p.Base)
	maps.Copy(p.Base, g.fields())
	return p
}

// describeEnabling adds the effects, and identifies the state that they are for.
func (p *proposal) describeEnabling(found change.EnableResult, version *kudo.OperatorVersion) {
	if found.Waiting != "" {
		p.Options.Missing = true
		p.Warnings = append(p.Warnings, found.Waiting+"; it is installed once they are available")
	}
	p.Warnings = append(p.Warnings, found.Remarks...)
	for _, step := range found.Steps() {
		p.describeStep(step)
	}
	p.describeVersion(found, version)
	for _, c := range found.Changes {
		if c.Remarks = nil; c.After != nil || c.Unknown != "" { // the remarks are among the warnings
			p.addChange(c)
		}
	}
	p.Seen += text.OneLine(strings.Join(p.Warnings, "/"))
}

// describeStep adds the write of an add-on.
func (p *proposal) describeStep(step change.Step) {
	name, where := step.Wanted.Name, ""
	if step.Wanted.Spec.InstallNamespace != "" {
		where = " in namespace " + step.Wanted.Spec.InstallNamespace
	}
	switch {
	case step.Current == nil:
		p.Effects = append(p.Effects, fmt.Sprintf("Add-on %s is enabled%s.", name, where))
	case len(step.Objects()) == 0:
		p.Effects = append(p.Effects, fmt.Sprintf("Add-on %s is already enabled, and does not change.", name))
	}
	if step.Config != nil {
		p.Effects = append(p.Effects, fmt.Sprintf("AddOnDeploymentConfig %s has its parameters: %s.",
			step.Config.Name, strings.Join(slices.Sorted(maps.Keys(step.Parameters)), ", ")))
		if kept := keptVariables(step); len(kept) > 0 {
			p.Effects = append(p.Effects, fmt.Sprintf("It already sets others, which apply too: %s.", strings.Join(kept, ", ")))
		}
	}
	p.Seen += seenOfStep(step)
}

// keptVariables returns the variables that the config of a step has besides the given parameters: it may remain from an add-on that was disabled.
func keptVariables(step change.Step) []string {
	var names []string
	for _, variable := range step.Config.Spec.CustomizedVariables {
		if _, isGiven := step.Parameters[variable.Name]; !isGiven {
			names = append(names, variable.Name)
		}
	}
	return names
}

// describeVersion adds the OperatorVersion that installs the requested add-on, and its plan if its effects are unknown.
func (p *proposal) describeVersion(found change.EnableResult, version *kudo.OperatorVersion) {
	if version == nil {
		return
	}
	p.Seen += "/" + string(version.UID)
	if len(found.Changes) == 0 || found.Changes[len(found.Changes)-1].Step.Current != nil {
		return
	}
	p.Effects = append(p.Effects, fmt.Sprintf("It runs OperatorVersion %s, whose plan %s installs it.", version.Name, kudo.DeployPlan))
	if found.Changes[len(found.Changes)-1].After == nil {
		p.Plan = new(progress.View{Instance: &kudo.Instance{}, Version: version}.Plan(kudo.DeployPlan))
	}
}
