package mirror

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestIsStarted(t *testing.T) {
	for what, test := range map[string]struct {
		edit func(existing, wanted *kudo.Instance)
		want bool
	}{
		"what was started last": {func(_, _ *kudo.Instance) {}, true},
		"while the hub has another generation, which it has not resolved": {func(_, wanted *kudo.Instance) {
			wanted.Generation, wanted.Spec.Parameters, wanted.Spec.OperatorVersion.Name = 8, map[string]string{"UNKNOWN": "x"}, "other"
		}, true},
		"a later generation that has started nothing": {func(existing, wanted *kudo.Instance) {
			existing.Annotations[kudo.AnnotationHubGeneration], wanted.Generation = "8", 9
		}, true},
		"a request that was handled": {func(existing, _ *kudo.Instance) {
			existing.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "handled"}
		}, true},
		"the request of the hub": {func(existing, wanted *kudo.Instance) {
			existing.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "new", Cancel: true}
			wanted.Spec.PlanExecution = existing.Spec.PlanExecution
		}, true},
		"a mirror of a release that stored no install namespace": {func(existing, _ *kudo.Instance) { existing.Spec.InstallNamespace = "" }, true},
		"a mirror of a release that stored no parent": {func(_, wanted *kudo.Instance) {
			wanted.OwnerReferences = []metav1.OwnerReference{{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "root", UID: "r"}}
			wanted.Labels = map[string]string{kudo.LabelRoot: "root"}
		}, true},
		"facts that have changed since, and start no plan": {func(existing, wanted *kudo.Instance) {
			existing.Spec.Cluster = &kudo.ClusterFacts{Name: "cluster1", Labels: map[string]string{"region": "us"}}
			wanted.Spec.Cluster = existing.Spec.Cluster.DeepCopy()
			wanted.Status.Execution.Cluster = &kudo.ClusterFacts{Name: "cluster1", Labels: map[string]string{"region": "eu"}}
		}, true},
		"facts that were started last": {func(existing, wanted *kudo.Instance) {
			existing.Spec.Cluster = &kudo.ClusterFacts{Name: "cluster1"}
			wanted.Status.Execution.Cluster = existing.Spec.Cluster.DeepCopy()
		}, true},
		"other facts": {func(existing, wanted *kudo.Instance) {
			existing.Spec.Cluster = &kudo.ClusterFacts{Name: "forged"}
			wanted.Spec.Cluster = &kudo.ClusterFacts{Name: "cluster1"}
		}, false},
		"a restored inventory":    {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationInventoryRestored] = "true" }, true},
		"nothing was started":     {func(_, wanted *kudo.Instance) { wanted.Status.Execution = nil }, false},
		"another parameter":       {func(existing, _ *kudo.Instance) { existing.Spec.Parameters["A"] = "theirs" }, false},
		"another service account": {func(existing, _ *kudo.Instance) { existing.Spec.ServiceAccountName = "admin" }, false},
		"another OperatorVersion": {func(existing, _ *kudo.Instance) { existing.Spec.OperatorVersion.Name = "kafka-0.9.0-abc" }, false},
		"another namespace":       {func(existing, _ *kudo.Instance) { existing.Namespace = "other" }, false},
		"a reference to a Secret": {func(existing, _ *kudo.Instance) { existing.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "A"}} }, false},
		"a request that was not handled": {func(existing, _ *kudo.Instance) {
			existing.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "new"}
		}, false},
		"a request to cancel": {func(existing, _ *kudo.Instance) {
			existing.Spec.PlanExecution = kudo.PlanExecution{UID: "handled", Cancel: true}
		}, false},
		"an earlier generation than that of the execution": {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationHubGeneration] = "6" }, false},
		"a generation that the hub does not have":          {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationHubGeneration] = "8" }, false},
		"no generation":             {func(existing, _ *kudo.Instance) { delete(existing.Annotations, kudo.AnnotationHubGeneration) }, false},
		"a parent":                  {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationParent] = "root" }, false},
		"a deletion":                {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationHubDeleted] = "" }, false},
		"a removal without cleanup": {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationSkipCleanup] = "true" }, false},
		"an orphan":                 {func(existing, _ *kudo.Instance) { existing.Annotations[kudo.AnnotationOrphaned] = "true" }, false},
	} {
		existing, wanted := copied(), started()
		test.edit(existing, wanted)
		if got := isStarted(existing, wanted); got != test.want {
			t.Errorf("%s: want %t, got %t", what, test.want, got)
		}
	}
}
