package sandbox

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Names of the contract between kube-controller-manager and external volume provisioners.
const (
	// volumeProvisioner is the provisioner of the sandbox's StorageClass (cluster/managed.yaml).
	volumeProvisioner           = "tandem-addons.github.io/sandbox"
	annotationWantedProvisioner = "volume.kubernetes.io/storage-provisioner"
	annotationProvisionedBy     = "pv.kubernetes.io/provisioned-by"
)

// newVolumeProvisioner returns a manager that provisions volumes for the claims of a cluster and removes released ones. The volumes exist
// in the API only: simulated nodes do not mount anything.
func newVolumeProvisioner(config *rest.Config, logger logr.Logger) (manager.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Logger:     logger,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: uniqueNamesNotNeeded(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the volume provisioner: %w", err)
	}
	claims, volumes := &claimReconciler{mgr.GetClient()}, &volumeReconciler{mgr.GetClient()}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.PersistentVolumeClaim{}).Complete(claims); err != nil {
		return nil, fmt.Errorf("creating the volume provisioner: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.PersistentVolume{}).Complete(volumes); err != nil {
		return nil, fmt.Errorf("creating the volume provisioner: %w", err)
	}
	return mgr, nil
}

// uniqueNamesNotNeeded allows one provisioner per cluster: their metrics, in which the names would clash, are not served.
func uniqueNamesNotNeeded() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true)}
}

// claimReconciler provisions volumes.
type claimReconciler struct {
	client client.Client
}

// Reconcile creates the volume of a claim that requests one.
func (r *claimReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var claim corev1.PersistentVolumeClaim
	if err := r.client.Get(ctx, request.NamespacedName, &claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !wantsVolume(&claim) {
		return ctrl.Result{}, nil
	}
	if err := r.client.Create(ctx, volumeFor(&claim)); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, fmt.Errorf("provisioning a volume for claim %s: %w", request, err)
	}
	return ctrl.Result{}, nil
}

// volumeReconciler reclaims volumes.
type volumeReconciler struct {
	client client.Client
}

// Reconcile deletes a released volume of this provisioner.
func (r *volumeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var volume corev1.PersistentVolume
	if err := r.client.Get(ctx, request.NamespacedName, &volume); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !reclaimable(&volume) {
		return ctrl.Result{}, nil
	}
	if err := r.client.Delete(ctx, &volume, client.Preconditions{UID: &volume.UID}); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reclaiming volume %q: %w", request.Name, err))
	}
	return ctrl.Result{}, nil
}

// wantsVolume reports whether the claim waits for this provisioner.
func wantsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil &&
		claim.Spec.VolumeName == "" &&
		claim.Annotations[annotationWantedProvisioner] == volumeProvisioner
}

// volumeFor returns the volume for a claim, already bound to it. Its name derives from the claim's UID, so that a claim gets only one.
func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{annotationProvisionedBy: volumeProvisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests.DeepCopy(),
			AccessModes:                   claim.Spec.AccessModes,
			StorageClassName:              ptr.Deref(claim.Spec.StorageClassName, ""),
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       "PersistentVolumeClaim",
				Namespace:  claim.Namespace,
				Name:       claim.Name,
				UID:        claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/simulated/" + name},
			},
		},
	}
}

// reclaimable reports whether the volume is to be deleted by this provisioner.
func reclaimable(volume *corev1.PersistentVolume) bool {
	return volume.DeletionTimestamp == nil &&
		volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.Annotations[annotationProvisionedBy] == volumeProvisioner
}
