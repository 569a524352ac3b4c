package dashboard

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Drawn is the name of the cluster that FillDrawn creates.
const Drawn = "drawn-01"

// FillDrawn creates a cluster with a graph of everything that graphs show: add-on forge requires a version of anvil that does not run, uses coke instead of
// coal, and its dependency on bellows does not apply to the cluster. It returns what it has created, except for the namespace, also if it fails.
func FillDrawn(ctx context.Context, c client.Client) (created []client.Object, err error) {
	forge, anvil := drawnDefinition("forge"), drawnDefinition("anvil")
	anvil.Labels = map[string]string{"app.kubernetes.io/version": "1.4.0"}
	bellows := optionalDependency("bellows")
	bellows.Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "mars"}}}
	forge.Spec.Dependencies = []addonv1alpha1.AddonDependency{
		{Name: "coal", Type: addonv1alpha1.DependencyTypeRequired, Alternatives: []string{"coke"}},
		{Name: "anvil", Type: addonv1alpha1.DependencyTypeRequired, Version: ">=2"}, bellows,
	}
	if err := create(ctx, c, namespace(Drawn)); err != nil {
		return nil, err
	}
	objects := []client.Object{managedCluster(Drawn, 0), forge, anvil}
	for _, name := range []string{"forge", "coke", "anvil"} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: Drawn, Name: name}}
		addOn.Status.Conditions = []metav1.Condition{{
			Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Probed", LastTransitionTime: metav1.Now(),
		}}
		objects = append(objects, addOn)
	}
	for _, object := range objects {
		if err := create(ctx, c, object); err != nil {
			return created, err
		}
		created = append(created, object)
	}
	return created, nil
}

func drawnDefinition(name string) *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}
	return definition
}
