package details

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxLogNamespaces limits the namespaces in which pods of an Instance are searched: its inventory is what an agent reports.
const maxLogNamespaces = 100

// podFilter decides which pods on a managed cluster belong to an Instance.
type podFilter struct {
	// namespace and name are those on the managed cluster; the name is the value of label kudo.dev/instance.
	namespace, name string
	// applied has the objects in the inventory.
	applied map[appliedObject]bool
}

// appliedObject identifies an object in an inventory.
type appliedObject struct{ group, kind, namespace, name string }

func newPodFilter(instance *kudo.Instance) podFilter {
	f := podFilter{namespace: instance.TargetNamespace(), name: render.InstanceName(instance.Name), applied: map[appliedObject]bool{}}
	for _, entry := range instance.Status.Inventory {
		f.applied[appliedObject{entry.Group, entry.Kind, entry.Namespace, entry.Name}] = true
	}
	return f
}

// isWorkload reports whether an object may be the controller of pods, as workloads and custom resources may. The groups of Kubernetes have no dot, or
// end with .k8s.io, which is reserved.
func (o appliedObject) isWorkload() bool {
	switch o.group {
	case appsv1.GroupName, batchv1.GroupName:
		return true
	case "":
		return o.kind == "Pod" || o.kind == "ReplicationController"
	}
	return strings.Contains(o.group, ".") && !strings.HasSuffix(o.group, ".k8s.io")
}

// namespaces returns the namespaces in which the Instance may have pods, its own first, and how many more there are.
func (f podFilter) namespaces() (found []string, more int) {
	for o := range f.applied {
		if o.isWorkload() && o.namespace != "" && o.namespace != f.namespace {
			found = append(found, o.namespace)
		}
	}
	slices.Sort(found)
	found = append([]string{f.namespace}, slices.Compact(found)...)
	more = max(0, len(found)-maxLogNamespaces)
	return found[:len(found)-more], more
}

// isOwn reports whether a pod belongs to the Instance: it is in the inventory, or its controller is, or it has the labels of the Instance.
// Charts do not label their pods.
func (f podFilter) isOwn(pod *corev1.Pod) bool {
	if f.applied[appliedObject{"", "Pod", pod.Namespace, pod.Name}] {
		return true
	}
	for _, name := range controllersOf(pod) {
		if f.applied[name] {
			return true
		}
	}
	if pod.Labels[kudo.LabelInstance] != f.name {
		return false
	}
	if namespace, marked := pod.Annotations[kudo.AnnotationInstanceNamespace]; marked {
		return namespace == f.namespace
	}
	return pod.Namespace == f.namespace
}

// scheduledJob matches the name of a Job that a CronJob has created: the name of the CronJob, and the time in minutes.
var scheduledJob = regexp.MustCompile(`^(.+)-[0-9]+$`)

// controllersOf returns the controller of a pod, and the Deployment or CronJob that a ReplicaSet or a Job has according to its name.
func controllersOf(pod *corev1.Pod) []appliedObject {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group
	found := []appliedObject{{group, owner.Kind, pod.Namespace, owner.Name}}
	switch {
	case group == appsv1.GroupName && owner.Kind == "ReplicaSet":
		if name, ok := strings.CutSuffix(owner.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]); ok {
			found = append(found, appliedObject{group, "Deployment", pod.Namespace, name})
		}
	case group == batchv1.GroupName && owner.Kind == "Job":
		if parts := scheduledJob.FindStringSubmatch(owner.Name); parts != nil {
			found = append(found, appliedObject{group, "CronJob", pod.Namespace, parts[1]})
		}
	}
	return found
}

// podLog identifies the log of a container.
type podLog struct {
	namespace, pod, container string
	// isScheduled is false of a pod that no node runs yet: the API server returns an empty log.
	isScheduled bool
}

func (l podLog) String() string {
	return fmt.Sprintf("container %s of pod %s in namespace %s", text.Word(l.container), text.Word(l.pod), text.Word(l.namespace))
}

// logChoice chooses the containers whose logs are printed.
type logChoice struct {
	// container is the name of the container; if it is empty, the default container of each pod is chosen, or all are.
	container string
	all       bool
	// previous is set to choose containers that have a previous run only.
	previous bool
}

// of returns the chosen logs, sorted by namespace and pod. Pods without the container are omitted; it is an error if all are.
func (c logChoice) of(pods []corev1.Pod) ([]podLog, error) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	pods = slices.CompactFunc(pods, func(a, b corev1.Pod) bool { return a.UID == b.UID }) // one of several Instances
	var logs []podLog
	var existing []string
	matches := 0
	for i := range pods {
		pod := &pods[i]
		all := containersOf(pod)
		existing = append(existing, all...)
		for _, name := range c.in(pod, all) {
			matches++
			if !c.previous || hasRestarted(pod, name) {
				logs = append(logs, podLog{pod.Namespace, pod.Name, name, pod.Spec.NodeName != ""})
			}
		}
	}
	slices.Sort(existing)
	existing = slices.Compact(existing)
	switch {
	case matches == 0:
		return nil, fmt.Errorf("none of %s has a container %s%s; containers: %s",
			text.Plural(len(pods), "pod"), text.Quote(c.container), text.DidYouMean(c.container, existing), text.ListOrNone(existing))
	case len(logs) == 0:
		return nil, fmt.Errorf("none of %s has a previous run: omit --previous", text.Plural(matches, "container"))
	}
	return logs, nil
}

// in returns the chosen ones of all containers of a pod.
func (c logChoice) in(pod *corev1.Pod, all []string) []string {
	switch {
	case c.all:
		return all
	case c.container == "":
		return []string{defaultContainer(pod)}
	case slices.Contains(all, c.container):
		return []string{c.container}
	}
	return nil
}

// annotationDefaultContainer is kubectl's annotation of a pod with the name of its default container.
const annotationDefaultContainer = "kubectl.kubernetes.io/default-container"

// defaultContainer returns the container of the annotation, or the first one, as kubectl does. Every pod has one.
func defaultContainer(pod *corev1.Pod) string {
	wanted := pod.Annotations[annotationDefaultContainer]
	if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == wanted }) {
		return wanted
	}
	return pod.Spec.Containers[0].Name
}

// containersOf returns the names of all containers of a pod, in the order in which they start.
func containersOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// hasRestarted reports whether a container has a previous run.
func hasRestarted(pod *corev1.Pod, container string) bool {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
	return slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.LastTerminationState.Terminated != nil
	})
}
