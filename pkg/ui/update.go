package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// parameterForm returns the form for the parameters of an Instance, if the user may change them. A child has none, because its parameters
// come from its parent.
func (v visit) parameterForm(ctx context.Context, p progress.View) parameterForm {
	instance := p.Instance
	if !instance.DeletionTimestamp.IsZero() || instance.Parent() != nil {
		return parameterForm{}
	}
	requests := writesOf(instance)
	for _, request := range requests {
		if !v.may(ctx, request) {
			return parameterForm{}
		}
	}
	form := parameterFormOf(p.Version, instance.Spec)
	form.Path, form.Token, form.Reset = parametersPath(instance.Namespace, instance.Name), v.token, true
	return form
}

func parametersPath(cluster, instance string) string {
	return instancePath(cluster, instance) + "/parameters"
}

// updateParameters changes parameters of an Instance or of the add-on that owns it, as `kubectl addon update` does.
func updateParameters(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	key := client.ObjectKey{Namespace: r.PathValue("cluster"), Name: r.PathValue("instance")}
	state, err := change.Gather(ctx, c, []string{key.Namespace})
	if err != nil {
		return proposal{}, err
	}
	instance, version, err := parametersToChange(ctx, c, state, key)
	if err != nil {
		return proposal{}, err
	}
	g, err := givenBy(r, version)
	if err == nil && len(g.set)+len(g.unset) == 0 {
		err = errors.New("no parameter to change")
	}
	if err != nil {
		return proposal{}, err
	}
	p := updateProposal(instance, version, g)
	if instance.UID == "" {
		p.Back = whyPath(key.Namespace, key.Name)
	}
	edited, err := state.Edit(ctx, change.Edit{ObjectKey: key, Parameters: g.set, Unset: g.unset})
	if err != nil {
		return p.withRefusal(err)
	}
	p.describeChange(edited)
	p.do = func(ctx context.Context) error {
		written, err := edited.Write(ctx, c, change.RequestUnchanged)
		return incomplete(written, err)
	}
	return p, nil
}

// futureInstance returns the Instance that the hub will create for an add-on that has none yet, without its parameters; nil if the cluster has no such
// add-on, or if its version is unknown.
func futureInstance(ctx context.Context, c client.Reader, view fleet.Cluster, name string) (*kudo.Instance, *kudo.OperatorVersion, error) {
	addOn := view.AddOns[name]
	if _, defined := view.Definitions[name]; !defined || addOn == nil || !addOn.DeletionTimestamp.IsZero() {
		return nil, nil, nil
	}
	version, err := change.EnableRequest{View: view, AddOn: name}.Version(ctx, c)
	if err != nil || version == nil {
		return nil, nil, err
	}
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: view.Name}}
	instance.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Name: version.Name, Namespace: version.Namespace}
	return instance, version, nil
}

// addConfig adds the parameters of the add-on's own config to its future Instance. Those that no Instance accepts are omitted.
func addConfig(ctx context.Context, c client.Reader, instance *kudo.Instance, version *kudo.OperatorVersion) error {
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	if err := c.Get(ctx, install.OwnConfig(instance.Namespace, instance.Name), config); err != nil && !isHidden(err) {
		return err
	}
	for _, variable := range config.Spec.CustomizedVariables {
		values := change.WithChanges(change.TextsOf(instance.Spec), map[string]string{variable.Name: variable.Value}, nil)
		_ = change.SetParameters(&instance.Spec, values, version) // it changes nothing if it fails
	}
	return nil
}

// parametersToChange returns the Instance whose parameters change, with its version; of an add-on that has no Instance yet, the future one.
func parametersToChange(ctx context.Context, c client.Client, state *change.State, key client.ObjectKey) (*kudo.Instance, *kudo.OperatorVersion, error) {
	if instance := state.FindInstance(key); instance != nil {
		version, err := state.Version(ctx, install.VersionOf(instance))
		return instance, version, err
	}
	instance, version, err := futureInstance(ctx, c, state.View(key.Namespace), key.Name)
	switch {
	case err != nil:
		return nil, nil, err
	case instance == nil:
		return nil, nil, state.NotFoundError(key)
	}
	return instance, version, addConfig(ctx, c, instance, version)
}

// updateProposal returns the proposal without the effects beside the values.
func updateProposal(instance *kudo.Instance, version *kudo.OperatorVersion, g given) proposal {
	cluster, name := instance.Namespace, instance.Name
	p := proposal{
		Title: fmt.Sprintf("Change parameters of %s on %s", name, cluster), Button: "Change parameters",
		Command: command("update %s --cluster %s", name, cluster) + g.flags(), Fields: g.fields(),
		Path: parametersPath(cluster, name), Back: instancePath(cluster, name),
		Effects: parameterTexts(g, version, instance.Spec), Seen: seenOf(instance), Parameters: parameterFormOf(version, instance.Spec),
	}
	p.Parameters.Reset = true
	return p
}

// describeChange adds the effects, or why the change is refused, and identifies the state that they are for.
func (p *proposal) describeChange(c change.Change) {
	p.Seen += seenOfChange(c)
	p.addChange(c)
	if err := c.Validate(); err != nil {
		p.Refusal = err.Error()
	}
}

// addChange adds a change of an Instance with its warnings, which are shown beside it.
func (p *proposal) addChange(c change.Change) {
	data := c.Data()
	p.Warnings = append(p.Warnings, data.Warnings...)
	data.Warnings = nil
	p.Changes = append(p.Changes, data)
}

// parameterTexts says which values change.
func parameterTexts(g given, version *kudo.OperatorVersion, spec kudo.InstanceSpec) []string {
	current, defaults := parametersOf(spec, version), map[string]string{}
	if version != nil {
		for _, defined := range version.Spec.Parameters {
			if defined.Default != nil {
				defaults[defined.Name] = *defined.Default
			}
		}
	}
	of := func(name string, values ...map[string]string) string {
		for _, known := range values {
			if value, found := known[name]; found {
				return text.Quote(value)
			}
		}
		return "not set"
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(g.set)) {
		texts = append(texts, fmt.Sprintf("Parameter %s: %s → %s", name, of(name, current, defaults), of(name, g.set)))
	}
	for _, name := range g.unset {
		texts = append(texts, fmt.Sprintf("Parameter %s: %s → %s (the default)", name, of(name, current, defaults), of(name, defaults)))
	}
	return texts
}

// seenOfChange identifies the state of the objects beside the Instance that a change depends on.
func seenOfChange(c change.Change) string {
	seen := ""
	if c.Version != nil {
		seen += "/" + string(c.Version.UID)
	}
	if c.Step != nil {
		seen += seenOfStep(*c.Step)
	}
	return seen
}

// seenOfStep identifies the state of an add-on and of its parameters.
func seenOfStep(step change.Step) string {
	seen := "/" + step.Wanted.Name
	if step.Current != nil {
		seen += fmt.Sprintf("/%s/%d", step.Current.UID, step.Current.Generation)
	}
	if step.CurrentConfig != nil {
		seen += fmt.Sprintf("/%s/%s", step.CurrentConfig.UID, step.CurrentConfig.ResourceVersion)
	}
	return seen
}
