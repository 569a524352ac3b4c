package ocm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// configurationHashes sets the hashes of the configs of plan-based add-ons in the definition's status, where OCM's addon-manager
// lists the configs without hashes. A rollout begins at the definition. For other add-ons, addon-framework sets the hashes.
type configurationHashes struct {
	client client.Client
	live   client.Reader // bypasses the cache, which only has the hashes of ConfigMaps
}

func (h *configurationHashes) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "configuration-hash", controller.Options{}).
		For(&addonv1alpha1.ClusterManagementAddOn{}, builder.WithPredicates(controller.ChangeIn(viewHashed))).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(h.configuredWith(addonv1alpha1.ResourceOperatorVersions)),
			builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, controller.EnqueueFrom(h.configuredWith(addonv1alpha1.ResourceAddOnDeploymentConfigs)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, controller.AfterStart())).
		Watches(&corev1.ConfigMap{}, controller.EnqueueFrom(h.configuredWith(addonv1alpha1.ResourceConfigMaps)),
			builder.WithPredicates(controller.ChangeIn(read.ViewConfigMap), controller.AfterStart())).
		Complete(h)
}

// configuredWith returns the definitions with a configuration that may refer to a changed object of that resource.
func (h *configurationHashes) configuredWith(resource string) func(context.Context, client.Object) ([]reconcile.Request, error) {
	return func(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
		return read.DefinitionsConfiguredWith(ctx, h.client, resource, object)
	}
}

// Reconcile sets the hashes of one definition.
func (h *configurationHashes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	definition, err := read.Definition(ctx, h.client, request.Name)
	if err != nil || !install.IsPlanManaged(definition) {
		return ctrl.Result{}, err
	}
	var operations []apply.Operation
	var failed []error
	for path, desired := range hashedConfigs(definition) {
		hash, err := h.hash(ctx, desired.ConfigGroupResource, desired.DesiredConfig.ConfigReferent)
		failed = append(failed, err)
		if hash != "" && hash != desired.DesiredConfig.SpecHash {
			operations = append(operations, apply.Operation{Op: "add", Path: path + "/desiredConfig/specHash", Value: hash})
		}
	}
	if len(operations) > 0 {
		target := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: *definition.ObjectMeta.DeepCopy()} // the cache owns it
		failed = append(failed,
			apply.PatchStatus(ctx, h.client, target, asRead(definition, operations), client.FieldOwner(ManagerRollout)))
	}
	return controller.RetryConflict(errors.Join(failed...))
}

// hash returns the hash of a configuration object; empty if it does not exist, or if plan-based add-ons do not use its kind.
func (h *configurationHashes) hash(ctx context.Context, resource upstream.ConfigGroupResource, referent upstream.ConfigReferent) (string, error) {
	name := types.NamespacedName(referent)
	switch resource.Resource {
	case addonv1alpha1.ResourceOperatorVersions:
		version, err := read.Version(ctx, h.client, name)
		if err != nil || version == nil {
			return "", err
		}
		return install.VersionHash(version), nil
	case addonv1alpha1.ResourceAddOnDeploymentConfigs:
		config := &addonv1alpha1.AddOnDeploymentConfig{}
		if err := h.client.Get(ctx, name, config); err != nil {
			return "", client.IgnoreNotFound(fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err))
		}
		return install.DeploymentConfigHash(config), nil
	case addonv1alpha1.ResourceConfigMaps:
		config, err := read.ConfigMap(ctx, h.live, name)
		if err != nil || config == nil {
			return "", err
		}
		return install.ConfigMapHash(config), nil
	default:
		return "", nil
	}
}

// hashedConfigs returns the configs in a definition's status, by their path.
func hashedConfigs(definition *addonv1alpha1.ClusterManagementAddOn) map[string]upstream.DefaultConfigReference {
	found := map[string]upstream.DefaultConfigReference{}
	for i, reference := range definition.Status.DefaultConfigReferences {
		if reference.DesiredConfig != nil {
			found[fmt.Sprintf("/status/defaultconfigReferences/%d", i)] = reference
		}
	}
	for i, progression := range definition.Status.InstallProgressions {
		for j, reference := range progression.ConfigReferences {
			if reference.DesiredConfig != nil {
				found[fmt.Sprintf("/status/installProgressions/%d/configReferences/%d", i, j)] = upstream.DefaultConfigReference{
					ConfigGroupResource: reference.ConfigGroupResource, DesiredConfig: reference.DesiredConfig,
				}
			}
		}
	}
	return found
}

// hashedView holds the fields of a ClusterManagementAddOn that the hashes of its configs depend on.
type hashedView struct {
	declaration read.DeclarationView
	configs     string
}

func viewHashed(d *addonv1alpha1.ClusterManagementAddOn) hashedView {
	var configs []string
	for path, config := range hashedConfigs(d) {
		configs = append(configs, fmt.Sprint(path, config.ConfigGroupResource, *config.DesiredConfig))
	}
	slices.Sort(configs)
	return hashedView{declaration: read.ViewDeclaration(d), configs: strings.Join(configs, "\n")}
}
