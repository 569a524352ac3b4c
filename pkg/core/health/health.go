// Package health judges whether one object has reached the state in its spec: Healthy, Progressing, Failed or Unknown, with a sentence that
// explains it. It is pure and touches no cluster.
package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Status is the health of an object.
type Status string

const (
	// Healthy objects match their current generation.
	Healthy Status = "Healthy"
	// Progressing objects may become healthy by themselves.
	Progressing Status = "Progressing"
	// Failed objects do not become healthy without a change.
	Failed Status = "Failed"
	// Unknown objects cannot be judged: the status is malformed.
	Unknown Status = "Unknown"
)

// Result is a status and its explanation.
type Result struct {
	Status Status
	// Message names the object first: `Deployment ns/x: 1 of 3 replicas updated`. It is one line and carries no time.
	Message string
	// Blocked is true if the object cannot progress before another object exists, which the message names.
	Blocked bool
}

// verdict is a Result without the object's name.
type verdict struct {
	status  Status
	message string
	blocked bool
}

func healthyf(format string, args ...any) verdict {
	return verdict{status: Healthy, message: fmt.Sprintf(format, args...)}
}

func progressingf(format string, args ...any) verdict {
	return verdict{status: Progressing, message: fmt.Sprintf(format, args...)}
}

func blockedf(format string, args ...any) verdict {
	return verdict{status: Progressing, message: fmt.Sprintf(format, args...), blocked: true}
}

func failedf(format string, args ...any) verdict {
	return verdict{status: Failed, message: fmt.Sprintf(format, args...)}
}

func unknownf(format string, args ...any) verdict {
	return verdict{status: Unknown, message: fmt.Sprintf(format, args...)}
}

// judge judges one kind. The fields record values of a wrong type: the object is then Unknown, whatever judge returns.
type judge func(*fields) verdict

// judges maps kinds to their own rules. Other kinds are judged by their conditions, as in kstatus.
var judges = map[schema.GroupKind]judge{
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:                               replicaSet,
	{Group: "", Kind: "ReplicationController"}:                        replicaSet,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Group: "batch", Kind: "CronJob"}:                                 alwaysHealthy,
	{Group: "", Kind: "Pod"}:                                          pod,
	{Group: "", Kind: "PersistentVolumeClaim"}:                        persistentVolumeClaim,
	{Group: "", Kind: "PersistentVolume"}:                             persistentVolume,
	{Group: "", Kind: "Service"}:                                      service,
	{Group: "", Kind: "Namespace"}:                                    namespace,
	{Group: "", Kind: "ConfigMap"}:                                    alwaysHealthy,
	{Group: "", Kind: "Secret"}:                                       alwaysHealthy,
	{Group: "", Kind: "ServiceAccount"}:                               alwaysHealthy,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                alwaysHealthy,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         alwaysHealthy,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         alwaysHealthy,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  alwaysHealthy,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: customResourceDefinition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	instanceKind: instance,
}

// Of judges an object as read from a cluster.
func Of(obj *unstructured.Unstructured) Result {
	if obj == nil || obj.Object == nil {
		return Result{Status: Unknown, Message: "the object does not exist"}
	}
	v := verdictOf(&fields{object: obj.Object}, obj)
	return Result{Status: v.status, Message: text.OneLine(subject(obj) + ": " + v.message), Blocked: v.blocked}
}

func verdictOf(f *fields, obj *unstructured.Unstructured) verdict {
	if f.has("metadata", "deletionTimestamp") {
		return progressingf("is being deleted")
	}
	kind := obj.GroupVersionKind().GroupKind()
	if v, stale := generationOf(f, kind); stale {
		return f.check(v)
	}
	if judge, ok := judges[kind]; ok {
		return f.check(judge(f))
	}
	return f.check(byConditions(f, obj))
}

// observing are the kinds that always have status.observedGeneration: if it is missing, they have not observed the object
// yet.
var observing = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:            true,
	{Group: "apps", Kind: "StatefulSet"}:           true,
	{Group: "apps", Kind: "DaemonSet"}:             true,
	{Group: "apps", Kind: "ReplicaSet"}:            true,
	{Group: "", Kind: "ReplicationController"}:     true,
	{Group: "policy", Kind: "PodDisruptionBudget"}: true,
}

// generationOf reports whether the status belongs to an older generation than the spec.
func generationOf(f *fields, kind schema.GroupKind) (v verdict, stale bool) {
	if kind == instanceKind {
		return verdict{}, false // its observed generation refers to the hub
	}
	generation := f.integer(0, "metadata", "generation")
	if !f.has("status", "observedGeneration") {
		return progressingf("waiting for its controller to observe it"), generation > 0 && observing[kind]
	}
	observed := f.integer(0, "status", "observedGeneration")
	return progressingf("generation %d has not been observed yet", generation), observed < generation
}

// alwaysHealthy returns the verdict on kinds whose objects are healthy once they exist.
func alwaysHealthy(*fields) verdict { return healthyf("exists") }

// subject formats an object: `Kind namespace/name`.
func subject(obj *unstructured.Unstructured) string {
	kind := obj.GetKind()
	if kind == "" {
		kind = "object"
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		return kind + " " + namespace + "/" + obj.GetName()
	}
	return kind + " " + obj.GetName()
}

// maxForeignRunes is the maximum length of a message taken over from another controller.
const maxForeignRunes = 1024

// foreign formats a reason and a message of another controller as part of a sentence.
func foreign(reason, message string) string {
	switch {
	case reason == "":
		return truncate(message)
	case message == "":
		return truncate(reason)
	default:
		return truncate(reason) + ": " + truncate(message)
	}
}

func truncate(message string) string { return text.Head(text.OneLine(message), maxForeignRunes) }
