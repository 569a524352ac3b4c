// Package pipe decides about Pipe tasks: which pod makes their files, how far it is, and which objects keep the files. It is pure and
// touches no cluster.
//
// A package gives the pod one init container, which makes the files in an emptyDir (KUDO's KEP-17). A container of Tandem's joins it
// and waits, so that the files can be read from there once the init container is done.
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
	// Container is the name of the container that waits beside the files.
	Container = "kudo-pipe"

	// Folder is where that container has the emptyDirs, each under its volume's name.
	Folder = "/pipe"

	// DefaultImage is the image of that container unless the agent is told another one: KUDO's choice, pinned. It needs no more than
	// sleep and head, so a mirror of it or nearly any other small image serves where this one cannot be pulled.
	DefaultImage = "docker.io/library/busybox:1.37.0"

	// patience is how long that container waits, in seconds: should nobody come for the files, the pod ends.
	patience = "3600"
)

// Pod is the pod to run, of the one that a package's template gives, and for each file its path in Container. The input is not
// changed. An error is final; it says what the template has to change.
func Pod(rendered *unstructured.Unstructured, files []kudo.PipeSpec, image string) (*unstructured.Unstructured, []string, error) {
	given, err := read(rendered)
	if err != nil {
		return nil, nil, err
	}
	if err := fits(given.Spec); err != nil {
		return nil, nil, err
	}
	maker := given.Spec.InitContainers[0]
	waiter := corev1.Container{
		Name: Container, Image: image, Command: []string{"sleep", patience},
		// Files may be readable to none but whoever made them.
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

// read is the pod that a template rendered.
func read(rendered *unstructured.Unstructured) (*corev1.Pod, error) {
	if rendered.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil, fmt.Errorf("a Pipe task runs a Pod of v1, not a %s of %s", rendered.GetKind(), rendered.GetAPIVersion())
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rendered.Object, pod); err != nil {
		return nil, fmt.Errorf("reading the Pod: %w", err)
	}
	return pod, nil
}

// fits says what keeps a pod from being a Pipe task's (KUDO's rules).
func fits(spec corev1.PodSpec) error {
	switch {
	case len(spec.Containers) > 0:
		return fmt.Errorf("the Pod of a Pipe task has no containers of its own, only an init container, which makes the files: remove %q",
			spec.Containers[0].Name)
	case len(spec.InitContainers) != 1:
		return fmt.Errorf("the Pod of a Pipe task has exactly one init container, which makes the files; this one has %d",
			len(spec.InitContainers))
	case spec.InitContainers[0].RestartPolicy != nil:
		return fmt.Errorf("init container %q has a restartPolicy of its own and may never end: remove that", spec.InitContainers[0].Name)
	case spec.RestartPolicy == corev1.RestartPolicyAlways:
		return errors.New("the Pod of a Pipe task has restartPolicy OnFailure, which is the default, or Never; not Always")
	default:
		return nil
	}
}

// mountOf is the mount that a file of the init container lies in, which must be one of an emptyDir.
func mountOf(spec corev1.PodSpec, maker corev1.Container, file string) (corev1.VolumeMount, error) {
	var in corev1.VolumeMount
	for _, mount := range maker.VolumeMounts {
		if below(mount.MountPath, file) && len(path.Clean(mount.MountPath)) >= len(in.MountPath) {
			in = mount
			in.MountPath = path.Clean(mount.MountPath)
		}
	}
	if in.Name == "" {
		return in, fmt.Errorf("file %q does not lie in a volume of init container %q: let it write to an emptyDir", file, maker.Name)
	}
	if in.SubPathExpr != "" {
		return in, fmt.Errorf("file %q lies in volume %q, which is mounted by subPathExpr: use subPath", file, in.Name)
	}
	for _, volume := range spec.Volumes {
		if volume.Name == in.Name && volume.EmptyDir != nil {
			return in, validKey(file)
		}
	}
	return in, fmt.Errorf("file %q lies in volume %q, which is not an emptyDir of the Pod", file, in.Name)
}

// below reports whether a file lies in a folder.
func below(folder, file string) bool {
	folder, file = path.Clean(folder), path.Clean(file)
	return strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}

// validKey is an error where the name of a file cannot be a key of a Secret or ConfigMap.
func validKey(file string) error {
	if faults := validation.IsConfigMapKey(path.Base(file)); len(faults) > 0 {
		return fmt.Errorf("file %q: its name becomes a key, and cannot: %s", file, strings.Join(faults, "; "))
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

// join gives a copy of the pod the container that waits. What else the package wrote stays as it is, also what this program does
// not know of.
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
		// Nothing in it has to end in order.
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

// waiterResources are little, and said in full, for namespaces whose quota asks for it.
func waiterResources() corev1.ResourceRequirements {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return corev1.ResourceRequirements{Requests: little, Limits: little}
}
