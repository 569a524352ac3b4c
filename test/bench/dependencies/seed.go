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
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/test/bench/program"
)

// inFlight is the number of concurrent requests that create and change the fleet.
const inFlight = 10

// seed creates the fleet: definitions, clusters, and their add-ons, all available. The add-ons of the first cluster are created by requests,
// and those of the others are copies of them in etcd. progress is called with the number of created clusters, from several goroutines.
func seed(ctx context.Context, c client.Client, store *etcd, f fleet, progress func(made int)) error {
	for i, name := range f.names() {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app.kubernetes.io/version": addOnVersion},
		}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		definition.Spec.Dependencies = f.needs(i)
		if err := c.Create(ctx, definition); err != nil {
			return fmt.Errorf("making ClusterManagementAddOn %q: %w", name, err)
		}
	}
	var made atomic.Int64
	err := program.Each(ctx, inFlight, f.namespaces(), func(ctx context.Context, namespace string) error {
		if err := seedCluster(ctx, c, namespace); err != nil {
			return fmt.Errorf("making managed cluster %q: %w", namespace, err)
		}
		progress(int(made.Add(1)))
		return nil
	})
	if err != nil {
		return err
	}
	return enable(ctx, c, store, f)
}

// enable creates the add-ons of the fleet.
func enable(ctx context.Context, c client.Client, store *etcd, f fleet) error {
	namespaces := f.namespaces()
	first := namespaces[0]
	for _, name := range f.names() {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: first, Name: name}}
		addOn.Spec.InstallNamespace = "open-cluster-management-agent-addon"
		if err := c.Create(ctx, addOn); err != nil {
			return fmt.Errorf("making ManagedClusterAddOn %s/%s: %w", first, name, err)
		}
		if err := setAvailable(ctx, c, first, name, metav1.ConditionTrue); err != nil {
			return err
		}
	}
	made, err := store.addOnsOf(ctx, first)
	if err != nil {
		return err
	}
	if len(made) != f.addOns {
		return fmt.Errorf("etcd has %d add-ons of %q, want %d", len(made), first, f.addOns)
	}
	return program.Each(ctx, inFlight, namespaces[1:], func(ctx context.Context, namespace string) error {
		copies, err := copyAddOns(made, first, namespace)
		if err != nil {
			return err
		}
		return store.put(ctx, copies)
	})
}

// seedCluster creates a managed cluster without add-ons.
func seedCluster(ctx context.Context, c client.Client, namespace string) error {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetLabels(map[string]string{clusterLabel: "true"})
	cluster.SetName(namespace)
	return c.Create(ctx, cluster)
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
