package stack

import (
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// Resolved is what an add-on of a stack runs.
type Resolved struct {
	Entry
	Version    types.NamespacedName
	Parameters []Parameter
}

// Objects are the objects of a stack on the hub, besides packages, in the order in which they are written.
type Objects struct {
	// Configs are the AddOnDeploymentConfigs.
	Configs []*addonv1alpha1.AddOnDeploymentConfig
	// Values are the ConfigMaps with parameters that are too long for a config.
	Values []*corev1.ConfigMap
	// Definitions are the ClusterManagementAddOns, those that others depend on first.
	Definitions []*addonv1alpha1.ClusterManagementAddOn
	// AddOns are the ManagedClusterAddOns.
	AddOns []*addonv1alpha1.ManagedClusterAddOn
}

// ObjectsOf returns the objects of a stack. Configs are in a namespace that belongs to no cluster.
func ObjectsOf(name, namespace string, addOns []Resolved) Objects {
	marks := map[string]string{kudo.LabelStack: name}
	var all Objects
	for _, a := range inOrder(addOns) {
		config, values := configsOf(a, namespace)
		key := &types.NamespacedName{Namespace: config.Namespace, Name: config.Name}
		described := AddOn{Name: a.Name.Value, Version: a.Version, Config: key, Dependencies: a.Needs()}
		described.Placements, described.RolloutStrategy = a.Placements, a.RolloutStrategy
		if len(values.Data) > 0 {
			described.Values = key
			values.Labels = map[string]string{kudo.LabelStack: name, kudo.LabelConfiguration: "true"}
			all.Values = append(all.Values, values)
		}
		definition := described.Definition()
		config.Labels, definition.Labels = marks, marks
		all.Configs, all.Definitions = append(all.Configs, config), append(all.Definitions, definition)
		for _, cluster := range a.Clusters {
			addOn := &addonv1alpha1.ManagedClusterAddOn{
				TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: kindAddOn},
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Value, Name: a.Name.Value, Labels: marks},
			}
			addOn.Spec.InstallNamespace = a.Namespace
			all.AddOns = append(all.AddOns, addOn)
		}
	}
	return all
}

// ConfigName returns the name of the AddOnDeploymentConfig with the parameters of an add-on, and of the ConfigMap with the long ones.
func ConfigName(addOn string) string { return addOn + "-parameters" }

// maxVariable is the number of characters of a variable's value that OCM's AddOnDeploymentConfig accepts.
const maxVariable = 1024

// configsOf returns the config and the ConfigMap of an add-on; the latter has no data if no parameter is too long for the former.
func configsOf(a Resolved, namespace string) (*addonv1alpha1.AddOnDeploymentConfig, *corev1.ConfigMap) {
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: ConfigName(a.Name.Value)}
	config := &addonv1alpha1.AddOnDeploymentConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: kindConfig}, ObjectMeta: metadata,
	}
	values := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kindValues}, ObjectMeta: metadata, Data: map[string]string{}}
	config.Spec.AgentInstallNamespace = a.Namespace
	for _, p := range a.Parameters {
		if utf8.RuneCountInString(p.Value) > maxVariable {
			values.Data[p.Name] = p.Value
			continue
		}
		config.Spec.CustomizedVariables = append(config.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: p.Name, Value: p.Value})
	}
	return config, values
}

// The kinds of a stack, besides those of packages.
const (
	kindAddOn      = "ManagedClusterAddOn"
	kindDefinition = "ClusterManagementAddOn"
	kindConfig     = "AddOnDeploymentConfig"
	kindValues     = "ConfigMap"
)

// Needs returns the dependencies of the add-on.
func (e Entry) Needs() []addonv1alpha1.AddonDependency {
	needs := make([]addonv1alpha1.AddonDependency, 0, len(e.Dependencies))
	for _, d := range e.Dependencies {
		needs = append(needs, d.AddonDependency)
	}
	return needs
}

// inOrder returns the add-ons, those that others depend on first, and otherwise in the order of the file.
func inOrder(addOns []Resolved) []Resolved {
	at := map[string]int{}
	for i, a := range addOns {
		at[a.Name.Value] = i
	}
	needsOf := func(name string) []addonv1alpha1.AddonDependency {
		if i, known := at[name]; known {
			var needs []addonv1alpha1.AddonDependency // optional ones and alternatives come first, too
			for _, candidate := range dependency.CandidatesOf(addOns[i].Needs()) {
				needs = append(needs, addonv1alpha1.AddonDependency{Name: candidate, Type: addonv1alpha1.DependencyTypeRequired})
			}
			return needs
		}
		return nil
	}
	sorted, met := make([]Resolved, 0, len(addOns)), map[string]bool{}
	for _, a := range addOns {
		for _, name := range append(dependency.Prerequisites(a.Name.Value, needsOf), a.Name.Value) {
			if i, known := at[name]; known && !met[name] {
				met[name] = true
				sorted = append(sorted, addOns[i])
			}
		}
	}
	return sorted
}

// Manifests returns all objects as users write them.
func (o Objects) Manifests() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	add := func(object *unstructured.Unstructured, err error) error {
		all = append(all, object)
		return err
	}
	for _, config := range o.Configs {
		if err := add(Manifest(config)); err != nil {
			return nil, err
		}
	}
	for _, values := range o.Values {
		if err := add(Manifest(values)); err != nil {
			return nil, err
		}
	}
	for _, definition := range o.Definitions {
		if err := add(Manifest(definition)); err != nil {
			return nil, err
		}
	}
	for _, addOn := range o.AddOns {
		if err := add(Manifest(addOn)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// DependencyProblems checks the dependencies of a stack beside the add-ons that exist on the hub, and returns problems and warnings in the stack file.
func DependencyProblems(addOns []Resolved, definitions []*addonv1alpha1.ClusterManagementAddOn, existing Definitions) (refused, warnings []Problem) {
	placed := func(findings []Finding) []Problem {
		var problems []Problem
		for _, found := range findings {
			i := slices.IndexFunc(addOns, func(a Resolved) bool { return a.Name.Value == found.AddOn })
			problems = append(problems, Problem{Place: addOns[i].Dependencies[found.Index].Place, Message: found.Message})
		}
		return problems
	}
	wrong, remarks := CheckDependencies(definitions, existing)
	return placed(wrong), placed(remarks)
}
