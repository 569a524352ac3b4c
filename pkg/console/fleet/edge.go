package fleet

import (
	"fmt"
	"slices"
	"strings"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Edge is a dependency of an add-on on a cluster, with the versions that it is compared with.
type Edge struct {
	dependency.Judgement
	// Constraints are those on the version of the candidate that decides; Versions are the ones that run.
	Constraints []string
	Versions    dependency.Versions
	// Clusters selects the clusters on which the dependency exists. Elsewhere is set if this cluster is none of them.
	Clusters  string
	Elsewhere bool
}

// Edges returns the dependencies of an add-on, and those that do not apply to this cluster.
func (v Cluster) Edges(name string) []Edge {
	var edges []Edge
	declared, own := v.Definitions[name].Needs, v.constraintsOf(name)
	for _, j := range v.Judge(name) {
		e := Edge{Judgement: j, Clusters: clustersText(declared, j.Name), Constraints: slices.Clone(own[j.By])}
		i := slices.IndexFunc(declared, func(n addonv1alpha1.AddonDependency) bool { return n.Name == j.Name })
		if i >= 0 && declared[i].Version != "" && !slices.Contains(e.Constraints, declared[i].Version) {
			e.Constraints = slices.Insert(e.Constraints, 0, declared[i].Version)
		}
		if len(e.Constraints) > 0 && v.AddOns[j.By] != nil {
			e.Versions = v.versionsOf(j.By)
		}
		edges = append(edges, e)
	}
	for _, need := range v.Elsewhere(name) {
		edges = append(edges, Edge{
			Judgement: dependency.Judgement{Name: need.Name, By: need.Name, Type: need.Type, Alternatives: need.Alternatives},
			Clusters:  selector.Text(need.Clusters), Elsewhere: true,
		})
	}
	return edges
}

// ElsewhereText is the state of a dependency that does not exist on a cluster.
const ElsewhereText = "does not apply to this cluster"

// maxShownAlternatives is the number of alternatives that a text names.
const maxShownAlternatives = 3

// CandidateText names the dependency that an add-on satisfies as an alternative, or else the alternatives to it; empty if there are none.
func CandidateText(insteadOf string, alternatives []string) string {
	switch {
	case insteadOf != "":
		return "instead of " + text.Word(insteadOf)
	case len(alternatives) > 0:
		return "or " + text.List(alternatives, maxShownAlternatives)
	default:
		return ""
	}
}

// candidateText is CandidateText of the dependency.
func (e Edge) candidateText() string {
	if e.By != e.Name {
		return CandidateText(e.Name, nil)
	}
	return CandidateText("", e.Alternatives)
}

// versionText returns the constraints and the version that runs; empty if there are no constraints.
func (e Edge) versionText() string {
	if len(e.Constraints) == 0 {
		return ""
	}
	required := "requires " + strings.Join(e.Constraints, " and ")
	switch {
	case e.Versions.Installed == "":
		return required
	case e.Versions.Starting != "":
		return fmt.Sprintf("%s, runs %s, changing to %s", required, e.Versions.Installed, e.Versions.Starting)
	default:
		return fmt.Sprintf("%s, runs %s", required, e.Versions.Installed)
	}
}

// Labels returns short texts about the dependency, for a drawing; none if there is nothing to say.
func (e Edge) Labels() []string {
	var labels []string
	if e.Elsewhere {
		labels = append(labels, "does not apply here")
	}
	if len(e.Constraints) > 0 {
		label := strings.Join(e.Constraints, " ")
		if e.Versions.Installed != "" {
			label += ", runs " + e.Versions.Installed
		}
		labels = append(labels, label)
	}
	if candidate := e.candidateText(); candidate != "" {
		labels = append(labels, candidate)
	}
	return labels
}

// Text describes the dependency: its name, and what is to say about it, in the words of `tree`.
func (e Edge) Text() string {
	shown := e.By
	if candidate := e.candidateText(); candidate != "" {
		shown += " (" + candidate + ")"
	}
	var parts []string
	if e.Type == addonv1alpha1.DependencyTypeOptional {
		parts = append(parts, string(e.Type))
	}
	if e.Elsewhere {
		parts = append(parts, ElsewhereText+" ("+e.Clusters+")")
	} else if cause := CauseText(e.Judgement); cause != "" {
		parts = append(parts, cause)
	}
	if versions := e.versionText(); versions != "" && e.Mismatch == "" {
		parts = append(parts, versions)
	}
	if len(parts) == 0 {
		return shown
	}
	return shown + ": " + strings.Join(parts, "; ")
}

// clustersText describes the clusters on which the dependency of that name exists; empty if these are all.
func clustersText(needs []addonv1alpha1.AddonDependency, name string) string {
	i := slices.IndexFunc(needs, func(n addonv1alpha1.AddonDependency) bool { return n.Name == name })
	if i < 0 {
		return ""
	}
	return selector.Text(needs[i].Clusters)
}

// CauseText states why a dependency is not satisfied; empty if it is.
func CauseText(j dependency.Judgement) string {
	switch {
	case j.Cause == dependency.Circular:
		return fmt.Sprintf("%s: %s", j.Cause, dependency.Way(j.Cycle))
	case j.Held && j.Satisfied:
		return "satisfied when last known"
	case j.Held:
		return fmt.Sprintf("%s, not satisfied when last known", j.Cause)
	case j.Mismatch != "":
		return fmt.Sprintf("%s: %s", j.Cause, j.Mismatch)
	default:
		return string(j.Cause)
	}
}
