package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/test/bench/program"
)

// inFlight is the number of concurrent requests that create and change the fleet.
const inFlight = 10

// seed creates the fleet: definitions, clusters, and their add-ons, all available. progress is called with the number of created clusters,
// from several goroutines.
func seed(ctx context.Context, c client.Client, f fleet, progress func(made int)) error {
	for i, name := range f.names() {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		definition.Spec.Dependencies = f.needs(i)
		if err := c.Create(ctx, definition); err != nil {
			return fmt.Errorf("making ClusterManagementAddOn %q: %w", name, err)
		}
	}
	var made atomic.Int64
	return program.Each(ctx, inFlight, f.namespaces(), func(ctx context.Context, namespace string) error {
		if err := seedCluster(ctx, c, namespace, f.names()); err != nil {
			return fmt.Errorf("making managed cluster %q: %w", namespace, err)
		}
		progress(int(made.Add(1)))
		return nil
	})
}

func seedCluster(ctx context.Context, c client.Client, namespace string, names []string) error {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetName(namespace)
	if err := c.Create(ctx, cluster); err != nil {
		return err
	}
	for _, name := range names {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		addOn.Spec.InstallNamespace = "open-cluster-management-agent-addon"
		if err := c.Create(ctx, addOn); err != nil {
			return err
		}
		if err := setAvailable(ctx, c, namespace, name, metav1.ConditionTrue); err != nil {
			return err
		}
	}
	return nil
}

// setAvailable sets condition Available as a klusterlet does.
func setAvailable(ctx context.Context, c client.Client, namespace, name string, available metav1.ConditionStatus) error {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	condition := metav1.Condition{
		Type: addonv1alpha1.ConditionAvailable, Status: available, Reason: "ManagedClusterAddOnLeaseUpdated",
		Message: name + " add-on is available.",
	}
	if available != metav1.ConditionTrue {
		condition.Reason, condition.Message = "ManagedClusterAddOnLeaseUpdateStopped", name+" add-on is not available."
	}
	_, err := apply.Condition(ctx, c, addOn, nil, klusterlet, condition, time.Now())
	return err
}
