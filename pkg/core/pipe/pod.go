// Package pipe decides about Pipe tasks: the pod that creates their files, its progress, and the objects that store the files. It is pure
// and touches no cluster.
//
// A package defines a pod with one init container, which creates the files in an emptyDir (KUDO's KEP-17). Tandem adds a container that
// waits, so that the files can be read from it once the init container has completed.
package pipe

import (
	"errors"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const (
	// Container is the name of the waiting container.
	Container = "kudo-pipe"

	// Folder is where that container mounts the emptyDirs, each under its volume's name.
	Folder = "/pipe"

	// DefaultImage is the image of that container unless the agent sets another one: KUDO's choice, pinned. It only needs sleep and head,
	// so a mirror of it or nearly any other small image can be used if it cannot be pulled.
	DefaultImage = "docker.io/library/busybox:1.37.0"

	// sleepSeconds is how long that container waits, in seconds: the pod ends even if the files are never read.
	sleepSeconds = "3600"
)

// Pod returns the pod to run, given the pod from a package's template, and the path of each file in Container. The input is not modified.
// An error is terminal; it names the change that the template needs.
func Pod(rendered *unstructured.Unstructured, files []kudo.PipeSpec, image string) (*unstructured.Unstructured, []string, error) {
	given, err := decodePod(rendered)
	if err != nil {
		return nil, nil, err
	}
	if err := fits(given.Spec); err != nil {
		return nil, nil, err
	}
	maker := given.Spec.InitContainers[0]
	waiter := corev1.Container{
		Name: Container, Image: image, Command: []string{"sleep", sleepSeconds},
		// Files may be readable only to the user that created them.
		SecurityContext: maker.SecurityContext,
		Resources:       waiterResources(),
	}
	var paths []string
	for _, file := range files {
		mount, err := mountOf(given.Spec, maker, file.File+file.EnvFile)
		if err != nil {
			return nil, nil, err
		}
		inside, _ := strings.CutPrefix(path.Clean(file.File+file.EnvFile), path.Clean(mount.MountPath))
		paths = append(paths, path.Join(Folder, mount.Name, mount.SubPath, inside))
		waiter.VolumeMounts = withVolume(waiter.VolumeMounts, mount.Name)
	}
	pod, err := join(rendered, waiter)
	return pod, paths, err
}

// decodePod decodes the pod that a template rendered.
func decodePod(rendered *unstructured.Unstructured) (*corev1.Pod, error) {
	if rendered.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil, fmt.Errorf("a Pipe task must run a Pod of v1, got a %s of %s", rendered.GetKind(), rendered.GetAPIVersion())
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rendered.Object, pod); err != nil {
		return nil, fmt.Errorf("reading the Pod: %w", err)
	}
	return pod, nil
}

// fits returns an error if a pod cannot be a Pipe task's (KUDO's rules).
func fits(spec corev1.PodSpec) error {
	switch {
	case len(spec.Containers) > 0:
		return fmt.Errorf("the Pod of a Pipe task must have no containers, only an init container that creates the files: remove %q",
			spec.Containers[0].Name)
	case len(spec.InitContainers) != 1:
		return fmt.Errorf("the Pod of a Pipe task must have exactly one init container, which creates the files; it has %d",
			len(spec.InitContainers))
	case spec.InitContainers[0].RestartPolicy != nil:
		return fmt.Errorf("init container %q sets restartPolicy and may never terminate: remove the field", spec.InitContainers[0].Name)
	case spec.RestartPolicy == corev1.RestartPolicyAlways:
		return errors.New("restartPolicy of the Pod of a Pipe task must be OnFailure (the default) or Never, not Always")
	default:
		return nil
	}
}

// mountOf returns the mount of the init container that contains the file; it must be an emptyDir's.
func mountOf(spec corev1.PodSpec, maker corev1.Container, file string) (corev1.VolumeMount, error) {
	var in corev1.VolumeMount
	for _, mount := range maker.VolumeMounts {
		if below(mount.MountPath, file) && len(path.Clean(mount.MountPath)) >= len(in.MountPath) {
			in = mount
			in.MountPath = path.Clean(mount.MountPath)
		}
	}
	if in.Name == "" {
		return in, fmt.Errorf("file %q is not in a volume of init container %q: write it to an emptyDir", file, maker.Name)
	}
	if in.SubPathExpr != "" {
		return in, fmt.Errorf("file %q is in volume %q, which is mounted with subPathExpr: use subPath", file, in.Name)
	}
	for _, volume := range spec.Volumes {
		if volume.Name == in.Name && volume.EmptyDir != nil {
			return in, validKey(file)
		}
	}
	return in, fmt.Errorf("file %q is in volume %q, which is not an emptyDir of the Pod", file, in.Name)
}

// below reports whether a file is in a folder.
func below(folder, file string) bool {
	folder, file = path.Clean(folder), path.Clean(file)
	return strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}

// validKey returns an error if the name of a file cannot be a key of a Secret or ConfigMap.
func validKey(file string) error {
	if problems := validation.IsConfigMapKey(path.Base(file)); len(problems) > 0 {
		return fmt.Errorf("file %q: its name is not a valid key: %s", file, strings.Join(problems, "; "))
	}
	return nil
}

func withVolume(mounts []corev1.VolumeMount, volume string) []corev1.VolumeMount {
	for _, mount := range mounts {
		if mount.Name == volume {
			return mounts
		}
	}
	return append(mounts, corev1.VolumeMount{Name: volume, MountPath: path.Join(Folder, volume), ReadOnly: true})
}

// join returns a copy of the pod with the waiting container. Everything else in the package's pod stays unchanged, including fields that
// this program does not know.
func join(rendered *unstructured.Unstructured, waiter corev1.Container) (*unstructured.Unstructured, error) {
	container, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&waiter)
	if err != nil {
		return nil, fmt.Errorf("encoding container %q: %w", waiter.Name, err)
	}
	pod := rendered.DeepCopy()
	spec := pod.Object["spec"].(map[string]any)
	spec["containers"] = []any{container}
	for field, value := range map[string]any{
		"restartPolicy": string(corev1.RestartPolicyOnFailure),
		// The container needs no graceful shutdown.
		"terminationGracePeriodSeconds": int64(1),
	} {
		if spec[field] == nil {
			spec[field] = value
		}
	}
	annotations := pod.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kudo.AnnotationPipe] = "true"
	pod.SetAnnotations(annotations)
	return pod, nil
}

// waiterResources returns small but complete resources, for namespaces with a quota that requires them.
func waiterResources() corev1.ResourceRequirements {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return corev1.ResourceRequirements{Requests: little, Limits: little}
}
