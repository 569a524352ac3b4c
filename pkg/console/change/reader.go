package change

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Reader reads the hub's input for decisions about add-ons.
type Reader struct {
	client.Reader
	// others reads the packages and add-ons of the whole hub, once.
	others func() (install.Others, error)
	// stored returns the OperatorVersions of a namespace, which it reads once.
	stored func(namespace string) ([]kudo.OperatorVersion, error)
	// belongs remembers whether a namespace belongs to a managed cluster.
	belongs map[string]bool
}

// NewReader returns a reader that reads with c, which should remember OperatorVersions if it decides about many clusters.
func NewReader(ctx context.Context, c client.Reader) Reader {
	stored := onceEach(func(namespace string) ([]kudo.OperatorVersion, error) {
		return read.StoredVersions(ctx, c, namespace)
	})
	return Reader{Reader: c, stored: stored, belongs: map[string]bool{}, others: sync.OnceValues(func() (install.Others, error) {
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

// namespaces returns what the user may know about the namespaces of the add-on's configs: flags of addon-manager and labels of namespaces are
// not known here, so the hub judges namespaces of no known cluster later.
func (r Reader) namespaces(
	ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn,
) (install.Namespaces, error) {
	version := install.Configure(definition, addOn, install.Namespaces{}).OperatorVersion
	found := install.Namespaces{
		Packages: version.Namespace, Configs: []string{kudo.DefaultPackagesNamespace}, Existing: map[string]install.Namespace{}, Lenient: true,
	}
	for _, namespace := range install.ConfigNamespaces(definition, addOn) {
		if _, known := r.belongs[namespace]; !known {
			cluster := &metav1.PartialObjectMetadata{}
			cluster.SetGroupVersionKind(read.ManagedClusterKind)
			err := r.Get(ctx, client.ObjectKey{Name: namespace}, cluster)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
				return found, fmt.Errorf("reading ManagedCluster %q: %w", namespace, err)
			}
			r.belongs[namespace] = err == nil
		}
		found.Existing[namespace] = install.Namespace{Cluster: r.belongs[namespace]}
	}
	return found, nil
}

// withCluster completes a change with the Kubernetes version and the facts that its cluster reports, if its OperatorVersion or those of children depend
// on them. What is not known to the hub or to the user stays empty: the agent of the cluster decides in any case.
func (r Reader) withCluster(ctx context.Context, found Change) Change {
	if found.Version == nil {
		return found
	}
	versions := append([]kudo.OperatorVersion{*found.Version}, found.Candidates...)
	usesFacts := slices.ContainsFunc(versions, func(v kudo.OperatorVersion) bool { return facts.UseCluster(&v.Spec) || facts.UseCapabilities(&v.Spec) })
	if !usesFacts && !slices.ContainsFunc(versions, func(v kudo.OperatorVersion) bool { return compatibility.IsConstrained(&v.Spec) }) {
		return found
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := r.Get(ctx, client.ObjectKey{Name: found.Cluster}, cluster); err != nil {
		if usesFacts && apierrors.IsForbidden(err) {
			found.Remarks = append(found.Remarks, fmt.Sprintf("you are not allowed to get ManagedCluster %q: templates use its labels, claims or version, so the preview is incomplete",
				found.Cluster))
		}
		return found
	}
	found.KubernetesVersion, found.Facts = cluster.Status.Version.Kubernetes, selector.FactsOf(cluster)
	return found
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

// version returns the OperatorVersion of that name, or nil.
func (r Reader) version(ctx context.Context, name client.ObjectKey) (*kudo.OperatorVersion, error) {
	if !install.MayExist(name) {
		return nil, nil
	}
	version := &kudo.OperatorVersion{}
	err := r.Get(ctx, name, version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %s: %w", name, err)
	}
	return version, nil
}

// startedVersion returns the OperatorVersion that was last started for an Instance, or nil if it no longer exists, or if the user may not read
// it: the agent reports its name.
func (r Reader) startedVersion(ctx context.Context, instance *kudo.Instance) (*kudo.OperatorVersion, error) {
	if instance == nil || instance.Status.Execution == nil {
		return nil, nil
	}
	started := instance.Status.Execution.OperatorVersion
	version, err := r.version(ctx, client.ObjectKey{Namespace: started.Namespace, Name: started.Name})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil || version == nil || version.UID != started.UID {
		return nil, err
	}
	return version, nil
}

// candidates returns the OperatorVersions that child Instances of the parents may run: the ones in the namespace of the parents. They are
// read only if one of the parents has children.
func (r Reader) candidates(namespace string, parents ...*kudo.OperatorVersion) ([]kudo.OperatorVersion, error) {
	if !haveChildren(parents...) {
		return nil, nil
	}
	return r.stored(namespace)
}

// haveChildren reports whether Instances of one of the versions, which may be nil, have children.
func haveChildren(versions ...*kudo.OperatorVersion) bool {
	return slices.ContainsFunc(versions, func(v *kudo.OperatorVersion) bool {
		return v != nil && slices.ContainsFunc(v.Spec.Tasks, tree.MakesChild)
	})
}

// onceEach returns a function that caches the results of a function by name. Errors are not cached.
func onceEach[T any](of func(name string) (T, error)) func(name string) (T, error) {
	known := map[string]T{}
	return func(name string) (T, error) {
		if found, asked := known[name]; asked {
			return found, nil
		}
		found, err := of(name)
		if err == nil {
			known[name] = found
		}
		return found, err
	}
}
