package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/sample"
)

// maxAgents is the largest number for which the names of the clusters have four digits.
const maxAgents = 9999

// fullChain lists the add-ons of the longest chain; each requires the one before it.
var fullChain = []string{"base", "middle", "top"}

// The versions of the only package: all add-ons run the first, and the rollout moves the last add-on to the second.
const firstVersion, secondVersion = "1.0.0", "2.0.0"

// The parameter that changes, with its first and its second value.
const parameter, firstValue, secondValue = "COLOR", "red", "blue"

// settingsName is the name of the AddOnDeploymentConfig with the parameter, which all clusters share.
const settingsName = "bench-settings"

// clusterNames returns the names of that many clusters.
func clusterNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%04d", i+1)
	}
	return names
}

// waves divides the clusters of a rollout: a tenth of them, up to two fifths, and all.
func waves(clusters []string) [][]string {
	first, second := max(1, len(clusters)/10), max(1, len(clusters)*2/5)
	return [][]string{clusters[:first], clusters[first:second], clusters[second:]}
}

// clusterSet is the ManagedClusterSet of all clusters.
const clusterSet = "default"

// registration returns the objects on the hub of a managed cluster in a wave: the ManagedCluster, and the namespace and permissions of its
// agent.
func registration(cluster, wave string) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Objects(manifests.FS, "cluster/*.yaml", manifests.ClusterParameters{Cluster: cluster})
	managed := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	managed.SetAPIVersion(clusterv1.GroupVersion.String())
	managed.SetKind("ManagedCluster")
	managed.SetName(cluster)
	managed.SetLabels(map[string]string{clusterv1beta2.ClusterSetLabel: clusterSet, waveLabel: wave})
	return append(objects, managed), err
}

// operatorVersion returns the package in a version. Its plan has two steps, each with a ConfigMap, which is complete as soon as it is
// applied: no workload delays the reports, and all objects are in the namespace of the managed cluster.
func operatorVersion(version string) *kudo.OperatorVersion {
	made := sample.Package("bench", version, map[string]string{"settings.yaml": configMap("settings"), "status.yaml": configMap("status")},
		sample.ApplyTask("settings", "settings.yaml"), sample.ApplyTask("status", "status.yaml"))
	made.Spec.Parameters = []kudo.Parameter{{Name: parameter, Default: ptr.To(firstValue)}}
	made.Spec.Plans = sample.Deploy(sample.Step("settings"), sample.Step("status"))
	return made
}

func configMap(name string) string {
	return `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-` + name + `"}
data: {version: "{{ .OperatorVersion }}", color: "{{ .Params.` + parameter + ` }}"}
`
}

// sharedSettings returns the AddOnDeploymentConfig with a value of the parameter.
func sharedSettings(value string) *addonv1alpha1.AddOnDeploymentConfig {
	return &addonv1alpha1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: settingsName},
		Spec: upstream.AddOnDeploymentConfigSpec{
			CustomizedVariables: []upstream.CustomizedVariable{{Name: parameter, Value: value}},
		},
	}
}

// definition returns the definition of an add-on of the chain. The first one has the shared settings. OCM's resource definition has no field
// for dependencies, so an annotation declares them.
func definition(number int) *addonv1alpha1.ClusterManagementAddOn {
	made := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: fullChain[number]}}
	made.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	made.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: versionConfig(firstVersion).ConfigGroupResource,
		DefaultConfig:       &versionConfig(firstVersion).ConfigReferent,
	}}
	if number > 0 {
		made.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: fmt.Sprintf(`[{"name": %q}]`, fullChain[number-1])}
		return made
	}
	made.Spec.SupportedConfigs = append(made.Spec.SupportedConfigs, upstream.ConfigMeta{
		ConfigGroupResource: upstream.ConfigGroupResource{
			Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
		},
		DefaultConfig: &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: settingsName},
	})
	return made
}

// versionConfig returns the reference to a version of the package, as in the spec of a ManagedClusterAddOn.
func versionConfig(version string) *upstream.AddOnConfig {
	return &upstream.AddOnConfig{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		ConfigReferent:      upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: operatorVersion(version).Name},
	}
}

// addOn returns an add-on of a cluster, installed into its namespace.
func addOn(cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	made := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	made.Spec.InstallNamespace = cluster
	return made
}
