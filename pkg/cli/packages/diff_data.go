package packages

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// diffData is the output of `package diff`.
type diffData struct {
	// From and To are the names of OperatorVersions.
	From    string       `json:"from"`
	To      string       `json:"to"`
	Changes []diffChange `json:"changes"`
	Upgrade diffUpgrade  `json:"upgrade"`
}

// diffChange is a change; the change of a template includes its lines.
type diffChange struct {
	pack.Change
	Diff string `json:"diff,omitempty"`
}

// diffUpgrade describes the upgrade of an Instance from one version to the other.
type diffUpgrade struct {
	// Plan is the plan that runs; empty if none does.
	Plan string `json:"plan,omitempty"`
	// Notes lists what the Instance has to change for the upgrade, and why no plan runs.
	Notes []string `json:"notes,omitempty"`
}

func difference(before, after *kudo.OperatorVersion) diffData {
	data := diffData{From: before.Name, To: after.Name, Changes: []diffChange{}}
	for _, change := range pack.Compare(&before.Spec, &after.Spec) {
		c := diffChange{Change: change}
		if change.Section == pack.InTemplates {
			c.Diff = text.Diff(change.Name, before.Spec.Templates[change.Name], after.Spec.Templates[change.Name])
		}
		data.Changes = append(data.Changes, c)
	}
	if len(data.Changes) > 0 {
		data.Upgrade = upgrade(before, after)
	}
	return data
}

// upgrade describes the upgrade of an Instance to the other OperatorVersion, as the agent and admission evaluate it.
func upgrade(before, after *kudo.OperatorVersion) diffUpgrade {
	if before.Spec.Operator.Name != after.Spec.Operator.Name {
		return diffUpgrade{Notes: []string{fmt.Sprintf("%s and %s are different operators", before.Spec.Operator.Name, after.Spec.Operator.Name)}}
	}
	if before.Name == after.Name {
		return diffUpgrade{Notes: []string{fmt.Sprintf(
			"both are OperatorVersion %s, which is immutable once it is pushed: raise operatorVersion", after.Name)}}
	}
	var u diffUpgrade
	deployed := corev1.ObjectReference{Name: before.Name}
	choice, err := plan.Choose(plan.State{
		Version: &after.Spec, Reference: corev1.ObjectReference{Name: after.Name},
		Last: &kudo.Execution{Plan: kudo.DeployPlan, OperatorVersion: deployed}, LastStatus: kudo.Complete, LastVersion: &before.Spec,
		Whole: &kudo.WholeVersion{OperatorVersion: deployed},
	})
	switch {
	case err != nil:
		u.Notes = append(u.Notes, err.Error())
	case choice.Start != nil:
		u.Plan = choice.Start.Plan
	}
	for _, p := range after.Spec.Parameters {
		if mustSet(after.Spec.Parameters, p.Name) && !mustSet(before.Spec.Parameters, p.Name) {
			u.Notes = append(u.Notes, fmt.Sprintf("an Instance must set parameter %s", p.Name))
		}
	}
	for _, p := range before.Spec.Parameters {
		if _, defined := parameter.Effective(after.Spec.Parameters, nil, p.Name); !defined {
			u.Notes = append(u.Notes, fmt.Sprintf("an Instance must no longer set parameter %s", p.Name))
		}
	}
	problems := parameter.Immutable(parameter.Setting{Definitions: before.Spec.Parameters}, parameter.Setting{Definitions: after.Spec.Parameters})
	for _, problem := range problems {
		u.Notes = append(u.Notes, fmt.Sprintf("an Instance that does not set it is rejected: %s", problem))
	}
	return u
}

// mustSet reports whether an Instance has to set the parameter.
func mustSet(definitions []kudo.Parameter, name string) bool {
	for _, p := range definitions {
		if p.Name == name {
			return p.Default == nil && p.Required != nil && *p.Required
		}
	}
	return false
}
