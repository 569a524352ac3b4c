package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
)

// addOn rejects a ManagedClusterAddOn with a config that its cluster must not use, or with a reserved install namespace. It warns about the deletion of one
// that others on the cluster require, and about a change of one that is being deleted. It rejects a deletion only if a dependent protects the add-on.
func (a *admissions) addOn(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn]) (opinion, error) {
	going := w.before != nil && !w.before.DeletionTimestamp.IsZero()
	switch {
	case going && w.after != nil:
		return lostChangeOpinion(w.before), nil
	case going:
		return opinion{}, nil
	case w.after != nil:
		return a.spec(ctx, w)
	}
	return a.removal(ctx, w)
}

// removal warns about the deletion of an add-on that others on the cluster require, or rejects it if one of them protects the add-on.
func (a *admissions) removal(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn]) (opinion, error) {
	names, err := read.DefinedOn(ctx, a.client, w.before.Name)
	if err != nil {
		return opinion{}, err
	}
	var dependents, protecting []string
	for _, name := range names {
		removal, err := requires(ctx, a.client, types.NamespacedName{Namespace: w.before.Namespace, Name: name}, w.before.Name)
		if err != nil {
			return opinion{}, err
		}
		if removal != "" {
			dependents = append(dependents, name)
		}
		if removal == addonv1alpha1.RemovalProtect {
			protecting = append(protecting, name)
		}
	}
	o := dependentsOpinion(dependents, " on "+w.before.Namespace, w.before.Name, "")
	if o.refused, err = a.protectedOn(ctx, w, protecting); o.refused != nil {
		o.warnings = nil // nothing becomes unavailable
	}
	return o, err
}

// spec rejects what a write adds to an add-on that Tandem manages: a reserved install namespace of a plan-based one, and configs that its
// cluster must not use, or for addon-agent, those of other clusters.
func (a *admissions) spec(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn]) (opinion, error) {
	misplaced := install.AdmitInstallNamespace(w.before, w.after, a.reserved)
	names := install.ConfigNamespaces(nil, w.after)
	if misplaced == nil && len(names) == 0 {
		return opinion{}, nil
	}
	definition, err := read.Definition(ctx, a.client, w.after.Name)
	if err == nil && definition == nil { // it may have just been created
		definition, err = read.Definition(ctx, a.live, w.after.Name)
	}
	agent := w.after.Name == addonv1alpha1.AgentAddOn
	switch {
	case err != nil:
		return opinion{}, err
	case misplaced != nil && !agent && runsPackage(definition, w.after): // the agent's namespace is its own
		return opinion{refused: misplaced}, nil
	case !agent && !install.IsPlanManaged(definition):
		return opinion{}, nil
	}
	namespaces, err := read.Namespaces(ctx, a.live, a.namespaces, names)
	namespaces.Lenient = agent // its delivery reads no config that administrators do not allow
	return opinion{refused: install.AdmitAddOn(definition, w.before, w.after, namespaces)}, err
}

// runsPackage reports whether an add-on is plan-based, or one of a stack whose definition does not exist: `kubectl addon apply` asks whether all objects would
// be accepted before it writes the definition.
func runsPackage(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return install.IsPlanManaged(definition) || definition == nil && addOn.Labels[kudo.LabelStack] != ""
}

// lostChangeOpinion warns about a change of an add-on that is being deleted.
func lostChangeOpinion(addOn *addonv1alpha1.ManagedClusterAddOn) opinion {
	return opinion{warnings: []string{fmt.Sprintf("%s is being removed from %s, so this change is lost: enable it again once it is gone "+
		"('kubectl addon enable' waits for that)", addOn.Name, addOn.Namespace)}}
}
