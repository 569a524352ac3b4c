package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

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
	if !install.IsBlocked(condition) {
		return decision, nil
	}
	return install.Decision{}, fmt.Errorf("add-on %q cannot run on cluster %s: %s: %s",
		a.ManagedAddOn.Name, a.ManagedAddOn.Namespace, condition.Reason, text.JoinMessage(condition.Message))
}

// resolveConfigs returns the add-on as OCM resolves it after processing its spec and its definition. Values that come from neither are kept as
// OCM resolved them. Without OCM both are unchanged.
func resolveConfigs(
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
func gatherInstall(ctx context.Context, reader Reader, definition *addonv1alpha1.ClusterManagementAddOn, s Step) (install.AddOn, error) {
	definition, wanted := resolveConfigs(definition, s.Wanted)
	wanted.Spec.InstallNamespace = cmp.Or(wanted.Spec.InstallNamespace, install.DefaultInstallNamespace) // as the hub does on create
	namespaces, err := reader.namespaces(ctx, definition, wanted)
	if err != nil {
		return install.AddOn{}, err
	}
	a := install.AddOn{
		Definition: definition, ManagedAddOn: wanted,
		Configuration:     install.Configure(definition, wanted, namespaces),
		DeploymentConfigs: map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{},
		ConfigMaps:        map[types.NamespacedName]*corev1.ConfigMap{},
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
	if err := readParameters(ctx, reader, &a, s.Config); err != nil {
		return a, err
	}
	a.DefinedElsewhere, err = reader.definedElsewhere(a)
	return a, err
}

// readParameters reads the existing configs of an add-on that hold parameters. written replaces the AddOnDeploymentConfig of its name, if it is set.
func readParameters(ctx context.Context, reader Reader, a *install.AddOn, written *addonv1alpha1.AddOnDeploymentConfig) error {
	for _, name := range a.Configuration.DeploymentConfigs {
		config := &addonv1alpha1.AddOnDeploymentConfig{}
		switch err := reader.Get(ctx, name, config); {
		case written != nil && client.ObjectKeyFromObject(written) == name:
			a.DeploymentConfigs[name] = written
		case err == nil:
			a.DeploymentConfigs[name] = config
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err)
		}
	}
	for _, name := range a.Configuration.ConfigMaps {
		config := &corev1.ConfigMap{}
		switch err := reader.Get(ctx, name, config); {
		case err == nil:
			a.ConfigMaps[name] = config
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
	}
	return nil
}

// follow completes the change of an add-on with the Instance that the hub derives from it. After is nil if the add-on waits for something.
func (r Reader) follow(ctx context.Context, found Change, a install.AddOn) (Change, error) {
	var err error
	found.Before = a.OwnInstance()
	if found.Started, err = r.startedVersion(ctx, found.Before); err != nil {
		return found, err
	}
	decision, err := decide(a, found.Started)
	if err != nil {
		return found, err
	}
	found.After, found.Remarks = decision.Instance, slices.Concat(decision.Remarks, doubtful(a))
	found.Version, found.Instances = a.Version, a.Instances
	found.Candidates, err = r.candidates(a.Configuration.OperatorVersion.Namespace, found.Version, found.Started)
	return r.withCluster(ctx, found), err
}

// doubtful returns warnings about configs that addon-manager may not use, unless it uses them now: what it shares is not known here.
func doubtful(a install.AddOn) []string {
	if meta.IsStatusConditionTrue(a.ManagedAddOn.Status.Conditions, addonv1alpha1.ConditionResolved) {
		return nil
	}
	warnings := make([]string, 0, len(a.Configuration.Doubts))
	for _, doubt := range a.Configuration.Doubts {
		warnings = append(warnings, "unless its namespace is shared already: "+doubt)
	}
	return warnings
}

// notReadyError returns the error about an add-on that waits for something.
func notReadyError(addOn *addonv1alpha1.ManagedClusterAddOn) error {
	return fmt.Errorf("add-on %q on cluster %s is not ready to run; see 'kubectl addon why %[1]s --cluster %[2]s'", addOn.Name, addOn.Namespace)
}

// foresee completes the change with its effects, as follow does. They stay unknown if the add-on waits for something, or if the user may not
// read what they depend on. An add-on that is not changed may have any problem.
func (r Reader) foresee(ctx context.Context, found Change, a install.AddOn) (Change, error) {
	foreseen, err := r.follow(ctx, found, a)
	if err == nil {
		foreseen.Instances, err = r.beside(ctx, foreseen)
	}
	switch {
	case err == nil && foreseen.After != nil:
		return foreseen, nil
	case err == nil:
		err = notReadyError(a.ManagedAddOn)
	case !apierrors.IsForbidden(err) && len(found.Step.Objects()) > 0:
		return found, err
	}
	found.Unknown = text.JoinMessage(err.Error())
	return found, nil
}

// beside returns the Instances of the cluster that the effects on children depend on. They are read only if there are children. Those of an
// earlier add-on of the name are gone before the new one is installed.
func (r Reader) beside(ctx context.Context, c Change) ([]kudo.Instance, error) {
	if !haveChildren(c.Version, c.Started) {
		return c.Instances, nil
	}
	var list kudo.InstanceList
	if err := r.List(ctx, &list, client.InNamespace(c.Cluster)); err != nil {
		return nil, read.ListingProblem("Instances", c.Cluster, err)
	}
	if c.Before != nil {
		return list.Items, nil
	}
	name := c.Step.Wanted.Name
	return slices.DeleteFunc(list.Items, func(i kudo.Instance) bool {
		return i.Name == name || i.Parent() != nil && i.Labels[kudo.LabelRoot] == name
	}), nil
}
