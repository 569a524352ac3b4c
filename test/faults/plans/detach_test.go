package plans

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// detach is the life of an add-on and a user's Instance on a cluster that is detached twice and attached again: by deleting its ManagedCluster,
// as OCM does, and by deleting its namespace.
func detach() scenario {
	attached := func(ctx context.Context, r *run) error { return errors.Join(ready(ctx, r), r.readyAs(ctx, r.addOn())) }
	return scenario{
		name:    "detach",
		open:    []string{"leave", "forget", "expel"},
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, branch("link", "1.0.0")) },
		reset:   attach,
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error {
				if err := r.hub.Create(ctx, definitionOf(r.addOn())); err != nil {
					return err
				}
				return r.install(ctx)
			}, attached},
			{"leave", leave, func(ctx context.Context, r *run) error {
				return errors.Join(r.withoutFinalizers(ctx), r.expectOrphaned(ctx, r.addOn()))
			}},
			{"forget", forget, func(ctx context.Context, r *run) error {
				return errors.Join(r.expectOrphaned(ctx, r.addOn()), r.expectOrphaned(ctx, r.name))
			}},
			{"return", func(ctx context.Context, r *run) error { return errors.Join(attach(ctx, r.world), r.install(ctx)) }, attached},
			{"expel", expel, func(ctx context.Context, r *run) error {
				return errors.Join(r.expectOrphaned(ctx, r.addOn()), r.expectOrphaned(ctx, r.name))
			}},
			{"join", func(ctx context.Context, r *run) error { return errors.Join(attach(ctx, r.world), r.install(ctx)) }, attached},
			{"remove", func(ctx context.Context, r *run) error {
				return errors.Join(remove(ctx, r), r.hub.Delete(ctx, r.managedAddOn()), r.hub.Delete(ctx, definitionOf(r.addOn())))
			}, func(ctx context.Context, r *run) error {
				return errors.Join(expectGone(ctx, r), r.expectDisabled(ctx, r.addOn()))
			}},
		},
		onHub: []kind{
			kudo.GroupVersion.WithKind("Instance"), addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"),
		},
		onCluster: onCluster[:3],
	}
}

// addOn returns the name of the run's add-on.
func (r *run) addOn() string { return r.name + "-addon" }

func (r *run) managedAddOn() *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: r.addOn()}}
	addOn.Spec.InstallNamespace = r.name
	return addOn
}

// definitionOf returns the definition of an add-on that runs package link.
func definitionOf(name string) *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: packages, Name: "link-1.0.0"},
	}}
	return definition
}

// install enables the add-on and creates the Instance.
func (r *run) install(ctx context.Context) error {
	return errors.Join(r.hub.Create(ctx, r.managedAddOn()), r.hub.Create(ctx, r.instance("link-1.0.0")))
}

// holding is a finalizer that, like OCM's, keeps a ManagedCluster until everything that belongs to it is deleted.
const holding = "faults.test/detach"

// leave deletes the ManagedCluster and, as OCM would, the add-on.
func leave(ctx context.Context, r *run) error {
	registration := managedCluster()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+holding+`"]}}`))
	return errors.Join(r.hub.Patch(ctx, registration, patch), r.hub.Delete(ctx, managedCluster()), r.hub.Delete(ctx, r.managedAddOn()))
}

// forget deletes the Instance, and what remains of the ManagedCluster.
func forget(ctx context.Context, r *run) error {
	return errors.Join(remove(ctx, r), r.unregister(ctx))
}

// unregister deletes the ManagedCluster.
func (w *world) unregister(ctx context.Context) error {
	registration := managedCluster()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return errors.Join(client.IgnoreNotFound(w.hub.Patch(ctx, registration, patch)), client.IgnoreNotFound(w.hub.Delete(ctx, managedCluster())))
}

// expel deletes the cluster's namespace on the hub, and acts as the namespace controller: it deletes the objects in it. The agent's
// permissions are among those that it deletes last, in attach.
func expel(ctx context.Context, r *run) error {
	emptying, err := r.namespaceController()
	if err != nil {
		return err
	}
	return errors.Join(r.hub.Delete(ctx, namespaceOf(cluster)),
		emptying.DeleteAllOf(ctx, &kudo.Instance{}, client.InNamespace(cluster)),
		emptying.DeleteAllOf(ctx, &addonv1alpha1.ManagedClusterAddOn{}, client.InNamespace(cluster)))
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// namespaceController returns a client of the hub's namespace controller.
func (w *world) namespaceController() (client.Client, error) {
	const inSystem = "system:serviceaccounts:kube-system"
	config := as(w.hubConfig, "system:serviceaccount:kube-system:namespace-controller", "system:serviceaccounts", inSystem)
	return client.New(config, client.Options{Scheme: w.hub.Scheme()})
}

// attach attaches the cluster, which may have been detached completely or in part.
func attach(ctx context.Context, w *world) error {
	namespace := namespaceOf(cluster)
	if err := w.hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); client.IgnoreNotFound(err) != nil {
		return err
	}
	if namespace.DeletionTimestamp != nil {
		for _, kind := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}} {
			if err := w.hub.DeleteAllOf(ctx, kind, client.InNamespace(cluster)); err != nil {
				return err
			}
		}
		namespace.Spec.Finalizers = nil
		if err := w.hub.SubResource("finalize").Update(ctx, namespace); err != nil {
			return err
		}
	}
	registration := managedCluster()
	if err := w.hub.Get(ctx, client.ObjectKeyFromObject(registration), registration); client.IgnoreNotFound(err) != nil {
		return err
	}
	if registration.GetDeletionTimestamp() != nil {
		if err := w.unregister(ctx); err != nil {
			return err
		}
	}
	if err := w.hub.Create(ctx, managedCluster()); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return w.hubServer.Apply(ctx, "cluster", manifests.ClusterParameters{Cluster: cluster})
}

// withoutFinalizers returns an error unless the user's Instance could be deleted without its agent.
func (r *run) withoutFinalizers(ctx context.Context) error {
	i := r.instance("")
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
		return err
	}
	if len(i.Finalizers) > 0 {
		return fmt.Errorf("the Instance has finalizers %v", i.Finalizers)
	}
	return nil
}

// expectOrphaned returns an error unless the hub has lost an Instance, and its mirror is orphaned.
func (r *run) expectOrphaned(ctx context.Context, name string) error {
	if err := r.absentOn(ctx, "hub", client.ObjectKey{Namespace: cluster, Name: name}); err != nil {
		return err
	}
	mirror := &kudo.Instance{}
	if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: name}, mirror); err != nil {
		return err
	}
	if mirror.Annotations[kudo.AnnotationOrphaned] == "" || mirror.Annotations[kudo.AnnotationHubDeleted] != "" {
		return fmt.Errorf("mirror %s is not orphaned, or is removed: %v", name, mirror.Annotations)
	}
	return nil
}

// expectDisabled returns an error unless neither the add-on nor its Instance remains.
func (r *run) expectDisabled(ctx context.Context, name string) error {
	err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, &addonv1alpha1.ManagedClusterAddOn{})
	if err == nil {
		return fmt.Errorf("add-on %s still exists", name)
	}
	return errors.Join(client.IgnoreNotFound(err), r.absent(ctx, name))
}
