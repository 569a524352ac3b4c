package read

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// Transform returns a function that every object of a cache passes through: it calls Trim, and shares equal strings between objects.
func Transform() func(object any) (any, error) {
	known := newTexts()
	return func(object any) (any, error) {
		trimmed, err := Trim(object)
		if o, ok := trimmed.(client.Object); ok && err == nil {
			known.share(o)
		}
		return trimmed, err
	}
}

// Trim drops fields that the hub never reads, before an object is cached. There are thousands of clusters, and every field costs memory on
// each. Nothing is lost on the API server, because the hub sends patches and never whole objects.
func Trim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := object.(type) {
	case *kudo.Instance:
		o.Status = plan.MigrateStatus(o.Status, nil) // while all plan states are there
		o.Status.PlanStatus, o.Status.Inventory, o.Status.History = install.Progress(o.Status), nil, nil
		o.Status.Diagnosis, o.Status.Drift, o.Status.Former = nil, nil, nil
		if o.Status.Soak != nil {
			o.Status.Soak = &kudo.SoakStatus{Execution: o.Status.Soak.Execution}
		}
	case *addonv1alpha1.ManagedClusterAddOn:
		noted := installNotes(o)
		trimMetadata(o)
		o.Annotations = noted
		o.TypeMeta = metav1.TypeMeta{}
		o.Status = trimStatus(o.Status)
	case *corev1.ConfigMap:
		trimConfigMap(o)
	case *clusterv1.ManagedCluster:
		trimCluster(o)
	case *metav1.PartialObjectMetadata:
		if o.GroupVersionKind() == Namespace().GroupVersionKind() {
			labels := install.NamespaceLabels(o.Labels)
			trimMetadata(o)
			o.SetLabels(labels)
		}
	case *coordinationv1.Lease:
		trimMetadata(o)
		o.Spec = coordinationv1.LeaseSpec{RenewTime: o.Spec.RenewTime, LeaseDurationSeconds: o.Spec.LeaseDurationSeconds}
	}
	return object, nil
}

// trimCluster drops what the hub does not read of a ManagedCluster. Of facts that are too many or too large, which other users and the cluster
// write, it keeps as much as shows that.
func trimCluster(o *clusterv1.ManagedCluster) {
	kept, annotations := facts.Bound(selector.FactsOf(o)), passedOnAnnotations(o)
	trimMetadata(o)
	o.Labels, o.Annotations, o.TypeMeta = kept.Labels, annotations, metav1.TypeMeta{}
	selector.Trim(o)
}

// passedOnAnnotations returns the annotations of a ManagedCluster that the hub passes on, bounded; nil if it has none.
func passedOnAnnotations(o *clusterv1.ManagedCluster) map[string]string {
	kept := map[string]string{}
	if windows := install.AnnotatedWindows(o); windows != "" {
		kept[kudo.AnnotationWindows] = windows
	}
	if reason, suspended := suspension.ReasonOf(o); suspended {
		kept[kudo.AnnotationSuspend] = reason
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// installNotes returns the annotations about dependencies with install Auto; nil if there are none.
func installNotes(o *addonv1alpha1.ManagedClusterAddOn) map[string]string {
	var noted map[string]string
	for _, name := range []string{addonv1alpha1.AnnotationInstalledFor, addonv1alpha1.AnnotationInstalledWith} {
		if value := o.Annotations[name]; value != "" {
			if noted == nil {
				noted = map[string]string{}
			}
			noted[name] = value
		}
	}
	return noted
}

// annotationHash holds the hash of a ConfigMap with parameters in the cache.
const annotationHash = "hash"

// trimConfigMap replaces what a ConfigMap with parameters holds by its hash: anyone who may write ConfigMaps in any namespace could fill the cache.
func trimConfigMap(o *corev1.ConfigMap) {
	if _, is := o.Labels[kudo.LabelConfiguration]; !is {
		return
	}
	o.Annotations = map[string]string{annotationHash: install.ConfigMapHash(o)}
	o.Data, o.BinaryData = nil, nil
}

// ViewConfigMap returns what add-ons depend on of a ConfigMap in the cache.
func ViewConfigMap(o *corev1.ConfigMap) string { return o.Annotations[annotationHash] }

// trimMetadata drops the metadata that users and other controllers add. Finalizers stay: patches address them by index.
func trimMetadata(o client.Object) {
	o.SetLabels(nil)
	o.SetAnnotations(nil)
	o.SetOwnerReferences(nil)
}

// trimStatus returns the part of an add-on's status that the hub reads.
func trimStatus(status upstream.ManagedClusterAddOnStatus) upstream.ManagedClusterAddOnStatus {
	kept := upstream.ManagedClusterAddOnStatus{
		SupportedConfigs: status.SupportedConfigs,
		HealthCheck:      status.HealthCheck,
	}
	if len(status.Conditions) > 0 {
		kept.Conditions = make([]metav1.Condition, 0, len(status.Conditions)) // of exactly that size, in contrast to the decoder's
	}
	for _, condition := range status.Conditions {
		kept.Conditions = append(kept.Conditions, trimCondition(condition))
	}
	for _, reference := range status.ConfigReferences {
		kept.ConfigReferences = append(kept.ConfigReferences, upstream.ConfigReference{
			ConfigGroupResource: reference.ConfigGroupResource, DesiredConfig: reference.DesiredConfig,
		})
	}
	return kept
}

// trimCondition returns the part of a condition that the hub reads. Every condition stays in its place, because patches address them by
// index. The message is read only where the hub compares it with its own.
func trimCondition(condition metav1.Condition) metav1.Condition {
	switch condition.Type {
	case addonv1alpha1.ConditionDegraded, addonv1alpha1.ConditionResolved, addonv1alpha1.ConditionManifestApplied,
		addonv1alpha1.ConditionAddOnsRemaining:
		return condition
	case addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionConfigured:
		condition.Message = ""
		return condition
	default:
		return metav1.Condition{Type: condition.Type}
	}
}
