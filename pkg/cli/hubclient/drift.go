package hubclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// driftSummary has the fields of an Instance that an overview of drift needs.
type driftSummary struct {
	Metadata struct {
		Namespace         string       `json:"namespace"`
		Name              string       `json:"name"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Drift *kudo.DriftPolicy `json:"drift"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition   `json:"conditions"`
		Drift      []kudo.DriftedObject `json:"drift"`
	} `json:"status"`
}

// EachDrift visits the Instances of the clusters, with nil for all, with children, in the order of the hub's response. Only names, the time
// of deletion, and what is known about drift are set.
func (h Hub) EachDrift(ctx context.Context, clusters []string, visit func(*kudo.Instance)) error {
	list, err := h.Lists(kudo.GroupVersion.WithKind("Instance"))
	if err != nil {
		return err
	}
	isMeant := clusterFilter(clusters)
	for _, namespace := range read.NamespacesOf(clusters) {
		err := Each(ctx, list, namespace, func(s *driftSummary) {
			if isMeant(s.Metadata.Namespace) {
				visit(&kudo.Instance{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.Metadata.Namespace, Name: s.Metadata.Name, DeletionTimestamp: s.Metadata.DeletionTimestamp},
					Spec:       kudo.InstanceSpec{Drift: s.Spec.Drift},
					Status:     kudo.InstanceStatus{Conditions: s.Status.Conditions, Drift: s.Status.Drift},
				})
			}
		})
		if err != nil {
			return read.ListingProblem("Instances", namespace, err)
		}
	}
	return nil
}
