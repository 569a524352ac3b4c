package whatif

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/test/sample"
)

// packages is the namespace of the packages.
const packages = "packages"

// world is a cluster with packages.
type world struct {
	sample.Cluster
	versions map[types.NamespacedName]*kudo.OperatorVersion
}

// newWorld returns a cluster of a version of Kubernetes, which is empty if it reports none, with the definitions of the lines.
func newWorld(kubernetes string, lines ...string) world {
	w := world{sample.NewCluster(lines...), map[types.NamespacedName]*kudo.OperatorVersion{}}
	w.Selected = &selector.Cluster{Name: w.Name, KubernetesVersion: kubernetes, Claims: map[string]string{}}
	if kubernetes != "" {
		w.Selected.Claims[claimKubernetes] = kubernetes
	}
	w.Instances = map[string]*kudo.Instance{}
	return w
}

// withPackage adds a package that requires a version of Kubernetes, if it is not empty, and versions of add-ons: name, constraint, name, …
func (w world) withPackage(operator, version, kubernetes string, requires ...string) world {
	key := types.NamespacedName{Namespace: packages, Name: operator + "-" + version}
	v := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: key.Name, UID: types.UID(key.Name)}}
	v.Spec.Operator.Name, v.Spec.Version, v.Spec.KubernetesVersion = operator, version, kubernetes
	for i := 0; i < len(requires); i += 2 {
		v.Spec.Dependencies = append(v.Spec.Dependencies, kudo.DependencyConstraint{Name: requires[i], Version: requires[i+1]})
	}
	w.versions[key] = v
	return w
}

// withDefault makes the add-on one that runs a package in a version by default.
func (w world) withDefault(name, version string) world {
	w.Cluster = w.Plans(name)
	w.Definitions[name].Object.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: packages, Name: name + "-" + version},
	}}
	return w
}

// runs installs an add-on in a version, and configures it with it.
func (w world) runs(name, version string) world {
	w = w.withDefault(name, version)
	w.Cluster = w.With(name, sample.Works)
	key := types.NamespacedName{Namespace: packages, Name: name + "-" + version}
	instance := newInstance(w.Name, name, key.Name, version)
	if pushed := w.versions[key]; pushed != nil {
		instance.Status.Whole.Dependencies = pushed.Spec.Dependencies
	}
	w.Instances[name] = instance
	return w
}

// where selects the clusters of a dependency by a CEL expression.
func (w world) where(name, need, expression string) world {
	needs := w.Definitions[name].Needs
	for i := range needs {
		if needs[i].Name == need {
			needs[i].Clusters = &addonv1alpha1.ClusterSelector{CelSelector: &addonv1alpha1.ClusterCelSelector{CelExpressions: []string{expression}}}
		}
	}
	return w
}

// cluster returns what is decided about.
func (w world) cluster() Cluster {
	return Cluster{Cluster: w.Cluster.Cluster, Versions: Versions{Stored: w.versions, Unread: map[string]bool{}}}
}

// withName renames the cluster.
func (w world) withName(name string) world {
	w.Name, w.Selected.Name = name, name
	return w
}

// newInstance returns the Instance of an add-on that runs a version.
func newInstance(cluster, name, operatorVersion, version string) *kudo.Instance {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, OwnerReferences: []metav1.OwnerReference{
		{Kind: "ManagedClusterAddOn", Name: name, Controller: new(true)},
	}}}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: operatorVersion}
	instance.Status.Whole = &kudo.WholeVersion{
		OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: operatorVersion, UID: types.UID(operatorVersion)}, Version: version,
	}
	return instance
}
