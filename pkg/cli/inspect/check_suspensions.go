package inspect

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// observeSuspensions reads what is suspended: everything, clusters, add-ons and Instances. clusters are the selected ones, nil for all.
func observeSuspensions(ctx context.Context, h hubclient.Hub, namespace string, clusters []string) check.Suspensions {
	var found check.Suspensions
	note := func(what string, err error) {
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			found.Problems = append(found.Problems, check.Unread{What: what, Err: err})
		}
	}
	config := &corev1.ConfigMap{}
	err := h.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kudo.SuspendConfigMap}, config)
	if err == nil {
		found.Origins = append(found.Origins, suspension.Origin{
			Kind: suspension.KindEverything, Name: namespace + "/" + kudo.SuspendConfigMap, Reason: suspension.Bound(config.Data[kudo.SuspendKey]),
		})
	}
	note("ConfigMap "+kudo.SuspendConfigMap+" in namespace "+namespace, err)
	for _, of := range []struct {
		kind suspension.Kind
		gvk  schema.GroupVersionKind
		only []string
	}{
		{suspension.KindCluster, read.ManagedClusterKind, clusters},
		{suspension.KindAddOn, addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), nil},
	} {
		note(string(of.kind)+"s", eachAnnotated(ctx, h, of.gvk, func(object *metav1.PartialObjectMetadata) {
			reason, suspended := suspension.ReasonOf(object)
			if suspended && (of.only == nil || slices.Contains(of.only, object.Name)) {
				found.Origins = append(found.Origins, suspension.Origin{Kind: of.kind, Name: object.Name, Reason: reason})
			}
		}))
	}
	note("Instances", eachSuspended(ctx, h, clusters, func(cluster, name string) { found.Instances = append(found.Instances, cluster+"/"+name) }))
	slices.Sort(found.Instances)
	if len(found.Instances) > 0 {
		found.First.Cluster, found.First.Name, _ = strings.Cut(found.Instances[0], "/")
	}
	return found
}

// eachAnnotated visits the metadata of all objects of a kind without a namespace.
func eachAnnotated(ctx context.Context, h hubclient.Hub, gvk schema.GroupVersionKind, visit func(*metav1.PartialObjectMetadata)) error {
	list, err := h.Lists(gvk)
	if err != nil {
		return err
	}
	return hubclient.Each(ctx, list, metav1.NamespaceAll, visit)
}

// suspendable has the fields of an Instance that show whether its own spec suspends it.
type suspendable struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
}

// eachSuspended visits the Instances of the clusters, with nil for all, that their own spec suspends, also children.
func eachSuspended(ctx context.Context, h hubclient.Hub, clusters []string, visit func(cluster, name string)) error {
	list, err := h.Lists(kudo.GroupVersion.WithKind("Instance"))
	if err != nil {
		return err
	}
	for _, namespace := range read.NamespacesOf(clusters) {
		err := hubclient.Each(ctx, list, namespace, func(i *suspendable) {
			if i.Spec.Suspend && (clusters == nil || slices.Contains(clusters, i.Metadata.Namespace)) {
				visit(i.Metadata.Namespace, i.Metadata.Name)
			}
		})
		if err != nil {
			return read.ListingProblem("Instances", namespace, err)
		}
	}
	return nil
}
