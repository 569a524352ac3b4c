package hub

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// DefaultPackageKeys is the name of the ConfigMap with the public keys of packages, in the namespace of the hub.
const DefaultPackageKeys = "tandem-package-keys"

// watchKeys makes the controller verify the signatures of packages, and resolve all Instances again when the keys change. The manager's cache holds other
// ConfigMaps of the namespace by their names, and cannot hold one more.
func (i *instances) watchKeys(mgr manager.Manager, b *builder.Builder) error {
	if i.packageKeys.Name == "" {
		return nil
	}
	keys, err := watchConfigMap(mgr, b, i.packageKeys, i.all, viewKeys)
	if err != nil {
		return fmt.Errorf("watching the keys of packages: %w", err)
	}
	i.signatures = read.NewSignatures(keys, i.packageKeys)
	return nil
}

// watchConfigMap returns a cache of the ConfigMap of that name only, and makes a controller reconcile the objects that affected returns when its view
// changes.
func watchConfigMap(
	mgr manager.Manager, b *builder.Builder, name types.NamespacedName,
	affected func(context.Context, *corev1.ConfigMap) []reconcile.Request, view func(*corev1.ConfigMap) string,
) (client.Reader, error) {
	named := cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", name.Name)}
	found, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{name.Namespace: named}}},
	})
	if err == nil {
		err = mgr.Add(found)
	}
	if err != nil {
		return nil, err
	}
	b.WatchesRawSource(source.Kind(found, &corev1.ConfigMap{}, handler.TypedEnqueueRequestsFromMapFunc(affected), controller.TypedChangeIn(view)))
	return found, nil
}

// viewKeys returns what the hub reads of the ConfigMap with the keys of packages.
func viewKeys(config *corev1.ConfigMap) string { return fmt.Sprint(config.Data) }

// all returns all Instances: the keys of packages, or what suspends everything, have changed.
func (i *instances) all(ctx context.Context, _ *corev1.ConfigMap) []reconcile.Request {
	var found kudo.InstanceList
	if err := i.client.List(ctx, &found, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is being stopped: it never fails otherwise
	}
	requests := make([]reconcile.Request, len(found.Items))
	for at := range found.Items {
		requests[at] = read.RequestFor(&found.Items[at])
	}
	return requests
}

// packageKeys returns the name of the ConfigMap with the keys of packages; empty if the hub requires no signatures.
func (o Options) packageKeys() types.NamespacedName {
	if !o.RequireSignedPackages {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: o.PackageKeys}
}
