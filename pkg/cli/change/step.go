package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/fleet"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// step is the write of one add-on on one cluster.
type step struct {
	// current is the existing add-on, or nil; wanted is its desired state.
	current, wanted *addonv1alpha1.ManagedClusterAddOn
	// config is the AddOnDeploymentConfig with the given parameters, nil if there are none; currentConfig is its current state.
	currentConfig, config *addonv1alpha1.AddOnDeploymentConfig
	// parameters are the given parameters. The config may have further variables, which the hub may ignore.
	parameters map[string]string
}

// desired is the requested state of an add-on on a cluster.
type desired struct {
	// namespace on the managed clusters; if empty, the default of the add-on's definition
	namespace  string
	parameters map[string]string
	// unset lists the parameters to reset to their defaults
	unset            []string
	withDependencies bool
}

// enabling is an add-on to enable on a cluster.
type enabling struct {
	view  fleet.Cluster
	addOn string
	desired
}

// removals returns the add-ons to enable that are being removed, and can be enabled again only once they are gone.
func (e enabling) removals() []installed {
	names := []string{e.addOn}
	if e.withDependencies {
		names = append(dependency.Prerequisites(e.addOn, e.view.Needs), e.addOn)
	}
	var going []installed
	for _, name := range names {
		if addOn := e.view.AddOns[name]; addOn != nil && !addOn.DeletionTimestamp.IsZero() {
			going = append(going, installed{ObjectKey: client.ObjectKeyFromObject(addOn), addOn: addOn})
		}
	}
	return going
}

// after returns the add-on to enable once the removals are complete.
func (e enabling) after(removals []installed) enabling {
	e.view.AddOns = maps.Clone(e.view.AddOns)
	for _, removed := range removals {
		delete(e.view.AddOns, removed.Name)
	}
	return e
}

// steps returns the add-ons to write, required add-ons first, and adds hints for the cluster. It returns an error if the add-on cannot be
// enabled.
func (e enabling) steps(ctx context.Context, reader hubReader, hints terminal.ClusterTexts) ([]step, error) {
	names, err := e.names(hints)
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, name := range names {
		s, err := e.step(name)
		if err == nil && name == e.addOn && len(e.parameters) > 0 {
			s, err = e.configured(ctx, reader, s)
		}
		if err == nil {
			err = e.judge(ctx, reader, s, hints)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// names returns the add-ons to write: the requested one, preceded by its missing required add-ons if they are to be enabled too. Otherwise
// it adds a hint that names the missing add-ons.
func (e enabling) names(hints terminal.ClusterTexts) ([]string, error) {
	if !e.withDependencies {
		missing := slices.DeleteFunc(e.view.Judge(e.addOn).NotReady(), func(j dependency.Judgement) bool { return j.Cause == "" })
		if len(missing) > 0 {
			hints.Add(e.view.Name, fmt.Sprintf("%s is waiting for required add-ons: %s; enable missing ones with --with-dependencies",
				e.addOn, dependency.Summary(missing)))
		}
		return []string{e.addOn}, nil
	}
	all := append(dependency.Prerequisites(e.addOn, e.view.Needs), e.addOn)
	for _, name := range all {
		if err := e.unreachable(name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return name != e.addOn && e.view.AddOns[name] != nil }), nil
}

// unreachable returns an error if a required add-on cannot be enabled.
func (e enabling) unreachable(name string) error {
	if problem := e.view.Definitions[name].Malformed; problem != nil {
		return fmt.Errorf("the dependencies of add-on %q cannot be read: %w", name, problem)
	}
	for _, j := range e.view.Judge(name).NotReady() {
		switch j.Cause {
		case dependency.Circular:
			return fmt.Errorf("add-on %q cannot be installed: circular dependency: %s; see 'kubectl addon why %s --cluster %s'",
				name, dependency.Way(j.Cycle), name, e.view.Name)
		case dependency.NoSuchAddOn:
			return fmt.Errorf("add-on %q requires %q, but there is no ClusterManagementAddOn of that name; create it, or correct the "+
				"dependencies ('kubectl edit clustermanagementaddon %s')", name, j.Name, name)
		}
	}
	return nil
}

// step returns the write of the add-on of that name.
func (e enabling) step(name string) (step, error) {
	s, cluster := step{current: e.view.AddOns[name]}, e.view.Name
	if s.current == nil {
		if err := placed(e.view.Definitions[name].Object, cluster); err != nil {
			return s, err
		}
		s.wanted = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster}}
		s.wanted.Spec.InstallNamespace = e.namespaceOf(name)
		return s, nil
	}
	s.wanted = s.current.DeepCopy()
	current := s.current.Spec.InstallNamespace
	switch {
	case !s.current.DeletionTimestamp.IsZero():
		return s, fmt.Errorf("add-on %q is being removed from cluster %s; 'kubectl addon enable %[1]s --cluster %[2]s' waits until it is "+
			"gone and enables it again", name, cluster)
	case e.namespace != "" && e.namespace != current:
		return s, fmt.Errorf("add-on %q is already enabled on cluster %s in namespace %q; to move it, disable it first "+
			"('kubectl addon disable %s --cluster %s')", name, cluster, current, name, cluster)
	}
	return s, nil
}

// namespaceOf returns the namespace to install an add-on in. A plan-based add-on is installed in the namespace of the add-on that
// requires it.
func (e enabling) namespaceOf(name string) string {
	if name != e.addOn && !e.view.Definitions[name].PlanManaged {
		return ""
	}
	if current := e.view.AddOns[e.addOn]; current != nil {
		return current.Spec.InstallNamespace
	}
	return e.namespace
}

// placed returns an error for an add-on that OCM enables by Placements: OCM would remove one that was created manually.
func placed(definition *addonv1alpha1.ClusterManagementAddOn, cluster string) error {
	return action.ByPlacement(definition, fmt.Sprintf("make one of them select cluster %s, for example with a label that it requires "+
		"('kubectl label managedcluster %[1]s NAME=VALUE')", cluster))
}

var configResource = upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}

// configName returns the name of the AddOnDeploymentConfig for the given parameters.
func configName(cluster, addOn string) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster, Name: addOn + "-parameters"}
}

// configured adds the parameters to the step as an AddOnDeploymentConfig that the add-on refers to.
func (e enabling) configured(ctx context.Context, reader client.Reader, s step) (step, error) {
	own := configName(e.view.Name, e.addOn)
	definition := e.view.Definitions[e.addOn].Object
	if err := rolledOut(definition, s.wanted, configResource, "parameters"); err != nil {
		return s, err
	}
	if err := refer(definition, s.wanted, own); err != nil {
		return s, err
	}
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	switch err := reader.Get(ctx, own, config); {
	case err == nil:
		s.currentConfig = config
	case !apierrors.IsNotFound(err):
		return s, fmt.Errorf("reading AddOnDeploymentConfig %s: %w", own, err)
	}
	s.config, s.parameters = withVariables(s.currentConfig, own, e.parameters, e.unset), e.parameters
	return s, nil
}

// refer adds a reference to the AddOnDeploymentConfig own to the add-on, after its default. It returns an error if the add-on already
// refers to another one, which only its author should change.
func refer(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, own types.NamespacedName) error {
	supported := definition.Spec.SupportedConfigs
	at := slices.IndexFunc(supported, func(c upstream.ConfigMeta) bool { return c.ConfigGroupResource == configResource })
	if at < 0 {
		return fmt.Errorf("add-on %q does not support parameters: its ClusterManagementAddOn does not list %s in spec.supportedConfigs",
			addOn.Name, configResource.Resource)
	}
	var last *types.NamespacedName
	for _, config := range addOn.Spec.Configs {
		if config.ConfigGroupResource == configResource {
			last = new(types.NamespacedName(config.ConfigReferent))
		}
	}
	switch {
	case last != nil && *last == own:
		return nil
	case last != nil:
		return fmt.Errorf("add-on %q on cluster %s takes its parameters from AddOnDeploymentConfig %s; change them there "+
			"('kubectl edit addondeploymentconfig %s -n %s')", addOn.Name, addOn.Namespace, last, last.Name, last.Namespace)
	case supported[at].DefaultConfig != nil:
		addOn.Spec.Configs = append(addOn.Spec.Configs, upstream.AddOnConfig{
			ConfigGroupResource: configResource, ConfigReferent: *supported[at].DefaultConfig,
		})
	}
	addOn.Spec.Configs = append(addOn.Spec.Configs, upstream.AddOnConfig{
		ConfigGroupResource: configResource, ConfigReferent: upstream.ConfigReferent(own),
	})
	return nil
}

// rolledOut returns an error if a Placement provides a config of the add-on, because a reference in the add-on itself would override it.
func rolledOut(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource, what string,
) error {
	ofResource := func(c upstream.AddOnConfig) bool { return c.ConfigGroupResource == resource }
	if definition == nil || slices.ContainsFunc(addOn.Spec.Configs, ofResource) {
		return nil
	}
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		i := slices.IndexFunc(placement.Configs, ofResource)
		if i < 0 || !hasConfig(addOn, placement.Configs[i]) {
			continue
		}
		config := placement.Configs[i]
		return fmt.Errorf("add-on %q on cluster %s takes its %s from %s %s/%s, which OCM applies to all clusters that Placement %s/%s "+
			"selects; change that object, or refer to another one in spec.installStrategy ('kubectl edit clustermanagementaddon %s')",
			addOn.Name, addOn.Namespace, what, resource.Resource, config.Namespace, config.Name, placement.Namespace, placement.Name, addOn.Name)
	}
	return nil
}

// hasConfig reports whether OCM has resolved the config for the add-on.
func hasConfig(addOn *addonv1alpha1.ManagedClusterAddOn, config upstream.AddOnConfig) bool {
	return slices.ContainsFunc(addOn.Status.ConfigReferences, func(r upstream.ConfigReference) bool {
		return r.ConfigGroupResource == config.ConfigGroupResource && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == config.ConfigReferent
	})
}

// withVariables returns the config with variables set and removed, or a new config if there is none.
func withVariables(
	current *addonv1alpha1.AddOnDeploymentConfig, name types.NamespacedName, given map[string]string, unset []string,
) *addonv1alpha1.AddOnDeploymentConfig {
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if current != nil {
		config = current.DeepCopy()
	}
	variables := config.Spec.CustomizedVariables
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := slices.IndexFunc(variables, func(v upstream.CustomizedVariable) bool { return v.Name == name })
		if at < 0 {
			at, variables = len(variables), append(variables, upstream.CustomizedVariable{Name: name})
		}
		variables[at].Value = given[name]
	}
	config.Spec.CustomizedVariables = slices.DeleteFunc(variables, func(v upstream.CustomizedVariable) bool { return slices.Contains(unset, v.Name) })
	return config
}

// judge returns an error if the add-on is plan-based and the hub would not install it in this state, or if a given parameter is not
// defined. It adds hints about configuration without effect.
func (e enabling) judge(ctx context.Context, reader hubReader, s step, hints terminal.ClusterTexts) error {
	definition := e.view.Definitions[s.wanted.Name]
	if !definition.PlanManaged {
		return nil
	}
	a, err := gatherInstall(ctx, reader, definition.Object, s)
	if err == nil {
		err = taken(ctx, reader, &a)
	}
	if apierrors.IsForbidden(err) {
		return nil // the hub judges it later
	}
	if err != nil {
		return err
	}
	if s.current == nil { // the Instance of an earlier add-on of that name is deleted with it
		a.Instances = slices.DeleteFunc(a.Instances, func(i kudo.Instance) bool { return ofAddOn(&i, s.wanted.Name) })
	}
	for _, remark := range install.Decide(a).Remarks {
		hints.Add(e.view.Name, s.wanted.Name+": "+remark)
	}
	if s.current != nil {
		a.Instances = nil
	}
	if _, err = decide(a, nil); err != nil || s.wanted.Name != e.addOn {
		return err
	}
	return e.undefined(a.Version)
}

// taken reads the Instance that has the name of the add-on, its own or another one.
func taken(ctx context.Context, reader client.Reader, a *install.AddOn) error {
	key, instance := client.ObjectKeyFromObject(a.ManagedAddOn), &kudo.Instance{}
	switch err := reader.Get(ctx, key, instance); {
	case err == nil:
		a.Instances = []kudo.Instance{*instance}
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Instance %s: %w", key, err)
	}
	return nil
}

// ofAddOn reports whether the Instance belongs to an add-on of that name.
func ofAddOn(instance *kudo.Instance, name string) bool {
	owner := metav1.GetControllerOf(instance)
	return owner != nil && owner.Kind == "ManagedClusterAddOn" && owner.Name == name
}

// undefined returns an error that names the given parameters that the OperatorVersion, nil if unknown, does not define. The hub ignores a
// variable that is not defined, but a user who gives it expects an effect.
func (e enabling) undefined(version *kudo.OperatorVersion) error {
	if version == nil {
		return nil
	}
	var invalid *parameter.InvalidError
	plain, from, _ := parameter.References(version.Spec.Parameters, e.parameters) // the hub judges the references
	if !errors.As(parameter.Validate(&version.Spec, plain, from), &invalid) {
		return nil
	}
	invalid.Problems = slices.DeleteFunc(invalid.Problems, func(p parameter.Problem) bool {
		return slices.ContainsFunc(version.Spec.Parameters, func(defined kudo.Parameter) bool { return defined.Name == p.Parameter })
	})
	if len(invalid.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("add-on %q on cluster %s: %w", e.addOn, e.view.Name, invalid)
}

// decide returns the decision of the hub about the add-on; its Instance is nil if the add-on waits for something. started is the
// OperatorVersion last started for the existing Instance. It returns an error if the hub would refuse the Instance.
func decide(a install.AddOn, started *kudo.OperatorVersion) (install.Decision, error) {
	decision, own := install.Decide(a), a.OwnInstance()
	wanted, condition := decision.Instance, decision.Resolved
	if wanted != nil && (condition == nil || condition.Status == metav1.ConditionTrue) {
		judged := wanted
		if own != nil {
			judged = wanted.DeepCopy()
			judged.Status, judged.CreationTimestamp = own.Status, own.CreationTimestamp
		}
		condition = new(install.Judge(install.Instance{
			Instance: judged, Version: a.Version, Started: started, Instances: a.Instances, PackagesNamespace: a.Configuration.OperatorVersion.Namespace,
		}))
	}
	if condition == nil || condition.Status == metav1.ConditionTrue || slices.Contains(waitingReasons, condition.Reason) {
		return decision, nil
	}
	return install.Decision{}, fmt.Errorf("add-on %q cannot run on cluster %s: %s: %s",
		a.ManagedAddOn.Name, a.ManagedAddOn.Namespace, condition.Reason, text.Joined(condition.Message))
}

// waitingReasons are the reasons of add-ons that wait for a condition that resolves itself.
var waitingReasons = []string{addonv1alpha1.ReasonWaitingForConfiguration, addonv1alpha1.ReasonWaitingForDependencies}

// resolvable returns the add-on as OCM resolves it after processing its spec and its definition. Values that come from neither are kept as
// OCM resolved them. Without OCM both are unchanged.
func resolvable(
	definition *addonv1alpha1.ClusterManagementAddOn, wanted *addonv1alpha1.ManagedClusterAddOn,
) (*addonv1alpha1.ClusterManagementAddOn, *addonv1alpha1.ManagedClusterAddOn) {
	definition, wanted = definition.DeepCopy(), wanted.DeepCopy()
	var kept []upstream.AddOnConfig
	for _, reference := range wanted.Status.ConfigReferences {
		given := slices.ContainsFunc(wanted.Spec.Configs, func(c upstream.AddOnConfig) bool { return c.ConfigGroupResource == reference.ConfigGroupResource })
		if !given && reference.DesiredConfig != nil {
			kept = append(kept, upstream.AddOnConfig{
				ConfigGroupResource: reference.ConfigGroupResource, ConfigReferent: reference.DesiredConfig.ConfigReferent,
			})
		}
	}
	wanted.Spec.Configs = append(wanted.Spec.Configs, kept...)
	wanted.Status.ConfigReferences = nil
	meta.RemoveStatusCondition(&wanted.Status.Conditions, addonv1alpha1.ConditionConfigured)
	definition.Status.DefaultConfigReferences, definition.Status.InstallProgressions = nil, nil
	return definition, wanted
}

// gatherInstall reads the hub's input for the installation after the step is written. Dependencies are checked elsewhere.
func gatherInstall(ctx context.Context, reader hubReader, definition *addonv1alpha1.ClusterManagementAddOn, s step) (install.AddOn, error) {
	definition, wanted := resolvable(definition, s.wanted)
	// The namespace of the packages that agents may read is a flag of addon-manager, so any named namespace is accepted here.
	packages := install.Configure(definition, wanted, install.Namespaces{}).OperatorVersion.Namespace
	clusters, err := reader.clusters(ctx, install.ConfigNamespaces(definition, wanted))
	if err != nil {
		return install.AddOn{}, err
	}
	a := install.AddOn{
		Definition: definition, ManagedAddOn: wanted,
		Configuration:     install.Configure(definition, wanted, install.Namespaces{Packages: packages, Clusters: clusters}),
		DeploymentConfigs: map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{},
	}
	if len(a.Configuration.Problems) > 0 {
		return a, nil // the hub reads none of the objects
	}
	version := &kudo.OperatorVersion{}
	switch err := reader.Get(ctx, a.Configuration.OperatorVersion, version); {
	case err == nil:
		a.Version = version
	case !apierrors.IsNotFound(err):
		return a, fmt.Errorf("reading OperatorVersion %s: %w", a.Configuration.OperatorVersion, err)
	}
	for _, name := range a.Configuration.DeploymentConfigs {
		config := &addonv1alpha1.AddOnDeploymentConfig{}
		switch err := reader.Get(ctx, name, config); {
		case s.config != nil && client.ObjectKeyFromObject(s.config) == name:
			a.DeploymentConfigs[name] = s.config
		case err == nil:
			a.DeploymentConfigs[name] = config
		case !apierrors.IsNotFound(err):
			return a, fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err)
		}
	}
	a.DefinedElsewhere, err = reader.definedElsewhere(a)
	return a, err
}

// write creates the object, or updates it if it has not changed since it was read. It returns the effect.
func write[T client.Object](ctx context.Context, c client.Client, current, wanted T, created string) (string, error) {
	key := client.ObjectKeyFromObject(wanted)
	if wanted.GetResourceVersion() == "" {
		if err := c.Create(ctx, wanted, client.FieldOwner(hubclient.FieldManager)); err != nil {
			return "", fmt.Errorf("creating %s: %w", key, err)
		}
		return created, nil
	}
	if equality.Semantic.DeepEqual(current, wanted) {
		return "unchanged", nil
	}
	err := c.Patch(ctx, wanted, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}), client.FieldOwner(hubclient.FieldManager))
	if err != nil {
		return "", fmt.Errorf("changing %s: %w", key, err)
	}
	return "configured", nil
}

// carryOut writes the step: first the config, then the add-on that refers to it. text states what was written, also if it fails.
func (s step) carryOut(ctx context.Context, c client.Client) (text string, err error) {
	if s.config != nil {
		did, err := write(ctx, c, s.currentConfig, s.config, "created")
		if err != nil {
			return "", err
		}
		text = fmt.Sprintf("%s %s on %s\n",
			terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "AddOnDeploymentConfig", s.config.Name), did, s.config.Namespace)
	}
	did, err := write(ctx, c, s.current, s.wanted, "enabled")
	if err != nil {
		return text, err
	}
	return text + fmt.Sprintf("%s %s on %s\n", terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", s.wanted.Name), did, s.wanted.Namespace), nil
}
