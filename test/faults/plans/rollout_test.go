package plans

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// newOCMWorld starts a world with OCM's programs: a sandbox without Tandem. Kubernetes' own controllers run there too.
func newOCMWorld(t *testing.T, name, programsOfOCM string) *world {
	t.Helper()
	w := emptyWorld(t, name)
	box, err := sandbox.Start(t.Context(), sandbox.Options{Home: filepath.Join(w.folder, "home"), Clusters: 1, OCM: programsOfOCM})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Stop)
	managed := box.Cluster(cluster)
	local, err := managed.ConfigFor(account+"addon-agent", accounts()...)
	if err != nil {
		t.Fatal(err)
	}
	w.connect(t, box.Hub().Config(), managed.Config())
	w.webhooks = port.Address(box.State().Ports["hub/webhooks"])
	w.startPrograms(t, local)
	return w
}

// rollout is the life of an add-on that a Placement enables: OCM rolls each change of its configuration out, and continues when Tandem reports
// it as complete.
func rollout() scenario {
	return scenario{
		name:    "rollout",
		open:    []string{"misspell"},
		prepare: bindClusters,
		reset:   leaveAll,
		pause:   writeDelay,
		actions: []action{
			{"enable", enableByPlacement, rolledOut("1.0.0", "one")},
			{"configure", configure("VALUE", "two"), rolledOut("1.0.0", "two")},
			{"upgrade", editDefinition(func(d *addonv1alpha1.ClusterManagementAddOn) {
				d.Spec.SupportedConfigs[0].DefaultConfig.Name = "store-2.0.0"
				d.Spec.InstallStrategy.Placements[0].Configs[0].Name = "store-2.0.0"
			}), rolledOut("2.0.0", "two")},
			{"misspell", configure("VALUES", "three"), func(ctx context.Context, r *run) error {
				return errors.Join(r.addOnHas(ctx, addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationInvalid),
					r.addOnHas(ctx, addonv1alpha1.ConditionManifestApplied, metav1.ConditionFalse, addonv1alpha1.ReasonPlanNotComplete),
					r.rolloutIs(ctx, metav1.ConditionTrue, "1/1 progressing..., 0 failed 0 timeout."))
			}},
			{"correct", configure("VALUE", "three"), rolledOut("2.0.0", "three")},
			{"leave", setLabel(""), withdrawn},
			{"return", func(ctx context.Context, r *run) error { return setLabel(r.name)(ctx, r) }, rolledOut("2.0.0", "three")},
			{"remove", func(ctx context.Context, r *run) error {
				return errors.Join(r.hub.Delete(ctx, definitionOf(r.addOn())), r.hub.Delete(ctx, r.config()), r.hub.Delete(ctx, r.placement()))
			}, withdrawn},
		},
		onHub: []kind{
			addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"),
			addonv1alpha1.GroupVersion.WithKind("AddOnDeploymentConfig"), kudo.GroupVersion.WithKind("Instance"),
			works,
		},
		onCluster: onCluster[:3],
	}
}

// writeDelay is how long addon-manager changes no status after a change of an add-on's configuration.
const writeDelay = 2 * time.Second

// works are ManifestWorks, which mark rollouts.
var works = kind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork"}

// bindClusters lets Placements select the cluster, and stores the packages.
func bindClusters(ctx context.Context, w *world) error {
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: "default"}}
	binding.Spec.ClusterSet = binding.Name
	if err := w.hub.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return w.push(ctx, branch("store", "1.0.0"), branch("store", "2.0.0"))
}

// leaveAll deletes all Placements, and removes the cluster's label.
func leaveAll(ctx context.Context, w *world) error {
	return errors.Join(w.hub.DeleteAllOf(ctx, &clusterv1beta1.Placement{}, client.InNamespace(packages)), w.label(ctx, ""))
}

// labelOfRun is the label by which the Placement of a run selects the cluster.
const labelOfRun = "faults.test/run"

// placement returns the run's Placement.
func (r *run) placement() *clusterv1beta1.Placement {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: r.name}}
	p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelOfRun: r.name}},
	}}}
	return p
}

// setLabel returns an action that labels the cluster, or removes the label if it is empty.
func setLabel(label string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error { return r.label(ctx, label) }
}

func (w *world) label(ctx context.Context, value string) error {
	registration := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	return environment.Edit(ctx, w.hub, registration, func(c *clusterv1.ManagedCluster) {
		if c.Labels[labelOfRun] = value; value == "" {
			delete(c.Labels, labelOfRun)
		}
	})
}

// config returns the run's AddOnDeploymentConfig.
func (r *run) config() *addonv1alpha1.AddOnDeploymentConfig {
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: r.name}}
	config.Spec.AgentInstallNamespace = r.name
	config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "VALUE", Value: "one"}}
	return config
}

// enableByPlacement defines an add-on that a Placement enables cluster by cluster, and labels the cluster. The configs of the Placement are
// the defaults too, because OCM may or may not set the defaults before it deletes the add-on of a cluster that leaves.
func enableByPlacement(ctx context.Context, r *run) error {
	of := func(group, resource, name string) upstream.AddOnConfig {
		return upstream.AddOnConfig{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: group, Resource: resource},
			ConfigReferent:      upstream.ConfigReferent{Namespace: packages, Name: name},
		}
	}
	configs := []upstream.AddOnConfig{
		of(addonv1alpha1.GroupKudo, addonv1alpha1.ResourceOperatorVersions, "store-1.0.0"),
		of(addonv1alpha1.GroupVersion.Group, addonv1alpha1.ResourceAddOnDeploymentConfigs, r.name),
	}
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: r.addOn()}}
	for _, config := range configs {
		definition.Spec.SupportedConfigs = append(definition.Spec.SupportedConfigs, upstream.ConfigMeta{
			ConfigGroupResource: config.ConfigGroupResource, DefaultConfig: ptr.To(config.ConfigReferent),
		})
	}
	definition.Spec.InstallStrategy = upstream.InstallStrategy{
		Type: upstream.AddonInstallStrategyPlacements,
		Placements: []upstream.PlacementStrategy{{
			PlacementRef: upstream.PlacementRef{Namespace: packages, Name: r.name}, Configs: configs,
			RolloutStrategy: clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
			},
		}},
	}
	return errors.Join(r.hub.Create(ctx, r.placement()), r.hub.Create(ctx, r.config()), r.hub.Create(ctx, definition), r.label(ctx, r.name))
}

// configure returns an action that replaces the variables of the AddOnDeploymentConfig.
func configure(variable, value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return environment.Edit(ctx, r.hub, r.config(), func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: variable, Value: value}}
		})
	}
}

func editDefinition(change func(*addonv1alpha1.ClusterManagementAddOn)) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return environment.Edit(ctx, r.hub, definitionOf(r.addOn()), change)
	}
}

// rolledOut returns a check that the add-on runs that version with the value, and that OCM counts its configuration as applied.
func rolledOut(version, value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if err := r.expectApplied(ctx, r.addOn(), value); err != nil {
			return err
		}
		i := &kudo.Instance{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.addOn()}, i); err != nil {
			return err
		}
		if got := i.Spec.OperatorVersion.Name; got != "store-"+version {
			return fmt.Errorf("the add-on runs %s, want version %s", got, version)
		}
		return errors.Join(
			r.addOnHas(ctx, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete),
			r.addOnHas(ctx, addonv1alpha1.ConditionManifestApplied, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete),
			r.addOnHas(ctx, upstream.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, upstream.ProgressingReasonCompleted),
			r.expectCounted(ctx), r.rolloutIs(ctx, metav1.ConditionFalse, "1/1 completed with no errors, 0 failed 0 timeout."))
	}
}

// addOnHas returns an error unless the add-on has the condition.
func (r *run) addOnHas(ctx context.Context, condition string, status metav1.ConditionStatus, reason string) error {
	addOn := r.managedAddOn()
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn); err != nil {
		return err
	}
	got := ptr.Deref(meta.FindStatusCondition(addOn.Status.Conditions, condition), metav1.Condition{})
	if got.Status != status || got.Reason != reason {
		return fmt.Errorf("condition %s of the add-on is %+v, want %s %s", condition, got, status, reason)
	}
	return nil
}

// expectCounted returns an error unless OCM counts the desired configs of the add-on as applied.
func (r *run) expectCounted(ctx context.Context) error {
	addOn := r.managedAddOn()
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn); err != nil {
		return err
	}
	references := addOn.Status.ConfigReferences
	for _, reference := range references {
		if last := reference.LastAppliedConfig; last == nil || *last != *reference.DesiredConfig || last.SpecHash == "" {
			return fmt.Errorf("config %s is applied as %+v, want %+v", reference.Resource, last, reference.DesiredConfig)
		}
	}
	if len(references) != 2 {
		return fmt.Errorf("the add-on has %d configs, want 2", len(references))
	}
	return nil
}

// rolloutIs returns an error unless OCM reports that progress of the add-on's rollout.
func (r *run) rolloutIs(ctx context.Context, progressing metav1.ConditionStatus, message string) error {
	definition := definitionOf(r.addOn())
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
		return err
	}
	for _, progression := range definition.Status.InstallProgressions {
		got := meta.FindStatusCondition(progression.Conditions, upstream.ManagedClusterAddOnConditionProgressing)
		if got != nil && got.Status == progressing && got.Message == message {
			return nil
		}
	}
	return fmt.Errorf("the rollout is not %q: %+v", message, definition.Status.InstallProgressions)
}

// withdrawn returns an error unless nothing of the add-on remains on the cluster and in its namespace on the hub.
func withdrawn(ctx context.Context, r *run) error {
	mark := &unstructured.Unstructured{}
	mark.SetGroupVersionKind(works)
	err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "addon-" + r.addOn() + "-plan"}, mark)
	if err == nil {
		err = fmt.Errorf("ManifestWork %s still exists", mark.GetName())
	}
	return errors.Join(client.IgnoreNotFound(err), r.expectDisabled(ctx, r.addOn()))
}
