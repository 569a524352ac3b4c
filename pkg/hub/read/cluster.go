package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// IsManaged reports whether the namespace belongs to a managed cluster that is not being deleted.
func IsManaged(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	cluster, err := clusterOf(ctx, c, namespace)
	return cluster != nil && cluster.DeletionTimestamp.IsZero(), err
}

// Namespaces returns shared with a description of the namespaces of these names.
func Namespaces(ctx context.Context, c client.Reader, shared install.Namespaces, names []string) (install.Namespaces, error) {
	shared.Existing = make(map[string]install.Namespace, len(names))
	for _, name := range names {
		cluster, err := clusterOf(ctx, c, name)
		if err != nil {
			return shared, err
		}
		namespace := Namespace()
		if err := c.Get(ctx, types.NamespacedName{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
			return shared, fmt.Errorf("reading namespace %q: %w", name, err)
		}
		described := ViewNamespace(namespace)
		described.Cluster = described.Cluster || cluster != nil
		shared.Existing[name] = described
	}
	return shared, nil
}

// ViewNamespace returns what the labels of a namespace say.
func ViewNamespace(namespace client.Object) install.Namespace {
	return install.NamespaceOf(namespace.GetLabels())
}

// clusterOf returns the ManagedCluster to which the namespace belongs; nil if there is none.
func clusterOf(ctx context.Context, c client.Reader, namespace string) (*clusterv1.ManagedCluster, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := c.Get(ctx, types.NamespacedName{Name: namespace}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ManagedCluster %q: %w", namespace, err)
	}
	return cluster, nil
}

// IsDetached reports whether nothing is removed from the cluster any more, whatever is deleted in its namespace: its ManagedCluster or the
// namespace itself is deleted or being deleted.
func IsDetached(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	managed, err := IsManaged(ctx, c, namespace)
	if err != nil || !managed {
		return err == nil, err
	}
	of := Namespace()
	if err := c.Get(ctx, types.NamespacedName{Name: namespace}, of); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading namespace %q: %w", namespace, err)
	}
	return !of.DeletionTimestamp.IsZero(), nil // if the cache lacks it, it is new
}

// Namespace returns a namespace for reading metadata only.
func Namespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.APIVersion, namespace.Kind = "v1", "Namespace"
	return namespace
}

// Facts returns the facts of the managed cluster to which the namespace belongs, and its maintenance windows; nil if there is no such cluster.
func Facts(ctx context.Context, c client.Reader, namespace string) (known *kudo.ClusterFacts, windows string, err error) {
	cluster, err := clusterOf(ctx, c, namespace)
	if cluster == nil || err != nil {
		return nil, "", err
	}
	return selector.FactsOf(cluster), install.AnnotatedWindows(cluster), nil
}

// ViewWindows returns the maintenance windows of an AddOnDeploymentConfig, for a predicate.
func ViewWindows(config *addonv1alpha1.AddOnDeploymentConfig) string {
	return install.AnnotatedWindows(config)
}

// ViewHealthyFor returns how long the add-ons that use an AddOnDeploymentConfig have to be healthy, for a predicate.
func ViewHealthyFor(config *addonv1alpha1.AddOnDeploymentConfig) string {
	return config.Annotations[kudo.AnnotationHealthyFor]
}

// ViewOnFailure returns what happens to the add-ons that use an AddOnDeploymentConfig if a plan for another version fails, for a predicate.
func ViewOnFailure(config *addonv1alpha1.AddOnDeploymentConfig) string {
	return config.Annotations[kudo.AnnotationOnFailure]
}

// suspendView is what a change of an annotation is compared by.
type suspendView struct {
	reason    string
	suspended bool
}

func viewSuspend(o client.Object) suspendView {
	reason, suspended := suspension.ReasonOf(o)
	return suspendView{reason, suspended}
}

// passedOn is what the hub passes on of a ManagedCluster.
type passedOn struct {
	facts, windows string
	suspend        suspendView
}

// ViewPassedOn returns what the hub passes on of a ManagedCluster, for comparison.
func ViewPassedOn(cluster *clusterv1.ManagedCluster) passedOn {
	return passedOn{ViewFacts(cluster), install.AnnotatedWindows(cluster), viewSuspend(cluster)}
}

// ViewFacts returns what templates may read of a ManagedCluster, for comparison.
func ViewFacts(cluster *clusterv1.ManagedCluster) string {
	found := selector.FactsOf(cluster)
	return facts.Text(facts.Labels, found, "") + facts.Text(facts.Claims, found, "")
}
