package hubclient

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// summary has the fields of a ManagedClusterAddOn that a fleet overview needs; managed fields, which are most of an object, are not
// decoded.
type summary struct {
	Metadata struct {
		Namespace         string       `json:"namespace"`
		Name              string       `json:"name"`
		CreationTimestamp metav1.Time  `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Configs []upstream.AddOnConfig `json:"configs"`
	} `json:"spec"`
	Status struct {
		Conditions       []metav1.Condition         `json:"conditions"`
		ConfigReferences []upstream.ConfigReference `json:"configReferences"`
	} `json:"status"`
}

// addOn returns a ManagedClusterAddOn with the decoded fields.
func (s *summary) addOn() *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Metadata.Namespace, Name: s.Metadata.Name,
			CreationTimestamp: s.Metadata.CreationTimestamp, DeletionTimestamp: s.Metadata.DeletionTimestamp,
		},
		Spec:   upstream.ManagedClusterAddOnSpec{Configs: s.Spec.Configs},
		Status: upstream.ManagedClusterAddOnStatus{Conditions: s.Status.Conditions, ConfigReferences: s.Status.ConfigReferences},
	}
}

// EachAddOn visits the add-ons of the clusters, with nil for all, in the order of the hub's response. Only names, times, configs and
// conditions are set.
func (h Hub) EachAddOn(ctx context.Context, clusters []string, visit func(*addonv1alpha1.ManagedClusterAddOn)) error {
	list, err := h.Lists(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	if err != nil {
		return err
	}
	meant := clusterFilter(clusters)
	for _, namespace := range read.NamespacesOf(clusters) {
		err := Each(ctx, list, namespace, func(s *summary) {
			if meant(s.Metadata.Namespace) {
				visit(s.addOn())
			}
		})
		if err != nil {
			return read.ListingProblem("add-ons", namespace, err)
		}
	}
	return nil
}

// clusterFilter returns a function that reports whether a cluster is among the given ones; with nil, every cluster is.
func clusterFilter(clusters []string) func(string) bool {
	meant := make(map[string]bool, len(clusters))
	for _, cluster := range clusters {
		meant[cluster] = true
	}
	return func(cluster string) bool { return clusters == nil || meant[cluster] }
}

// instanceSummary has the fields of an Instance that a fleet overview needs.
type instanceSummary struct {
	Metadata struct {
		Namespace         string                  `json:"namespace"`
		Name              string                  `json:"name"`
		Annotations       map[string]string       `json:"annotations"`
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		OperatorVersion corev1.ObjectReference `json:"operatorVersion"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Whole      *kudo.WholeVersion `json:"whole"`
		Execution  *struct {
			Plan              string                      `json:"plan"`
			OperatorVersion   corev1.ObjectReference      `json:"operatorVersion"`
			DependencyVersion string                      `json:"dependencyVersion"`
			Dependencies      []kudo.DependencyConstraint `json:"dependencies"`
		} `json:"execution"`
		PlanStatus map[string]struct {
			LastUpdatedTimestamp *metav1.Time `json:"lastUpdatedTimestamp"`
		} `json:"planStatus"`
	} `json:"status"`
}

// instance returns an Instance with the decoded fields.
func (s *instanceSummary) instance() *kudo.Instance {
	instance := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Metadata.Namespace, Name: s.Metadata.Name, Annotations: s.Metadata.Annotations, OwnerReferences: s.Metadata.OwnerReferences,
			CreationTimestamp: s.Metadata.CreationTimestamp, DeletionTimestamp: s.Metadata.DeletionTimestamp,
		},
		Spec:   kudo.InstanceSpec{OperatorVersion: s.Spec.OperatorVersion},
		Status: kudo.InstanceStatus{Conditions: s.Status.Conditions, Whole: s.Status.Whole},
	}
	if last := s.Status.Execution; last != nil {
		instance.Status.Execution = &kudo.Execution{
			Plan: last.Plan, OperatorVersion: last.OperatorVersion, DependencyVersion: last.DependencyVersion, Dependencies: last.Dependencies,
		}
		instance.Status.PlanStatus = map[string]kudo.PlanStatus{
			last.Plan: {LastUpdatedTimestamp: s.Status.PlanStatus[last.Plan].LastUpdatedTimestamp},
		}
	}
	return instance
}

// EachInstance visits the Instances of the clusters, with nil for all, in the order of the hub's response, without children. Only metadata,
// the OperatorVersions, conditions, and the name and time of the last plan are set. It visits none if the hub does not have the kind. If
// the user lacks permission, unreadable is set to the error.
func (h Hub) EachInstance(ctx context.Context, clusters []string, visit func(*kudo.Instance), unreadable func(error)) error {
	list, err := h.Lists(kudo.GroupVersion.WithKind("Instance"))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	meant := clusterFilter(clusters)
	for _, namespace := range read.NamespacesOf(clusters) {
		err := Each(ctx, list, namespace, func(s *instanceSummary) {
			if instance := s.instance(); meant(instance.Namespace) && instance.Parent() == nil {
				visit(instance)
			}
		})
		if err != nil {
			err = read.ListingProblem("Instances", namespace, err)
		}
		if apierrors.IsForbidden(err) {
			unreadable(err)
		} else if err != nil {
			return err
		}
	}
	return nil
}
