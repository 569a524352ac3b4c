package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/preview"
	"github.com/tandem-addons/tandem/pkg/text"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// edit changes the existing object on the cluster: the Instance, or the add-on that owns it. With upgrade it also changes the
// OperatorVersion.
func (c *changing) edit(ctx context.Context, cluster string, upgrade bool) (change, error) {
	existing, addOn := c.existing(cluster), c.fleet[cluster].AddOns[c.name]
	switch {
	case existing == nil && addOn == nil:
		return change{}, errAbsent
	case addOn != nil && (existing == nil || install.OwnedBy(existing, addOn)):
		return c.editAddOn(ctx, cluster, upgrade)
	case !existing.DeletionTimestamp.IsZero():
		return change{}, fmt.Errorf("cluster %s: Instance %q is being removed; see 'kubectl addon plan status %s --cluster %s'",
			cluster, c.name, c.name, cluster)
	case existing.Parent() != nil:
		return change{}, fmt.Errorf("cluster %s: Instance %q is a child of Instance %q, which determines its version and parameters; "+
			"change the parent instead", cluster, c.name, existing.Parent().Name)
	}
	after := existing.DeepCopy()
	version, err := c.versionAfter(ctx, existing, upgrade)
	if err != nil {
		return change{}, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	if upgrade {
		after.Spec.OperatorVersion = reference(version)
	}
	if err := action.SetParameters(&after.Spec, c.given.changed(action.TextsOf(existing.Spec), cluster), version); err != nil {
		return change{}, fmt.Errorf("cluster %s: Instance %q: %w", cluster, c.name, err)
	}
	return c.judged(ctx, change{cluster: cluster, Change: preview.Change{Before: existing, After: after}})
}

// versionAfter returns the OperatorVersion that the Instance runs after the change; nil if it does not change and does not exist.
func (c *changing) versionAfter(ctx context.Context, existing *kudo.Instance, upgrade bool) (*kudo.OperatorVersion, error) {
	if upgrade {
		return c.chooseFor(ctx, install.VersionOf(existing))
	}
	return c.versionAt(ctx, install.VersionOf(existing))
}

// chooseFor returns the requested version of the operator of a running OperatorVersion, from the same namespace.
func (c *changing) chooseFor(ctx context.Context, runs client.ObjectKey) (*kudo.OperatorVersion, error) {
	version, err := c.versionAt(ctx, runs)
	if err != nil {
		return nil, err
	}
	if version == nil {
		return nil, fmt.Errorf("the operator is unknown because the current OperatorVersion %s does not exist; "+
			"set spec.operatorVersion ('kubectl edit instance.kudo.dev')", runs)
	}
	return c.choose(runs.Namespace, version.OperatorName())
}

// choose returns the requested version of an operator in a namespace.
func (c *changing) choose(namespace, operator string) (*kudo.OperatorVersion, error) {
	versions, err := c.stored(namespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == c.version && v.OperatorName() == operator })
	if i >= 0 {
		return &versions[i], nil
	}
	var task kudo.Task
	task.Spec.Package, task.Spec.OperatorVersion, task.Spec.AppVersion = operator, c.version, c.appVersion
	version, err := tree.Choose(task, versions)
	return &version, err
}

func reference(version *kudo.OperatorVersion) corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
}

// create creates an Instance of the operator. An existing Instance that already matches is unchanged.
func (c *changing) create(ctx context.Context, cluster, operator, namespace string) (change, error) {
	version, err := c.find(cluster, operator)
	if err != nil {
		return change{}, err
	}
	c.name = cmp.Or(c.name, version.OperatorName())
	if c.fleet[cluster].AddOns[c.name] != nil {
		return change{}, fmt.Errorf("add-on %q is enabled on cluster %s and owns the Instance of that name; choose another name "+
			"('kubectl addon install %s NAME')", c.name, cluster, operator)
	}
	after := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: c.name}}
	after.Spec = kudo.InstanceSpec{
		OperatorVersion: reference(version), InstallNamespace: namespace,
	}
	if err := action.SetParameters(&after.Spec, c.given.of(cluster), version); err != nil {
		return change{}, fmt.Errorf("cluster %s: Instance %q: %w", cluster, c.name, err)
	}
	if existing := c.existing(cluster); existing != nil {
		if !sameSpec(existing, after) || existing.TargetNamespace() != after.TargetNamespace() || existing.Parent() != nil {
			return change{}, fmt.Errorf("cluster %s: Instance %q already exists with a different configuration; change its parameters "+
				"with 'kubectl addon update', or its version with 'kubectl addon upgrade'", cluster, c.name)
		}
		return c.judged(ctx, change{cluster: cluster, Change: preview.Change{Before: existing, After: existing}})
	}
	return c.judged(ctx, change{cluster: cluster, Change: preview.Change{After: after}})
}

// find returns the OperatorVersion of that name, or the requested version of the operator of that name. It searches the packages for all
// clusters first, then the cluster's own.
func (c *changing) find(cluster, name string) (*kudo.OperatorVersion, error) {
	var first error
	for _, namespace := range []string{kudo.DefaultPackagesNamespace, cluster} {
		versions, err := c.stored(namespace)
		if err != nil {
			return nil, err
		}
		found, err := packages.Named(name, versions)
		if err == nil && c.version == "" && c.appVersion == "" {
			return &found, nil
		}
		if err == nil {
			chosen, err := c.choose(namespace, found.OperatorName())
			if err == nil {
				return chosen, nil
			}
			return nil, fmt.Errorf("in namespace %q of the hub: %w", namespace, err)
		}
		if first == nil {
			first = fmt.Errorf("in namespace %q of the hub: %w", namespace, err)
		}
	}
	return nil, first
}

// judged completes the change of an Instance that no add-on owns. It returns an error if the change would be rejected, with the message of
// admission or of condition Resolved.
func (c *changing) judged(ctx context.Context, found change) (change, error) {
	var err error
	if found.Version, err = c.versionAt(ctx, install.VersionOf(found.After)); err != nil {
		return found, err
	}
	if found.Started, err = c.startedVersion(ctx, found.Before); err != nil {
		return found, err
	}
	var current *kudo.OperatorVersion
	if found.Before != nil {
		if current, err = c.versionAt(ctx, install.VersionOf(found.Before)); err != nil {
			return found, err
		}
	}
	found.Instances = c.instances[found.cluster]
	if found.Candidates, err = c.candidates(install.VersionOf(found.After).Namespace, found.Version, found.Started, current); err != nil {
		return found, err
	}
	var before *install.Instance
	stood := ""
	if found.Before != nil {
		before = new(found.state(found.Before, current))
		stood = install.Judge(*before).Message
	}
	after := found.state(found.After, found.Version)
	if found.warnings, err = install.Admit(before, after); err != nil {
		return found, err
	}
	if judged := install.Judge(after); judged.Status != metav1.ConditionTrue && judged.Message != stood {
		return found, fmt.Errorf("cluster %s: Instance %q cannot run: %s: %s", found.cluster, c.name, judged.Reason, text.Joined(judged.Message))
	}
	return found, nil
}

// state returns the input for the decision about an Instance.
func (c change) state(instance *kudo.Instance, version *kudo.OperatorVersion) install.Instance {
	// The namespace of the packages that agents may read is a flag of addon-manager, so any named namespace is accepted here.
	state := install.Instance{
		Instance: instance, Version: version, Started: c.Started, Instances: c.Instances,
		PackagesNamespace: install.VersionOf(instance).Namespace,
	}
	if version == nil || len(tree.Tasks(&version.Spec)) == 0 {
		return state
	}
	var err error
	if state.Tree, err = tree.Resolve(version, c.Candidates); err != nil {
		errors.As(err, &state.TreeProblem)
	}
	return state
}

// versionResource is the resource of an OperatorVersion in the configs of an add-on.
var versionResource = upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}

// editAddOn changes the add-on that determines the Instance: its parameters and, with upgrade, its OperatorVersion.
func (c *changing) editAddOn(ctx context.Context, cluster string, upgrade bool) (change, error) {
	found := change{cluster: cluster}
	view := c.fleet[cluster]
	definition := view.Definitions[c.name]
	if !definition.PlanManaged {
		return found, fmt.Errorf("add-on %q on cluster %s is not plan-based; change it in the way that its provider documents",
			c.name, cluster)
	}
	e := enabling{view: view, addOn: c.name, desired: desired{parameters: c.given.of(cluster), unset: c.given.unset}}
	s, err := e.step(c.name)
	if err == nil && !c.given.none() {
		s, err = e.configured(ctx, c.reader, s)
	}
	if err == nil && upgrade {
		err = c.upgrade(ctx, definition.Object, s.wanted)
	}
	if err != nil {
		return found, err
	}
	found.step = &s
	if found, err = c.followed(ctx, found, definition.Object); err == nil {
		err = e.undefined(found.Version)
	}
	return found, err
}

// upgrade sets the add-on's reference to the requested version. The reference is omitted if the version is the definition's default.
func (c *changing) upgrade(ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if err := rolledOut(definition, addOn, versionResource, "OperatorVersion"); err != nil {
		return err
	}
	resolved, predicted := resolvable(definition, addOn)
	version, err := c.chooseFor(ctx, install.Configure(resolved, predicted, install.Namespaces{}).OperatorVersion)
	if err != nil {
		return fmt.Errorf("add-on %q on cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	referent := upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name}
	ofVersion := func(c upstream.AddOnConfig) bool { return c.ConfigGroupResource == versionResource }
	addOn.Spec.Configs = slices.DeleteFunc(addOn.Spec.Configs, ofVersion)
	for _, supported := range definition.Spec.SupportedConfigs {
		if supported.ConfigGroupResource == versionResource && supported.DefaultConfig != nil && *supported.DefaultConfig == referent {
			return nil
		}
	}
	addOn.Spec.Configs = append(addOn.Spec.Configs, upstream.AddOnConfig{ConfigGroupResource: versionResource, ConfigReferent: referent})
	return nil
}

// followed completes the change of an add-on with the Instance that the hub derives from it.
func (c *changing) followed(ctx context.Context, found change, definition *addonv1alpha1.ClusterManagementAddOn) (change, error) {
	a, err := gatherInstall(ctx, c.reader, definition, *found.step)
	if err != nil {
		return found, err
	}
	a.Instances = c.instances[found.cluster]
	found.Before = a.OwnInstance()
	if found.Started, err = c.startedVersion(ctx, found.Before); err != nil {
		return found, err
	}
	decision, err := decide(a, found.Started)
	if err != nil {
		return found, err
	}
	found.After, found.warnings = decision.Instance, decision.Remarks
	if found.After == nil {
		return found, fmt.Errorf("add-on %q on cluster %s is not ready to run; see 'kubectl addon why %s --cluster %s'",
			c.name, found.cluster, c.name, found.cluster)
	}
	found.Version, found.Instances = a.Version, a.Instances
	found.Candidates, err = c.candidates(a.Configuration.OperatorVersion.Namespace, found.Version, found.Started)
	return found, err
}
