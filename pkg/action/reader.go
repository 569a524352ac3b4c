package action

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/survey"
)

// Reader reads the hub's input for decisions about add-ons.
type Reader struct {
	client.Reader
	// others reads the packages and add-ons of the whole hub, once.
	others func() (install.Others, error)
	// belongs remembers whether a namespace belongs to a managed cluster.
	belongs map[string]bool
}

// NewReader returns a reader that reads with c, which should remember OperatorVersions if it decides about many clusters.
func NewReader(ctx context.Context, c client.Reader) Reader {
	return Reader{Reader: c, belongs: map[string]bool{}, others: sync.OnceValues(func() (install.Others, error) {
		var versions kudo.OperatorVersionList
		var definitions addonv1alpha1.ClusterManagementAddOnList
		var addOns addonv1alpha1.ManagedClusterAddOnList
		for _, list := range []client.ObjectList{&versions, &definitions, &addOns} {
			if err := c.List(ctx, list); err != nil {
				return install.Others{}, fmt.Errorf("listing the packages and add-ons of the hub: %w", err)
			}
		}
		return install.Others{Versions: versions.Items, Definitions: definitions.Items, AddOns: addOns.Items}, nil
	})}
}

// clusters returns the namespaces that belong to a managed cluster, as far as the user may read that: the hub judges the others later.
func (r Reader) clusters(ctx context.Context, namespaces []string) (map[string]bool, error) {
	clusters := map[string]bool{}
	for _, namespace := range namespaces {
		if _, known := r.belongs[namespace]; !known {
			cluster := &metav1.PartialObjectMetadata{}
			cluster.SetGroupVersionKind(survey.ManagedClusterKind)
			err := r.Get(ctx, client.ObjectKey{Name: namespace}, cluster)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
				return nil, fmt.Errorf("reading ManagedCluster %q: %w", namespace, err)
			}
			r.belongs[namespace] = err == nil
		}
		clusters[namespace] = r.belongs[namespace]
	}
	return clusters, nil
}

// definedElsewhere returns the doubtful variables of an add-on that serve another purpose; all of them if the user may not read that: the
// hub judges them later.
func (r Reader) definedElsewhere(a install.AddOn) (map[string]bool, error) {
	doubts := a.Doubts()
	if len(doubts) == 0 {
		return nil, nil
	}
	others, err := r.others()
	if apierrors.IsForbidden(err) {
		unknown := map[string]bool{}
		for _, doubt := range doubts {
			unknown[doubt.Variable] = true
		}
		return unknown, nil
	}
	if err != nil {
		return nil, err
	}
	return others.Define(a.ManagedAddOn.Name, a.Version.OperatorName(), doubts), nil
}
