package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// definition judges a write of a ClusterManagementAddOn by its dependencies: it rejects malformed ones and cycles. It warns about configs
// in the namespaces of clusters. It warns about the deletion of a definition that others require, and rejects it, as with add-ons, if they protect the
// add-on.
//
// It reads the other definitions live: a cycle is often created by two consecutive writes, and the cache may lack the first one.
// Dependencies change rarely, and there is one definition per add-on, not per cluster.
func (a *admissions) definition(ctx context.Context, w write[*addonv1alpha1.ClusterManagementAddOn]) (opinion, error) {
	switch {
	case w.after == nil:
		return a.definitionRemoval(ctx, w)
	case !w.after.DeletionTimestamp.IsZero():
		return opinion{}, nil
	}
	var definitions addonv1alpha1.ClusterManagementAddOnList
	if err := a.live.List(ctx, &definitions); err != nil {
		return opinion{}, fmt.Errorf("listing ClusterManagementAddOns: %w", err)
	}
	needs := make(map[string][]addonv1alpha1.AddonDependency, len(definitions.Items))
	for i := range definitions.Items {
		needs[definitions.Items[i].Name] = dependency.Needs(&definitions.Items[i])
	}
	warnings, refused := dependency.Admit(w.before, w.after, func(name string) []addonv1alpha1.AddonDependency { return needs[name] })
	warnings = append(warnings, removalWarnings(w.before, w.after)...)
	warnings = append(warnings, suspensionWarnings(w)...)
	placed, err := a.configWarnings(ctx, w)
	return opinion{warnings: append(warnings, placed...), refused: refused}, err
}

// configWarnings warns about configs of clusters that the write adds to a definition whose configs Tandem reads.
func (a *admissions) configWarnings(ctx context.Context, w write[*addonv1alpha1.ClusterManagementAddOn]) ([]string, error) {
	if !install.IsPlanManaged(w.after) && w.after.Name != addonv1alpha1.AgentAddOn {
		return nil, nil
	}
	namespaces, err := read.Namespaces(ctx, a.live, a.namespaces, install.ConfigNamespaces(w.after, nil))
	return install.AdmitDefinition(w.before, w.after, namespaces), err
}

// removalWarnings warns about a write that removes all dependencies: `clusteradm addon create --overwrite` replaces all annotations, and so
// drops the declaration. If they fit into a warning, the names and the command that restores the dependencies are included.
func removalWarnings(before, after *addonv1alpha1.ClusterManagementAddOn) []string {
	lost, where := dependency.FindRemoved(before, after)
	if len(lost) == 0 {
		return nil
	}
	names := make([]string, 0, len(lost))
	for _, need := range lost {
		names = append(names, need.Name)
	}
	warnings := []string{warningFor(names, func(listed string) string {
		return fmt.Sprintf("this write removes all dependencies of %q (%s): unless that is intended, restore %s", after.Name, listed, where)
	})}
	declared, err := json.Marshal(lost)
	if err != nil {
		return warnings
	}
	value := strings.ReplaceAll(string(declared), "'", `\u0027`) // quoted for a shell
	command := fmt.Sprintf("kubectl annotate clustermanagementaddon %s '%s=%s'", after.Name, addonv1alpha1.AnnotationDependencies, value)
	if len(before.Spec.Dependencies) > 0 {
		command = fmt.Sprintf(`kubectl patch clustermanagementaddon %s --type=merge -p '{"spec":{"dependencies":%s}}'`, after.Name, value)
	}
	if restore := "to restore them: " + command; len(restore) <= warningLimit {
		warnings = append(warnings, restore)
	}
	return warnings
}

// suspensionWarnings warns about a write that replaces the whole definition without the annotation that suspends its Instances, as
// `clusteradm addon create --overwrite` does, and about one that sets the annotation to a value that looks as if it did not suspend.
func suspensionWarnings(w write[*addonv1alpha1.ClusterManagementAddOn]) []string {
	origin, before, was := suspension.Origin{Kind: suspension.KindAddOn, Name: w.after.Name}, "", false
	if w.before != nil {
		before, was = suspension.ReasonOf(w.before)
	}
	after, is := suspension.ReasonOf(w.after)
	switch {
	case was && !is && w.replaces:
		restore := text.Command("to suspend it again: kubectl addon suspend %s --everywhere", w.after.Name)
		if reason := text.Command(" --reason %s", before); before != "" && len(restore+reason) <= warningLimit {
			restore += reason
		}
		return []string{
			fmt.Sprintf("this write resumes add-on %q on all clusters, and its plans start: unless that is intended, suspend it again", w.after.Name), restore,
		}
	case is && (!was || before != after):
		origin.Reason = after
		if denial := origin.Denial(); denial != "" {
			return []string{denial}
		}
	}
	return nil
}

// definitionRemoval warns about the deletion of a definition that others require. The add-on may remain on clusters without it, but OCM
// removes it there, and it may be impossible to install it again. It rejects the deletion if one of them protects the add-on on a cluster.
func (a *admissions) definitionRemoval(ctx context.Context, w write[*addonv1alpha1.ClusterManagementAddOn]) (opinion, error) {
	names, err := read.DefinedOn(ctx, a.client, w.before.Name)
	if err != nil || !w.before.DeletionTimestamp.IsZero() {
		return opinion{}, err
	}
	var dependents []string
	for _, name := range names {
		needs, err := declares(ctx, a.client, name, w.before.Name)
		if err != nil {
			return opinion{}, err
		}
		if len(needs) > 0 { // another candidate may be missing where this one is
			dependents = append(dependents, name)
		}
	}
	if refused, err := a.protectedSomewhere(ctx, w, names); err != nil || refused != nil {
		return opinion{refused: refused}, err
	}
	return dependentsOpinion(dependents, "", w.before.Name, " where it is removed with its definition"), nil
}
