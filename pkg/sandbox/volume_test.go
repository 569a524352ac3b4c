package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func waitingClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "data", UID: "1234",
			Annotations: map[string]string{annotationWantedProvisioner: volumeProvisioner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To("standard"),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")},
			},
		},
	}
}

func TestWantsVolume(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"a claim that waits for this provisioner": {func(*corev1.PersistentVolumeClaim) {}, true},
		"a claim that waits for another": {func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[annotationWantedProvisioner] = "other"
		}, false},
		"a claim without a provisioner": {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, false},
		"a claim that has its volume":   {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }, false},
		"a claim that is being deleted": {func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = &metav1.Time{}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := waitingClaim()
			test.change(claim)
			if got := wantsVolume(claim); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestVolumeForIsBoundToItsClaimInAdvance(t *testing.T) {
	volume := volumeFor(waitingClaim())
	wantRef := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data", UID: "1234",
	}
	if diff := cmp.Diff(wantRef, volume.Spec.ClaimRef); diff != "" {
		t.Errorf("claimRef (-want +got):\n%s", diff)
	}
	if volume.Name != "pvc-1234" || volume.Spec.StorageClassName != "standard" {
		t.Errorf("name %q, class %q", volume.Name, volume.Spec.StorageClassName)
	}
	if got := volume.Spec.Capacity.Storage().String(); got != "5Gi" {
		t.Errorf("the capacity is %s, want the 5Gi that were asked for", got)
	}
}

func TestReclaimable(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"a released volume":         {func(*corev1.PersistentVolume) {}, true},
		"a volume in use":           {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"a volume of another":       {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		"one that is being deleted": {func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} }, false},
		"a volume to be retained": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := volumeFor(waitingClaim())
			volume.Status.Phase = corev1.VolumeReleased
			test.change(volume)
			if got := reclaimable(volume); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
